"""A vote whose key carries nothing any more decides nothing, and keeps nobody from voting with another key."""

from collections.abc import Iterator
from typing import Any

import pytest

import agentgate
from agentgate import Gate, Held, Keyring, Requirement, Settings, allow, require_approval, sign_vote
from agentgate.errors import VoteRefused
from agentgate.testing import ScriptedPolicy
from support.operators import asked, call, lost
from support.signers import public, signer
from support.worlds import World, kinds, vote

RING = Keyring(
    (*(public(name, roles=("ops",)) for name in ("ada", "bob", "eve", "mia")), public("new", name="person:ada"))
)
TWO = Requirement(kind="question", quorum=2, signed=True)


@pytest.fixture
def gate(world: World) -> Iterator[Gate]:
    policy = ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement(quorum=2, signed=True)))
    with world.gate(policy=policy, keyring=RING) as gate:
        yield gate


def held(gate: Gate) -> Held:
    outcome = call(gate)
    assert isinstance(outcome, Held)
    return outcome


def revoke(gate: Gate, name: str) -> None:
    gate.keys.revoke(public(name).hash.hex(), by="ops:x")


def answer(gate: Gate, question: Any, name: str, verdict: Any) -> str:
    signed = sign_vote(signer(name), approval=question.digest, verdict=verdict, approver=f"person:{name}")
    given = {"digest": question.digest, "by": f"person:{name}", "signed": signed, "tenant": "acme"}
    return gate.approvals.answer(question.id, verdict=verdict, **given).state


def test_the_vote_of_a_key_that_was_revoked_since_fills_no_quorum(world: World, gate: Gate) -> None:
    outcome = held(gate)
    vote(gate, outcome, "ada")
    revoke(gate, "ada")
    assert vote(gate, outcome, "bob").state == "pending"
    assert vote(gate, outcome, "eve").state == "granted"
    assert kinds([gate.execute(outcome.action, tenant="acme")]) == ["Done"]
    assert not world.damage()


def test_whose_key_was_revoked_votes_again_with_their_other_one(world: World, gate: Gate) -> None:
    outcome = held(gate)
    digest, by = outcome.approval.digest, "person:ada"
    vote(gate, outcome, "ada")
    again = sign_vote(signer("new"), approval=digest, verdict="approve", approver=by)
    assert vote(gate, outcome, "ada", signed=again).state == "pending"  # the same vote, as the first still counts
    revoke(gate, "ada")
    vote(gate, outcome, "ada", signed=again)
    assert vote(gate, outcome, "bob").state == "granted"
    assert world.words(outcome.action) == ["proposed", "voted", "vote_revoked", "voted", "voted", "approved"]
    assert kinds([gate.execute(outcome.action, tenant="acme")]) == ["Done"]
    assert not world.damage()


def test_nor_does_it_help_to_say_what_became_of_an_unknown_outcome(world: World) -> None:
    settings = Settings(operators=TWO)
    with world.gate(lost(world), policy=ScriptedPolicy(otherwise=allow()), settings=settings, keyring=RING) as gate:
        question = asked(call(gate))
        answer(gate, question, "ada", "applied")
        revoke(gate, "ada")
        assert answer(gate, question, "bob", "applied") == "pending"
        with pytest.raises(VoteRefused) as refused:
            answer(gate, question, "ada", "applied")
        assert refused.value.reason == "key_revoked"
        assert answer(gate, question, "eve", "not_applied") == "pending"
        assert answer(gate, question, "mia", "not_applied") == "used"
    assert not world.damage()
    assert agentgate.verify(world.url, keyring=RING).ok
