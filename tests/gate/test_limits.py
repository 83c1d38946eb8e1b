"""Limits are taken in the claim and settled in the record; the run's end refuses what waits."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

import agentgate
from agentgate import (
    Done,
    Failed,
    Held,
    Limits,
    NotPossible,
    Refused,
    RunConflict,
    ToolError,
    Unknown,
    abort,
    allow,
    require_approval,
)
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, gates, kinds, named, opened

ONE = {"account": "a1", "cents": 1}


def at_once(count: int, work: Callable[[int], object]) -> None:
    """Do ``work`` in as many threads, which start together."""
    barrier = threading.Barrier(count)

    def run(n: int) -> None:
        barrier.wait()
        work(n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_fifty_at_once_against_ten_actions_give_exactly_ten_effects(world: World) -> None:
    outcomes: list[agentgate.Outcome] = []
    with gates(world) as pair:
        runs = [opened(gate, limits=Limits(actions=10)) for gate in pair]

        def work(n: int) -> None:
            outcomes.append(pair[n % 2].call(runs[n % 2], "refund", {"account": f"a{n}", "cents": 1}))

        at_once(50, work)
    assert world.downstream.total == 10
    refused = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    assert len(refused) == 40
    assert {outcome.reason for outcome in refused} == {"limit_actions"}
    assert not any(outcome.retryable for outcome in refused)
    assert world.value("SELECT state FROM agentgate_runs WHERE name = 'ticket-1'") == "OPEN"


def test_what_did_not_happen_gives_its_action_back_and_what_may_have_keeps_it(world: World) -> None:
    ends: list[Exception | None] = [ToolError("not_found", "no"), RuntimeError("?"), None, None]

    def act(n: int) -> None:  # noqa: ARG001 - its resource
        end = ends.pop(0)
        if end is not None:
            raise end

    with world.gate(named("act", act, resource="n:{n}")) as gate:
        run = opened(gate, limits=Limits(actions=2))
        outcomes = [gate.call(run, "act", {"n": n}, key=f"k{n}") for n in range(4)]
        assert kinds(outcomes) == ["Failed", "Unknown", "Done", "Refused"]
        gate.reconcile(outcomes[1].action, applied=False, by="ada", evidence="looked", tenant="acme")
        # READY again, its place is free: whoever claims first has it.
        assert isinstance(gate.call(run, "act", {"n": 4}, key="k4"), Done)
        assert isinstance(gate.call(run, "act", {"n": 1}, key="k1"), Refused)


def test_consecutive_failures_stop_a_run_and_a_success_starts_the_count_anew(world: World) -> None:
    ends = ["no", "no", "yes", "no", "no", "no"]

    def act() -> None:
        if ends.pop(0) == "no":
            raise ToolError("not_found", "no")

    with world.gate(named("act", act)) as gate:
        run = opened(gate, limits=Limits(failures=3))
        outcomes = [gate.call(run, "act", {}) for _ in range(7)]
    assert kinds(outcomes) == ["Failed", "Failed", "Done", "Failed", "Failed", "Failed", "Refused"]
    last = outcomes[-1]
    assert isinstance(last, Refused)
    assert (last.reason, last.retryable) == ("limit_failures", False)
    assert ends == []


def test_the_parallel_limit_is_a_wait_that_leaves_the_action_as_it_was(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold(n: int) -> int:
        entered.set()
        leave.wait(30)
        return n

    with world.gate(named("hold", hold)) as gate:
        run = opened(gate, limits=Limits(parallel=1))
        thread = threading.Thread(target=gate.call, args=(run, "hold", {"n": 1}))
        thread.start()
        assert entered.wait(30)
        waits = [gate.call(run, "hold", {"n": 2}, key="k") for _ in range(3)]
        leave.set()
        thread.join()
        done = gate.call(run, "hold", {"n": 2}, key="k")
    for outcome in waits:
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.retryable) == ("limit_parallel", True)
    assert isinstance(done, Done)
    # A wait is recorded once per reason.
    assert world.words(done.action) == ["proposed", "waited", "started", "succeeded"]


def test_no_more_questions_wait_for_people_than_the_run_may_ask(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        run = opened(gate, limits=Limits(pending=2))
        outcomes = [gate.call(run, "refund", ONE, key=f"k{n}") for n in range(3)]
        assert kinds(outcomes) == ["Held", "Held", "Refused"]
        assert outcomes[2].reason == "limit_pending"
        gate.cancel(outcomes[0].action, by="ada", tenant="acme")
        assert isinstance(gate.call(run, "refund", ONE, key="k2"), Held)


def test_no_action_starts_once_the_runs_time_is_over_and_the_run_halts(world: World, clock: FakeClock) -> None:
    with world.gate(clock=clock) as gate:
        run = opened(gate, limits=Limits(wall=timedelta(hours=2)))
        assert isinstance(gate.call(run, "refund", ONE), Done)
        waiting = gate.propose(run, "refund", ONE, key="waiting")
        clock.advance(timedelta(hours=2))
        over = gate.call(run, "refund", ONE, key="k")
        after = gate.call(run, "refund", ONE, key="later")
        assert isinstance(gate.execute(waiting), Refused)
    assert isinstance(over, Refused)
    assert (over.reason, over.retryable) == ("limit_wall", False)
    assert isinstance(after, Refused)
    assert after.reason == "run_halted"
    assert world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'") == [("HALTED", "limit_wall")]
    assert world.downstream.total == 1


def test_limits_are_fixed_when_the_run_is_opened(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate, limits=Limits(actions=1))
        assert opened(gate) == run  # not given is not compared
        assert opened(gate, limits=Limits(actions=1)) == run
        for other in (Limits(actions=2), Limits(), Limits(actions=1, wall=timedelta(1))):
            with pytest.raises(RunConflict) as raised:
                opened(gate, limits=other)
            assert raised.value.args == ("ticket-1", "limits")


def test_a_run_conflicts_on_another_goal_or_principal_and_shows_neither(world: World) -> None:
    with world.gate() as gate:
        gate.run("r", principal="agent:a", goal="the secret goal")
        gate.run("r", principal="agent:a", goal="the secret goal")
        for principal, goal in (("agent:b", None), ("agent:a", "another")):
            with pytest.raises(RunConflict) as raised:
                gate.run("r", principal=principal, goal=goal)
            assert "secret" not in str(raised.value)


# --- the run's end ---------------------------------------------------------------------------


def test_a_policy_that_aborts_halts_the_run_and_refuses_what_waits(world: World) -> None:
    policy = ScriptedPolicy(allow(), require_approval("big"), abort("stop", "enough"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        ready = gate.propose(run, "refund", ONE, key="ready")
        held = gate.propose(run, "refund", ONE, key="held")
        aborted = gate.call(run, "refund", ONE, key="aborted")
        later = gate.call(run, "refund", ONE, key="later")
        outcomes = [gate.execute(ready), gate.execute(held)]
    assert isinstance(aborted, Refused)
    assert (aborted.reason, aborted.error.message) == ("aborted", "enough")
    assert [outcome.reason for outcome in (later, *outcomes)] == ["run_halted"] * 3
    assert world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'") == [("HALTED", "aborted")]
    assert world.downstream.total == 0
    assert len(policy.requests) == 3


def test_a_policy_that_aborts_at_the_claim_halts_the_run_too(world: World) -> None:
    policy = ScriptedPolicy(allow(), allow(), abort("stop"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        proposals = [gate.propose(run, "refund", ONE, key=f"k{n}") for n in range(2)]
        outcomes = [gate.execute(proposal) for proposal in proposals]
    assert [outcome.reason for outcome in outcomes] == ["aborted", "run_halted"]
    assert world.state(proposals[1].action) == "REFUSED"


def test_closing_a_run_refuses_what_waits_and_keeps_what_is_done(world: World) -> None:
    policy = ScriptedPolicy(allow(), allow(), require_approval("big"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        done = gate.call(run, "refund", ONE, key="done")
        ready = gate.propose(run, "refund", ONE, key="ready")
        held = gate.propose(run, "refund", ONE, key="held")
        gate.close_run(run, by="ada")
        assert [gate.execute(one).reason for one in (ready, held)] == ["run_closed"] * 2
        again = gate.call(run, "refund", ONE, key="done")
        assert isinstance(again, Done)
        assert again.action == done.action
        later = gate.call(run, "refund", ONE, key="later")
        assert later.reason == "run_closed"
        assert opened(gate) == run
        with pytest.raises(NotPossible):
            gate.close_run(run, by="ada")
    assert world.downstream.total == 1


def test_a_run_is_not_closed_while_something_of_it_executes(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(30)

    with world.gate(named("hold", hold)) as gate:
        run = opened(gate)
        thread = threading.Thread(target=gate.call, args=(run, "hold", {}))
        thread.start()
        assert entered.wait(30)
        with pytest.raises(NotPossible) as raised:
            gate.close_run(run, by="ada")
        leave.set()
        thread.join()
        gate.close_run(run, by="ada")
    assert "wait until they have ended" in str(raised.value)


def test_outside_an_open_run_not_applied_ends_the_action(world: World) -> None:
    def lost() -> None:
        raise RuntimeError("?")

    with world.gate(named("lost", lost)) as gate:
        run = opened(gate)
        unknown = gate.call(run, "lost", {}, key="k")
        assert isinstance(unknown, Unknown)
        gate.close_run(run, by="ada")
        proposal = gate.reconcile(unknown.action, applied=False, by="ada", evidence="looked", tenant="acme")
    assert proposal.state == "REFUSED"
    assert world.words(unknown.action)[-2:] == ["reconciled", "refused"]


def test_a_failure_in_a_closed_run_is_not_retried_and_can_be_cancelled(world: World) -> None:
    def miss() -> None:
        raise ToolError("not_found", "no")

    with world.gate(named("miss", miss)) as gate:
        run = opened(gate)
        failed = gate.call(run, "miss", {}, key="k")
        gate.close_run(run, by="ada")
        assert isinstance(gate.execute(failed.action, tenant="acme", retry=True), Failed)
        assert gate.cancel(failed.action, by="ada", tenant="acme").state == "REFUSED"
