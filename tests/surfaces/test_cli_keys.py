"""`agentgate keys`: what it writes where, what it shows, and what it never shows."""

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agentgate import Gate, Keyring, SigningKey
from agentgate.publickeys import entry_of
from agentgate.testing import ScriptedPolicy
from support.commands import Ran, ran, unseen
from support.signers import FROM, FROM_US, entry, keyring_file, private_forms, public, signer
from support.terminals import answered
from support.worlds import World, made

BY = ("--by", "ops:ada")
KEY = signer("ada").hash.hex()
ENTRY = json.dumps(entry("ada"))
URL = "sqlite:////nowhere/at/all/agent.db"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def ledger_of(world: World) -> str:
    with Gate.open(world.url, policy=ScriptedPolicy()) as gate:
        return gate.ledger


def ok(*arguments: str) -> Ran:
    done = ran("keys", *arguments)
    assert done.code == 0, done.err
    assert not unseen(done.out + done.err)
    return done


def test_a_made_key_is_its_owners_alone_and_its_entry_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "ada.pem"
    done = ok("generate", str(file), "--name", "person:ada", "--role", "b", "--role", "a", "--from", FROM)
    key = SigningKey.load(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert done.document == {"public": key.public.hex(), "name": "person:ada", "roles": ["a", "b"], "from": FROM}
    again = ran("keys", "generate", str(file), "--name", "person:ada")
    assert (again.code, again.out) == (2, "")
    assert "exists; a key that is overwritten is lost: name a new file" in again.err
    assert SigningKey.load(file).hash == key.hash


def test_a_made_key_goes_into_a_keyring_file_that_keeps_its_others(tmp_path: Path) -> None:
    ring = keyring_file(tmp_path / "ring.json", entry("eve", trusted_to_add=False))
    file = tmp_path / "ada.pem"
    flags = ("--until", "2040-01-01T00:00:00.25Z", "--trusted-to-add")
    done = ok("generate", str(file), "--name", "person:ada", "--from", FROM, "--keyring", str(ring), *flags)
    key = SigningKey.load(file)
    assert key.hash.hex() in done.out
    eve, ada = json.loads(ring.read_text("utf-8"))["keys"]
    assert eve == entry("eve", trusted_to_add=False)
    assert ada == {
        "public": key.public.hex(), "name": "person:ada", "roles": [], "from": FROM,
        "until": "2040-01-01T00:00:00.250000Z", "trusted_to_add": True,
    }  # fmt: skip


def test_where_the_keyring_cannot_be_changed_no_private_key_is_left(tmp_path: Path) -> None:
    ring = keyring_file(tmp_path / "ring.json", more=1)
    before = ring.read_bytes()
    done = ran("keys", "generate", str(tmp_path / "ada.pem"), "--name", "person:ada", "--keyring", str(ring))
    assert done.code == 2
    assert "at /more: it is an unknown member" in done.err
    assert ring.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["ring.json"]


def test_a_key_is_added_to_a_file_once_and_revoked_for_good(tmp_path: Path) -> None:
    ring = tmp_path / "ring.json"
    at = ("--keyring", str(ring))
    assert ok("add", ENTRY, *at, "--json").document == {"key": KEY, "changed": True}
    written = tmp_path / "entry.json"
    written.write_text(ENTRY, "utf-8")
    assert "stands already in" in ok("add", f"@{written}", *at).out
    assert ok("revoke", KEY, *at, "--since", "2030-01-01T00:00:00Z", "--json").document == {"key": KEY, "changed": True}
    assert [one.revoked_us for one in Keyring.load(ring)] == [1_893_456_000_000_000]
    ok("revoke", KEY, *at)
    assert [(one.revoked_us or 0) < 1_893_456_000_000_000 for one in Keyring.load(ring)] == [True]
    assert ok("revoke", KEY, *at, "--json").document == {"key": KEY, "changed": False}
    missing = ran("keys", "revoke", "0" * 64, *at, "--json")
    assert (missing.code, missing.document["error"]["code"]) == (2, "not_found")


def test_a_list_tells_of_each_key_whether_it_counts_now(tmp_path: Path) -> None:
    ring = keyring_file(
        tmp_path / "ring.json",
        entry("now"),
        entry("later", **{"from": "2250-01-01T00:00:00Z"}),
        entry("before", until="2024-01-01T00:00:00Z"),
        entry("gone", revoked="2024-01-01T00:00:00Z", trusted_to_add=True),
    )
    documents = ok("list", "--keyring", str(ring), "--json").documents
    assert [(one["name"], one["state"], one["where"]) for one in documents] == [
        ("person:now", "valid", "file"),
        ("person:later", "key_not_yet_valid", "file"),
        ("person:before", "key_expired", "file"),
        ("person:gone", "key_revoked", "file"),
    ]
    assert documents[0] == {
        "key": signer("now").hash.hex(), "public": signer("now").public.hex(), "name": "person:now",
        "roles": ["finance"], "from_us": FROM_US, "until_us": None, "revoked_us": None, "trusted_to_add": False,
        "state": "valid", "where": "file", "signer": None,
    }  # fmt: skip
    page = ok("list", "--keyring", str(ring)).out
    assert signer("gone").hash.hex() in page
    assert "finance (adds)" in page


def test_a_key_comes_into_a_ledgers_table_with_a_signature_alone(world: World, tmp_path: Path) -> None:
    ring = keyring_file(tmp_path / "ring.json", entry("admin", trusted_to_add=True))
    private = tmp_path / "admin.pem"
    signer("admin").save(private)
    at = ("--keyring", str(ring), "--db", world.url)
    signed = ok("sign", ENTRY, "--ledger", ledger_of(world), "--signing-key", str(private)).out.strip()
    assert ok("add", signed, *at, *BY, "--json").document == {"key": KEY, "changed": True}
    listed = ok("list", *at, "--json").documents
    assert [(one["name"], one["state"], one["where"]) for one in listed] == [
        ("person:admin", "valid", "file"), ("person:ada", "valid", "table"),
    ]  # fmt: skip
    assert ok("list", "--db", world.url, "--json").document["state"] == "not_judged"

    forged = ran("keys", "add", signed.replace("finance", "root"), *at, *BY, "--json")
    assert (forged.code, forged.document["error"]["code"]) == (1, "not_possible")
    unsigned = ran("keys", "add", ENTRY, *at, *BY)
    assert (unsigned.code, "ENTRY: nobody has signed it" in unsigned.err) == (2, True)

    assert ok("revoke", KEY, "--db", world.url, *BY, "--json").document == {"key": KEY, "changed": True}
    assert ok("revoke", KEY, "--db", world.url, *BY, "--json").document == {"key": KEY, "changed": False}
    assert [one["state"] for one in ok("list", *at, "--json").documents] == ["valid", "key_revoked"]
    ok("revoke", signer("admin").hash.hex(), "--db", world.url, *BY)
    assert [one["state"] for one in ok("list", *at, "--json").documents] == ["key_revoked", "key_revoked"]
    assert not world.damage()


def test_a_forged_row_is_listed_as_what_it_is(world: World, tmp_path: Path) -> None:
    ring = keyring_file(tmp_path / "ring.json", entry("admin", trusted_to_add=True))
    forged = public("eve")
    row = (forged.hash, forged.public, "eve\u202e\x1b[2J", b'["finance"]', 2**62, None, signer("admin").hash, bytes(64))
    world.sql("INSERT INTO agentgate_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)", *row)
    for extra in (("--keyring", str(ring)), ()):
        done = ok("list", "--db", world.url, *extra)
        assert forged.hash.hex() in done.out
    assert [one["state"] for one in ok("list", "--db", world.url, "--keyring", str(ring), "--json").documents] == [
        "valid", "unfit",
    ]  # fmt: skip


WRONG = {
    "no name": (("generate", "x.pem"), "name"),
    "an empty name": (("generate", "x.pem", "--name", ""), "name: give 1 to 200 printable characters"),
    "a naive time": (("generate", "x.pem", "--name", "a", "--from", "2026-12-01"), "--from: no time; write a time"),
    "an end before the beginning": (
        ("generate", "x.pem", "--name", "a", "--from", FROM, "--until", FROM), "until_us: it ends before it begins",
    ),
    "no terminal to ask on": (
        ("generate", "x.pem", "--name", "a", "--passphrase"), "--passphrase: there is no terminal to ask on; run it on",
    ),
    "nowhere to add to": (("add", ENTRY), "--keyring: missing; name the keyring file"),
    "no JSON": (("add", "ada", "--keyring", "x"), "ENTRY: no JSON"),
    "no entry": (("add", "[]", "--keyring", "x"), "ENTRY at /keys/0: it is no object"),
    "a weak key": (("add", json.dumps(entry("a", public="00" * 32)), "--keyring", "x"), "it is of small order"),
    "an entry in no file": (("add", "@/no/where", "--keyring", "x"), "ENTRY: /no/where cannot be read"),
    "a signature that is none": (("add", ENTRY[:-1] + ', "signer": "a"}', "--keyring", "x"), "ENTRY: its signer or"),
    "nobody who adds": (
        ("add", ENTRY, "--keyring", "x", "--db", "agent.db"), "--db: no database URL; give sqlite:///",
    ),
    "no ledger": (("sign", ENTRY, "--signing-key", "x"), "--ledger: no ledger's id; give the 36 characters"),
    "a key that is none": (("revoke", "ada", "--keyring", "x"), "KEY: no hash of a key; give the 64"),
    "nowhere to revoke": (("revoke", KEY), "--keyring|--db: one of them is needed; say where"),
    "two places to revoke": (("revoke", KEY, "--keyring", "x", "--db", URL), "--keyring|--db: one of them"),
    "nothing to list": (("list",), "--keyring|--db: missing; say which"),
    "no keyring": (("list", "--keyring", "/no/where"), "keyring: /no/where cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_in_one_line_and_nothing_is_made(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ran("keys", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_a_passphrase_is_asked_for_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "ada.pem"
    answers = {b"Passphrase: ": b"Zq-secret-7\n", b"Repeat for confirmation: ": b"Zq-secret-7\n"}
    code, shown = answered("keys", "generate", str(file), "--name", "person:ada", "--passphrase", answers=answers)
    assert code == 0, shown
    assert b"ENCRYPTED" in file.read_bytes()
    assert SigningKey.load(file, passphrase="Zq-secret-7").public.hex().encode() in shown
    assert b"Zq-secret-7" not in shown


def test_a_private_key_is_in_no_output_and_no_file_but_its_own(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed: Callable[..., SigningKey] = lambda _clock=None: signer("canary")  # noqa: E731 - one key that is known
    monkeypatch.setattr(SigningKey, "new", fixed)
    private, ring = tmp_path / "private", tmp_path / "ring.json"
    at = ("--keyring", str(ring), "--db", world.url)
    told = [
        ran("keys", "generate", str(private), "--name", "person:canary", "--trusted-to-add", "--keyring", str(ring))
    ]
    signed = ran("keys", "sign", ENTRY, "--ledger", ledger_of(world), "--signing-key", str(private))
    told += [
        signed,
        ran("keys", "generate", str(private), "--name", "a"),
        ran("keys", "add", signed.out.strip(), *at, *BY),
    ]
    told += [ran("keys", "list", *at, *form) for form in ((), ("--json",))]
    told += [ran("keys", "revoke", signer("canary").hash.hex(), "--keyring", str(ring)), ran("verify", world.url)]
    private.chmod(0o644)
    told.append(ran("keys", "sign", ENTRY, "--ledger", ledger_of(world), "--signing-key", str(private)))
    assert [done.code for done in told] == [0, 0, 2, 0, 0, 0, 0, 0, 2]
    places = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    places["output"] = "".join(done.out + done.err for done in told).encode()
    forms = private_forms("canary")
    assert {name for name, content in places.items() if any(form in content for form in forms)} == {"private"}
    assert base64.b64encode(signer("canary").public) not in places["private"]


def test_what_generate_prints_is_what_add_takes(tmp_path: Path) -> None:
    printed = ok("generate", str(tmp_path / "a.pem"), "--name", "a", "--role", "é").out.strip()
    ok("add", printed, "--keyring", str(tmp_path / "ring.json"))
    (key,) = Keyring.load(tmp_path / "ring.json")
    assert entry_of(key) == json.loads(printed)
