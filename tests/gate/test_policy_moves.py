"""A policy that moves between question, vote and claim: what goes on, what is asked again, what ends."""

from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Call, Decision, Done, Gate, Held, Refused, Requirement, allow, deny, require_approval
from agentgate.testing import ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, grant, named, opened

ONE = {"account": "a1", "cents": 1}


def asks(quorum: int = 1, **more: Any) -> Decision:
    return require_approval("ask", requirement=Requirement(quorum=quorum, **more))


def gate(world: World, said: Decision, *tools: AnyTool, name: str = "v") -> Gate:
    return world.gate(*tools, policy=ScriptedPolicy(otherwise=said, name=name))


def granted(world: World, said: Decision, *tools: AnyTool, tool: str = "refund", arguments: object = ONE) -> Held:
    """Propose under a policy that asks, and let people say yes."""
    with gate(world, said, *tools) as one:
        held = one.call(opened(one), tool, arguments, key="k")
        assert isinstance(held, Held)
        grant(one, held)
    return held


def execute(world: World, held: agentgate.Outcome, said: Decision, *tools: AnyTool) -> agentgate.Outcome:
    with gate(world, said, *tools, name="moved") as one:
        return one.execute(held.action, tenant="acme")


def approvals(world: World, action: str) -> list[str]:
    rows = world.sql("SELECT state FROM agentgate_approvals WHERE action = ? ORDER BY asked_n", action)
    return [state for (state,) in rows]


# --- the same requirement goes on -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        require_approval("other_rule", "with other words", rule="renamed"),
        asks(question=timedelta(minutes=1), grant=timedelta(minutes=1)),
    ],
)
def test_the_same_requirement_goes_on_whatever_its_rule_words_and_times_are_now(world: World, said: Decision) -> None:
    held = granted(world, asks())
    assert isinstance(execute(world, held, said), Done)
    assert approvals(world, held.action) == ["used"]


def test_a_looser_policy_at_the_claim_lets_what_was_granted_go_on_and_uses_the_grant(world: World) -> None:
    held = granted(world, asks())
    assert isinstance(execute(world, held, allow()), Done)
    assert approvals(world, held.action) == ["used"]


# --- another is asked again -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more", [{"quorum": 2}, {"roles": ("ops",)}, {"proposer": True}, {"signed": True}, {"obligations": ("look",)}]
)
def test_any_other_requirement_holds_again_on_the_same_action_and_key(world: World, more: dict[str, Any]) -> None:
    held = granted(world, asks())
    again = execute(world, held, asks(**more))
    assert isinstance(again, Held)
    assert (again.action, again.digest) == (held.action, held.digest)
    assert again.approval.id != held.approval.id
    assert approvals(world, held.action) == ["void", "pending"]
    assert world.downstream.total == 0
    assert not world.damage()


def test_the_third_different_requirement_is_unstable_and_final(world: World) -> None:
    held = granted(world, asks(1))
    with gate(world, asks(2)) as two:
        again = two.execute(held.action, tenant="acme")
        assert isinstance(again, Held)
        grant(two, again)
    outcome = execute(world, held, asks(3))
    assert (type(outcome), outcome.reason) == (Refused, "unstable")
    with gate(world, allow()) as loose:
        assert loose.call(opened(loose), "refund", ONE, key="k").reason == "unstable"
    assert world.downstream.total == 0


def test_a_grant_under_one_policy_is_not_revived_when_it_comes_back_after_another(world: World) -> None:
    """A -> B -> A: what B asked for stands; A's old grant is void and stays so."""
    held = granted(world, asks(1))
    again = execute(world, held, asks(2))
    assert isinstance(again, Held)
    back = execute(world, held, asks(1))
    assert isinstance(back, Held)  # people were asked, and it stays with them
    assert back.approval.id == again.approval.id
    assert approvals(world, held.action) == ["void", "pending"]
    with gate(world, asks(1)) as a:
        grant(a, back)
        third = a.execute(held.action, tenant="acme")
        assert isinstance(third, Held)  # what B's people granted is not what A asks for
        assert approvals(world, held.action) == ["void", "void", "pending"]
        grant(a, third)
        assert isinstance(a.execute(held.action, tenant="acme"), Done)
    assert world.downstream.total == 1
    assert not world.damage()


