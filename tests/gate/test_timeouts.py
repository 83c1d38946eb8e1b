"""What comes after its time, and what runs where: time-outs, coroutines, context variables."""

import asyncio
import contextvars
import threading
import time
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Effect, NoEffect, Outcome, Unknown
from agentgate.core.recording import Ended
from agentgate.gate.claiming import Claim
from agentgate.gate.performing import Performer
from support.single import run_one, stored, until
from support.worlds import World, named, opened

TRACE: contextvars.ContextVar[str] = contextvars.ContextVar("TRACE", default="none")
SHORT = 0.05

# --- time-outs -----------------------------------------------------------------------------------


def test_a_time_out_is_unknown_and_the_late_result_is_kept_with_its_fence(world: World) -> None:
    leave = threading.Event()
    fences: list[int] = []

    def act(*, effect: Effect) -> str:
        fences.append(effect.fence)
        leave.wait(30)
        return "late but fine"

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        run = opened(gate)
        outcome = gate.call(run, "act", {}, key="k")
        assert isinstance(outcome, Unknown)
        assert outcome.reason == "timeout"
        leave.set()
        until(lambda: world.words(outcome.action)[-1] == "late")
        assert isinstance(gate.call(run, "act", {}, key="k"), Unknown)
    late = next(event for event in world.events(outcome.action) if event.type == "late")
    assert late.body["fence"] == fences[0]
    assert (late.body["status"], late.body["clean"]) == ("ok", False)
    assert "late but fine" in stored(world, outcome.action, "evidence")
    assert world.value("SELECT late_n FROM agentgate_attempts") == late.n
    assert len(fences) == 1


def test_a_late_result_after_not_applied_takes_the_answer_back(world: World) -> None:
    leave = threading.Event()

    def act() -> str:
        leave.wait(30)
        return "late but fine"

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        unknown = gate.call(opened(gate), "act", {}, key="k")
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="looked", tenant="acme")
        assert world.state(unknown.action) == "READY"
        leave.set()
        until(lambda: world.state(unknown.action) == "UNKNOWN")
        outcome = gate.execute(unknown.action, tenant="acme")
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "late"


def test_a_clean_late_end_after_not_applied_leaves_the_answer_standing(world: World) -> None:
    leave, tries = threading.Event(), []

    def act() -> str:
        tries.append(1)
        if len(tries) == 1:
            leave.wait(30)
            raise NoEffect
        return "now"

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        unknown = gate.call(opened(gate), "act", {}, key="k")
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="looked", tenant="acme")
        leave.set()
        until(lambda: "late" in world.words(unknown.action))
        outcome = gate.execute(unknown.action, tenant="acme")
    assert isinstance(outcome, Done)


def test_an_end_that_races_its_time_out_is_recorded_one_way_or_the_other(world: World) -> None:
    """The effect ends in the very moment in which the gate stops waiting: never lost, never an error."""

    def act(n: int) -> int:
        time.sleep(SHORT + (n - 10) / 20_000)
        return n

    with world.gate(named("act", act, timeout=SHORT, resource="n:{n}")) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "act", {"n": n}, key=f"k{n}") for n in range(20)]
        for outcome in outcomes:
            until(lambda action=outcome.action: bool({"succeeded", "late"} & {*world.words(action)}))  # type: ignore[misc]
        again = [gate.call(run, "act", {"n": n}, key=f"k{n}") for n in range(20)]
    for outcome, later in zip(outcomes, again, strict=True):
        words = world.words(outcome.action)
        if words[:3] == ["proposed", "started", "succeeded"]:
            assert isinstance(outcome, Done)
            assert isinstance(later, Done)
        else:
            words = [word for word in words if word != "question_asked"]
            assert words == ["proposed", "started", "in_doubt", "late"]
            assert isinstance(outcome, Unknown)
            assert isinstance(later, Unknown)


def test_an_end_that_is_faster_than_the_record_of_its_own_time_out_is_simply_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = threading.Event()
    record = Performer._record

    def act() -> str:
        leave.wait(30)
        return "just in time"

    def slowly(self: Performer, claim: Claim, ended: Ended) -> Outcome:
        leave.set()
        until(lambda: world.state(claim.file.action.id) != "EXECUTING")
        return record(self, claim, ended)

    monkeypatch.setattr(Performer, "_record", slowly)
    with world.gate(named("act", act, timeout=SHORT)) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "just in time"
    assert world.words(outcome.action) == ["proposed", "started", "succeeded"]


# --- coroutines, context -------------------------------------------------------------------------


def test_a_coroutine_tool_is_run_by_a_loop_of_its_thread(world: World) -> None:
    async def act() -> str:
        await asyncio.sleep(0)
        return "awaited"

    outcome = run_one(world, act)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "awaited"


def test_a_coroutine_that_is_over_its_time_is_cancelled_and_in_doubt(world: World) -> None:
    cancelled = threading.Event()

    async def act() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    outcome = run_one(world, act, timeout=SHORT)
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "timeout"
    assert cancelled.wait(20)


def test_context_variables_of_the_caller_are_visible_in_the_effect_and_do_not_leak_back(world: World) -> None:
    seen: list[str] = []

    def act() -> None:
        seen.append(TRACE.get())
        TRACE.set("changed inside")

    async def act_later() -> None:
        seen.append(TRACE.get())

    with world.gate(named("act", act), named("act_later", act_later)) as gate:
        run = opened(gate)
        token = TRACE.set("of the caller")
        gate.call(run, "act", {})
        gate.call(run, "act_later", {})
        assert TRACE.get() == "of the caller"
        TRACE.reset(token)
    assert seen == ["of the caller", "of the caller"]


def test_context_variables_do_not_bleed_between_tenants(world: World) -> None:
    seen: dict[str, set[str]] = {"acme": set(), "other": set()}

    def act(*, effect: Effect) -> None:
        time.sleep(0.001)
        seen[effect.tenant].add(TRACE.get())

    def work(tenant: str) -> None:
        TRACE.set(tenant)
        run = opened(gate, tenant=tenant)
        for _ in range(10):
            gate.call(run, "act", {})

    with world.gate(named("act", act)) as gate:
        threads = [threading.Thread(target=contextvars.Context().run, args=(work, tenant)) for tenant in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {"acme": {"acme"}, "other": {"other"}}


def test_a_long_effect_keeps_its_lease(world: World) -> None:
    """Five seconds is the shortest lease; an effect longer than it is renewed and stays its worker's."""
    settings = agentgate.Settings(lease=timedelta(seconds=5))
    leases: list[int] = []

    def act() -> None:
        leases.append(world.value("SELECT lease_until_us FROM agentgate_attempts"))
        until(lambda: world.value("SELECT lease_until_us FROM agentgate_attempts") > leases[0])

    with world.gate(named("act", act), settings=settings) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Done)
