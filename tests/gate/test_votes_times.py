"""Times to live are exact to the ledger clock's step; what an event has seen expired stays so (design §5, Clocks)."""

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from agentgate import Done, Gate, Held, Refused, Requirement, VoteRefused, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, grant, opened, vote

STEP = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(hours=24)
TENANT: Any = {"tenant": "acme"}
ASK = ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement(quorum=2)))
ONE = ScriptedPolicy(otherwise=require_approval("big"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(tick=timedelta(0))


def held(gate: Gate, key: str = "k") -> Held:
    outcome = gate.call(opened(gate), "refund", {"account": "a", "cents": 1}, key=key)
    assert isinstance(outcome, Held)
    return outcome


def late(gate: Gate, asked: Held, name: str = "ada") -> str:
    with pytest.raises(VoteRefused) as error:
        vote(gate, asked, name)
    return error.value.reason


@pytest.mark.parametrize("span", [DAY, timedelta(minutes=3, microseconds=7)])
def test_a_question_takes_votes_to_the_last_microsecond_and_not_after(
    world: World, clock: FakeClock, span: timedelta
) -> None:
    policy = ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement(question=span)))
    with world.gate(policy=policy, clock=clock) as gate:
        one, other = held(gate, "one"), held(gate, "other")
        clock.advance(span - STEP)
        assert vote(gate, one, "ada").state == "granted"
        clock.advance(STEP)
        assert late(gate, other) == "expired"
        assert world.words(other.action) == ["proposed", "question_expired"]
        assert late(gate, other, "bob") == "expired"
    assert world.words(other.action).count("question_expired") == 1
    assert not world.damage()


def test_a_grant_lasts_to_its_last_microsecond_and_not_after(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ONE, clock=clock) as gate:
        one, other = held(gate, "one"), held(gate, "other")
        grant(gate, one)
        grant(gate, other)
        clock.advance(timedelta(minutes=15) - STEP)
        assert isinstance(gate.execute(one.action, **TENANT), Done)
        clock.advance(STEP)
        with pytest.raises(VoteRefused, match="expired"):
            gate.approvals.revoke(other.approval.id, digest=other.approval.digest, by="person:eve", **TENANT)
        assert world.words(other.action)[-1] == "grant_expired"
        outcome = gate.execute(other.action, **TENANT)
        assert isinstance(outcome, Refused)
    assert world.downstream.total == 1
    assert not world.damage()


@pytest.mark.parametrize("back", [STEP, HOUR, 2 * DAY])
def test_a_clock_set_back_revives_nothing_that_an_event_has_seen_expired(
    world: World, clock: FakeClock, back: timedelta
) -> None:
    with world.gate(policy=ASK, clock=clock) as gate:
        asked = held(gate)
        vote(gate, asked, "ada")
        clock.advance(DAY)
        assert late(gate, asked, "bob") == "expired"
        clock.jump(-back)
        assert late(gate, asked, "bob") == "expired"
        outcome = gate.execute(asked.action, **TENANT)
        assert isinstance(outcome, Refused)
        assert outcome.reason == "question_expired"
    assert not world.damage()


def test_a_clock_set_back_stretches_at_most_to_the_runs_last_event(world: World, clock: FakeClock) -> None:
    """What no event has seen expired may be answered by a clock that was set back, never before the run's own time."""
    with world.gate(policy=ASK, clock=clock) as gate:
        asked = held(gate)
        clock.advance(DAY + HOUR)
        other = held(gate, "other")  # an event at that time: the run's time does not go back behind it
        clock.jump(-2 * HOUR)
        assert late(gate, asked) == "expired"
        assert vote(gate, other, "ada").votes[0].at >= other.approval.expires_at - DAY
        quiet = gate.run("quiet", principal="agent:support", tenant="acme")
        alone = gate.call(quiet, "refund", {"account": "b", "cents": 1}, key="alone")
        assert isinstance(alone, Held)
        clock.advance(DAY)
        clock.jump(-HOUR)  # nobody looked meanwhile
        assert vote(gate, alone, "ada").state == "pending"
        clock.jump(HOUR)
        assert late(gate, alone, "bob") == "expired"
    assert not world.damage()


def test_a_clock_set_on_costs_time_and_never_a_yes(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ONE, clock=clock) as gate:
        asked, granted = held(gate), held(gate, "granted")
        grant(gate, granted)
        clock.jump(HOUR)
        outcome = gate.execute(granted.action, **TENANT)
        assert isinstance(outcome, Refused)
        assert outcome.reason == "grant_expired"
        clock.jump(DAY)
        assert late(gate, asked) == "expired"
        clock.jump(-DAY - HOUR)
        for one in (asked, granted):
            assert isinstance(gate.execute(one.action, **TENANT), Refused)
    assert world.downstream.total == 0
    assert not world.damage()


@pytest.mark.parametrize("steps", list(product((-HOUR, timedelta(0), HOUR), repeat=3)))
def test_steps_of_an_hour_between_ask_votes_and_claim_revive_nothing(
    world: World, clock: FakeClock, steps: tuple[timedelta, ...]
) -> None:
    """A command's time is the clock's or the run's last event's, whichever is later; by that alone a thing is over."""
    lasting = timedelta(minutes=90)
    needed = Requirement(quorum=2, question=lasting, grant=timedelta(minutes=30))
    policy = ScriptedPolicy(otherwise=require_approval("big", requirement=needed))
    with world.gate(policy=policy, clock=clock) as gate:
        asked = held(gate)
        until_us = world.value("SELECT expires_at_us FROM agentgate_approvals")

        def now_us() -> int:
            return max(clock.now_us(), int(world.value("SELECT at_us FROM agentgate_runs WHERE name = 'ticket-1'")))

        is_over = False
        for name, step in zip(("ada", "bob"), steps, strict=False):
            clock.jump(step)
            is_over = is_over or now_us() >= until_us
            if is_over:
                assert late(gate, asked, name) == "expired"
            else:
                assert vote(gate, asked, name).state == ("granted" if name == "bob" else "pending")
        if not is_over:
            until_us = world.value("SELECT until_us FROM agentgate_approvals")
        clock.jump(steps[2])
        is_over = is_over or now_us() >= until_us
        for back in (timedelta(0), -HOUR, -HOUR, 2 * HOUR):
            clock.jump(back)
            assert isinstance(gate.execute(asked.action, **TENANT), Refused if is_over else Done)
    assert world.downstream.total == (not is_over)
    assert not world.damage()
