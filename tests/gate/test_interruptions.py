"""An interruption at every line between a claim and its answer: recorded first, then it goes on to the caller."""

import itertools
from collections import Counter
from datetime import timedelta

import pytest

from agentgate import Done, Effect, Failed, Function, Gate, NoEffect, Outcome, Running, Unknown
from agentgate.testing import FakeClock
from agentgate.tools.decorator import AnyTool
from support.interrupting import interrupting
from support.worlds import World, named, opened

PERFORM = "Performer.perform"
ROOM = ("work.py", "effects.py", "heartbeat.py", "gate/performing.py", "gate/confirming.py", "gate/asking.py")
ENDS = ("done", "failed", "doubt")


class Counted:
    """A tool that counts how often it was entered, by key, and ends as its argument says; and its check."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self.checked = 0

    def tool(self) -> AnyTool:
        def act(end: str, *, effect: Effect) -> str:
            self.entered[effect.action_id] += 1
            if end == "failed":
                raise NoEffect("nothing was done")
            if end == "doubt":
                raise ConnectionResetError
            return end

        def check(_effect: Effect, _arguments: object, _result: object) -> bool:
            self.checked += 1
            return True

        return named("act", act, confirm=Function(call=check, name="check", version="1"), resource="x:{end}")


def call(gate: Gate, end: str, key: str) -> Outcome:
    return gate.call(opened(gate), "act", {"end": end}, key=key)


def outcome_of(gate: Gate, world: World, clock: FakeClock, end: str, key: str) -> Outcome:
    """Come back with the same key; where nothing was recorded, once the lease is over."""
    outcome = call(gate, end, key)
    if isinstance(outcome, Running):
        clock.advance(timedelta(seconds=61))
        outcome = call(gate, end, key)
    if isinstance(outcome, Unknown):
        gate.reconcile(outcome.action, applied=True, by="ada", evidence="x", tenant="acme")
    assert not world.sql("SELECT * FROM agentgate_locks")
    return outcome


@pytest.mark.parametrize("end", ENDS)
def test_an_interruption_at_any_line_after_the_claim_is_recorded_and_goes_on(
    world: World, clock: FakeClock, end: str
) -> None:
    counted = Counted()
    seen: Counter[str] = Counter()
    with world.gate(counted.tool(), clock=clock) as gate:
        call(gate, end, "warm")
        outcome_of(gate, world, clock, end, "warm")
        for number in itertools.count():
            key, before = f"k{number}", counted.entered.total()
            with interrupting(number, under=PERFORM, within=ROOM) as moments:
                call(gate, end, key)
            assert moments.raised_at is not None or number > 30
            action = world.value("SELECT id FROM agentgate_actions WHERE key_text = ?", key)
            state, entered = world.state(action), counted.entered.total() - before
            expected = _states(end, entered=entered, at=moments.raised_at)
            assert state in expected, (moments.raised_at, state, entered)
            outcome = outcome_of(gate, world, clock, end, key)
            assert counted.entered[action] <= 1, moments.raised_at
            _agrees(outcome, state, moments.raised_at)
            seen[state] += 1
            if moments.raised_at is None:
                break
    assert seen["EXECUTING"] <= 10  # before anything of the claim is held; its lease ends by itself
    assert seen["FAILED"] >= 5
    assert not world.damage()


def _states(end: str, *, entered: int, at: str | None) -> set[str]:
    """Say where an action may stand, by whether its effect was entered."""
    ended = {"done": "SUCCEEDED", "failed": "FAILED", "doubt": "UNKNOWN"}[end]
    if at is None:
        return {ended}
    if entered:
        return {ended, "UNKNOWN"}
    return {"FAILED", "EXECUTING"}


def _agrees(outcome: Outcome, state: str, at: str | None) -> None:
    """Check that the next look says what is on record, and no more."""
    if state == "SUCCEEDED":
        assert isinstance(outcome, Done), at
        assert outcome.confirmed in {"yes", "unchecked"}, at
    elif state == "FAILED":
        assert isinstance(outcome, Failed), at
        assert outcome.retryable, at
    else:
        assert isinstance(outcome, Unknown), (at, state)


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_an_interruption_at_any_line_of_a_whole_call_leaves_a_state_that_is_right(
    world: World, clock: FakeClock, phase: int
) -> None:
    """Also between a commit and what is made of it: the action is one thing or the other, and nothing runs twice."""
    counted = Counted()
    with world.gate(counted.tool(), clock=clock) as gate:
        call(gate, "done", "warm")
        for number in itertools.count(phase, 29):
            key = f"k{number}"
            with interrupting(number) as moments:
                call(gate, "done", key)
            outcome = outcome_of(gate, world, clock, "done", key)
            assert counted.entered[outcome.action] <= 1, moments.raised_at
            if isinstance(outcome, Failed):
                assert not counted.entered[outcome.action], moments.raised_at
            elif not isinstance(outcome, Unknown):
                assert isinstance(outcome, Done), (moments.raised_at, outcome)
                assert counted.entered[outcome.action] == 1, moments.raised_at
            if moments.raised_at is None:
                break
    assert not world.damage()
