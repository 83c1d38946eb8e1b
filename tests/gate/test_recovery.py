"""What happens to an action whose worker is gone: taken over, tried again where that is safe, or reconciled."""

import logging
import threading
from datetime import timedelta

import pytest

import agentgate
from agentgate import (
    Done,
    Effect,
    Failed,
    Keyed,
    NotPossible,
    Operator,
    Refused,
    Repeat,
    Running,
    ToolError,
    Unknown,
)
from agentgate.testing import FakeClock
from support import forking
from support.worlds import World, gates, named, opened

ONE = {"account": "a1", "cents": 1}


def crash(world: World, tool: agentgate.Tool[..., object], *, after: bool, key: str = "k") -> None:
    """Call the tool in a process that dies inside the effect, before or after it has reached the downstream."""

    def refund(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001 - as its spec says
        if after:
            world.downstream.apply(effect, resource=account)
        forking.die()

    dying = agentgate.gated(tool.spec, refund)

    def work() -> None:
        with world.gate(dying) as gate:
            gate.call(opened(gate), "refund", ONE, key=key)

    assert forking.run(work) == forking.KILLED


# --- taking over -----------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
def test_a_dead_worker_is_taken_over_at_once_to_unknown_and_not_run_again(world: World, *, after: bool) -> None:
    tool = world.refund()
    crash(world, tool, after=after)
    with world.gate(tool) as gate:
        outcomes = [gate.call(opened(gate), "refund", ONE, key="k") for _ in range(2)]
    for outcome in outcomes:
        assert isinstance(outcome, Unknown)
        assert outcome.reason == "crashed"
    assert world.words(outcomes[0].action) == ["proposed", "started", "in_doubt", "question_asked"]
    assert world.downstream.total == int(after)


def test_a_living_workers_lease_is_left_alone_however_old_its_attempt_is(world: World, clock: FakeClock) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(30)

    with gates(world, named("hold", hold), clock=clock) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=first.call, args=(run, "hold", {}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        clock.advance(timedelta(seconds=59))
        assert isinstance(second.call(run, "hold", {}, key="k"), Running)
        leave.set()
        thread.join()
        assert isinstance(second.call(run, "hold", {}, key="k"), Done)


def test_an_expired_lease_runs_nothing_by_itself_and_lets_somebody_move_the_action(
    world: World, clock: FakeClock
) -> None:
    entered, leave = threading.Event(), threading.Event()
    ends: list[object] = []

    def hold() -> str:
        entered.set()
        leave.wait(30)
        return "late but fine"

    with gates(world, named("hold", hold), clock=clock) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=lambda: ends.append(first.call(run, "hold", {}, key="k")))
        thread.start()
        assert entered.wait(30)
        clock.advance(timedelta(seconds=60))
        taken = second.call(run, "hold", {}, key="k")
        leave.set()
        thread.join()
    assert isinstance(taken, Unknown)
    assert taken.reason == "lease_lost"
    # The worker that came too late is told what stands, and its result is evidence.
    (told,) = ends
    assert isinstance(told, Unknown)
    asked = ["question_asked", "late", "question_asked"]  # a late answer is news: whoever answered would not have known
    assert world.words(taken.action) == ["proposed", "started", "in_doubt", *asked]


def test_a_stale_worker_that_completes_after_a_take_over_leaves_the_real_owners_result(
    world: World, clock: FakeClock
) -> None:
    entered, leave = threading.Event(), threading.Event()
    tries: list[int] = []
    ends: list[object] = []

    def hold(*, effect: Effect) -> str:
        tries.append(effect.fence)
        if len(tries) == 1:
            entered.set()
            leave.wait(30)
            return "stale"
        return "owner"

    tool = named("hold", hold, recovery=Repeat())
    with gates(world, tool, clock=clock) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=lambda: ends.append(first.call(run, "hold", {}, key="k")))
        thread.start()
        assert entered.wait(30)
        clock.advance(timedelta(seconds=60))
        owner = second.call(run, "hold", {}, key="k")
        leave.set()
        thread.join()
        again = second.call(run, "hold", {}, key="k")
    assert isinstance(owner, Done)
    assert owner.observation.value == "owner"
    assert isinstance(again, Done)
    assert again.observation == owner.observation
    assert tries == sorted(tries)
    late = world.events(owner.action)[-2]
    assert (late.type, late.body["fence"]) == ("late", tries[0])
    (told,) = ends
    assert isinstance(told, Done)
    assert told.observation.value == "owner"


