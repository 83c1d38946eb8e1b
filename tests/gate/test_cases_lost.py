"""Cases of other people's loops, "lost": what waits, or runs, and must be found again. One test per line."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Effect, Gate, Held, Proposal, Refused, Running, Unknown, require_approval
from agentgate.states import EVENTS, MOVES, STATES, TERMINAL, State
from agentgate.testing import FakeClock, ScriptedPolicy
from support import forking
from support.worlds import World, gates, grant, named, opened

ONE = {"account": "a1", "cents": 1}
TRACE: contextvars.ContextVar[str] = contextvars.ContextVar("TRACE", default="none")


def test_pending_approvals_survive_a_sigkill_and_are_decided_and_executed_by_a_new_process(world: World) -> None:
    policy = ScriptedPolicy(otherwise=require_approval("big"))

    def ask_and_die() -> None:
        gate = world.gate(policy=policy)
        for n in range(3):
            gate.call(opened(gate), "refund", {"account": f"a{n}", "cents": n}, key=f"k{n}")
        forking.die()

    assert forking.run(ask_and_die) == forking.KILLED
    pending = [row[0] for row in world.sql("SELECT action FROM agentgate_approvals WHERE state = 'pending'")]
    assert len(pending) == 3
    with world.gate(policy=policy) as gate:
        for action in pending:
            held = gate.execute(action, tenant="acme")
            assert isinstance(held, Held)
            grant(gate, held)
            assert isinstance(gate.execute(action, tenant="acme"), Done)
    assert world.downstream.total == 3
    assert not world.broken()


@pytest.mark.parametrize(
    ("leave", "state", "effects"),
    [
        (lambda gate, action: gate.reconcile(action, applied=True, by="ada", evidence="seen"), "SUCCEEDED", 0),
        (lambda gate, action: gate.reconcile(action, applied=False, by="ada", evidence="looked"), "READY", 1),
        (lambda gate, action: gate.abandon(action, by="ada", note="nobody can tell"), "ABANDONED", 0),
    ],
    ids=["it happened", "it did not", "nobody knows"],
)
def test_a_crash_after_the_claim_wedges_nothing(
    world: World, leave: Callable[[Gate, Proposal], Proposal], state: str, effects: int
) -> None:
    tool = world.refund()

    def die(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001 - what the schema is made of
        forking.die()

    def crash() -> None:
        gate = world.gate(agentgate.gated(tool.spec, die))
        gate.call(opened(gate), "refund", ONE, key="k")

    assert forking.run(crash) == forking.KILLED
    with world.gate(tool) as gate:
        proposal = gate.propose(opened(gate), "refund", ONE, key="k")
        assert proposal.state == "EXECUTING"
        assert leave(gate, proposal).state == state
        gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(gate.call(opened(gate), "refund", ONE, key="another"), Done)  # and nobody stands in the way
    assert world.downstream.total == effects + 1


def test_every_state_has_an_exit_that_an_event_reaches() -> None:
    exits = {state: {target for (source, _), target in MOVES.items() if source is state} for state in STATES}
    for state in STATES:
        reached, todo = {state}, [state]
        while todo:
            todo += new if (new := exits[todo.pop()] - reached) else []
            reached |= set(todo)
        assert reached & set(TERMINAL), state
    assert {"cancelled", "reconciled.applied", "reconciled.not_applied", "abandoned"} <= set(EVENTS)
    assert {State.SUCCEEDED, State.REFUSED, State.ABANDONED} == TERMINAL


def test_an_owner_that_lives_is_not_reaped_by_the_age_of_its_work(world: World) -> None:
    """By lease expiry alone: an effect far older than any lease, whose holder renews, is left alone."""
    clock = FakeClock()
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(30)

    with gates(world, named("hold", hold), clock=clock) as (owner, other):
        run = opened(owner)
        thread = threading.Thread(target=owner.call, args=(run, "hold", {}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        for _ in range(20):
            clock.advance(timedelta(seconds=59))
            assert isinstance(other.call(run, "hold", {}, key="k"), Running)
            assert (other.sweep().crashed, other.sweep().lease_lost) == (0, 0)
            owner._shop._renew((world.value("SELECT fence FROM agentgate_attempts"),))  # as its heartbeat does
        leave.set()
        thread.join()
        assert isinstance(other.call(run, "hold", {}, key="k"), Done)


def test_cancelling_the_task_in_mid_effect_propagates_and_the_row_says_unknown(world: World) -> None:
    async def act() -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0)

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        with pytest.raises(asyncio.CancelledError):
            gate.call(run, "act", {}, key="k")
        outcome = gate.call(run, "act", {}, key="k")
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "cancelled"


def test_a_time_out_does_not_release_its_lock_early_and_the_late_result_is_evidence(world: World) -> None:
    leave = threading.Event()

    def act(account: str) -> str:
        if account == "slow" and not leave.is_set():
            leave.wait(30)
        return "late"

    with world.gate(named("act", act, timeout=0.05, resource="account:{account}")) as gate:
        run = opened(gate)
        unknown = gate.call(run, "act", {"account": "slow"}, key="k")
        blocked = gate.call(run, "act", {"account": "slow"}, key="other")
        assert isinstance(unknown, Unknown)
        assert isinstance(blocked, Refused)
        assert (blocked.reason, blocked.blocking) == ("blocked", unknown.action)
        leave.set()
        over = time.monotonic() + 20
        while world.words(unknown.action)[-1] != "late":
            assert time.monotonic() < over
            time.sleep(0.005)
        assert isinstance(gate.call(run, "act", {"account": "slow"}, key="other"), Refused)
        gate.reconcile(unknown.action, applied=True, by="ada", evidence="the late result", tenant="acme")
        assert isinstance(gate.call(run, "act", {"account": "slow"}, key="other"), Done)


def test_context_variables_are_visible_inside_a_sync_effect_called_from_asyncio_without_bleed(world: World) -> None:
    seen: dict[str, str] = {}

    def act(who: str) -> None:
        time.sleep(0.002)
        seen[who] = TRACE.get()

    async def one(gate: Gate, who: str) -> None:
        TRACE.set(f"trace of {who}")
        await asyncio.to_thread(gate.call, opened(gate, tenant=who), "act", {"who": who})

    async def main(gate: Gate) -> None:
        await asyncio.gather(*(one(gate, who) for who in ("acme", "other", "third")))

    with world.gate(named("act", act)) as gate:
        asyncio.run(main(gate))
    assert seen == {who: f"trace of {who}" for who in ("acme", "other", "third")}
    assert TRACE.get() == "none"


def test_a_proposal_that_nobody_executed_is_in_the_record_and_found_by_its_key(world: World) -> None:
    found: list[Proposal] = []

    def propose_and_die() -> None:
        gate = world.gate()
        gate.propose(opened(gate), "refund", ONE, key="k")
        forking.die()

    assert forking.run(propose_and_die) == forking.KILLED
    with world.gate() as gate:
        found.append(gate.propose(opened(gate), "refund", ONE, key="k"))
        assert isinstance(gate.execute(found[0]), Done)
    assert found[0].repeated
    assert world.words(found[0].action) == ["proposed", "started", "succeeded"]
