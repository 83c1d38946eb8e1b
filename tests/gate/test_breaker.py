"""A tool that keeps failing is left alone for a while: a wait, stricter only, and one at a time afterwards."""

import threading
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Breaker, Done, Failed, Gate, Misuse, NoEffect, Refused, Repeat, Run, Settings, ToolError, Unknown
from agentgate.core.breaking import SAYS_NOTHING
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import faulty, forking
from support.worlds import World, named, opened

PAUSE = timedelta(seconds=30)
THREE_OF_FIVE = Settings(breaker=Breaker(failures=3, of=5, pause=PAUSE))


class Downstream:
    """Something that is down until it is told otherwise."""

    def __init__(self) -> None:
        self.error: Exception | None = NoEffect("down")
        self.calls = 0

    def tool(self, name: str = "act", **declared: Any) -> AnyTool:
        def act(n: int) -> int:
            self.calls += 1
            if self.error is not None:
                raise self.error
            return n

        return named(name, act, **declared)


def fail(gate: Gate, run: Run, *, times: int, tool: str = "act") -> None:
    for n in range(times):
        assert isinstance(gate.call(run, tool, {"n": n}), Failed | Unknown)


def waits(outcome: agentgate.Outcome) -> Refused:
    assert isinstance(outcome, Refused), outcome
    assert outcome.retryable
    assert outcome.reason == "breaker"
    return outcome


def test_a_tool_that_keeps_failing_is_left_alone_and_the_key_stays_usable(world: World, clock: FakeClock) -> None:
    down = Downstream()
    with world.gate(down.tool(), clock=clock, settings=THREE_OF_FIVE) as gate:
        run = opened(gate)
        fail(gate, run, times=3)
        first = waits(gate.call(run, "act", {"n": 9}, key="k"))
        for _ in range(3):
            waits(gate.call(run, "act", {"n": 9}, key="k"))
        assert down.calls == 3
        assert world.words(first.action) == ["proposed", "waited"]  # once for the reason
        clock.advance(PAUSE)
        down.error = None
        done = gate.call(run, "act", {"n": 9}, key="k")
        assert isinstance(gate.call(run, "act", {"n": 10}), Done)
    assert isinstance(done, Done)
    assert done.action == first.action
    assert world.damage() == []


def test_a_trial_that_fails_opens_it_again_for_a_whole_pause(world: World, clock: FakeClock) -> None:
    down = Downstream()
    with world.gate(down.tool(), clock=clock, settings=THREE_OF_FIVE) as gate:
        run = opened(gate)
        fail(gate, run, times=3)
        clock.advance(PAUSE)
        fail(gate, run, times=1)
        clock.advance(PAUSE - timedelta(seconds=1))
        waits(gate.call(run, "act", {"n": 1}))
        clock.advance(timedelta(seconds=1))
        fail(gate, run, times=1)
    assert down.calls == 5


def test_after_the_pause_one_at_a_time_tries(world: World, clock: FakeClock) -> None:
    entered, leave = threading.Event(), threading.Event()
    down = Downstream()

    def act(n: int) -> int:
        if n == 100:
            entered.set()
            leave.wait(30)
            return n
        raise NoEffect("down")

    with world.gate(named("act", act, parallel=False), clock=clock, settings=THREE_OF_FIVE) as gate:
        run = opened(gate)
        fail(gate, run, times=3)
        clock.advance(PAUSE)
        thread = threading.Thread(target=gate.call, args=(run, "act", {"n": 100}), kwargs={"key": "trial"})
        thread.start()
        assert entered.wait(30)
        second = waits(gate.call(run, "act", {"n": 101}, key="k"))
        assert second.blocking == gate.propose(run, "act", {"n": 100}, key="trial").action
        leave.set()
        thread.join()
        assert isinstance(gate.call(run, "act", {"n": 101}, key="k"), Failed)
    assert down.calls == 0


def test_a_trial_whose_worker_died_is_in_nobodys_way(world: World) -> None:
    settings = Settings(breaker=Breaker(failures=2, of=3, pause=timedelta(milliseconds=1)))

    def act(n: int) -> int:
        if n == 100:
            forking.die()
        if n < 10:
            raise NoEffect("down")
        return n

    tool = named("act", act, risk="read_only", recovery=Repeat())

    def trial() -> None:
        with world.gate(tool, settings=settings) as gate:
            gate.call(opened(gate), "act", {"n": 100})

    with world.gate(tool, settings=settings) as gate:
        run = opened(gate)
        fail(gate, run, times=2)
    assert forking.run(trial) == forking.KILLED
    with world.gate(tool, settings=settings) as gate:
        assert isinstance(gate.call(opened(gate), "act", {"n": 50}, wait=5), Done)


