"""The same request within its tool's window is refused, naming the action that made it before."""

import threading
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Done, Effect, Failed, Gate, Keyed, NoEffect, Refused, Repeat, Run, Unknown
from agentgate.testing import FakeClock
from agentgate.tools.decorator import AnyTool
from support import forking
from support.worlds import World, gates, kinds, opened

ONE = {"account": "a1", "cents": 1250}
WINDOW = timedelta(minutes=10)


def tool(world: World, **declared: Any) -> AnyTool:
    return world.refund(**{"dedupe_window": WINDOW, "resource": None} | declared)


def details(outcome: agentgate.Outcome) -> Any:
    assert isinstance(outcome, Refused), outcome
    assert outcome.reason == "duplicate"
    assert not outcome.retryable
    return outcome.error.details


def test_an_identical_request_within_the_window_is_refused_with_the_earlier_outcome(
    world: World, clock: FakeClock
) -> None:
    with world.gate(tool(world), clock=clock) as gate:
        first = gate.call(opened(gate), "refund", ONE, key="k1")
        again = gate.call(opened(gate, "another run"), "refund", ONE, key="k2")
        by_own_key = gate.call(opened(gate), "refund", ONE)
        other = gate.call(opened(gate), "refund", ONE | {"cents": 1}, key="k3")
    assert isinstance(first, Done)
    told = {"status": "ok", "notes": [], "value": {"cents": 1250}}
    assert details(again) == {"action": first.action, "reason": "succeeded", "observation": told}
    assert details(by_own_key)["action"] == first.action
    assert isinstance(other, Done)
    assert world.downstream.total == 2
    assert world.words(again.action) == ["proposed", "refused"]
    assert world.damage() == []


def test_once_the_window_is_over_the_same_key_is_tried_again_as_a_new_revision(world: World, clock: FakeClock) -> None:
    with world.gate(tool(world), clock=clock) as gate:
        run = opened(gate)
        gate.call(run, "refund", ONE, key="k1")
        clock.advance(WINDOW - timedelta(seconds=1))
        details(gate.call(run, "refund", ONE, key="k2"))
        clock.advance(timedelta(seconds=1))
        assert isinstance(gate.call(run, "refund", ONE, key="k2"), Done)
        assert gate.propose(run, "refund", ONE, key="k2").revision == 2
    assert world.downstream.total == 2


def test_a_repeat_of_the_key_is_the_same_action_and_no_duplicate(world: World, clock: FakeClock) -> None:
    with world.gate(tool(world), clock=clock) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "refund", ONE, key="k") for _ in range(3)]
    assert kinds(outcomes) == ["Done"] * 3
    assert world.downstream.total == 1


def test_another_principal_learns_only_that_it_is_a_duplicate(world: World, clock: FakeClock) -> None:
    with world.gate(tool(world), clock=clock) as gate:
        run = opened(gate)
        first = gate.call(run, "refund", ONE, key="k1")
        other = gate.call(run, "refund", ONE, key="k2", principal="agent:other")
        again = gate.call(run, "refund", ONE, key="k2", principal="agent:other")
        own = gate.call(run, "refund", ONE, key="k3")
        elsewhere = gate.call(opened(gate, tenant="beta"), "refund", ONE, key="k1")
    assert details(other) is None
    assert details(again) is None
    assert first.action not in repr(other) + repr(again)
    assert details(own)["action"] == first.action
    assert isinstance(elsewhere, Done)


def test_what_is_known_not_to_have_happened_is_no_earlier_action(world: World, clock: FakeClock) -> None:
    sent: list[str] = []

    def act(n: int, *, effect: Effect) -> int:
        sent.append(effect.action_id)
        if len(sent) == 1:
            raise NoEffect("not yet")
        return n

    deduped = agentgate.tool(risk="external", dedupe_window=WINDOW)(act)
    with world.gate(deduped, clock=clock) as gate:
        run = opened(gate)
        failed = gate.call(run, "act", {"n": 1}, key="k1")
        assert isinstance(failed, Failed)
        assert isinstance(gate.call(run, "act", {"n": 1}, key="k2"), Done)
        # The first one is now the duplicate, also when its caller wants to try it again.
        assert details(gate.call(run, "act", {"n": 1}, key="k1", retry=True))["action"] != failed.action
    assert len(sent) == 2


