"""Whose keys count, from when until when; and which keys of a ledger's table are trusted for standing there."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentgate.errors import Misuse
from agentgate.keyring import Keyring, LedgerKey, addition_digest, sign_addition
from agentgate.publickeys import ApproverKey
from agentgate.signing import key_hash, verify
from support.ids import LEDGER, RUN
from support.signers import DAY_US, FROM_US, SMALL_ORDER, entry, keyring_file, public, signer

UNTIL_US = FROM_US + DAY_US
NOW_US = FROM_US + DAY_US // 2


def judged(key: ApproverKey, *, at_us: int, now_us: int | None = None) -> Any:
    return Keyring([key]).judge(key.hash, at_us=at_us, now_us=at_us if now_us is None else now_us)


def test_a_key_is_found_by_its_hash_and_says_whose_it_is_and_what_it_may_approve(tmp_path: Path) -> None:
    ring = Keyring.load(keyring_file(tmp_path / "keyring.json", entry("ada"), entry("eve", roles=["b", "a", "b"])))
    ada, eve = (ring.judge(signer(name).hash, at_us=FROM_US, now_us=FROM_US) for name in ("ada", "eve"))
    assert isinstance(ada, ApproverKey)
    assert isinstance(eve, ApproverKey)
    assert (ada.name, ada.roles, ada.trusted_to_add) == ("person:ada", ("finance",), False)
    assert (eve.name, eve.roles) == ("person:eve", ("a", "b"))
    assert len(ring) == 2
    assert ring.get(ada.hash) is ada
    assert ring.judge(signer("bob").hash, at_us=FROM_US, now_us=FROM_US) == "unknown_key"
    assert ring.judge(ada.public, at_us=FROM_US, now_us=FROM_US) == "unknown_key"


def test_validity_is_exact_to_a_microsecond_and_judged_by_the_time_of_receipt() -> None:
    key = public("ada", until_us=UNTIL_US)
    assert judged(key, at_us=FROM_US - 1) == "key_not_yet_valid"
    assert judged(key, at_us=FROM_US) is key
    assert judged(key, at_us=UNTIL_US - 1) is key
    assert judged(key, at_us=UNTIL_US) == "key_expired"
    assert judged(key, at_us=UNTIL_US - 1, now_us=UNTIL_US + DAY_US) is key  # received in time, claimed later
    assert judged(key, at_us=FROM_US - 1, now_us=NOW_US) == "key_not_yet_valid"
    assert judged(public("ada"), at_us=FROM_US + 10**15) == public("ada")  # no end


def test_a_vote_from_the_future_does_not_make_a_key_valid_before_its_time() -> None:
    assert judged(public("ada"), at_us=FROM_US, now_us=FROM_US - 1) == "key_not_yet_valid"


def test_a_revoked_key_carries_nothing_any_more_whatever_time_the_vote_says() -> None:
    key = public("ada", revoked_us=NOW_US)
    assert judged(key, at_us=FROM_US, now_us=NOW_US - 1) is key
    for at_us in (FROM_US, NOW_US - 1, NOW_US, UNTIL_US):
        assert judged(key, at_us=at_us, now_us=NOW_US) == "key_revoked"
    assert judged(replace(key, until_us=NOW_US), at_us=UNTIL_US) == "key_revoked"  # the stronger word first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"public": bytes(31)}, "public: it is not 32 bytes; give the 32 bytes"),
        *(({"public": bytes.fromhex(small)}, "public: it is of small order") for small in SMALL_ORDER),
        ({"name": ""}, "name: give 1 to 200 printable characters"),
        ({"name": "ada\u200b"}, "name: give 1 to 200"),
        ({"roles": ["finance"]}, "roles: give a tuple"),
        ({"roles": ("",)}, "roles: give a tuple"),
        ({"from_us": None}, "from_us: give whole microseconds"),
        ({"from_us": 1.0}, "from_us: give whole microseconds"),
        ({"from_us": -1}, "from_us: give whole microseconds"),
        ({"revoked_us": True}, "revoked_us: give whole microseconds"),
        ({"until_us": 2**53}, "until_us: give whole microseconds"),
        ({"until_us": FROM_US}, "until_us: it ends before it begins; give a later time"),
    ],
)
def test_what_is_no_key_is_refused_by_field(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        public("ada", **change)


def test_one_key_stands_in_a_keyring_once() -> None:
    with pytest.raises(Misuse, match="stands there twice; name each key once"):
        Keyring([public("ada"), public("ada", name="person:eve")])
    keys: Any = ["ada"]
    with pytest.raises(Misuse, match=r"Keyring\.load"):
        Keyring(keys)


# --- keys of a ledger's table ---------------------------------------------------------------------------------

ADMIN = public("admin", trusted_to_add=True)
ADDED = public("ada", roles=("finance", "legal"), until_us=UNTIL_US)


def signed(key: ApproverKey = ADDED, by: str = "admin", ledger: str = LEDGER, **changes: Any) -> LedgerKey:
    return replace(sign_addition(signer(by), key, ledger=ledger), **changes)


def with_table(*added: LedgerKey, file: tuple[ApproverKey, ...] = (ADMIN,), **revoked: int) -> Keyring:
    revocations = {signer(name).hash: at_us for name, at_us in revoked.items()}
    return Keyring(file).with_ledger_keys(added, revoked=revocations, ledger=LEDGER, now_us=NOW_US)


def test_an_addition_binds_the_ledger_and_everything_the_key_may_do() -> None:
    text = (
        f'{{"from_us":{FROM_US},"key":"{ADDED.hash.hex()}","ledger":"{LEDGER}","name":"person:ada",'
        f'"public":"{ADDED.public.hex()}","roles":["finance","legal"],"until_us":{UNTIL_US}}}'
    )
    assert addition_digest(LEDGER, ADDED) == hashlib.sha256(b"agentgate/keyring/v1\0" + text.encode()).digest()
    endless = text.replace(f',"until_us":{UNTIL_US}', "")
    without = addition_digest(LEDGER, replace(ADDED, until_us=None))
    assert without == hashlib.sha256(b"agentgate/keyring/v1\0" + endless.encode()).digest()
    one = signed()
    assert one.hash == key_hash(one.public) == ADDED.hash
    assert verify(ADMIN.public, one.signature, addition_digest(LEDGER, ADDED))


def test_a_key_that_a_trusted_key_has_added_counts_as_one_of_the_file() -> None:
    ring = with_table(signed())
    assert ring.judge(ADDED.hash, at_us=NOW_US, now_us=NOW_US) == ADDED
    assert ring.judge(ADDED.hash, at_us=UNTIL_US, now_us=UNTIL_US) == "key_expired"
    assert len(ring) == 2


OTHER = public("other")
FORGED = {
    "nobody signed": (signed(signature=bytes(64)), "bad_signature"),
    "another name": (signed(name="person:eve"), "bad_signature"),
    "another role": (signed(roles=("admin",)), "bad_signature"),
    "one role more": (signed(roles=("admin", "finance", "legal")), "bad_signature"),
    "one role less": (signed(roles=("finance",)), "bad_signature"),
    "earlier": (signed(from_us=FROM_US - 1), "bad_signature"),
    "longer": (signed(until_us=UNTIL_US + 1), "bad_signature"),
    "without end": (signed(until_us=None), "bad_signature"),
    "another key": (signed(public=OTHER.public), "bad_signature"),
    "another ledger": (signed(ledger=RUN), "bad_signature"),
    "signed by itself": (signed(by="ada"), "unknown_signer"),
    "signed by a stranger": (signed(by="eve"), "unknown_signer"),
    "a stranger's signature in the admin's name": (signed(by="eve", signer=ADMIN.hash), "bad_signature"),
    "no signer": (signed(signer=b""), "unknown_signer"),
    "no signature": (signed(signature=b""), "bad_signature"),
    "small order": (signed(public=bytes.fromhex(SMALL_ORDER[0])), "unfit"),
    "no key": (signed(public=b"x"), "unfit"),
    "no name": (signed(name=""), "unfit"),
    "no time": (signed(from_us=-1), "unfit"),
}


@pytest.mark.parametrize(("forged", "reason"), FORGED.values(), ids=FORGED.keys())
def test_a_row_that_nobody_trusted_has_signed_is_passed_over(forged: LedgerKey, reason: str) -> None:
    ring = with_table(forged, signed(OTHER))
    assert Keyring([ADMIN]).refuses(forged, ledger=LEDGER, now_us=NOW_US) == reason
    assert {key.hash for key in ring} == {ADMIN.hash, OTHER.hash}


def test_only_a_key_of_the_file_that_says_so_is_trusted_to_add() -> None:
    plain = replace(ADMIN, trusted_to_add=False)
    assert Keyring([plain]).refuses(signed(), ledger=LEDGER, now_us=NOW_US) == "untrusted_signer"
    # A key that was added adds none, although its own addition is good.
    chained = with_table(signed(), signed(OTHER, by="ada"), file=(ADMIN,))
    assert {key.hash for key in chained} == {ADMIN.hash, ADDED.hash}
    for reach in ({"trusted_to_add": True}, {"revoked_us": NOW_US}):
        with pytest.raises(Misuse, match="put it into the keyring file"):
            sign_addition(signer("admin"), replace(ADDED, **reach), ledger=LEDGER)


@pytest.mark.parametrize(
    ("change", "trusted"),
    [
        ({"revoked_us": NOW_US + 1}, True),
        ({"revoked_us": NOW_US}, False),
        ({"until_us": NOW_US + 1}, True),
        ({"until_us": NOW_US}, False),
        ({"from_us": NOW_US}, True),
        ({"from_us": NOW_US + 1}, False),
    ],
)
def test_whoever_added_a_key_must_be_trusted_now(change: dict[str, Any], *, trusted: bool) -> None:
    """When an addition was signed is told by the database alone."""
    ring = with_table(signed(), file=(replace(ADMIN, **change),))
    assert (ring.get(ADDED.hash) is not None) is trusted


def test_the_file_wins_over_the_table() -> None:
    strict = replace(ADDED, roles=())
    ring = with_table(signed(), file=(ADMIN, strict))
    assert ring.get(ADDED.hash) == strict
    assert Keyring([strict]).refuses(signed(), ledger=LEDGER, now_us=NOW_US) == "in_file"


def test_a_revocation_in_the_table_needs_no_signature_and_takes_none_back() -> None:
    ring = with_table(signed(), ada=NOW_US)
    assert ring.judge(ADDED.hash, at_us=FROM_US, now_us=NOW_US) == "key_revoked"
    file = (ADMIN, replace(OTHER, revoked_us=NOW_US - 5))
    ring = with_table(file=file, other=NOW_US + 5)
    assert ring.judge(OTHER.hash, at_us=FROM_US, now_us=NOW_US) == "key_revoked"
    assert (ring.get(OTHER.hash) or OTHER).revoked_us == NOW_US - 5
    # The file's own key too, and with it whatever it has added.
    ring = with_table(signed(), admin=NOW_US)
    assert [key.judge(at_us=FROM_US, now_us=NOW_US) for key in ring] == ["key_revoked"]
    for absurd in (-1, 2**63 - 1):
        assert len(with_table(signed(), ada=absurd)) == 2
    with_none = with_table(signed(), eve=NOW_US)
    assert with_none.judge(ADDED.hash, at_us=NOW_US, now_us=NOW_US) == ADDED


def test_a_row_that_stands_twice_counts_once() -> None:
    assert len(with_table(signed(), signed())) == 2