# --- no is no ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "reason"), [(deny("no"), "policy_denied"), (agentgate.abort("end"), "aborted")])
def test_a_denial_at_the_claim_ends_what_was_granted_and_a_looser_policy_revives_nothing(
    world: World, said: Decision, reason: str
) -> None:
    held = granted(world, asks())
    assert execute(world, held, said).reason == reason
    for later in (allow(), asks()):
        assert execute(world, held, later).reason == reason
    with gate(world, allow()) as loose:
        again = loose.call(opened(loose), "refund", ONE, key="k")
    assert (again.action, again.reason) == (held.action, reason)
    assert approvals(world, held.action) == ["void"]
    assert world.downstream.total == 0


def test_a_looser_policy_takes_no_question_away_from_people(world: World) -> None:
    """Held, it stays with them, and their no still counts; only a claim asks the policy again."""
    with gate(world, asks()) as strict:
        held = strict.call(opened(strict), "refund", ONE, key="k")
    with gate(world, allow()) as loose:
        for outcome in (loose.execute(held.action, tenant="acme"), loose.call(opened(loose), "refund", ONE, key="k")):
            assert isinstance(outcome, Held)
            assert outcome.action == held.action
    assert world.words(held.action) == ["proposed"]
    assert world.downstream.total == 0


# --- the tool moved -----------------------------------------------------------------------------------------


def act(**declared: Any) -> AnyTool:
    return named("act", lambda: 1, **declared)


@pytest.mark.parametrize(
    "other", [act(description="does more now"), act(risk="destructive"), named("another", lambda: 1)]
)
def test_what_people_are_asked_about_ends_where_its_tool_is_no_more_what_was_shown(
    world: World, other: AnyTool
) -> None:
    with gate(world, asks(), act()) as before:
        held = before.call(opened(before), "act", {}, key="k")
    outcome = execute(world, held, asks(), other)
    assert (type(outcome), outcome.reason) == (Refused, "spec_changed")
    assert approvals(world, held.action) == ["void"]
    with gate(world, allow(), act()) as back:
        again = back.call(opened(back), "act", {}, key="k")
    assert isinstance(again, Done)  # the key was not burnt
    assert world.value("SELECT revision FROM agentgate_actions WHERE id = ?", again.action) == 2
    assert not world.damage()


def test_the_same_call_under_another_spec_voids_the_question_and_is_a_new_revision(world: World) -> None:
    with gate(world, asks(), act()) as before:
        run = opened(before)
        held = [before.propose(run, "act", {}, key=key) for key in ("called", "proposed", "batched")]
    with gate(world, asks(), act(description="does more now")) as after:
        called = after.call(opened(after), "act", {}, key="called").action
        proposed = after.propose(opened(after), "act", {}, key="proposed").action
        (batched,) = after.propose_many(opened(after), [Call("act", {}, key="batched")])
    for old, new in zip(held, (called, proposed, batched.action), strict=True):
        assert new != old.action
        assert world.state(old.action) == "REFUSED"
        assert world.value("SELECT reason FROM agentgate_actions WHERE id = ?", old.action) == "spec_changed"
        assert approvals(world, old.action) == ["void"]
        assert (world.state(new), approvals(world, new)) == ("HELD", ["pending"])
        assert world.value("SELECT revision FROM agentgate_actions WHERE id = ?", new) == 2
    assert not world.damage()


def test_what_was_granted_about_another_spec_does_not_run(world: World) -> None:
    held = granted(world, asks(), act(), tool="act", arguments={})
    assert execute(world, held, asks(), act(timeout=7)).reason == "spec_changed"
    assert approvals(world, held.action) == ["void"]