@pytest.mark.parametrize("code", sorted(SAYS_NOTHING))
def test_a_failure_that_says_nothing_of_the_downstream_does_not_count(
    world: World, clock: FakeClock, code: str
) -> None:
    down = Downstream()
    down.error = ToolError(code, "no", effect="none")
    with world.gate(down.tool(), clock=clock, settings=THREE_OF_FIVE) as gate:
        fail(gate, opened(gate), times=6)
    assert down.calls == 6


def test_a_doubt_counts_as_a_failure(world: World, clock: FakeClock) -> None:
    down = Downstream()
    down.error = ConnectionResetError()
    with world.gate(down.tool(resource="r:{n}"), clock=clock, settings=THREE_OF_FIVE) as gate:
        run = opened(gate)
        fail(gate, run, times=3)
        waits(gate.call(run, "act", {"n": 50}))


def test_what_was_refused_never_counts_and_no_denial_is_turned_off(world: World, clock: FakeClock) -> None:
    down = Downstream()
    policy = ScriptedPolicy(*[agentgate.deny("no")] * 6, *[agentgate.allow()] * 3, otherwise=agentgate.deny("no"))
    with world.gate(down.tool(), clock=clock, settings=THREE_OF_FIVE, policy=policy) as gate:
        run = opened(gate)
        for n in range(6):
            assert isinstance(gate.call(run, "act", {"n": n}), Refused)
        fail(gate, run, times=3)
        denied = gate.call(run, "act", {"n": 1})
    assert isinstance(denied, Refused)
    assert denied.reason == "policy_denied"
    assert not denied.retryable


def test_it_is_of_one_tool_and_one_tenant(world: World, clock: FakeClock) -> None:
    down, up = Downstream(), Downstream()
    up.error = None
    with world.gate(down.tool(), up.tool("other"), clock=clock, settings=THREE_OF_FIVE) as gate:
        fail(gate, opened(gate, "one"), times=2)
        fail(gate, opened(gate, "two"), times=1)
        waits(gate.call(opened(gate, "three"), "act", {"n": 1}))
        assert isinstance(gate.call(opened(gate), "other", {"n": 1}), Done)
        assert isinstance(gate.call(opened(gate, tenant="beta"), "act", {"n": 1}), Failed)


def test_a_success_as_the_newest_keeps_it_closed(world: World, clock: FakeClock) -> None:
    down = Downstream()
    with world.gate(down.tool(), clock=clock, settings=THREE_OF_FIVE) as gate:
        run = opened(gate)
        fail(gate, run, times=2)
        down.error = None
        assert isinstance(gate.call(run, "act", {"n": 1}), Done)
        down.error = NoEffect("down")
        fail(gate, run, times=1)
        waits(gate.call(run, "act", {"n": 1}))


def test_a_gate_without_a_breaker_asks_the_database_nothing_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.install(monkeypatch)
    counts = []
    for settings in (Settings(), THREE_OF_FIVE):
        with world.gate(settings=settings) as gate:
            run, count = opened(gate), faulty.Count()
            gate.call(run, "refund", {"account": "a0", "cents": 1})
            with faulty.during(count):
                gate.call(run, "refund", {"account": "a1", "cents": 1})
            counts.append(len(count.statements))
    assert counts[1] == counts[0] + 1


@pytest.mark.parametrize(
    ("fields", "named_field"),
    [
        ({"failures": 0}, "failures"),
        ({"failures": 11}, "failures"),
        ({"of": 101}, "of"),
        ({"of": True}, "of"),
        ({"pause": 30}, "pause"),
        ({"pause": timedelta(0)}, "pause"),
    ],
)
def test_a_breaker_out_of_bounds_is_refused_naming_the_field(fields: dict[str, Any], named_field: str) -> None:
    with pytest.raises(Misuse, match=rf"breaker\.{named_field}:"):
        Breaker(**fields)
    with pytest.raises(Misuse, match="breaker:"):
        Settings(breaker=fields)  # type: ignore[arg-type]
