"""Waiting with a deadline: for a turn, for a switch, for somebody else's end; and what runs side by side."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Done, Limits, Misuse, Refused, Running
from agentgate.gate import waiting
from agentgate.testing import FakeClock
from support import forking
from support.worlds import World, gates, kinds, named, opened


class Held:
    """A tool that holds its resource until it is let go, and notes who was inside at once."""

    def __init__(self, *, holds_s: float | None = None) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()
        self.holds_s, self.inside, self.most, self.calls = holds_s, 0, 0, 0
        self._lock = threading.Lock()

    def __call__(self, n: int) -> int:
        with self._lock:
            self.calls += 1
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.entered.set()
        if self.holds_s is None:
            self.leave.wait(30)
        else:
            time.sleep(self.holds_s)
        with self._lock:
            self.inside -= 1
        return n

    def tool(self, **declared: Any) -> agentgate.Tool[..., Any]:
        def hold(account: str, n: int) -> int:  # noqa: ARG001 - the resource
            return self(n)

        return named("hold", hold, **{"resource": "account:{account}"} | declared)


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("same_gate", [True, False])
def test_who_waits_for_a_busy_resource_gets_its_turn_soon_after_the_holder_ends(
    world: World, *, same_gate: bool
) -> None:
    held = Held()
    outcomes: list[agentgate.Outcome] = []
    with gates(world, held.tool()) as (one, two):
        other = one if same_gate else two
        run = opened(one)
        first = started(lambda: one.call(run, "hold", {"account": "a", "n": 1}))
        assert held.entered.wait(30)

        def wait() -> None:
            outcomes.append(other.call(run, "hold", {"account": "a", "n": 2}, key="k", wait=timedelta(seconds=60)))

        second = started(wait)
        time.sleep(0.3)
        assert not outcomes
        before = time.monotonic()
        held.leave.set()
        first.join()
        second.join()
        took = time.monotonic() - before
    assert kinds(outcomes) == ["Done"]
    assert took < 10
    assert held.most == 1
    # However often it looked, the record says once why it waited.
    assert world.words(outcomes[0].action) == ["proposed", "waited", "started", "succeeded"]


def test_in_one_process_whoever_ends_wakes_up_those_who_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FIRST_PAUSE_US", 60_000_000)  # nobody looks again by itself
    monkeypatch.setattr(waiting, "_LONGEST_PAUSE_US", 60_000_000)
    held = Held()
    outcomes: list[agentgate.Outcome] = []
    with world.gate(held.tool()) as gate:
        run = opened(gate)
        first = started(lambda: gate.call(run, "hold", {"account": "a", "n": 1}))
        assert held.entered.wait(30)
        second = started(lambda: outcomes.append(gate.call(run, "hold", {"account": "a", "n": 2}, wait=120)))
        while not gate._shop.ledger.turns._waiting:
            time.sleep(0.01)
        before = time.monotonic()
        held.leave.set()
        first.join()
        second.join()
    assert kinds(outcomes) == ["Done"]
    assert time.monotonic() - before < 30


def test_when_its_time_is_over_who_waits_is_handed_the_last_answer(world: World) -> None:
    held = Held()
    with world.gate(held.tool()) as gate:
        run = opened(gate)
        first = started(lambda: gate.call(run, "hold", {"account": "a", "n": 1}, key="first"))
        assert held.entered.wait(30)
        before = time.monotonic()
        busy = gate.call(run, "hold", {"account": "a", "n": 2}, wait=0.2)
        running = gate.call(run, "hold", {"account": "a", "n": 1}, key="first", wait=0.2)
        assert time.monotonic() - before >= 0.4
        held.leave.set()
        first.join()
    assert isinstance(busy, Refused)
    assert busy.reason == "busy"
    assert isinstance(running, Running)
    assert held.calls == 1


def test_who_waits_for_another_workers_end_is_handed_what_came_of_it(world: World) -> None:
    held = Held()
    outcomes: list[agentgate.Outcome] = []
    with gates(world, held.tool()) as (one, two):
        proposal = one.propose(opened(one), "hold", {"account": "a", "n": 1}, key="k")
        first = started(lambda: one.execute(proposal))
        assert held.entered.wait(30)
        second = started(lambda: outcomes.append(two.execute(proposal, wait=60)))
        time.sleep(0.1)
        held.leave.set()
        first.join()
        second.join()
    assert kinds(outcomes) == ["Done"]
    assert held.calls == 1


def test_twenty_writes_to_one_resource_take_turns_and_all_have_theirs(world: World) -> None:
    held = Held(holds_s=0.005)
    outcomes: list[agentgate.Outcome] = []
    with gates(world, held.tool()) as pair:
        run = opened(pair[0])

        def work(n: int) -> None:
            outcomes.append(pair[n % 2].call(run, "hold", {"account": "a", "n": n}, wait=120))

        threads = [started(lambda n=n: work(n)) for n in range(20)]  # type: ignore[misc]
        for thread in threads:
            thread.join()
    assert kinds(outcomes) == ["Done"] * 20
    assert (held.most, held.calls) == (1, 20)
    assert world.damage() == []


def test_parallel_reads_of_one_resource_run_side_by_side(world: World) -> None:
    together = threading.Barrier(4)

    def read(account: str, n: int) -> int:  # noqa: ARG001
        together.wait(60)  # comes back only where all four are inside at once
        return n

    outcomes: list[agentgate.Outcome] = []
    tool = named("read", read, risk="read_only", resource="account:{account}")
    assert tool.spec.parallel
    with world.gate(tool) as gate:
        run = opened(gate)
        threads = [
            started(lambda n=n: outcomes.append(gate.call(run, "read", {"account": "a", "n": n})))  # type: ignore[misc]
            for n in range(4)
        ]
        for thread in threads:
            thread.join()
    assert kinds(outcomes) == ["Done"] * 4


def test_reads_that_are_not_parallel_take_turns(world: World) -> None:
    held = Held(holds_s=0.01)
    outcomes: list[agentgate.Outcome] = []
    with world.gate(held.tool(risk="read_only", parallel=False)) as gate:
        run = opened(gate)
        threads = [
            started(lambda n=n: outcomes.append(gate.call(run, "hold", {"account": "a", "n": n}, wait=60)))  # type: ignore[misc]
            for n in range(4)
        ]
        for thread in threads:
            thread.join()
    assert kinds(outcomes) == ["Done"] * 4
    assert held.most == 1


def test_a_pause_and_a_full_run_are_waited_for(world: World) -> None:
    held = Held()
    outcomes: list[agentgate.Outcome] = []
    with world.gate(held.tool()) as gate:
        run = opened(gate, limits=Limits(parallel=1))
        first = started(lambda: gate.call(run, "hold", {"account": "a", "n": 1}))
        assert held.entered.wait(30)
        full = started(lambda: outcomes.append(gate.call(run, "hold", {"account": "b", "n": 2}, wait=60)))
        time.sleep(0.1)
        world.pause()
        held.leave.set()
        first.join()
        time.sleep(0.2)
        assert not outcomes
        world.pause(paused=False)
        full.join()
    assert kinds(outcomes) == ["Done"]


def test_a_dead_holder_is_taken_over_by_who_waits(world: World) -> None:
    def crash(account: str, n: int) -> int:  # noqa: ARG001
        forking.die()

    held = Held(holds_s=0)
    tool = held.tool(recovery=agentgate.Repeat())

    def work() -> None:
        with world.gate(agentgate.gated(tool.spec, crash)) as gate:
            gate.call(opened(gate), "hold", {"account": "a", "n": 1}, key="dead")

    assert forking.run(work) == forking.KILLED
    with world.gate(tool) as gate:
        run = opened(gate)
        blocked = gate.call(run, "hold", {"account": "a", "n": 2}, wait=0.1)
        assert isinstance(blocked, Refused)
        assert blocked.reason == "blocked"  # taken over at once: now it is the doubt that is in the way
        assert isinstance(gate.call(run, "hold", {"account": "a", "n": 1}, key="dead"), Done)
        assert isinstance(gate.execute(blocked.action, tenant="acme", wait=5), Done)


def test_reconciling_what_is_in_the_way_wakes_up_who_waits(world: World) -> None:
    def act(account: str, n: int) -> int:  # noqa: ARG001
        if n == 1:
            raise ConnectionResetError
        return n

    outcomes: list[agentgate.Outcome] = []
    with world.gate(named("act", act, resource="account:{account}")) as gate:
        run = opened(gate)
        unknown = gate.call(run, "act", {"account": "a", "n": 1})
        second = started(lambda: outcomes.append(gate.call(run, "act", {"account": "a", "n": 2}, wait=60)))
        time.sleep(0.1)
        assert not outcomes
        gate.reconcile(unknown.action, applied=True, by="ada", evidence="seen", tenant="acme")
        second.join()
    assert kinds(outcomes) == ["Done"]


def test_waiting_by_a_told_clock_costs_no_time_and_ends_at_the_deadline(world: World, clock: FakeClock) -> None:
    with world.gate(clock=clock) as gate:
        run = opened(gate)
        world.pause()
        before, really = clock.monotonic_us(), time.monotonic()
        refused = gate.call(run, "refund", {"account": "a", "cents": 1}, wait=timedelta(seconds=2))
    assert isinstance(refused, Refused)
    assert refused.reason == "paused"
    assert clock.monotonic_us() - before == 2_000_000
    assert time.monotonic() - really < 30
    assert world.words(refused.action) == ["proposed", "waited"]


def test_a_forked_child_waits_for_itself(world: World) -> None:
    held = Held()
    with world.gate(held.tool()) as gate:
        run = opened(gate)
        world.pause()
        waiting = started(lambda: gate.call(run, "hold", {"account": "a", "n": 1}, wait=1))

        def child() -> None:
            with world.gate(held.tool()) as other:
                assert isinstance(other.call(opened(other), "hold", {"account": "b", "n": 2}, wait=0.05), Refused)

        assert forking.run(child) == 0
        waiting.join()


@pytest.mark.parametrize("wait", [-1, "1", True, float("nan"), timedelta(seconds=-1), timedelta(days=9_999), [1]])
def test_a_wait_that_is_no_span_is_refused_before_anything_is_written(world: World, wait: Any) -> None:
    with world.gate() as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", {"account": "a", "cents": 1})
        before = len(world.events())
        with pytest.raises(Misuse, match="wait:"):
            gate.call(run, "refund", {"account": "a", "cents": 1}, wait=wait)
        with pytest.raises(Misuse, match="wait:"):
            gate.execute(proposal, wait=wait)
        assert len(world.events()) == before
