"""A tool's own retry: only where it is safe, as often and as long as the spec says, counted in the record."""

import threading
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Done, Failed, Keyed, Limits, NoEffect, Operator, Refused, Repeat, Retry, ToolError, Unknown
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, named, opened

THRICE = Retry(attempts=3)
SECOND = timedelta(seconds=1)


class Flaky:
    """A callable that raises so many times, and remembers when it was called."""

    def __init__(self, clock: FakeClock, error: Exception, *, times: int = 100) -> None:
        self.clock, self.error, self.times = clock, error, times
        self.at: list[int] = []

    def __call__(self) -> str:
        self.at.append(self.clock.monotonic_us())
        if len(self.at) <= self.times:
            raise self.error
        return "done"

    def tool(self, **declared: Any) -> AnyTool:
        def act() -> str:
            return self()

        return named("act", act, **{"retry": THRICE} | declared)

    @property
    def pauses(self) -> list[float]:
        return [(later - earlier) / 1e6 for earlier, later in zip(self.at, self.at[1:], strict=False)]


def test_a_known_failure_that_says_so_is_tried_again_with_growing_jittered_pauses(
    world: World, clock: FakeClock
) -> None:
    flaky = Flaky(clock, NoEffect("not now"), times=4)
    with world.gate(flaky.tool(retry=Retry(attempts=5, longest_wait=3 * SECOND)), clock=clock) as gate:
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(outcome, Done)
    assert outcome.source == "executed"
    assert world.words(outcome.action) == ["proposed", "started", *["failed", "retried", "started"] * 4, "succeeded"]
    for pause, whole in zip(flaky.pauses, [1, 2, 3, 3], strict=True):
        assert whole / 2 <= pause <= whole
    assert len(set(flaky.pauses)) == 4
    assert {event.body["by"] for event in world.events(outcome.action) if event.type == "retried"} == {"retry"}
    assert world.damage() == []


@pytest.mark.parametrize("recovery", [Operator(), Keyed(hours=1), Repeat()])
def test_attempts_counts_the_first_one_and_is_kept_whatever_the_recovery(
    world: World, clock: FakeClock, recovery: agentgate.Operator
) -> None:
    flaky = Flaky(clock, NoEffect("not now"))
    with world.gate(flaky.tool(recovery=recovery), clock=clock) as gate:
        run = opened(gate)
        outcome = gate.call(run, "act", {}, key="k")
        again = [gate.call(run, "act", {}, key="k") for _ in range(5)]
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert len(flaky.at) == 3
    # A framework's retries around the gate are told what came of it, and multiply nothing.
    assert [type(one).__name__ for one in again] == ["Failed"] * 5
    assert world.value("SELECT retried FROM agentgate_runs WHERE name = 'ticket-1'") == 2


@pytest.mark.parametrize(
    "error",
    [
        NoEffect("wrong", code="conflict", retryable=False),
        ToolError("not_found", "no"),
        ToolError("internal", "", effect="none"),
    ],
)
def test_a_failure_that_trying_again_cannot_help_is_not_tried_again(
    world: World, clock: FakeClock, error: Exception
) -> None:
    flaky = Flaky(clock, error)
    with world.gate(flaky.tool(), clock=clock) as gate:
        assert isinstance(gate.call(opened(gate), "act", {}, key="k"), Failed)
    assert len(flaky.at) == 1


@pytest.mark.parametrize("error", [ConnectionResetError(), ToolError("transient", "?"), ToolError("timeout", "?")])
def test_an_outcome_in_doubt_is_never_tried_again_where_a_person_decides(
    world: World, clock: FakeClock, error: Exception
) -> None:
    flaky = Flaky(clock, error)
    with world.gate(flaky.tool(recovery=Operator(), retry=Retry(attempts=100)), clock=clock) as gate:
        run = opened(gate)
        for _ in range(3):
            assert isinstance(gate.call(run, "act", {}, key="k", retry=True, wait=60), Unknown)
    assert len(flaky.at) == 1


