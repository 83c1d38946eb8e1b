"""What a policy says of another attempt at what is unknown: it moves nothing, and what it asks for hangs there."""

from typing import Any

import pytest

import agentgate
from agentgate import Done, Gate, Repeat, Requirement, Unknown
from agentgate.testing import ScriptedPolicy
from support.operators import answer, asked, asked_action, call, grants, lost
from support.worlds import World, opened

ONE_OF, TWO_OF, THREE_OF = (Requirement(quorum=quorum) for quorum in (1, 2, 3))


def wants(requirement: Requirement) -> agentgate.Decision:
    return agentgate.require_approval("big", requirement=requirement)


def says(*decisions: agentgate.Decision) -> ScriptedPolicy:
    """Let the first call happen, and then say this, the last of it for ever."""
    return ScriptedPolicy(agentgate.allow(), *decisions, otherwise=decisions[-1] if decisions else None)


def approve(gate: Gate, question: agentgate.Approval, *names: str) -> None:
    for name in names:
        gate.approvals.approve(question.id, digest=question.digest, by=name, tenant="acme")


def test_what_a_policy_asks_for_before_recovery_runs_again_is_an_approval_and_is_used_by_that_attempt(
    world: World,
) -> None:
    with world.gate(lost(world, recovery=Repeat()), policy=says(wants(TWO_OF))) as gate:
        first = call(gate)
        assert isinstance(first, Unknown)
        assert first.question is None  # recovery runs it again, unless the policy objects
        question = asked(call(gate))
        assert question.requirement == TWO_OF
        assert asked(call(gate)).id == question.id
        approve(gate, question, "ada", "bea")
        assert isinstance(call(gate), Done)
    assert grants(world, asked_action(world)) == [("approval", "used")]
    words = world.words(asked_action(world))
    assert words[3:] == ["waited", "question_asked", "voted", "voted", "approved", "started", "succeeded"]
    asking = world.events(asked_action(world))[4]
    assert "attempt" not in asking.body
    assert world.damage() == []


def test_a_policy_that_asks_for_something_else_than_was_granted_is_asked_for_that(world: World) -> None:
    with world.gate(lost(world, recovery=Repeat()), policy=says(wants(ONE_OF), wants(TWO_OF))) as gate:
        call(gate)
        question = asked(call(gate))
        approve(gate, question, "ada")
        other = asked(call(gate))
    assert other.requirement == TWO_OF
    assert grants(world, asked_action(world)) == [("approval", "void"), ("approval", "pending")]
    assert world.downstream.total == 1


def test_a_policy_that_asks_for_a_third_thing_asks_nobody(world: World) -> None:
    policy = says(wants(ONE_OF), wants(TWO_OF), wants(THREE_OF))
    with world.gate(lost(world, recovery=Repeat()), policy=policy) as gate:
        call(gate)
        questions = [asked(call(gate)) for _ in range(3)]
    assert [one.requirement.quorum for one in questions] == [1, 2, 2]
    waits = [event.body["reason"] for event in world.events(asked_action(world)) if event.type == "waited"]
    assert waits == ["policy_asks", "unstable"]


def test_what_people_rejected_of_another_attempt_is_not_asked_again(world: World) -> None:
    with world.gate(lost(world, recovery=Repeat()), policy=says(wants(ONE_OF))) as gate:
        call(gate)
        question = asked(call(gate))
        gate.approvals.reject(question.id, digest=question.digest, by="ada", tenant="acme")
        outcomes = [call(gate) for _ in range(3)]
    assert all(isinstance(outcome, Unknown) and outcome.question is None for outcome in outcomes)
    assert world.state(asked_action(world)) == "UNKNOWN"
    assert world.downstream.total == 1


def test_a_policy_that_denies_keeps_an_operators_again_waiting_and_takes_nothing_away(world: World) -> None:
    with world.gate(lost(world), policy=says(agentgate.deny("no"), agentgate.deny("no"), agentgate.allow())) as gate:
        answer(gate, asked(call(gate)), "again")
        assert isinstance(call(gate), Unknown)
        assert isinstance(call(gate), Unknown)
        assert grants(world, asked_action(world)) == [("question", "granted")]
        assert isinstance(call(gate), Done)
    waits = [event for event in world.events(asked_action(world)) if event.type == "waited"]
    assert [event.body["reason"] for event in waits] == ["policy_asks"]
    decision: Any = waits[0].body["decision"]
    assert decision["outcome"] == "deny"
    assert world.damage() == []


def test_a_policy_that_wants_more_than_the_operators_gave_has_them_asked_for_that(world: World) -> None:
    with world.gate(lost(world), policy=says(wants(TWO_OF))) as gate:
        answer(gate, asked(call(gate)), "again")
        question = asked(call(gate))
        assert (question.requirement.kind, question.requirement.quorum) == ("question", 2)
        for name in ("ada", "bea"):
            answer(gate, question, "again", by=name)
        assert isinstance(call(gate), Done)
    assert grants(world, asked_action(world)) == [("question", "void"), ("question", "used")]
    assert world.damage() == []


def test_a_question_takes_no_approval_and_an_approval_no_answer_about_an_attempt(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        with pytest.raises(agentgate.VoteRefused, match="wrong_verdict"):
            approve(gate, question, "ada")
        answer(gate, question, "not_applied")
    with world.gate(lost(world), policy=says(wants(ONE_OF))) as gate:
        gate.call(opened(gate), "refund", {"account": "a2", "cents": 1}, key="other")
        held = gate.call(opened(gate), "refund", {"account": "a3", "cents": 1}, key="held")
        assert isinstance(held, agentgate.Held)
        with pytest.raises(agentgate.VoteRefused, match="wrong_verdict"):
            answer(gate, held.approval, "applied")


def test_a_clean_failure_gives_the_grant_back_and_the_next_attempt_is_under_it(world: World) -> None:
    """The attempt that it started is known not to have happened; the one before it still may have."""
    raises: list[Exception] = [ConnectionResetError(), agentgate.NoEffect("nothing was sent")]

    def refund(account: str, cents: int) -> dict[str, object]:
        if raises:
            raise raises.pop(0)
        return {"account": account, "cents": cents}

    with world.gate(agentgate.tool(risk="external")(refund)) as gate:
        answer(gate, asked(call(gate)), "again")
        second = call(gate)
        assert isinstance(second, Unknown)
        assert second.attempt == 2
        assert grants(world, asked_action(world)) == [("question", "granted")]
        assert isinstance(call(gate), Done)
    assert grants(world, asked_action(world)) == [("question", "used")]
    assert world.damage() == []
