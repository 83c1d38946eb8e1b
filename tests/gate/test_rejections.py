"""When people say no: the same request is not asked again in its run, and too much nagging ends it."""

from datetime import timedelta

import pytest

from agentgate import Call, Done, Gate, Held, Limits, Outcome, Refused, allow, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, grant, kinds, opened

ONE = {"account": "a1", "cents": 1}
ASK = ScriptedPolicy(otherwise=require_approval("big"))


def reject(gate: Gate, held: Outcome) -> None:
    """Say no, as a person does."""
    assert isinstance(held, Held), held
    gate.approvals.reject(held.approval.id, digest=held.approval.digest, by="person:ada", tenant="acme")


def refused(outcome: Outcome | None) -> str:
    assert isinstance(outcome, Refused), outcome
    assert not outcome.retryable
    return outcome.reason


def test_what_was_rejected_is_not_asked_again_in_its_run(world: World) -> None:
    with world.gate(policy=ASK) as gate:
        run = opened(gate)
        reject(gate, gate.call(run, "refund", ONE, key="first"))
        again = gate.call(run, "refund", {"cents": 1.0, "account": "a1"}, key="second")
        assert refused(again) == "rejected_before"
        assert again == gate.call(run, "refund", ONE, key="second")  # final: no new revision
        unkeyed = gate.propose(run, "refund", ONE)
        assert refused(unkeyed.outcome) == "rejected_before"
        # Another request, another run: people have said nothing of it.
        assert isinstance(gate.call(run, "refund", ONE | {"cents": 2}, key="third"), Held)
        assert isinstance(gate.call(opened(gate, "other"), "refund", ONE, key="fourth"), Held)
    assert world.value("SELECT count(*) FROM agentgate_approvals") == 3
    assert not world.damage()


@pytest.mark.parametrize("end", ["cancelled", "question_expired"])
def test_only_a_persons_no_is_remembered(world: World, clock: FakeClock, end: str) -> None:
    with world.gate(policy=ASK, clock=clock) as gate:
        run = opened(gate)
        held = gate.call(run, "refund", ONE, key="first")
        if end == "cancelled":
            gate.cancel(held.action, by="ada", tenant="acme")
        else:
            clock.advance(timedelta(hours=25))
            gate.sweep()
        assert world.words(held.action)[-1] == end
        assert isinstance(gate.call(run, "refund", ONE, key="second"), Held)


def test_a_policy_that_allows_is_not_overruled_by_an_earlier_no(world: World) -> None:
    policy = ScriptedPolicy(require_approval("big"), otherwise=allow())
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        reject(gate, gate.call(run, "refund", ONE, key="first"))
        assert isinstance(gate.call(run, "refund", ONE, key="second"), Done)


def test_a_claim_asks_no_person_what_they_have_refused(world: World) -> None:
    policy = ScriptedPolicy(allow(), require_approval("big"), otherwise=require_approval("big"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        ready = gate.propose(run, "refund", ONE, key="allowed first")
        reject(gate, gate.call(run, "refund", ONE, key="first"))
        assert refused(gate.execute(ready)) == "rejected_before"
    assert world.words(ready.action) == ["proposed", "refused"]
    assert world.downstream.total == 0
    assert not world.damage()


def test_what_was_granted_before_somebody_else_said_no_goes_on(world: World) -> None:
    with world.gate(policy=ASK) as gate:
        run = opened(gate)
        granted, other = (gate.call(run, "refund", ONE, key=key) for key in ("one", "two"))
        assert isinstance(granted, Held)
        grant(gate, granted)
        reject(gate, other)
        assert isinstance(gate.execute(granted.action, tenant="acme"), Done)
    assert not world.damage()


def test_a_batch_asks_nothing_again_either(world: World) -> None:
    with world.gate(policy=ASK) as gate:
        run = opened(gate)
        reject(gate, gate.call(run, "refund", ONE, key="first"))
        calls = [
            Call("refund", ONE, key="a"),
            Call("refund", ONE | {"cents": 9}, key="b"),
            Call("refund", ONE, key="c"),
        ]
        outcomes = [proposal.outcome for proposal in gate.propose_many(run, calls)]
    assert kinds([one for one in outcomes if one is not None]) == ["Refused", "Held", "Refused"]
    assert refused(outcomes[0]) == refused(outcomes[2]) == "rejected_before"
    assert not world.damage()


def test_what_is_refused_so_takes_nobodys_place(world: World) -> None:
    with world.gate(policy=ASK) as gate:
        run = opened(gate)
        reject(gate, gate.call(run, "refund", ONE, key="first"))
        waits = gate.call(run, "refund", ONE | {"cents": 2}, key="second")
        assert refused(gate.call(run, "refund", ONE, key="second", supersede=True)) == "rejected_before"
        assert world.state(waits.action) == "HELD"


@pytest.mark.parametrize(("most", "asked"), [(0, 1), (1, 1), (2, 2), (5, 5)])
def test_a_loop_that_nags_ends(world: World, most: int, asked: int) -> None:
    """It varies its request a little each time, so that people are asked anew, until they need not be any more."""
    with world.gate(policy=ASK) as gate:
        run = opened(gate, limits=Limits(rejections=most))
        waiting = gate.call(run, "refund", {"account": "waits", "cents": 1}, key="waits")
        reasons = []
        for cents in range(1, 20):
            outcome = gate.call(run, "refund", ONE | {"cents": cents})
            if isinstance(outcome, Refused):
                reasons.append(outcome.reason)
                break
            reject(gate, outcome)
        assert refused(gate.execute(waiting.action, tenant="acme")) == "run_halted"
    assert reasons == ["run_halted"]
    assert world.value("SELECT rejected FROM agentgate_runs WHERE name = 'ticket-1'") == asked
    assert world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'") == [
        ("HALTED", "limit_rejections")
    ]
    assert not world.damage()


def test_without_a_limit_people_may_say_no_for_ever(world: World) -> None:
    with world.gate(policy=ASK) as gate:
        run = opened(gate)
        for cents in range(1, 20):
            reject(gate, gate.call(run, "refund", ONE | {"cents": cents}))
    assert world.value("SELECT state FROM agentgate_runs WHERE name = 'ticket-1'") == "OPEN"


def test_a_policy_sees_how_many_more_may_be_rejected(world: World) -> None:
    policy = ScriptedPolicy(otherwise=require_approval("big"))
    with world.gate(policy=policy) as gate:
        run = opened(gate, limits=Limits(rejections=3))
        reject(gate, gate.call(run, "refund", ONE))
        gate.call(run, "refund", ONE | {"cents": 2})
    assert [request.view.budgets["run.rejections"] for request in policy.requests] == [3, 2]


def test_the_look_back_is_a_search_of_its_own_index(world: World) -> None:
    plan = world.sql(
        "EXPLAIN QUERY PLAN SELECT id FROM agentgate_actions WHERE reason = 'rejected' AND run = ? AND request = ?",
        "run",
        b"",
    )
    assert "agentgate_actions_rejected (run=? AND request=?)" in plan[0][-1]
