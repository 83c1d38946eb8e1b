"""`verify` does not take the record's word for who agreed: it counts votes, and checks signatures by their keys."""

from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Held, Keyring, Requirement, require_approval
from agentgate.approval import vote_digest
from agentgate.testing import ScriptedPolicy
from support.commands import ran
from support.edits import Copy
from support.rewriting import Document, events, rewrite
from support.signers import entry, keyring_file, public, signer
from support.worlds import PRINCIPAL, RING, World, grant, made, opened

TWO = Requirement(quorum=2, signed=True, roles=("ops",))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = made(tmp_path, journal="delete")
    policy = ScriptedPolicy(otherwise=require_approval("big", requirement=TWO))
    with world.gate(policy=policy) as gate:
        held = gate.call(opened(gate), "refund", {"account": "a", "cents": 1}, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        gate.execute(held.action, tenant="acme")
    return world


def changed(world: World, change: Any) -> set[str]:
    """Rewrite the run's events with fresh hashes; return the kinds of break that are found."""
    copy = Copy(world.path, world.path)
    (run,) = (row["id"] for row in copy.rows("runs") if row["name"] == "ticket-1")
    documents = events(copy, run)
    change([document for document in documents if document["type"] in {"voted", "approved"}])
    rewrite(copy, run, documents)
    return {one.kind for one in agentgate.verify(world.url, keyring=RING).breaks}


def _vote_again(body: Any, **fields: Any) -> str:
    """Make a vote another one, with the digest that belongs to it."""
    body |= fields
    given: Any = {"approval": bytes.fromhex(body["shown"]), "nonce": bytes.fromhex(body["nonce"])}
    body["vote"] = vote_digest(
        **given,
        key=bytes.fromhex(body["key"]) if "key" in body else None,
        verdict=body["verdict"],
        approver=body["approver"],
    ).hex()
    return str(body["vote"])


def _by_one_person(found: list[Document]) -> None:
    first, second, granted = (one["body"] for one in found)
    granted["votes"][1] = _vote_again(second, approver=first["approver"])


def _by_the_proposer(found: list[Document]) -> None:
    granted = found[2]["body"]
    granted["votes"][1] = _vote_again(found[1]["body"], approver=PRINCIPAL)


def _by_nobody(found: list[Document]) -> None:
    found[2]["body"]["votes"] = []


def _by_one_of_two(found: list[Document]) -> None:
    del found[2]["body"]["votes"][1]


def _twice_by_the_same(found: list[Document]) -> None:
    votes = found[2]["body"]["votes"]
    votes[1] = votes[0]


def _by_a_no(found: list[Document]) -> None:
    found[2]["body"]["votes"][1] = _vote_again(found[1]["body"], verdict="reject")


def _without_a_role(found: list[Document]) -> None:
    found[1]["body"]["roles"] = ["dba"]


def _without_signatures(found: list[Document]) -> None:
    body = found[1]["body"]
    del body["signature"], body["key"]
    found[2]["body"]["votes"][1] = _vote_again(body)


@pytest.mark.parametrize(
    "change",
    [
        _by_one_person, _by_the_proposer, _by_nobody, _by_one_of_two, _twice_by_the_same, _by_a_no, _without_a_role,
        _without_signatures,
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_a_grant_without_the_votes_that_it_needs_is_found(world: World, change: Any) -> None:
    assert "vote" in changed(world, change)


def test_a_grant_that_lasts_longer_than_was_asked_is_found(world: World) -> None:
    assert "time" in changed(world, lambda found: found[2]["body"].update(until_us=found[2]["at_us"] + 900_000_001))


def test_a_signature_that_its_key_did_not_make_is_found(world: World) -> None:
    def forge(found: list[Document]) -> None:
        found[0]["body"]["signature"] = "11" * 64

    assert changed(world, forge) >= {"signature"}


def test_signatures_are_counted_and_those_of_keys_that_are_not_here_are_said_to_be_unverified(world: World) -> None:
    with_ring, without = agentgate.verify(world.url, keyring=RING), agentgate.verify(world.url)
    assert (with_ring.ok, with_ring.signatures, with_ring.unverified) == (True, 2, 0)
    assert (without.ok, without.signatures, without.unverified) == (True, 0, 2)
    assert with_ring.to_json()["signatures"] == 2


def test_a_key_that_is_anothers_in_the_keyring_is_found(world: World) -> None:
    other = Keyring([public("ada", name="person:mallory"), public("bob")])
    assert [one.kind for one in agentgate.verify(world.url, keyring=other).breaks] == ["signature"]


def test_without_a_keyring_a_bad_signature_of_a_key_in_the_ledger_is_found(world: World) -> None:
    trusting = Keyring([public("root", trusted_to_add=True)])
    with world.gate(policy=ScriptedPolicy()) as gate:
        gate.keys.add(
            agentgate.sign_addition(signer("root"), public("ada", roles=("ops",)), ledger=gate.ledger),
            keyring=trusting,
            by="ops",
        )
    found = agentgate.verify(world.url)
    assert (found.ok, found.signatures, found.unverified) == (True, 1, 1)

    def forge(found: list[Document]) -> None:
        found[0]["body"]["signature"] = "11" * 64

    copy = Copy(world.path, world.path)
    (run,) = (row["id"] for row in copy.rows("runs") if row["name"] == "ticket-1")
    documents = events(copy, run)
    forge([document for document in documents if document["type"] == "voted"])
    rewrite(copy, run, documents)
    assert "signature" in {one.kind for one in agentgate.verify(world.url).breaks}


def test_the_command_takes_the_keyring_and_tells_what_it_checked(world: World, tmp_path: Path) -> None:
    file = keyring_file(tmp_path / "keys.json", entry("ada"), entry("bob"))
    told = ran("verify", "--keyring", str(file), world.url)
    assert (told.code, "2 signatures of votes" in told.out) == (0, True)
    told = ran("verify", world.url)
    assert "0 signatures of votes, and 2 more whose key is not here" in told.out