@pytest.mark.parametrize("recovery", [Repeat(), Keyed(hours=1)])
@pytest.mark.parametrize(
    ("error", "attempts"),
    [(ToolError("transient", "?"), 3), (ToolError("timeout", "?"), 3), (ConnectionResetError(), 1)],
)
def test_a_doubt_is_tried_again_where_recovery_allows_it_and_the_error_was_passing(
    world: World, clock: FakeClock, recovery: agentgate.Repeat, error: Exception, attempts: int
) -> None:
    flaky = Flaky(clock, error)
    with world.gate(flaky.tool(recovery=recovery), clock=clock) as gate:
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(outcome, Unknown)
    assert len(flaky.at) == attempts
    assert world.words(outcome.action).count("started") == attempts


def test_a_doubt_that_was_tried_as_often_as_the_spec_says_waits_for_somebody_who_asks(
    world: World, clock: FakeClock
) -> None:
    flaky = Flaky(clock, ToolError("transient", "?"))
    with world.gate(flaky.tool(recovery=Repeat()), clock=clock) as gate:
        run = opened(gate)
        for _ in range(4):
            assert isinstance(gate.call(run, "act", {}, key="k"), Unknown)
        assert len(flaky.at) == 3
        assert isinstance(gate.call(run, "act", {}, key="k", retry=True), Unknown)
        assert len(flaky.at) == 4


def test_a_keyed_doubt_is_not_tried_again_past_its_window(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, ToolError("transient", "?"))
    retry = Retry(attempts=10, wait=timedelta(minutes=1), longest_wait=timedelta(minutes=1))
    with world.gate(flaky.tool(recovery=Keyed(minutes=2), retry=retry), clock=clock) as gate:
        assert isinstance(gate.call(opened(gate), "act", {}, key="k"), Unknown)
    assert max(flaky.at) - min(flaky.at) < 120_000_000
    assert 2 <= len(flaky.at) <= 4


def test_no_further_attempt_begins_later_than_within_says_counted_from_the_first(
    world: World, clock: FakeClock
) -> None:
    flaky = Flaky(clock, NoEffect("not now"))
    retry = Retry(attempts=50, wait=SECOND, longest_wait=SECOND, within=timedelta(seconds=5))
    with world.gate(flaky.tool(retry=retry), clock=clock) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "act", {}, key="k"), Failed)
        first_call = len(flaky.at)
        clock.advance(timedelta(seconds=5))
        assert isinstance(gate.call(run, "act", {}, key="k"), Failed)
    assert 5 <= first_call <= 11
    assert len(flaky.at) == first_call
    assert flaky.at[-1] - flaky.at[0] < 5_000_000


@pytest.mark.parametrize("after", [timedelta(seconds=40), 40, 40.0])
def test_retry_after_is_on_record_told_and_waited_for(world: World, clock: FakeClock, after: Any) -> None:
    flaky = Flaky(clock, ToolError("rate_limited", "slow down", retry_after=after), times=2)
    with world.gate(flaky.tool(), clock=clock) as gate:
        run = opened(gate)
        told = gate.call(run, "act", {}, key="k", wait=1)
        assert isinstance(told, Failed)
        failed = next(event for event in world.events(told.action) if event.type == "failed")
        assert failed.body["retry_at_us"] == failed.at_us + 40_000_000
        assert told.retry_at is not None
        assert gate.propose(run, "act", {}, key="k").outcome == told
        assert isinstance(gate.call(run, "act", {}, key="k"), Done)
    assert all(pause > 39.9 for pause in flaky.pauses)
    assert world.damage() == []


@pytest.mark.parametrize("after", ["soon", -1, float("nan"), float("inf"), True, timedelta(days=-1), None])
def test_a_retry_after_that_is_no_span_is_ignored(world: World, clock: FakeClock, after: Any) -> None:
    flaky = Flaky(clock, NoEffect("no", retry_after=after), times=1)
    with world.gate(flaky.tool(), clock=clock) as gate:
        assert isinstance(gate.call(opened(gate), "act", {}), Done)
    assert flaky.pauses[0] <= 1


def test_a_retry_after_later_than_within_is_not_slept_for(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, ToolError("rate_limited", "tomorrow", retry_after=timedelta(days=1)))
    with world.gate(flaky.tool(), clock=clock) as gate:
        before = clock.monotonic_us()
        failed = gate.call(opened(gate), "act", {})
    assert isinstance(failed, Failed)
    assert clock.monotonic_us() == before
    assert len(flaky.at) == 1


