"""What a call costs in statements is a fixed number, and budgets cost only those who are bounded (docs/limits.md)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agentgate import Done, Gate, Held, Requirement, Run, allow, require_approval
from agentgate.store import sqlite
from agentgate.testing import ScriptedPolicy
from support.worlds import World, grant, named, opened

WARM = 3
# Of a fused call with a key, where nothing is bounded: what is asked and written in its look, its claim and its record.
PLAIN = 26
LOOKS_FOR_APPROVED = "agentgate_attempts.approval IS NOT NULL"
# Of `execute` after a `propose` of its own. Of these one reads what the chain says of the action, however much it is.
APART = 28
# More of `execute` where a grant hangs on the action, and more still where its votes are signed.
HANGS, KEYS = 16, 2


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that a gate's connections are given, in order."""
    seen: list[str] = []
    usual = sqlite.module()

    class Module:
        def __getattr__(self, name: str) -> Any:
            return getattr(usual, name)

        def connect(self, *args: Any, **given: Any) -> Any:
            connection = usual.connect(*args, **given)
            connection.set_trace_callback(seen.append)
            return connection

    monkeypatch.setattr(sqlite, "module", Module)
    return seen


def cost(statements: list[str], gate: Gate, run: Run) -> list[str]:
    """Return the statements of one call, once everything that is remembered is."""
    for n in range(WARM):
        assert isinstance(gate.call(run, "act", {}, key=f"k{n}"), Done)
    statements.clear()
    assert isinstance(gate.call(run, "act", {}, key="counted"), Done)
    return list(statements)


def naming(statements: list[str]) -> list[str]:
    return [one for one in statements if "instr(agentgate_events.event" in one]


def bounded(gate: Gate) -> None:
    gate.limit({"actions": 100, "parallel": 10}, tenant="acme", by="ada")


def elsewhere(gate: Gate) -> None:
    gate.limit({"actions": 100}, tenant="umbrella", by="ada")


@pytest.mark.parametrize(("set_", "more"), [(elsewhere, 0), (bounded, 7)])
def test_a_plain_call_makes_no_more_statements_than_are_written_down(
    world: World, statements: list[str], set_: Callable[[Gate], None], more: int
) -> None:
    """Bounded: read for the policy twice, at the claim and at the record once, and write what moved: 2 and 1 rows."""
    with world.gate(named("act", lambda: 1)) as gate:
        set_(gate)
        found = cost(statements, gate, opened(gate))
    assert len(found) == PLAIN + more, "\n".join(found)
    budgets = [
        one for one in found if one.partition("agentgate_budgets")[1] and not one.startswith("SELECT agentgate_runs")
    ]
    assert len(budgets) == more
    if more:
        assert [one.split()[0] for one in budgets] == ["SELECT"] * 3 + ["UPDATE"] * 2 + ["SELECT", "UPDATE"]


def test_what_is_used_is_written_last_and_in_the_order_of_names(world: World, statements: list[str]) -> None:
    with world.gate(named("act", lambda: 1), named("act", lambda: 1, namespace="other")) as gate:
        bounded(gate)
        gate.limit({"actions": 100}, tenant="acme", tool="act", by="ada")
        gate.limit({"actions": 50}, tenant="acme", tool="act", namespace="other", by="ada")
        found = cost(statements, gate, opened(gate))
    ends = [n for n, one in enumerate(found) if one.startswith("COMMIT")]
    claim = found[: next(n for n in ends if found[n - 1].startswith("UPDATE agentgate_budgets"))]
    assert [one.split()[1] for one in claim[-3:]] == ["agentgate_budgets"] * 3
    assert not any(one.startswith("UPDATE agentgate_budgets") for one in claim[:-3])
    assert ["'tenant'" in one for one in claim[-3:]] == [True, True, False]


def test_a_call_that_people_are_asked_about_looks_once_for_the_last_one_and_before_its_transaction(
    world: World, statements: list[str]
) -> None:
    policy = ScriptedPolicy(allow(), otherwise=require_approval("big", "over the limit"))
    with world.gate(named("act", lambda: 1), policy=policy) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "act", {}), Done)
        assert not [one for one in statements if LOOKS_FOR_APPROVED in one]
        statements.clear()
        assert isinstance(gate.call(run, "act", {}), Held)
    places = [n for n, one in enumerate(statements) if LOOKS_FOR_APPROVED in one]
    assert len(places) == 1
    assert places[0] < min(n for n, one in enumerate(statements) if one.startswith("BEGIN IMMEDIATE"))


def test_a_claim_of_its_own_reads_what_the_chain_says_of_its_action_with_one_statement(
    world: World, statements: list[str]
) -> None:
    with world.gate(named("act", lambda: 1)) as gate:
        run = opened(gate)
        for n in range(WARM):
            assert isinstance(gate.execute(gate.propose(run, "act", {}, key=f"k{n}")), Done)
        proposal = gate.propose(run, "act", {}, key="counted")
        statements.clear()
        assert isinstance(gate.execute(proposal), Done)
        assert len(statements) == APART, "\n".join(statements)
        assert len(naming(statements)) == 1


def test_a_fused_call_reads_nothing_of_its_chain(world: World, statements: list[str]) -> None:
    with world.gate(named("act", lambda: 1)) as gate:
        assert not naming(cost(statements, gate, opened(gate)))


def test_a_pinned_gate_reads_the_active_policy_and_its_event_and_no_other_gate_does(
    world: World, statements: list[str]
) -> None:
    with world.gate(named("act", lambda: None)) as gate, world.gate(named("act", lambda: None), pinned=True) as pinned:
        gate.activate_policy(by="ops:ada")
        costs = [cost(statements, one, opened(one, tenant=tenant)) for one, tenant in ((gate, "a"), (pinned, "b"))]
    plain, more = ([said for said in told if "agentgate_policies" in said] for told in costs)
    assert (len(plain), len(more)) == (0, 1)
    assert len(costs[1]) == len(costs[0]) + 2


def test_a_claim_that_rests_on_a_grant_reads_what_hangs_there_and_a_signed_one_the_ledgers_keys(
    world: World, statements: list[str]
) -> None:
    found: dict[bool, int] = {}
    for signed in (False, True):
        asks = require_approval("big", requirement=Requirement(quorum=2, signed=signed))
        with world.gate(named("act", lambda: 1), policy=ScriptedPolicy(otherwise=asks)) as gate:
            run = opened(gate)
            for n in range(WARM):
                held = gate.call(run, "act", {}, key=f"{signed}{n}")
                assert isinstance(held, Held)
                grant(gate, held)
                statements.clear()
                assert isinstance(gate.execute(held.action, tenant="acme"), Done)
            found[signed] = len(statements)
            assert len(naming(statements)) == 1
    assert (found[False] - APART, found[True] - found[False]) == (HANGS, KEYS)


def test_standing_grants_are_read_a_page_at_a_time(world: World, statements: list[str]) -> None:
    any_of_them = {"where": [], "rest": "any"}
    seen: dict[int, int] = {}
    with world.gate() as gate:
        for n in range(1, 61):
            gate.grants.add(
                tool="refund", where=any_of_them, by="ada", why="w", uses=1, until=timedelta(hours=1), tenant="acme"
            )
            if n in {1, 60}:
                statements.clear()
                assert len(list(gate.grants.list())) == n
                seen[n] = len(statements)
    assert seen[1] == seen[60]
