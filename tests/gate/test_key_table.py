"""Keys in the ledger's own table: on its chain, and trusted for what an outside keyring says alone."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import agentgate
from agentgate import ApproverKey, Gate, Keyring, LedgerKey, Misuse, NotPossible, sign_addition
from agentgate.clock import SystemClock, to_datetime
from agentgate.event import Event
from agentgate.gate.keyring import trusted
from support.ids import RUN
from support.signers import FROM_US, private_forms, public, signer
from support.worlds import World

BY = "ops:ada"
FILE = Keyring([public("admin", trusted_to_add=True)])
ADA = public("ada", roles=("finance",))


def signed(gate: Gate, key: ApproverKey = ADA, by: str = "admin") -> LedgerKey:
    return sign_addition(signer(by), key, ledger=gate.ledger)


def ring(gate: Gate, file: Keyring = FILE) -> Keyring:
    """The keyring as a claim that begins now would judge by it."""
    ledger = gate._shop.ledger
    with ledger.database.read() as connection:
        return trusted(connection, file, ledger=ledger.id, now_us=SystemClock().now_us())


def told(world: World) -> list[Event]:
    return [event for event in world.events() if event.type.startswith("key_")]


def test_a_key_that_is_added_stands_on_the_ledgers_chain_and_is_trusted_by_the_keyring(world: World) -> None:
    with world.gate() as gate:
        assert ring(gate) is FILE
        gate.keys.add(signed(gate), keyring=FILE, by=BY, note="came to us")
        assert ring(gate).get(ADA.hash) == ADA
        assert ring(gate, Keyring()).get(ADA.hash) is None
        (listed,) = gate.keys.list(FILE)
        assert (listed.added, listed.hash, listed.revoked_us, listed.refusal) == (signed(gate), ADA.hash, None, None)
        assert gate.keys.list(Keyring())[0].refusal == "unknown_signer"
        assert gate.keys.list()[0].refusal is None
        (event,) = told(world)
        assert (event.run, event.body["by"], event.body["signer"]) == (gate.ledger, BY, signer("admin").hash.hex())
    assert not world.damage()


def test_what_nobody_would_trust_is_not_put_on_the_record(world: World) -> None:
    with world.gate() as gate:
        for added, words in (
            (signed(gate, by="eve"), "signed by a key that is not in the keyring file"),
            (replace(signed(gate), roles=("admin",)), "not what was signed: cannot add it; have it signed by"),
            (sign_addition(signer("admin"), ADA, ledger=RUN), "not what was signed"),
            (replace(signed(gate), public=bytes(32)), "no key that could stand for a person"),
        ):
            with pytest.raises(NotPossible, match=words):
                gate.keys.add(added, keyring=FILE, by=BY)
        plain = Keyring([public("admin")])
        with pytest.raises(NotPossible, match="signed by a key that is not trusted to add any"):
            gate.keys.add(signed(gate), keyring=plain, by=BY)
        with pytest.raises(NotPossible, match="in the keyring file already"):
            gate.keys.add(signed(gate), keyring=Keyring([*FILE, ADA]), by=BY)
        gate.keys.revoke(signer("admin").hash, by=BY)
        with pytest.raises(NotPossible, match="not trusted to add"):
            gate.keys.add(signed(gate), keyring=FILE, by=BY)
        assert [one.added for one in gate.keys.list()] == [None]
    assert [event.type for event in told(world)] == ["key_revoked"]


def test_a_key_is_revoked_for_good_from_the_earliest_time_said(world: World) -> None:
    with world.gate() as gate:
        gate.keys.add(signed(gate), keyring=FILE, by=BY)
        assert gate.keys.revoke(ADA.hash, by=BY, since=to_datetime(FROM_US + 9), note="left us")
        assert not gate.keys.revoke(ADA.hash.hex(), by=BY)
        assert gate.keys.revoke(ADA.hash, by=BY, since=to_datetime(FROM_US + 5))
        assert ring(gate).judge(ADA.hash, at_us=FROM_US, now_us=FROM_US + 5) == "key_revoked"
        assert ring(gate).judge(ADA.hash, at_us=FROM_US, now_us=FROM_US + 4) == replace(ADA, revoked_us=FROM_US + 5)
        gate.keys.add(signed(gate), keyring=FILE, by=BY)  # added again it is revoked all the same
        assert ring(gate).judge(ADA.hash, at_us=FROM_US, now_us=FROM_US + 5) == "key_revoked"
    assert [event.type for event in told(world)] == ["key_added", "key_revoked", "key_revoked", "key_added"]
    assert not world.damage()


def test_a_key_of_the_file_is_revoked_in_the_table_as_well(world: World) -> None:
    with world.gate() as gate:
        gate.keys.add(signed(gate), keyring=FILE, by=BY)
        gate.keys.revoke(signer("admin").hash, by=BY)
        now_us = SystemClock().now_us()
        assert [key.judge(at_us=now_us, now_us=now_us) for key in ring(gate)] == ["key_revoked"]
        listed = gate.keys.list(FILE)
        assert [(one.hash, one.refusal) for one in listed] == [
            (ADA.hash, "untrusted_signer"), (signer("admin").hash, None),
        ]  # fmt: skip


def test_an_addition_that_is_signed_anew_takes_the_place_of_the_first(world: World) -> None:
    other = public("other", trusted_to_add=True)
    with world.gate() as gate:
        gate.keys.add(signed(gate), keyring=FILE, by=BY)
        wider = replace(ADA, roles=("finance", "legal"), until_us=FROM_US + 10**15)
        gate.keys.add(signed(gate, wider, by="other"), keyring=Keyring([other]), by=BY)
        assert ring(gate, Keyring([other])).get(ADA.hash) == wider
        assert ring(gate).get(ADA.hash) is None
    assert not world.damage()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "person:eve"),
        ("roles", b'["finance","root"]'),
        ("roles", b"no JSON"),
        ("roles", b"7"),
        ("from_us", 0),
        ("until_us", 2**62),
        ("public", signer("eve").public),
        ("public", bytes(32)),
        ("public", b""),
        ("signer", signer("eve").hash),
        ("signature", bytes(64)),
    ],
)
def test_a_row_that_was_changed_in_the_database_is_trusted_by_nobody_and_found(
    column: str, value: Any, world: World
) -> None:
    with world.gate() as gate:
        gate.keys.add(signed(gate), keyring=FILE, by=BY)
        world.sql(f"UPDATE agentgate_keys SET {column} = ?", value)
        assert [key.name for key in ring(gate)] == ["person:admin"]
        assert [one.refusal for one in gate.keys.list(FILE)] != [None]
    assert {found.kind for found in agentgate.verify(world.url).breaks} == {"key_row"}


def test_a_row_that_was_forged_whole_is_trusted_by_nobody_and_found(world: World) -> None:
    with world.gate() as gate:
        forged = sign_addition(signer("eve"), public("eve", roles=("finance",)), ledger=gate.ledger)
        row = (forged.hash, forged.public, forged.name, b'["finance"]', forged.from_us, None)
        world.sql(
            "INSERT INTO agentgate_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
            *row,
            signer("admin").hash,
            forged.signature,
        )
        assert [key.name for key in ring(gate)] == ["person:admin"]
    assert {found.kind for found in agentgate.verify(world.url).breaks} == {"key_row"}


def test_a_revocation_that_was_taken_out_or_moved_is_found(world: World) -> None:
    with world.gate() as gate:
        gate.keys.revoke(ADA.hash, by=BY)
    for edit in ("UPDATE agentgate_revoked_keys SET since_us = since_us + 1", "DELETE FROM agentgate_revoked_keys"):
        world.sql(edit)
        assert {found.kind for found in agentgate.verify(world.url).breaks} == {"key_row"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda keys: keys.revoke("ab", by=BY), "key: give the hash of the public key"),
        (lambda keys: keys.revoke(bytes(31), by=BY), "key: give the hash"),
        (lambda keys: keys.revoke(None, by=BY), "key: give the hash"),
        (lambda keys: keys.revoke(bytes(32), by=""), "by: give a text"),
        (lambda keys: keys.revoke(bytes(32), by=BY, since=datetime(2026, 1, 1)), "since: give a datetime"),  # noqa: DTZ001
        (lambda keys: keys.revoke(bytes(32), by=BY, since=datetime(1969, 1, 1, tzinfo=UTC)), "since: give a datetime"),
        (lambda keys: keys.add(ADA, keyring=FILE, by=BY), "added: give what agentgate.sign_addition returned"),
        (lambda keys: keys.add(None, keyring=FILE, by=BY), "added: give"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(call: Any, words: str, world: World) -> None:
    with world.gate() as gate:
        with pytest.raises(Misuse, match=words):
            call(gate.keys)
        with pytest.raises(Misuse, match="keyring: give a Keyring"):
            gate.keys.add(signed(gate), keyring=[], by=BY)  # type: ignore[arg-type]
    assert not told(world)


def test_a_private_key_is_in_no_row_event_log_or_repr(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    with world.gate() as gate:
        gate.keys.add(signed(gate), keyring=FILE, by=BY, note="came to us")
        shown = repr((gate.keys.list(FILE), signer("admin"), signed(gate), FILE)).encode()
    out = capfd.readouterr()
    written = b"".join(path.read_bytes() for path in world.folder.iterdir()) + (out.out + out.err).encode() + shown
    assert signer("admin").hash in written
    for name in ("admin", "ada"):
        assert not [form for form in private_forms(name) if form in written]