def test_no_sleep_ends_after_the_callers_own_deadline_and_the_next_call_goes_on(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("not now"), times=2)
    retry = Retry(attempts=3, wait=timedelta(seconds=10))
    with world.gate(flaky.tool(retry=retry), clock=clock) as gate:
        run = opened(gate)
        before = clock.monotonic_us()
        assert isinstance(gate.call(run, "act", {}, key="k", wait=timedelta(seconds=4)), Failed)
        assert clock.monotonic_us() - before <= 4_000_000
        assert len(flaky.at) == 1
        assert isinstance(gate.call(run, "act", {}, key="k", wait=0), Failed)
        assert len(flaky.at) == 1
        done = gate.call(run, "act", {}, key="k")
    assert isinstance(done, Done)
    assert len(flaky.at) == 3
    assert flaky.pauses[0] > 4.9  # from when it failed, not from when somebody came back


def test_a_budget_of_retries_bounds_a_run_and_is_told_on_the_record(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("not now"))
    with world.gate(flaky.tool(), clock=clock) as gate:
        run = opened(gate, limits=Limits(retries=3))
        failed = [gate.call(run, "act", {}, key=f"k{n}") for n in range(3)]
        assert all(isinstance(one, Failed) for one in failed)
        assert len(flaky.at) == 3 + 2 + 1
        asked = gate.call(run, "act", {}, key="k2", retry=True)
    assert isinstance(asked, Failed)
    assert len(flaky.at) == 6
    assert "waited" in world.words(failed[2].action)
    assert world.damage() == []


def test_a_retry_that_may_not_begin_leaves_the_failure_as_it_is(world: World, clock: FakeClock) -> None:
    def pausing() -> None:
        world.pause()
        raise NoEffect("not now")

    tool = agentgate.tool(name="act", risk="external", retry=THRICE)(pausing)
    with world.gate(tool, clock=clock) as gate:
        failed = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(failed, Failed)
    assert world.words(failed.action) == ["proposed", "started", "failed"]
    assert world.state(failed.action) == "FAILED"


def test_a_limit_that_is_reached_ends_no_failure_by_its_tools_own_retry(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("not now"))
    with world.gate(flaky.tool(), clock=clock) as gate:
        failed = gate.call(opened(gate, limits=Limits(failures=2)), "act", {}, key="k")
    assert isinstance(failed, Failed)
    assert len(flaky.at) == 2
    assert world.state(failed.action) == "FAILED"


def test_the_policy_is_asked_again_before_each_attempt_and_its_no_ends_it(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("not now"))
    policy = ScriptedPolicy(agentgate.allow(), agentgate.allow(), otherwise=agentgate.deny("enough"))
    with world.gate(flaky.tool(retry=Retry(attempts=9)), policy=policy, clock=clock) as gate:
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "policy_denied"
    assert len(flaky.at) == 2


def test_a_success_and_a_replay_sleep_for_nobody(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("never"), times=0)
    with world.gate(flaky.tool(), clock=clock) as gate:
        run, before = opened(gate), clock.monotonic_us()
        assert isinstance(gate.call(run, "act", {}, key="k"), Done)
        assert isinstance(gate.call(run, "act", {}, key="k", wait=60), Done)
    assert clock.monotonic_us() == before


def test_an_effect_that_overran_is_tried_again_where_repeating_is_safe(world: World) -> None:
    import threading

    leave, tries = threading.Event(), []

    def read() -> str:
        tries.append(1)
        if len(tries) == 1:
            leave.wait(30)
        return f"try {len(tries)}"

    retry = Retry(attempts=2, wait=timedelta(milliseconds=5))
    tool = agentgate.tool(name="act", risk="read_only", timeout=0.2, retry=retry)(read)
    with world.gate(tool) as gate:
        done = gate.call(opened(gate), "act", {}, key="k")
        leave.set()
    assert isinstance(done, Done)
    assert done.observation.value == "try 2"


