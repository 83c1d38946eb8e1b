"""What broke budgets and retries once more: amounts that no row holds, bounds as wide as can be, pauses as short."""

import threading
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Done, Failed, Limits, Misuse, PolicyRequest, Retry, ToolError, allow
from agentgate.clock import SystemClock
from agentgate.jcs import LARGEST_INTEGER
from agentgate.store import sqlite
from agentgate.testing import ScriptedPolicy
from support.worlds import World, named, opened, slow

AT_ONCE = timedelta(0)


def test_charging_works_also_where_runs_together_have_spent_more_than_a_row_can_hold(world: World) -> None:
    with world.gate() as gate:
        gate.limit({"tokens": LARGEST_INTEGER}, tenant="acme", by="ada")
        for number in range(2**63 // LARGEST_INTEGER + 1):
            opened(gate, f"run-{number}").charge(tokens=LARGEST_INTEGER)
        last = opened(gate, "last")
        last.charge(tokens=1)
        assert gate.call(last, "refund", {"account": "a1", "cents": 1}).reason == "limit_tenant_tokens"
        assert gate.limit({"tokens": 5}, tenant="acme", by="ada").used == {"tokens": 2**63 - 1}
    assert not world.damage()


def test_a_wide_bound_of_failures_costs_a_call_no_more_the_longer_the_record_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, steps = sqlite.module(), [0]

    def step() -> int:
        steps[0] += 1
        return 0

    class Module:
        def __getattr__(self, name: str) -> Any:
            return getattr(usual, name)

        def connect(self, *args: Any, **given: Any) -> Any:
            connection = usual.connect(*args, **given)
            connection.set_progress_handler(step, 10)  # of SQLite's own machine
            return connection

    monkeypatch.setattr(sqlite, "module", Module)
    costs: list[int] = []
    with world.gate(named("act", lambda: 1)) as gate:
        gate.limit({"failures": LARGEST_INTEGER}, tenant="acme", tool="act", by="ada")
        run = opened(gate)
        for number in range(120):
            steps[0] = 0
            assert isinstance(gate.call(run, "act", {}, key=f"k{number}"), Done)
            costs.append(steps[0])
    assert min(costs[-20:]) <= 1.1 * min(costs[20:40])


def test_a_retry_that_something_is_in_the_way_of_pauses_between_looks_though_its_spec_says_no_pause(
    world: World,
) -> None:
    asked: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def decide(request: PolicyRequest) -> agentgate.Decision:
        asked.append(request.spec.name)
        return allow()

    class Clock(SystemClock):
        """Lets the time pass, and lets go of the resource at the third pause."""

        paused = 0

        def sleep(self, span_us: int, *, wake: threading.Event | None = None) -> None:
            if span_us >= 50_000:
                self.paused += 1
                if self.paused == 3:
                    leave.set()
                    other.join()
            super().sleep(span_us, wake=wake)

    def hold(account: str) -> None:
        entered.set()
        assert leave.wait(30), account

    def flaky(account: str) -> str:
        if not entered.is_set():
            other.start()  # it waits for this attempt's end, and takes the resource before the next
            raise ToolError("rate_limited", "later", retryable=True, retry_after=1)
        return account

    tools = (
        named("hold", hold, resource="account:{account}"),
        named(
            "flaky",
            flaky,
            resource="account:{account}",
            retry=Retry(attempts=3, wait=AT_ONCE, longest_wait=AT_ONCE, within=timedelta(seconds=20)),
        ),
    )
    clock = Clock()
    policy = ScriptedPolicy(*[decide] * 100)
    with world.gate(*tools, policy=policy, clock=clock, settings=slow()) as gate:
        theirs, run = opened(gate, "theirs"), opened(gate)
        other = threading.Thread(target=lambda: gate.call(theirs, "hold", {"account": "a1"}, wait=30))
        assert isinstance(gate.call(run, "flaky", {"account": "a1"}), Done)
        other.join()
    assert asked.count("flaky") < 10
    assert not world.damage()


@pytest.mark.parametrize("name", ["wall", "active"])
def test_a_time_that_no_record_can_hold_is_refused_by_its_name_before_a_run_is_opened(world: World, name: str) -> None:
    with pytest.raises(Misuse, match=f"^limits.{name}: give a positive timedelta of at most 104249 days"):
        Limits(**{name: timedelta.max})  # type: ignore[arg-type]
    with world.gate() as gate:
        run = opened(gate, limits=Limits(**{name: timedelta(days=104_249)}))  # type: ignore[arg-type]
        assert isinstance(gate.call(run, "refund", {"account": "a1", "cents": 1}), Done)
    assert not world.damage()


def test_a_budget_of_a_kind_that_there_is_not_is_found_and_stops_no_verify(world: World) -> None:
    with world.gate() as gate:
        gate.limit({"actions": 5}, tenant="acme", by="ada")
    with closing(world.connect()) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE agentgate_budgets SET kind = 'planet'")
    found = agentgate.verify(world.url).breaks
    assert "budget_row" in {one.kind for one in found}


@pytest.mark.parametrize("asked", [timedelta.max, 1e300, 10**12, 10**400])
def test_a_tool_that_asks_to_be_left_alone_for_ever_is_not_tried_again_at_once(world: World, asked: Any) -> None:
    tried: list[int] = []

    def act() -> None:
        tried.append(1)
        raise ToolError("rate_limited", "go away", retry_after=asked)

    with world.gate(named("act", act, retry=Retry(attempts=3, wait=AT_ONCE, longest_wait=AT_ONCE))) as gate:
        outcome = gate.call(opened(gate), "act", {}, key="k")
        again = gate.call(opened(gate), "act", {}, key="k")
    assert len(tried) == 1
    for told in (outcome, again):
        assert isinstance(told, Failed)
        assert told.retry_at is not None
        assert told.retry_at.year > 2030
    assert not world.damage()