class Slept(logging.Handler):
    """Let a minute pass once a start is committed, as if the process had stood still there."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(logging.INFO)
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "type", "") == "started":
            self._clock.advance(timedelta(seconds=60))


def test_a_holder_that_lost_its_time_before_the_effect_starts_nothing(world: World, clock: FakeClock) -> None:
    """Others may think that its lease is over by now, and so does it."""
    logger, slept = logging.getLogger("agentgate"), Slept(clock)
    level = logger.level
    logger.addHandler(slept)
    logger.setLevel(logging.INFO)
    try:
        with world.gate(clock=clock) as gate:
            run = opened(gate)
            fused = gate.call(run, "refund", ONE, key="fused")
            apart = gate.execute(gate.propose(run, "refund", ONE, key="apart"))
    finally:
        logger.removeHandler(slept)
        logger.setLevel(level)
    for outcome in (fused, apart):
        assert isinstance(outcome, Failed)
        assert (outcome.error.code, outcome.retryable) == ("lease_lost", True)
    assert world.downstream.total == 0


# --- trying again ------------------------------------------------------------------------------


@pytest.mark.parametrize("recovery", [Repeat(), Keyed(hours=24)])
def test_what_is_safe_to_repeat_runs_again_on_the_same_action_with_a_higher_fence_and_the_same_key(
    world: World, recovery: Repeat | Keyed
) -> None:
    tool = world.refund(recovery=recovery)
    crash(world, tool, after=True)
    with world.gate(tool) as gate:
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Done)
    assert world.words(outcome.action) == ["proposed", "started", "in_doubt", "started", "succeeded"]
    first, second = world.downstream.arrivals
    assert first.key == second.key
    assert first.fence < second.fence
    assert world.value("SELECT count(*) FROM agentgate_attempts WHERE unresolved = 1") == 0


def test_a_keyed_tool_waits_for_an_operator_past_its_window_counted_from_the_first_start(
    world: World, clock: FakeClock
) -> None:
    tries: list[int] = []

    def act() -> None:
        tries.append(1)
        raise ConnectionResetError

    with world.gate(named("act", act, recovery=Keyed(hours=1)), clock=clock) as gate:
        run = opened(gate)
        for _ in range(3):
            assert isinstance(gate.call(run, "act", {}, key="k"), Unknown)
            clock.advance(timedelta(minutes=29))
        assert len(tries) == 3
        clock.advance(timedelta(minutes=4))
        assert isinstance(gate.call(run, "act", {}, key="k"), Unknown)
    assert len(tries) == 3


def test_a_known_failure_after_a_doubtful_attempt_stays_unknown(world: World) -> None:
    ends: list[Exception] = [ConnectionResetError(), ToolError("not_found", "no")]

    def act() -> None:
        raise ends.pop(0)

    with world.gate(named("act", act, recovery=Repeat())) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "act", {}, key="k") for _ in range(2)]
    assert all(isinstance(outcome, Unknown) for outcome in outcomes)
    assert world.words(outcomes[0].action) == ["proposed", "started", "in_doubt", "started", "failed"]
    assert world.state(outcomes[0].action) == "UNKNOWN"


def test_a_tool_that_cannot_be_repeated_is_tried_once_whatever_is_asked_for(world: World) -> None:
    tries: list[int] = []

    def act() -> None:
        tries.append(1)
        raise ConnectionResetError

    with world.gate(named("act", act, recovery=Operator())) as gate:
        run = opened(gate)
        unknown = gate.call(run, "act", {}, key="k", retry=True)
        for _ in range(3):
            gate.execute(unknown.action, tenant="acme", retry=True)
            gate.call(run, "act", {}, key="k", retry=True)
    assert len(tries) == 1


def test_a_gate_without_the_tool_leaves_an_unknown_outcome_where_it_is(world: World) -> None:
    def act() -> None:
        raise ConnectionResetError

    with world.gate(named("act", act, recovery=Repeat())) as gate, world.gate() as bare:
        unknown = gate.call(opened(gate), "act", {}, key="k")
        assert isinstance(bare.execute(unknown.action, tenant="acme"), Unknown)
    assert world.words(unknown.action) == ["proposed", "started", "in_doubt"]


# --- reconciling ---------------------------------------------------------------------------------


def lost(world: World) -> tuple[agentgate.Tool[..., object], Unknown]:
    """Leave an action UNKNOWN."""

    def act() -> str:
        if not tries:
            tries.append(1)
            raise ConnectionResetError
        return "second try"

    tries: list[int] = []
    tool = named("act", act, resource=None)
    with world.gate(tool) as gate:
        unknown = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(unknown, Unknown)
    return tool, unknown


def test_applied_is_success_with_what_was_seen_and_says_that_it_was_reconciled(world: World) -> None:
    tool, unknown = lost(world)
    with world.gate(tool) as gate:
        proposal = gate.reconcile(
            unknown.action, applied=True, by="ada", evidence={"ticket": 7}, result={"id": 9}, tenant="acme"
        )
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert proposal.state == "SUCCEEDED"
    assert isinstance(outcome, Done)
    assert (outcome.source, outcome.observation.value) == ("reconciled", {"id": 9})
    event = world.events(unknown.action)[4]
    assert (event.body["verdict"], event.body["by"], event.body["attempts"]) == ("applied", "ada", [1])
    assert event.body["payloads"].keys() == {"evidence", "result"}  # type: ignore[union-attr]


@pytest.mark.parametrize("journal", ["delete", None])
def test_a_gate_that_has_seen_nothing_yet_reconciles_at_once(world: World, journal: str | None) -> None:
    tool, unknown = lost(world)
    other = World(folder=world.folder, journal=journal)
    with other.gate(tool) as gate:
        gate.reconcile(unknown.action, applied=True, by="ada", evidence=None, result=1, tenant="acme")
    assert world.state(unknown.action) == "SUCCEEDED"


def test_not_applied_makes_it_ready_and_it_runs_once_more(world: World) -> None:
    tool, unknown = lost(world)
    with world.gate(tool) as gate:
        assert gate.reconcile(unknown.action, applied=False, by="ada", evidence="x", tenant="acme").state == "READY"
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "second try"
    assert outcome.action == unknown.action


def test_only_what_is_in_doubt_is_reconciled(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        done = gate.call(run, "refund", ONE)
        ready = gate.propose(run, "refund", ONE)
        for action in (done.action, ready.action):
            with pytest.raises(NotPossible):
                gate.reconcile(action, applied=True, by="ada", evidence=None, tenant="acme")
    assert world.words(done.action) == ["proposed", "started", "succeeded"]


def test_a_living_worker_is_not_reconciled_away_and_a_dead_one_is_taken_over_first(
    world: World, clock: FakeClock
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(30)

    with gates(world, named("hold", hold), clock=clock) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=first.call, args=(run, "hold", {}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        action = second.propose(run, "hold", {}, key="k").action
        with pytest.raises(NotPossible):
            second.reconcile(action, applied=True, by="ada", evidence=None, tenant="acme")
        clock.advance(timedelta(seconds=60))
        assert second.reconcile(action, applied=True, by="ada", evidence=None, tenant="acme").state == "SUCCEEDED"
        leave.set()
        thread.join()
    assert world.words(action) == ["proposed", "started", "in_doubt", "reconciled", "late"]


@pytest.mark.parametrize("applied", [True, False])
def test_a_result_that_comes_late_is_reconciled_on_its_attempt_and_moves_nothing(
    world: World, clock: FakeClock, *, applied: bool
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(30)

    with gates(world, named("hold", hold), clock=clock) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=first.call, args=(run, "hold", {}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        action = second.propose(run, "hold", {}, key="k").action
        clock.advance(timedelta(seconds=60))
        second.reconcile(action, applied=True, by="ada", evidence=None, tenant="acme")
        leave.set()
        thread.join()
        assert world.value("SELECT unresolved FROM agentgate_actions WHERE id = ?", action) == 1
        proposal = second.reconcile(action, applied=applied, by="ada", evidence="looked again", tenant="acme")
    assert proposal.state == "SUCCEEDED"
    assert world.value("SELECT unresolved FROM agentgate_actions WHERE id = ?", action) == 0


# --- cancelling ----------------------------------------------------------------------------------


def test_what_has_not_started_and_what_has_failed_is_cancelled_and_nothing_else(world: World) -> None:
    def act(end: str) -> None:
        if end == "failed":
            raise ToolError("not_found", "no")
        if end == "unknown":
            raise ConnectionResetError

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        ready = gate.propose(run, "act", {"end": "done"})
        assert gate.cancel(ready, by="ada", note="a note").state == "REFUSED"
        failed = gate.call(run, "act", {"end": "failed"})
        assert gate.cancel(failed.action, by="ada", tenant="acme").state == "REFUSED"
        for end, remedy in (("done", "has ended"), ("unknown", "reconcile")):
            outcome = gate.call(run, "act", {"end": end})
            with pytest.raises(NotPossible, match=remedy):
                gate.cancel(outcome.action, by="ada", tenant="acme")
        with pytest.raises(NotPossible):
            gate.cancel(ready, by="ada")
        outcome = gate.execute(ready)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "cancelled"
