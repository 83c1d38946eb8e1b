"""At a claim, every signature that a grant stands on is looked at again, by the keyring that the gate has then."""

from collections.abc import Callable
from typing import Any

import pytest

from agentgate import Done, Gate, Held, NoEffect, Refused, Requirement, allow, require_approval
from agentgate.keyring import Keyring
from agentgate.testing import FakeClock, ScriptedPolicy
from support.signers import DAY_US, public
from support.worlds import World, grant, named, opened, vote

ONE = {"account": "a1", "cents": 1}
ASK = require_approval("big", requirement=Requirement(quorum=2, roles=("finance",), signed=True))
NOW_US = 1_893_456_000_000_000  # where a `FakeClock` starts


def ring(**of_bob: Any) -> Keyring:
    """Return the keyring of a gate that claims: ada's key as it was, and bob's."""
    return Keyring([public("ada", roles=("finance",)), public("bob", **{"roles": ("finance",)} | of_bob)])


def granted(world: World, clock: FakeClock) -> Held:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
    return held


def claiming(world: World, clock: FakeClock, keyring: Keyring | None, **options: Any) -> Gate:
    return world.gate(**{"policy": ScriptedPolicy(otherwise=ASK)} | options, keyring=keyring, clock=clock)


def test_a_grant_of_true_signatures_runs(world: World, clock: FakeClock) -> None:
    held = granted(world, clock)
    with claiming(world, clock, ring()) as gate:
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)
    assert not world.damage()


LOST: dict[str, Callable[[], Keyring]] = {
    "key_revoked": lambda: ring(revoked_us=NOW_US),
    "unknown_key": lambda: Keyring([public("ada", roles=("finance",)), public("eve", roles=("finance",))]),
    "key_not_yet_valid": lambda: ring(from_us=NOW_US + DAY_US),
    "key_expired": lambda: ring(until_us=NOW_US - DAY_US),
    "no_role": lambda: ring(roles=("auditor",)),
    "wrong_approver": lambda: ring(name="person:rob"),
}


@pytest.mark.parametrize("why", LOST)
def test_where_a_key_has_lost_what_it_could_do_people_are_asked_the_same_again(
    world: World, clock: FakeClock, why: str
) -> None:
    held = granted(world, clock)
    with claiming(world, clock, LOST[why]()) as gate:
        again = gate.execute(held.action, tenant="acme")
        assert isinstance(again, Held)
        assert again.approval.requirement == held.approval.requirement
        assert again.approval.id != held.approval.id
        assert gate.execute(held.action, tenant="acme") == again
    assert world.words(held.action) == ["proposed", "voted", "voted", "approved", "waited", "held"]
    assert world.events(held.action)[-2].body["reason"] == why
    assert world.sql("SELECT state FROM agentgate_approvals ORDER BY asked_n") == [("void",), ("pending",)]
    assert world.downstream.total == 0
    assert not world.damage()


def test_what_is_asked_again_is_granted_by_those_who_may_then(world: World, clock: FakeClock) -> None:
    held = granted(world, clock)
    with claiming(world, clock, LOST["unknown_key"]()) as gate:
        again = gate.execute(held.action, tenant="acme")
        assert isinstance(again, Held)
        for name in ("ada", "eve"):
            vote(gate, again, name)
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)
    assert world.downstream.total == 1


def test_a_gate_without_a_keyring_waits_and_ends_nothing(world: World, clock: FakeClock) -> None:
    held = granted(world, clock)
    with claiming(world, clock, None) as blind, claiming(world, clock, ring()) as gate:
        for _ in range(2):
            outcome = blind.execute(held.action, tenant="acme")
            assert isinstance(outcome, Refused)
            assert (outcome.reason, outcome.retryable) == ("no_keyring", True)
        assert world.words(held.action)[-1] == "waited"
        assert world.words(held.action).count("waited") == 1
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)


def test_a_key_whose_validity_ended_after_the_vote_carries_it_still(world: World, clock: FakeClock) -> None:
    held = granted(world, clock)
    voted_us = max(event.at_us for event in world.events(held.action) if event.type == "voted")
    with claiming(world, clock, ring(until_us=voted_us + 1)) as gate:
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)


def test_a_policy_that_allows_by_now_needs_nobodys_signature(world: World, clock: FakeClock) -> None:
    held = granted(world, clock)
    with claiming(world, clock, None, policy=ScriptedPolicy(allow())) as gate:
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)


def test_a_grant_that_was_given_back_is_looked_at_again(world: World, clock: FakeClock) -> None:
    ends: list[Exception] = [NoEffect("not yet")]

    def refund(account: str, cents: int) -> None:  # noqa: ARG001 - what was asked about
        if ends:
            raise ends.pop()

    tool = named("refund", refund)
    with world.gate(tool, policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        gate.execute(held.action, tenant="acme")
    with world.gate(tool, policy=ScriptedPolicy(otherwise=ASK), clock=clock, keyring=LOST["key_revoked"]()) as gate:
        assert isinstance(gate.execute(held.action, tenant="acme", retry=True), Held)
