"""Cases of other people's loops, "twice": an effect that happened again, or would have. One test per line."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

import agentgate
from agentgate import (
    Done,
    Effect,
    Failed,
    Gate,
    Held,
    KeyConflict,
    Limits,
    NoEffect,
    Operator,
    Refused,
    Retry,
    Run,
    Running,
    ToolError,
    Unknown,
    require_approval,
)
from agentgate.testing import FakeClock, ScriptedPolicy
from support import forking
from support.worlds import World, gates, grant, kinds, named, opened

ONE = {"account": "a1", "cents": 1250}


def in_processes(world: World, work: Callable[[Gate, Run], object], *, times: int) -> None:
    """Do the same work in so many processes, one after the other."""

    def once() -> None:
        with world.gate() as gate:
            work(gate, opened(gate))

    for _ in range(times):
        assert forking.run(once) == 0


def test_a_node_that_is_re_executed_on_every_resume_proposes_five_times_and_acts_once(world: World) -> None:
    def node(gate: Gate, run: Run) -> None:
        proposal = gate.propose(run, "refund", ONE, key="refund-1")
        assert isinstance(gate.execute(proposal), Done)

    in_processes(world, node, times=5)
    assert world.downstream.total == 1
    with world.gate() as gate:
        action = gate.propose(opened(gate), "refund", ONE, key="refund-1").action
    assert world.words(action)[:3] == ["proposed", "started", "succeeded"]
    # Each of the later four proposed and executed; what was handed back is in the one trail.
    assert world.words(action)[3:].count("replayed") >= 4


def test_a_run_that_restarts_from_its_first_step_does_nothing_again(world: World) -> None:
    def steps(gate: Gate, run: Run) -> None:
        for step in range(3):
            assert isinstance(gate.call(run, "refund", {"account": "a1", "cents": step}, key=f"step-{step}"), Done)

    in_processes(world, steps, times=3)
    assert world.downstream.total == 3
    assert set(world.downstream.effects.values()) == {1}


def test_an_approved_action_is_found_after_the_process_was_killed_and_asks_no_second_question(world: World) -> None:
    policy = ScriptedPolicy(otherwise=require_approval("big"))

    def ask_and_die() -> None:
        gate = world.gate(policy=policy)
        assert isinstance(gate.call(opened(gate), "refund", ONE, key="k"), Held)
        forking.die()

    assert forking.run(ask_and_die) == forking.KILLED
    with world.gate(policy=policy) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
    with world.gate(policy=policy) as gate:
        assert isinstance(gate.call(opened(gate), "refund", ONE, key="k"), Done)
    assert world.value("SELECT count(*) FROM agentgate_approvals") == 1
    assert world.downstream.total == 1


def test_re_issuing_a_gated_call_makes_one_pending_approval(world: World) -> None:
    with gates(world, policy=ScriptedPolicy(otherwise=require_approval("big")), count=3) as many:
        held = [gate.call(opened(gate), "refund", ONE, key="k") for gate in many for _ in range(4)]
    assert {outcome.approval.id for outcome in held if isinstance(outcome, Held)} == {held[0].approval.id}  # type: ignore[union-attr]
    assert world.value("SELECT pending FROM agentgate_runs WHERE name = 'ticket-1'") == 1


def test_a_frameworks_retry_around_the_gate_pays_once(world: World) -> None:
    tries: list[str] = []

    def task(gate: Gate, run: Run) -> None:
        outcome = gate.call(run, "refund", ONE, key="payment-1")
        tries.append(type(outcome).__name__)
        raise TimeoutError("the framework's own step failed afterwards")

    with world.gate() as gate:
        run = opened(gate)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                task(gate, run)
    assert tries == ["Done"] * 3
    assert world.downstream.total == 1


def test_a_client_that_times_out_after_the_write_landed_is_unknown_and_reconcile_decides(world: World) -> None:
    def refund(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001 - what the schema is made of
        world.downstream.apply(effect, resource=account)
        raise TimeoutError("the answer did not come")

    with world.gate(named("refund", refund)) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "refund", ONE, key="k", retry=True) for _ in range(4)]
        assert kinds(outcomes) == ["Unknown"] * 4
        assert world.downstream.total == 1
        gate.reconcile(outcomes[0].action, applied=True, by="ada", evidence="the bank's list", tenant="acme")
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Done)
    assert world.downstream.total == 1


def test_a_tool_declared_not_repeatable_is_attempted_exactly_once_whatever_the_retry_settings_say(
    world: World,
) -> None:
    tries: list[int] = []

    def act() -> None:
        tries.append(1)
        raise ConnectionResetError

    with world.gate(named("act", act, recovery=Operator(), retry=Retry(attempts=3))) as gate:
        run = opened(gate)
        for _ in range(3):
            assert isinstance(gate.call(run, "act", {}, key="k", retry=True), Unknown)
    assert len(tries) == 1


def test_the_key_handed_downstream_is_stable_over_attempts_processes_and_resumes(world: World) -> None:
    tool = world.refund(recovery=agentgate.Keyed(hours=1))

    def die_after(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001
        world.downstream.apply(effect, resource=account)
        forking.die()

    def crash() -> None:
        with world.gate(agentgate.gated(tool.spec, die_after)) as gate:
            gate.call(opened(gate), "refund", ONE, key="k")

    for _ in range(3):
        assert forking.run(crash) == forking.KILLED
    with world.gate(tool) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Done)
        assert isinstance(gate.call(run, "refund", ONE, key="other key"), Done)
        assert isinstance(gate.call(run, "refund", {"account": "a1", "cents": 2}, key="other arguments"), Done)
    assert sorted(world.downstream.effects.values()) == [1, 1, 4]
    assert [arrival.fence for arrival in world.downstream.arrivals] == sorted(
        arrival.fence for arrival in world.downstream.arrivals
    )


def test_two_workers_who_execute_one_action_are_one_that_runs_and_one_that_is_told(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()
    tries: list[int] = []
    told: list[object] = []

    def act() -> None:
        tries.append(1)
        entered.set()
        leave.wait(30)

    def work(gate: Gate) -> None:
        told.append(gate.execute(proposal))

    with gates(world, named("act", act), count=2) as (first, second):
        proposal = first.propose(opened(first), "act", {}, key="k")
        threads = [threading.Thread(target=work, args=(gate,)) for gate in (first, second)]
        for thread in threads:
            thread.start()
        assert entered.wait(30)
        over = time.monotonic() + 20
        while not told:
            assert time.monotonic() < over
            time.sleep(0.005)
        leave.set()
        for thread in threads:
            thread.join()
    assert sorted(kinds(told)) == ["Done", "Running"]
    assert len(tries) == 1


def test_a_failing_call_of_a_parallel_batch_leaves_its_siblings_results_durable(world: World) -> None:
    def act(n: int) -> int:
        if n == 2:
            raise ToolError("not_found", "no")
        return n * 10

    def batch(gate: Gate, run: Run) -> list[agentgate.Outcome]:
        found: dict[int, agentgate.Outcome] = {}

        def one(n: int) -> None:
            found[n] = gate.call(run, "act", {"n": n}, key=f"k{n}")

        threads = [threading.Thread(target=one, args=(n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [found[n] for n in range(5)]

    with world.gate(named("act", act)) as gate:
        batch(gate, opened(gate))
    with world.gate(named("act", act)) as gate:
        again = batch(gate, opened(gate))
    assert kinds(again) == ["Done", "Done", "Failed", "Done", "Done"]
    done = [outcome for outcome in again if isinstance(outcome, Done)]
    assert [outcome.observation.value for outcome in done] == [0, 10, 30, 40]
    assert {outcome.source for outcome in done} == {"replayed"}


def test_a_result_that_could_not_be_saved_is_unknown_after_the_lease_and_reconcilable(world: World) -> None:
    clock = FakeClock()

    def refund(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001
        world.downstream.apply(effect, resource=account)
        # The database is gone when the effect comes back, as on a full disk.
        world.path.rename(world.path.with_suffix(".away"))

    with world.gate(named("refund", refund), clock=clock) as gate:
        run = opened(gate)
        with pytest.raises(agentgate.AgentgateError):
            gate.call(run, "refund", ONE, key="k")
    world.path.with_suffix(".away").rename(world.path)
    with world.gate(named("refund", refund), clock=clock) as gate:
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Running)
        clock.advance(timedelta(seconds=60))
        unknown = gate.call(run, "refund", ONE, key="k")
        assert isinstance(unknown, Unknown)
        assert (
            gate.reconcile(unknown.action, applied=True, by="ada", evidence="seen", tenant="acme").state == "SUCCEEDED"
        )
    assert world.downstream.total == 1


def test_the_start_is_recorded_before_the_effect(world: World) -> None:
    seen: list[str] = []

    def act(*, effect: Effect) -> None:
        seen.append(world.state(effect.action_id))
        seen.extend(world.words(effect.action_id))

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        gate.call(run, "act", {})
        gate.execute(gate.propose(run, "act", {}))
    assert seen == ["EXECUTING", "proposed", "started"] * 2


def test_a_key_is_not_burnt_by_a_pause_a_limit_or_an_expired_question(world: World) -> None:
    clock = FakeClock()
    with world.gate(policy=ScriptedPolicy(require_approval("big")), clock=clock) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Held)
        clock.advance(timedelta(hours=24))
        gate.pause(by="ada", reason="look first")
        paused = gate.call(run, "refund", ONE, key="k")
        assert isinstance(paused, Refused)
        assert paused.retryable
        gate.resume(by="ada")
        clock.advance(timedelta(minutes=1))
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Done)
        limited = opened(gate, "limited", limits=Limits(actions=0))
        assert isinstance(gate.call(limited, "refund", ONE, key="limited"), Refused)
        assert isinstance(gate.call(run, "refund", ONE, key="limited"), Done)
        with pytest.raises(KeyConflict):
            gate.call(run, "refund", {"account": "a2", "cents": 1}, key="k")
    assert world.downstream.total == 2


@pytest.mark.parametrize("error", [KeyError("x"), ToolError("not_found", "404")])
def test_one_error_in_a_tool_does_not_freeze_it_for_a_tenant(world: World, error: Exception) -> None:
    def act(account: str) -> str:
        if account == "bad":
            raise error
        return account

    with world.gate(named("act", act, resource="account:{account}")) as gate:
        run = opened(gate)
        first = gate.call(run, "act", {"account": "bad"}, key="k1")
        for account in ("b", "c"):
            assert isinstance(gate.call(run, "act", {"account": account}), Done)
        again = gate.call(run, "act", {"account": "bad"}, key="k2")
    # A code that means "nothing happened" blocks nothing; a doubt blocks its own resource alone.
    if isinstance(error, ToolError):
        assert kinds([first, again]) == ["Failed", "Failed"]
    else:
        assert kinds([first, again]) == ["Unknown", "Refused"]
        assert again.reason == "blocked"


def test_a_stale_worker_that_wakes_up_is_refused_and_its_result_is_evidence(world: World) -> None:
    clock = FakeClock()
    entered, leave = threading.Event(), threading.Event()
    tries: list[int] = []

    def act(*, effect: Effect) -> str:
        tries.append(effect.fence)
        if len(tries) == 1:
            entered.set()
            leave.wait(30)
        world.downstream.apply(effect, resource="r")
        return f"worker {len(tries)}"

    tool = named("act", act, recovery=agentgate.Keyed(hours=1))
    with gates(world, tool, clock=clock) as (stale, owner):
        run = opened(stale)
        thread = threading.Thread(target=stale.call, args=(run, "act", {}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        clock.advance(timedelta(seconds=61))
        done = owner.call(run, "act", {}, key="k")
        leave.set()
        thread.join()
        again = owner.call(run, "act", {}, key="k")
    assert isinstance(done, Done)
    assert isinstance(again, Done)
    assert again.observation == done.observation
    assert [arrival.verdict for arrival in world.downstream.arrivals] == ["applied", "fenced"]
    late = next(event for event in world.events(done.action) if event.type == "late")
    assert late.body["fence"] == tries[0]


def test_an_exception_before_any_io_is_a_clean_retryable_failure(world: World) -> None:
    tries: list[int] = []

    def act(how: str, *, effect: Effect) -> str:
        tries.append(1)
        if len(tries) % 2:
            if how == "NoEffect":
                raise NoEffect("no connection yet")
            effect.lose()
        effect.sending()
        return "sent"

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        for how in ("NoEffect", "sending"):
            failed = gate.call(run, "act", {"how": how}, key=how)
            assert isinstance(failed, Failed)
            assert failed.retryable
            assert isinstance(gate.call(run, "act", {"how": how}, key=how, retry=True), Done)


def test_an_effect_that_returned_something_that_cannot_be_encoded_succeeded(world: World) -> None:
    with world.gate(named("act", lambda: {"socket": object(), "ok": True})) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Done)
    assert outcome.observation.notes == ("unencodable",)
    assert isinstance(outcome.observation.value, dict)
    assert outcome.observation.value["ok"] is True
    assert world.state(outcome.action) == "SUCCEEDED"