def test_an_error_of_the_ledger_is_no_failure_to_try_again(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("not now"))

    def vanish() -> None:
        flaky.at.append(0)
        world.path.rename(world.path.with_suffix(".away"))
        raise NoEffect("not now")

    tool = agentgate.tool(name="act", risk="external", retry=THRICE)(vanish)
    with world.gate(tool, clock=clock) as gate:
        run = opened(gate)
        with pytest.raises(agentgate.AgentgateError):
            gate.call(run, "act", {}, key="k")
    assert len(flaky.at) == 1


def test_a_transactional_failure_is_undone_on_record_and_tried_again(world: World, clock: FakeClock) -> None:
    world.sql("CREATE TABLE shop (n INTEGER)")
    flaky = Flaky(clock, NoEffect("not now"), times=1)

    def act(n: int, *, effect: agentgate.Effect) -> str:
        effect.connection.exec_driver_sql("INSERT INTO shop VALUES (?)", (n,))
        return flaky()

    tool = named("act", act, retry=THRICE, recovery=agentgate.Transactional(), timeout=10)
    with world.gate(tool, clock=clock) as gate:
        done = gate.call(opened(gate), "act", {"n": 7}, key="k")
    assert isinstance(done, Done)
    assert world.words(done.action) == ["proposed", "started", "failed", "retried", "started", "succeeded"]
    assert world.sql("SELECT n FROM shop") == [(7,)]
    assert flaky.pauses[0] > 0.4


def test_nobody_sleeps_while_a_transaction_of_the_callers_is_open(world: World, clock: FakeClock) -> None:
    flaky = Flaky(clock, NoEffect("not now"))
    with world.gate(flaky.tool(recovery=agentgate.Transactional(), timeout=10), clock=clock) as gate:
        run = opened(gate)
        with gate.transaction() as connection:
            before = clock.monotonic_us()
            assert isinstance(gate.call(run, "act", {}, key="k", connection=connection), Failed)
            assert clock.monotonic_us() == before
            with pytest.raises(agentgate.Misuse, match="wait"):
                gate.call(run, "act", {}, key="k", connection=connection, wait=1)
        assert len(flaky.at) == 1
        assert isinstance(gate.call(run, "act", {}, key="k"), Failed)
    assert len(flaky.at) == 3


def test_fifty_at_once_against_a_budget_of_ten_retries_are_ten_retries(world: World) -> None:
    import threading

    def act(n: int) -> int:
        raise NoEffect(str(n))

    outcomes: list[agentgate.Outcome] = []
    retry = Retry(attempts=3, wait=timedelta(milliseconds=1))
    with world.gate(named("act", act, retry=retry)) as gate:
        run = opened(gate, limits=Limits(retries=10))
        threads = [
            threading.Thread(target=lambda n=n: outcomes.append(gate.call(run, "act", {"n": n}, key=f"k{n}")))
            for n in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {type(one) for one in outcomes} == {Failed}
    assert world.value("SELECT retried FROM agentgate_runs WHERE name = 'ticket-1'") == 10
    assert sum(event.type == "started" for event in world.events()) == 60
    assert world.damage() == []


@pytest.mark.parametrize(
    ("recovery", "error", "rests"),
    [
        (Operator(), NoEffect("not now"), Failed),
        (Repeat(), NoEffect("not now"), Failed),
        (Repeat(), ToolError("transient", "lost"), Unknown),
    ],
)
def test_what_others_tried_while_a_call_slept_counts_among_its_attempts(
    world: World, clock: FakeClock, recovery: agentgate.Operator, error: Exception, rests: type
) -> None:
    flaky = Flaky(clock, error)
    begun: list[bool] = []
    others: list[agentgate.Outcome] = []

    class Beside(FakeClock):
        def sleep(self, span_us: int, *, wake: threading.Event | None = None) -> None:
            super().sleep(span_us, wake=wake)
            if not begun:
                begun.append(True)
                with world.gate(flaky.tool(recovery=recovery), clock=self) as other:
                    others.append(other.call(opened(other), "act", {}, key="k"))

    with world.gate(flaky.tool(recovery=recovery), clock=Beside()) as gate:
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert len(flaky.at) == 3
    assert isinstance(outcome, rests)
    assert type(others[0]) is rests
    assert world.damage() == []
