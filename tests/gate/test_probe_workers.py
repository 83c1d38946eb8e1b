"""A probe and the worker that may still live: "it has not happened" is believed once nobody can make it untrue."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Done, Effect, Function, Gate, NoEffect, Outcome, Unknown
from agentgate.testing import FakeClock
from agentgate.tools.decorator import AnyTool
from agentgate.work import is_at_work
from support import forking
from support.single import until
from support.worlds import World, gates, named, opened

SHORT = 0.05


class Slow:
    """A tool whose first attempt waits to be let go, and a probe that looks at the downstream."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.entered, self.leave = threading.Event(), threading.Event()
        self.clean = False
        self.tries: list[int] = []
        self.asked = 0

    def pay(self, account: str, *, effect: Effect) -> str:
        self.tries.append(effect.attempt)
        if effect.attempt == 1:
            self.entered.set()
            self.leave.wait(60)
            if self.clean:
                raise NoEffect("it was not sent")
        self.world.downstream.apply(effect, resource=account)
        return f"attempt {effect.attempt}"

    def ask(self, effect: Effect, _arguments: Any) -> bool:
        """Look, as a careless probe does: nothing keeps the attempt from coming through afterwards."""
        self.asked += 1
        return effect.idempotency_key in self.world.downstream.effects

    def tool(self, **declared: Any) -> AnyTool:
        def pay(account: str, *, effect: Effect) -> str:
            return self.pay(account, effect=effect)

        probe = Function(call=self.ask, name="look", version="1")
        whole = {"recovery": agentgate.Probe(), "probe": probe, "resource": "account:{account}", "timeout": SHORT}
        return named("pay", pay, **whole | declared)


@pytest.fixture
def slow(world: World) -> Iterator[Slow]:
    made = Slow(world)
    yield made
    made.leave.set()


def call(gate: Gate) -> Outcome:
    return gate.call(opened(gate), "pay", {"account": "a1"}, key="k")


def test_not_applied_is_not_believed_while_the_thread_of_the_attempt_still_runs(world: World, slow: Slow) -> None:
    with world.gate(slow.tool()) as gate:
        unknown = call(gate)
        assert isinstance(unknown, Unknown)
        assert unknown.reason == "timeout"
        outcomes = [call(gate), call(gate)]
        assert [type(outcome) for outcome in outcomes] == [Unknown, Unknown]
        assert slow.asked == 2
        assert world.words(unknown.action) == ["proposed", "started", "in_doubt", "waited"]
        assert world.events(unknown.action)[-1].body["reason"] == "worker_alive"
        assert world.sql("SELECT action FROM agentgate_locks") == [(unknown.action,)]
        slow.leave.set()
        until(lambda: world.words(unknown.action)[-1] == "late")
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.source == "reconciled"
    assert slow.tries == [1]
    assert world.downstream.total == 1
    assert not world.damage()


def test_once_the_thread_has_ended_with_nothing_done_not_applied_is_believed_at_once(world: World, slow: Slow) -> None:
    slow.clean = True
    with world.gate(slow.tool()) as gate:
        unknown = call(gate)
        assert isinstance(call(gate), Unknown)
        slow.leave.set()
        until(lambda: world.words(unknown.action)[-1] == "late")
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert (outcome.source, outcome.observation.value) == ("executed", "attempt 2")
    assert slow.tries == [1, 2]
    assert world.downstream.total == 1


def test_applied_is_believed_while_the_thread_still_runs_and_its_end_is_kept(world: World, slow: Slow) -> None:
    with world.gate(slow.tool()) as gate:
        unknown = call(gate)
        slow.ask = lambda *_: True  # type: ignore[method-assign]
        with world.gate(slow.tool()) as other:
            outcome = call(other)
        assert isinstance(outcome, Done)
        reconciled = world.events(unknown.action)[-1]
        assert reconciled.body["worker_known_dead"] is False
        slow.leave.set()
        until(lambda: world.words(unknown.action)[-1] == "late")


@pytest.mark.parametrize("advance", [0, 61])
def test_a_worker_that_nobody_can_look_at_is_believed_to_live_until_its_lease_is_over(
    world: World, slow: Slow, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, advance: int
) -> None:
    """As in another process, or on another host: only the lease tells."""
    monkeypatch.setattr("agentgate.gate.probing.is_at_work", lambda _name: False)
    monkeypatch.setattr("agentgate.process._host", lambda: "")
    slow.clean = True
    with world.gate(slow.tool(), clock=clock) as gate:
        unknown = call(gate)
        assert isinstance(unknown, Unknown)
        clock.advance(timedelta(seconds=advance))
        outcome = call(gate)
    if advance:
        assert isinstance(outcome, Done)
        assert slow.tries == [1, 2]
    else:
        assert isinstance(outcome, Unknown)
        assert world.events(unknown.action)[-1].body["reason"] == "worker_alive"


