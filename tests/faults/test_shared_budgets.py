"""A budget of ten is ten: however many threads and processes claim at once, and whoever bounded it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import agentgate
from agentgate import Done, Limits, Refused, Reserve, Run, allow
from agentgate.testing import ScriptedPolicy
from support import forking
from support.racing import at_once
from support.worlds import World, made, opened

BUDGET = 10
THREADS = 50
PROCESSES = 8
EACH = 7  # calls of a process: more than its share

Prepare = Callable[[agentgate.Gate], Limits | None]


def by_run(_gate: agentgate.Gate) -> Limits | None:
    return Limits(actions=BUDGET)


def by_tenant(gate: agentgate.Gate) -> Limits | None:
    gate.limit({"actions": BUDGET}, tenant="acme", by="ada")
    return None


def by_tool(gate: agentgate.Gate) -> Limits | None:
    gate.limit({"actions": BUDGET}, tenant="acme", tool="refund", by="ada")
    return None


def by_account(gate: agentgate.Gate) -> Limits | None:
    gate.limit({"amount": 3 * BUDGET + 2}, tenant="acme", account="refunds", by="ada")
    return None


REASONS = {
    by_run: "limit_actions",
    by_tenant: "limit_tenant_actions",
    by_tool: "limit_tool_actions",
    by_account: "limit_account",
}


def gate_of(world: World) -> agentgate.Gate:
    reserving = allow(reserves=[Reserve(account="refunds", amount=3)])
    return world.gate(world.refund(resource=None, parallel=False), policy=ScriptedPolicy(otherwise=reserving))


def prepared(world: World, bound: Prepare) -> Limits | None:
    with gate_of(world) as gate:
        if bound is not by_account:
            gate.limit({"amount": 10_000}, tenant="acme", account="refunds", by="ada")
        limits = bound(gate)
        opened(gate, limits=limits)
    return limits


def one(gate: agentgate.Gate, run: Run, name: str, reason: str) -> None:
    outcome = gate.call(run, "refund", {"account": name, "cents": 1}, key=name)
    if not isinstance(outcome, Done):
        assert isinstance(outcome, Refused), outcome
        assert (outcome.reason, outcome.retryable) == (reason, False)


def check(world: World) -> None:
    assert world.downstream.total == BUDGET
    assert set(world.downstream.effects.values()) == {1}
    assert world.value("SELECT count(*) FROM agentgate_actions WHERE state = 'SUCCEEDED'") == BUDGET
    assert world.value("SELECT sum(taken) FROM agentgate_runs") == BUDGET
    assert not world.damage()


@pytest.mark.parametrize("bound", REASONS, ids=lambda bound: bound.__name__)
def test_fifty_threads_against_a_budget_of_ten_make_exactly_ten_effects(tmp_path: Path, bound: Prepare) -> None:
    world = made(tmp_path)
    limits = prepared(world, bound)
    with gate_of(world) as gate:
        runs = [opened(gate, "ticket-1" if bound is by_run else f"run-{n % 5}", limits=limits) for n in range(5)]
        at_once(THREADS, lambda n: one(gate, runs[n % 5], f"a{n}", REASONS[bound]))
    check(world)


@pytest.mark.parametrize("bound", REASONS, ids=lambda bound: bound.__name__)
def test_eight_processes_against_a_budget_of_ten_make_exactly_ten_effects(tmp_path: Path, bound: Prepare) -> None:
    world = made(tmp_path)
    limits = prepared(world, bound)

    def work(n: int) -> None:
        with gate_of(world) as gate:
            run = opened(gate, "ticket-1" if bound is by_run else f"process-{n}", limits=limits)
            for step in range(EACH):
                one(gate, run, f"p{n}-{step}", REASONS[bound])

    children = [forking.start(lambda n=n: work(n)) for n in range(PROCESSES)]  # type: ignore[misc]
    assert [forking.end(child) for child in children] == [0] * PROCESSES
    check(world)
