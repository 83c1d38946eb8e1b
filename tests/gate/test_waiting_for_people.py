"""Waiting for an answer ends with the answer, the question or the time; and what is asked outlives every process."""

import threading
import time
from datetime import timedelta

import pytest

from agentgate import Done, Gate, Held, Misuse, NotFound, Proposal, Refused, allow, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support import forking
from support.worlds import World, grant, opened

ONE = {"account": "a1", "cents": 1250}
ASK = require_approval("big")


def policy() -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=ASK)


def held(gate: Gate) -> tuple[Proposal, Held]:
    proposal = gate.propose(opened(gate), "refund", ONE, key="k")
    assert isinstance(proposal.outcome, Held)
    return proposal, proposal.outcome


def test_it_looks_once_and_sleeps_not_at_all_where_no_time_is_given(world: World, clock: FakeClock) -> None:
    with world.gate(policy=policy(), clock=clock) as gate:
        proposal, _ = held(gate)
        before = clock.monotonic_us()
        assert gate.wait(proposal, timeout=0).state == "HELD"
        assert clock.monotonic_us() == before


def test_the_time_is_over_before_anybody_has_answered(world: World, clock: FakeClock) -> None:
    with world.gate(policy=policy(), clock=clock) as gate:
        proposal, _ = held(gate)
        before = clock.monotonic_us()
        found = gate.wait(proposal, timeout=timedelta(seconds=90))
        assert (found.state, found.action) == ("HELD", proposal.action)
        assert clock.monotonic_us() - before == 90_000_000
    assert world.words(proposal.action) == ["proposed"]


def test_an_answer_in_this_process_ends_it_at_once_and_nothing_is_run(world: World) -> None:
    with world.gate(policy=policy()) as gate:
        proposal, asked = held(gate)
        # Into the longest pause, from 2.55 s to 3.55 s: only whoever is woken up is back before it is over.
        answered: list[float] = []

        def answer() -> None:
            grant(gate, asked)
            answered.append(time.monotonic())

        person = threading.Timer(2.75, answer)
        person.start()
        found = gate.wait(proposal, timeout=60)
        back = time.monotonic()
        person.join()  # whoever waits may be back before whoever has answered is
        assert found.state == "READY"
        assert back - answered[0] < 0.5
        assert world.downstream.effects == {}
        assert isinstance(gate.execute(found), Done)


def test_without_a_timeout_it_waits_until_the_question_ends_and_records_that(world: World, clock: FakeClock) -> None:
    with world.gate(policy=policy(), clock=clock) as gate:
        proposal, asked = held(gate)
        found = gate.wait(proposal, timeout=None)
        assert isinstance(found.outcome, Refused)
        assert found.outcome.reason == "question_expired"
        assert clock.now_us() // 1_000_000 == int(asked.approval.expires_at.timestamp())
    assert world.words(proposal.action) == ["proposed", "question_expired"]


def test_what_waits_for_nobody_is_handed_back_at_once(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=allow()), clock=clock) as gate:
        proposal = gate.propose(opened(gate), "refund", ONE, key="k")
        assert gate.wait(proposal, timeout=None).state == "READY"
        gate.execute(proposal)
        assert isinstance(gate.wait(proposal.action, tenant="acme", timeout=None).outcome, Done)


def test_an_action_that_was_cancelled_meanwhile_ends_it(world: World) -> None:
    with world.gate(policy=policy()) as gate, world.gate() as other:
        proposal, _ = held(gate)
        threading.Timer(0.2, other.cancel, (proposal,), {"by": "ops"}).start()
        assert gate.wait(proposal, timeout=60).state == "REFUSED"


def test_a_clock_that_was_set_back_revives_no_question_that_the_run_has_outlived(
    world: World, clock: FakeClock
) -> None:
    with world.gate(policy=policy(), clock=clock) as gate:
        proposal, _ = held(gate)
        clock.jump(timedelta(days=2))
        opened(gate).charge(tokens=1)
        clock.jump(timedelta(days=-2))
        assert gate.wait(proposal, timeout=0).state == "REFUSED"


@pytest.mark.parametrize("timeout", [-1, "5", True, float("nan"), timedelta(days=-1)])
def test_what_is_no_span_is_said_by_its_name(world: World, timeout: object) -> None:
    with world.gate(policy=policy()) as gate:
        proposal, _ = held(gate)
        with pytest.raises(Misuse, match="timeout: "):
            gate.wait(proposal, timeout=timeout)  # type: ignore[arg-type]  # on purpose


def test_another_tenants_action_is_not_found(world: World) -> None:
    with world.gate(policy=policy()) as gate:
        proposal, _ = held(gate)
        with pytest.raises(NotFound):
            gate.wait(proposal.action, tenant="umbrella", timeout=0)


def test_nobody_is_waited_for_inside_a_transaction_of_ones_own(world: World) -> None:
    with world.gate(policy=policy()) as gate:
        proposal, _ = held(gate)
        with gate.transaction(), pytest.raises(Misuse):
            gate.wait(proposal, timeout=1)


def test_a_question_outlives_the_process_that_asked_it_killed_while_it_waits(world: World) -> None:
    def work() -> None:
        with world.gate(policy=policy()) as gate:
            proposal, _ = held(gate)
            threading.Timer(0.3, forking.die).start()
            gate.wait(proposal, timeout=None)

    assert forking.run(work) == forking.KILLED
    with world.gate(policy=policy()) as gate:
        (waits,) = gate.waiting()
        proposal, asked = held(gate)
        assert (waits.action, waits.approval, proposal.repeated) == (proposal.action, asked.approval.id, True)
        grant(gate, asked)
        found = gate.wait(proposal, timeout=60)
        assert isinstance(gate.execute(found), Done)
    assert len(world.downstream.arrivals) == 1
    assert not world.damage()