def test_a_timed_out_attempt_of_another_living_process_is_waited_for_and_of_a_dead_one_is_not(
    world: World, slow: Slow
) -> None:
    told, tell = os.pipe()

    def work() -> None:
        with world.gate(slow.tool()) as gate:
            assert isinstance(call(gate), Unknown)
            os.write(tell, b"x")
            time.sleep(60)

    child = forking.start(work)
    try:
        assert os.read(told, 1) == b"x"
        with world.gate(slow.tool()) as gate:
            outcome = call(gate)
            assert isinstance(outcome, Unknown)
            assert world.events(outcome.action)[-1].body["reason"] == "worker_alive"
    finally:
        os.kill(child, 9)
        forking.end(child)
        os.close(told)
        os.close(tell)
    with world.gate(slow.tool()) as gate:
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert world.downstream.total == 1


def test_a_process_knows_what_is_at_work_in_it_whichever_gate_it_looks_through(world: World, slow: Slow) -> None:
    with gates(world, slow.tool()) as (gate, other):
        unknown = call(gate)
        assert isinstance(unknown, Unknown)
        name = (gate.ledger, world.value("SELECT fence FROM agentgate_attempts"))
        assert is_at_work(name)
        assert isinstance(call(other), Unknown)
        assert slow.tries == [1]
        slow.clean = True
        slow.leave.set()
        until(lambda: not is_at_work(name))
        assert isinstance(call(other), Done)


def test_the_attempt_that_was_asked_about_cannot_come_through_where_the_downstream_bars_it(
    world: World, slow: Slow, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    """A worker that was stopped past its last check, and a lease that is over: the fence decides at the downstream."""
    monkeypatch.setattr("agentgate.gate.probing.is_at_work", lambda _name: False)
    monkeypatch.setattr("agentgate.process._host", lambda: "")
    slow.ask = lambda effect, _arguments: world.downstream.has_applied(effect)  # type: ignore[method-assign]
    with world.gate(slow.tool(), clock=clock) as gate:
        unknown = call(gate)
        clock.advance(timedelta(seconds=61))
        outcome = call(gate)
        assert isinstance(outcome, Done)
        slow.leave.set()
        until(lambda: world.words(unknown.action)[-1] == "late")
    assert [arrival.verdict for arrival in world.downstream.arrivals] == ["applied", "fenced"]
    assert world.events(unknown.action)[-1].body["clean"] is True
    assert world.state(unknown.action) == "SUCCEEDED"


@contextmanager
def reopened(world: World, slow: Slow) -> Iterator[tuple[Gate, str]]:
    """Hold an action that somebody reconciled as applied before its result came late."""
    with world.gate(slow.tool()) as gate:
        unknown = call(gate)
        gate.reconcile(unknown.action, applied=True, by="ada", evidence="the bank", tenant="acme")
        slow.leave.set()
        until(lambda: world.words(unknown.action)[-1] == "late")
        yield gate, unknown.action


def test_an_attempt_that_a_late_result_reopened_is_settled_by_a_probe_that_agrees(world: World, slow: Slow) -> None:
    with reopened(world, slow) as (gate, action):
        assert gate.sweep().probed == 1
    assert world.state(action) == "SUCCEEDED"
    assert world.value("SELECT unresolved FROM agentgate_actions") == 0
    assert world.events(action)[-1].body["by"] == "probe:look/1"
    assert world.sql("SELECT * FROM agentgate_locks") == []
    assert not world.damage()


def test_a_probe_that_contradicts_a_known_end_changes_nothing(world: World, slow: Slow) -> None:
    with reopened(world, slow) as (gate, action):
        slow.ask = lambda *_: False  # type: ignore[method-assign]
        gate.register(slow.tool(), replace=True)
        assert gate.sweep().probed == 0
    assert world.words(action)[-1] == "late"
    assert world.value("SELECT unresolved FROM agentgate_actions") == 1


def test_a_sweep_asks_the_tools_that_can_tell_and_starts_nothing(world: World, slow: Slow) -> None:
    slow.clean = True
    with world.gate(slow.tool(), world.refund()) as gate:
        unknown = call(gate)
        slow.leave.set()
        until(lambda: world.words(unknown.action)[-1] == "late")
        first, second = gate.sweep(), gate.sweep()
    assert (first.probed, first.changed, second.probed, second.changed) == (1, 1, 0, 0)
    assert world.state(unknown.action) == "READY"
    assert slow.tries == [1]


def test_a_sweep_takes_over_from_a_dead_worker_and_asks_about_it_in_one_go(world: World, slow: Slow) -> None:
    def work() -> None:
        with world.gate(slow.tool(timeout=60)) as gate:
            threading.Thread(target=call, args=(gate,), daemon=True).start()
            assert slow.entered.wait(30)
            forking.die()

    assert forking.run(work) == forking.KILLED
    slow.ask = lambda *_: None  # type: ignore[method-assign,assignment]
    with world.gate(slow.tool(timeout=60)) as gate:
        swept = gate.sweep()
        assert (swept.crashed, swept.probed) == (1, 0)
    slow.ask = lambda *_: True  # type: ignore[method-assign]
    with world.gate(slow.tool(timeout=60)) as gate:
        assert gate.sweep().probed == 1
        assert isinstance(call(gate), Done)
    assert not world.damage()


def test_a_gate_that_cannot_ask_sweeps_past_what_is_in_doubt(world: World, slow: Slow) -> None:
    with world.gate(slow.tool()) as gate:
        unknown = call(gate)
    with world.gate() as gate:
        assert gate.sweep().probed == 0
    assert world.words(unknown.action)[-1] == "in_doubt"