def test_what_may_have_happened_counts_until_it_is_known_that_it_did_not(world: World, clock: FakeClock) -> None:
    def act(n: int) -> int:
        raise ConnectionResetError(n)

    with world.gate(agentgate.tool(risk="external", dedupe_window=WINDOW)(act), clock=clock) as gate:
        run = opened(gate)
        first = gate.call(run, "act", {"n": 1}, key="k1")
        assert isinstance(first, Unknown)
        told = details(gate.call(run, "act", {"n": 1}, key="k2"))
        assert told["observation"]["error"]["code"] == "unknown_outcome"
        gate.reconcile(first.action, applied=False, by="ada", evidence="none there", tenant="acme")
        refused = gate.call(run, "act", {"n": 1}, key="k2")
        assert isinstance(refused, Unknown)  # it ran, and does not know either
        gate.reconcile(refused.action, applied=True, by="ada", evidence="it is there", tenant="acme")
        assert details(gate.call(run, "act", {"n": 1}, key="k3"))["action"] == refused.action


def test_fifty_threads_with_fifty_keys_of_one_request_have_one_effect(world: World) -> None:
    barrier = threading.Barrier(50)
    outcomes: list[agentgate.Outcome] = []

    def call(gate: Gate, run: Run, n: int) -> None:
        barrier.wait()
        outcomes.append(gate.call(run, "refund", ONE, key=f"k{n}"))

    with gates(world, tool(world)) as pair:
        runs = [opened(gate) for gate in pair]
        threads = [threading.Thread(target=call, args=(pair[n % 2], runs[n % 2], n)) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(kinds(outcomes)) == ["Done"] + ["Refused"] * 49
    done = next(outcome for outcome in outcomes if isinstance(outcome, Done))
    assert {details(outcome)["action"] for outcome in outcomes if outcome is not done} == {done.action}
    assert world.downstream.total == 1
    assert world.damage() == []


def test_the_earlier_outcome_is_told_as_it_is_known_by_then(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold(n: int) -> int:
        entered.set()
        leave.wait(30)
        return n

    with world.gate(agentgate.tool(risk="external", dedupe_window=WINDOW)(hold)) as gate:
        run = opened(gate)
        thread = threading.Thread(target=gate.call, args=(run, "hold", {"n": 7}), kwargs={"key": "k1"})
        thread.start()
        assert entered.wait(30)
        assert details(gate.call(run, "hold", {"n": 7}, key="k2"))["reason"] == "executing"
        proposal = gate.propose(run, "hold", {"n": 7}, key="k3")
        assert details(gate.execute(proposal))["reason"] == "executing"
        leave.set()
        thread.join()
        assert details(gate.execute(proposal))["observation"]["value"] == 7


def test_the_window_counts_from_the_latest_start_and_a_killed_worker_keeps_it(world: World) -> None:
    def die(account: str, cents: int) -> None:  # noqa: ARG001
        forking.die()

    deduped = tool(world, recovery=Keyed(hours=1))

    def crash() -> None:
        with world.gate(agentgate.gated(deduped.spec, die)) as gate:
            gate.call(opened(gate), "refund", ONE, key="k1")

    assert forking.run(crash) == forking.KILLED
    with world.gate(deduped) as gate:
        run = opened(gate)
        assert details(gate.call(run, "refund", ONE, key="k2"))["reason"] in {"executing", "crashed"}
        assert isinstance(gate.call(run, "refund", ONE, key="k1"), Done)
        details(gate.call(run, "refund", ONE, key="k2"))
    started = [event for event in world.events() if event.type == "started"]
    assert [event.body["dedupe_until_us"] - event.at_us for event in started] == [600_000_000] * 2  # type: ignore[operator]
    assert world.damage() == []


@pytest.mark.parametrize("edit", ["another window", "none"])
def test_verify_finds_a_start_that_is_deduped_for_another_time_than_the_spec_says(world: World, edit: str) -> None:
    from agentgate.core.binding import SpecSaid, check_deduped

    declared = {"dedupe_window": WINDOW} if edit == "another window" else {"dedupe_window": None}
    with world.gate(tool(world, **declared, recovery=Repeat())) as gate:
        done = gate.call(opened(gate), "refund", ONE)
    (started,) = [event for event in world.events(done.action) if event.type == "started"]
    said = SpecSaid(namespace="", name="refund", resource=None, parallel=False, dedupe_us=600_000_001)
    assert [kind for kind, _ in check_deduped(started, said)] == ["time"]
    assert world.damage() == []
