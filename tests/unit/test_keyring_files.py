"""The file of public keys: strict when it is read, whole when it is changed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentgate.clock import SystemClock
from agentgate.errors import KeyringRefused, Misuse, NotFound
from agentgate.keyfile import add_key, revoke_key
from agentgate.keyring import Keyring
from agentgate.publickeys import entry_of, time_text, time_us
from support.signers import DAY_US, FROM_US, SMALL_ORDER, entry, keyring_file, public, signer

CLOCK = SystemClock()
TIME = "write a time in UTC, from 1970 to 2255, as 2026-12-01T00:00:00Z"
HEX = "give the 32 bytes of an Ed25519 public key, in a file as 64 lower-case hexadecimal digits"
MEMBERS = "leave it out; the members are public, name, roles, from, until, revoked, trusted_to_add"
NOT_IT, MISSING = "it is not what it must be", "it is missing"
NAME = "give 1 to 200 printable characters"
ROLES = f"give a list of names, [] where there is none; of each, {NAME}"
SMALL = "it is of small order: anybody can sign for it"
OTHERWISE = "it is not canonical: the same key has another encoding"
NO_END = f"{TIME}, or leave it out"


def refused(path: Path) -> tuple[str, str, str]:
    with pytest.raises(KeyringRefused) as caught:
        Keyring.load(path)
    error = caught.value
    assert isinstance(error, Misuse)
    assert (error.source, error.code) == (str(path), "keyring_refused")
    assert str(error) == f"{path} at {error.path or '/'}: {error.problem}; {error.remedy}"
    return error.path, error.problem, error.remedy


WRONG: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no public key": ({"public": None}, "public", MISSING, HEX),
    "a short public key": ({"public": "ab" * 31}, "public", NOT_IT, HEX),
    "capitals": ({"public": signer("eve").public.hex().upper()}, "public", NOT_IT, HEX),
    "a number for a public key": ({"public": 7}, "public", NOT_IT, HEX),
    "no point": ({"public": "07" + "00" * 31}, "public", "it is no point of the curve", HEX),
    "not canonical": ({"public": "f0" + "ff" * 30 + "7f"}, "public", OTHERWISE, HEX),
    **{
        f"small order {small[:4]}…{small[-2:]}": ({"public": small}, "public", SMALL, HEX)
        for small in SMALL_ORDER
    },
    "the key once more": (
        {"public": signer("ada").public.hex()}, "public", "the key stands in the file already", "name each key once",
    ),
    "no name": ({"name": None}, "name", MISSING, NAME),
    "an empty name": ({"name": ""}, "name", NOT_IT, NAME),
    "a name that turns a line": ({"name": "a\nb"}, "name", NOT_IT, NAME),
    "a long name": ({"name": "a" * 201}, "name", NOT_IT, NAME),
    "no roles": ({"roles": None}, "roles", MISSING, ROLES),
    "a role that is none": ({"roles": ["a", 7]}, "roles/1", NOT_IT, ROLES),
    "no beginning": ({"from": None}, "from", MISSING, TIME),
    "a naive time": ({"from": "2026-12-01T00:00:00"}, "from", NOT_IT, TIME),
    "another zone": ({"from": "2026-12-01T00:00:00+01:00"}, "from", NOT_IT, TIME),
    "zero as a zone": ({"from": "2026-12-01T00:00:00+00:00"}, "from", NOT_IT, TIME),
    "a day": ({"from": "2026-12-01"}, "from", NOT_IT, TIME),
    "no such day": ({"from": "2026-02-30T00:00:00Z"}, "from", NOT_IT, TIME),
    "a leap second": ({"from": "2016-12-31T23:59:60Z"}, "from", NOT_IT, TIME),
    "too fine a time": ({"from": "2026-12-01T00:00:00.1234567Z"}, "from", NOT_IT, TIME),
    "other digits": ({"from": "２026-12-01T00:00:00Z"}, "from", NOT_IT, TIME),
    "before 1970": ({"from": "1969-12-31T23:59:59Z"}, "from", NOT_IT, TIME),
    "too late a time": ({"from": "2255-06-05T23:47:34.740992Z"}, "from", NOT_IT, TIME),
    "for ever": ({"until": "9999-12-31T23:59:59Z"}, "until", NOT_IT, NO_END),
    "a number for a time": ({"from": 1_700_000_000}, "from", NOT_IT, TIME),
    "an end that is none": ({"until": ""}, "until", NOT_IT, NO_END),
    "an end before the beginning": (
        {"until": "2023-11-14T22:13:20Z"}, "until", "it ends before it begins", "give a later time, or leave it out",
    ),
    "a revocation that is none": ({"revoked": True}, "revoked", NOT_IT, NO_END),
    "trust in words": ({"trusted_to_add": "yes"}, "trusted_to_add", NOT_IT, "write true or false"),
    "a misspelt revocation": ({"revokd": "2026-12-01T00:00:00Z"}, "revokd", "it is an unknown member", MEMBERS),
    "a member of a number": ({"7": 1}, "7", "it is an unknown member", MEMBERS),
}  # fmt: skip


@pytest.mark.parametrize(("change", "field", "problem", "remedy"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_key_is_named_with_its_place_and_what_would_do(
    change: dict[str, Any], field: str, problem: str, remedy: str, tmp_path: Path
) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada"), entry("eve", **change))
    assert refused(path) == (f"/keys/1/{field}", problem, remedy)


FILES: dict[str, tuple[str, str, str]] = {
    "nothing": ("", "", "syntax"),
    "no JSON": ("keys: []", "", "syntax"),
    "a list": ("[]", "", "it is no object"),
    "no version": ('{"keys": []}', "/version", MISSING),
    "version 2": ('{"version": 2, "keys": []}', "/version", NOT_IT),
    "true for a version": ('{"version": true, "keys": []}', "/version", NOT_IT),
    "no keys": ('{"version": 1}', "/keys", MISSING),
    "keys by name": ('{"version": 1, "keys": {}}', "/keys", NOT_IT),
    "a key that is a text": ('{"version": 1, "keys": ["ada"]}', "/keys/0", "it is no object"),
    "more than keys": ('{"version": 1, "keys": [], "key": []}', "/key", "it is an unknown member"),
    "keys twice": ('{"version": 1, "keys": [], "keys": []}', "/keys", "duplicate_key"),
    "a member of a key twice": ('{"version": 1, "keys": [{"x": "a", "x": "b"}]}', "/keys/0/x", "duplicate_key"),
    "half a surrogate": ('{"version": 1, "keys": [{"name": "\\ud800"}]}', "/keys/0/name", "surrogate"),
    "a byte order mark": ("\ufeff{}", "", "encoding"),
    "too large": (f'{{"version": 1, "keys": [], "x": "{"x" * 1_048_576}"}}', "", "size"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "problem"), FILES.values(), ids=FILES.keys())
def test_a_file_of_another_shape_is_refused_with_the_place(text: str, path: str, problem: str) -> None:
    with pytest.raises(KeyringRefused) as caught:
        Keyring.read(text.encode(), source="keyring.json")
    assert (caught.value.path, caught.value.problem) == (path, problem)
    assert caught.value.remedy


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o602, 0o620, 0o666])
def test_a_file_that_others_may_change_is_refused(mode: int, tmp_path: Path) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada"))
    path.chmod(mode)
    with pytest.raises(Misuse, match=f"keyring: others may change {path}; run: chmod go-w {path}"):
        Keyring.load(path)
    for mode_of_owner in (0o644, 0o600, 0o444):
        path.chmod(mode_of_owner)
        assert len(Keyring.load(path)) == 1


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, words in (("nowhere", "cannot be read"), ("pipe", "is no file"), (".", "is no file|cannot be read")):
        with pytest.raises(Misuse, match=words):
            Keyring.load(tmp_path / name)


def test_times_are_exact_to_a_microsecond_and_written_as_they_are_read() -> None:
    for text, at_us in (
        ("1970-01-01T00:00:00Z", 0),
        ("2023-11-14T22:13:20Z", FROM_US),
        ("2023-11-14T22:13:20.000001Z", FROM_US + 1),
        ("2023-11-14T22:13:20.5Z", FROM_US + 500_000),
        ("2255-06-05T23:47:34.740991Z", 2**53 - 1),
    ):
        assert time_us(text) == at_us
        assert time_us(time_text(at_us)) == at_us
    full = public("ada", roles=("a",), until_us=FROM_US + 7, revoked_us=FROM_US + 3, trusted_to_add=True)
    document = json.dumps({"version": 1, "keys": [entry_of(full)]}).encode()
    assert list(Keyring.read(document, source="x")) == [full]


# --- changing it ----------------------------------------------------------------------------------------------


def test_a_key_is_added_to_a_new_file_and_to_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    assert add_key(path, public("ada"), clock=CLOCK)
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)
    assert add_key(path, public("eve", roles=("b", "a")), clock=CLOCK)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(Keyring.load(path)) == [public("ada"), public("eve", roles=("a", "b"))]
    assert [one.name for one in tmp_path.iterdir()] == ["keyring.json"]


def test_every_other_key_stands_as_it_stood(tmp_path: Path) -> None:
    old = [
        entry("ada", roles=["z", "a", "z"], until="2033-01-01T00:00:00.50Z", name="Ädä 😀"),
        entry("eve", trusted_to_add=False, revoked="2026-01-01T00:00:00Z"),
    ]
    path = keyring_file(tmp_path / "keyring.json", *old)
    add_key(path, public("bob"), clock=CLOCK)
    revoke_key(path, signer("bob").hash, at_us=FROM_US + 9, clock=CLOCK)
    now = json.loads(path.read_text("utf-8"))
    assert now == {"version": 1, "keys": [*old, entry_of(public("bob", revoked_us=FROM_US + 9))]}


def test_the_same_key_added_again_changes_nothing_and_one_that_differs_is_refused(tmp_path: Path) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada", roles=[]))
    before = path.read_bytes(), path.stat().st_ino
    assert not add_key(path, public("ada"), clock=CLOCK)
    with pytest.raises(Misuse, match=r"holds the key .* otherwise; revoke it and make a new one"):
        add_key(path, public("ada", roles=("admin",)), clock=CLOCK)
    assert (path.read_bytes(), path.stat().st_ino) == before


def test_a_revocation_stands_from_the_earliest_time_said(tmp_path: Path) -> None:
    path, key = keyring_file(tmp_path / "keyring.json", entry("ada")), signer("ada").hash
    assert revoke_key(path, key, at_us=FROM_US + 5, clock=CLOCK) == FROM_US + 5
    assert revoke_key(path, key, at_us=FROM_US + 9, clock=CLOCK) == FROM_US + 5
    assert revoke_key(path, key, at_us=FROM_US + 2, clock=CLOCK) == FROM_US + 2
    assert [one.revoked_us for one in Keyring.load(path)] == [FROM_US + 2]
    with pytest.raises(NotFound, match="no key"):
        revoke_key(path, signer("eve").hash, at_us=FROM_US, clock=CLOCK)
    with pytest.raises(Misuse, match=r"there is no .*; name the file that holds the key"):
        revoke_key(tmp_path / "nowhere.json", key, at_us=FROM_US, clock=CLOCK)
    assert [one.name for one in tmp_path.iterdir()] == ["keyring.json"]


def test_a_file_that_cannot_be_read_is_not_changed(tmp_path: Path) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada"), more=1)
    before = path.read_bytes()
    with pytest.raises(KeyringRefused):
        add_key(path, public("eve"), clock=CLOCK)
    path.chmod(0o666)
    with pytest.raises(Misuse, match="others may change"):
        add_key(path, public("eve"), clock=CLOCK)
    assert path.read_bytes() == before
    with pytest.raises(Misuse, match="cannot be changed"):
        add_key(tmp_path / "no" / "keyring.json", public("eve"), clock=CLOCK)


def test_a_link_stays_one_and_what_it_leads_to_is_changed(tmp_path: Path) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada"))
    link = tmp_path / "link.json"
    link.symlink_to(path)
    add_key(link, public("eve"), clock=CLOCK)
    assert link.is_symlink()
    assert len(Keyring.load(path)) == 2


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada"))
    before = path.read_bytes()

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(Misuse, match=r"keyring: .* cannot be changed \(No space left on device\)"):
            add_key(path, public("eve"), clock=CLOCK)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["keyring.json"]


ADDING = """
import sys
from pathlib import Path
from agentgate.clock import SystemClock
from agentgate.keyfile import add_key
from agentgate.publickeys import ApproverKey
from agentgate.signing import SigningKey
for number in range(12):
    key = ApproverKey(public=SigningKey.new().public, name=f"{sys.argv[2]} {number}", from_us=1)
    assert add_key(Path(sys.argv[1]), key, clock=SystemClock())
"""


def test_processes_that_add_at_once_lose_no_key(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    started = [subprocess.Popen([sys.executable, "-c", ADDING, path, str(name)]) for name in range(4)]
    seen = 0
    while any(process.poll() is None for process in started):
        if path.exists():
            seen = max(seen, len(Keyring.load(path)))  # a reader always finds a whole file
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    assert {key.name for key in Keyring.load(path)} == {f"{name} {number}" for name in range(4) for number in range(12)}
    assert 0 < seen <= 48


def test_a_key_of_the_day_before_is_valid_the_day_after(tmp_path: Path) -> None:
    path = keyring_file(tmp_path / "keyring.json", entry("ada", until=time_text(FROM_US + DAY_US)))
    ring, key = Keyring.load(path), signer("ada").hash
    assert ring.judge(key, at_us=FROM_US + DAY_US, now_us=FROM_US + DAY_US) == "key_expired"
    assert ring.judge(key, at_us=FROM_US + DAY_US - 1, now_us=FROM_US + DAY_US) == ring.get(key)
