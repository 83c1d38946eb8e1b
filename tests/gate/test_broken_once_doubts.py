"""What a doubt did not stop once: the same request made again, where a tool names no resource (design §5)."""

import os
import threading
from contextlib import closing
from datetime import timedelta

from sqlalchemy.dialects import sqlite

from agentgate import Done, Effect, NoEffect, Refused, Unknown
from agentgate.store import locks
from agentgate.testing import FakeClock
from support.single import until
from support.worlds import World, gates, kinds, named, opened


def test_an_unknown_outcome_without_a_resource_blocks_the_same_request_and_its_tool_in_the_run(world: World) -> None:
    sent: list[int] = []

    def pay(cents: int) -> None:
        sent.append(cents)
        raise ConnectionResetError

    def look(cents: int) -> int:
        return cents

    with world.gate(named("pay", pay), named("look", look, risk="read_only")) as gate:
        run, other = opened(gate), opened(gate, "ticket-2")
        first = gate.call(run, "pay", {"cents": 5})
        again = [gate.call(run, "pay", {"cents": 5}), gate.call(other, "pay", {"cents": 5}, key="k")]
        another = gate.call(run, "pay", {"cents": 6})
        assert isinstance(first, Unknown)
        for outcome in (*again, another):
            assert isinstance(outcome, Refused)
            assert (outcome.reason, outcome.retryable, outcome.blocking) == ("blocked", True, first.action)
        assert isinstance(gate.call(run, "look", {"cents": 5}), Done)
        assert isinstance(gate.call(other, "pay", {"cents": 7}), Unknown)
        gate.reconcile(first.action, applied=True, by="ada", evidence="the bank", tenant="acme")
        assert isinstance(gate.execute(another.action, tenant="acme"), Unknown)
    assert sent == [5, 7, 6]


def test_a_worker_that_died_with_a_request_is_taken_over_before_the_request_is_made_again(world: World) -> None:
    def pay(cents: int) -> int:
        return cents

    def die(cents: int) -> None:  # noqa: ARG001 - the other one's form
        os._exit(9)

    with world.gate(named("pay", pay)) as gate:
        child = os.fork()
        if not child:
            gate.register(named("pay", die), replace=True)
            gate.call(opened(gate), "pay", {"cents": 5})
        os.waitpid(child, 0)
        outcome = gate.call(opened(gate), "pay", {"cents": 5})
    assert isinstance(outcome, Refused)
    assert outcome.reason == "blocked"
    assert world.state(str(outcome.blocking)) == "UNKNOWN"


def test_two_identical_calls_at_once_both_run_where_both_live(world: World) -> None:
    together = threading.Barrier(2)

    def pay(cents: int) -> int:
        together.wait(30)
        return cents

    told: list[object] = []
    with world.gate(named("pay", pay)) as gate:
        run = opened(gate)
        threads = [threading.Thread(target=lambda: told.append(gate.call(run, "pay", {"cents": 5}))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert kinds(told) == ["Done", "Done"]


def test_a_clean_failure_beside_a_late_success_is_not_told_as_nothing_happened(world: World) -> None:
    first, second, entered = threading.Event(), threading.Event(), threading.Event()
    attempts = [first, second]

    def pay(*, effect: Effect) -> str:
        entered.set()
        attempts[effect.attempt - 1].wait(30)
        if effect.attempt == 1:
            return "paid"
        raise NoEffect("nothing was done")

    clock = FakeClock()
    with gates(world, named("pay", pay, timeout=3600), clock=clock) as (gate, other):
        run = opened(gate)
        told: list[object] = []
        threads = [threading.Thread(target=lambda: told.append(gate.call(run, "pay", {}, key="k"))) for _ in range(2)]
        threads[0].start()
        assert entered.wait(30)  # a holder whose time is over before its effect starts nothing
        action = world.value("SELECT id FROM agentgate_actions")
        clock.advance(timedelta(minutes=2))
        other.reconcile(action, applied=False, by="ada", evidence="it seemed so", tenant="acme")
        threads[1].start()
        until(lambda: world.state(action) == "EXECUTING")
        first.set()
        threads[0].join()
        second.set()
        threads[1].join()
    assert world.words(action)[-3:] == ["late", "failed", "question_asked"]
    assert world.state(action) == "UNKNOWN"
    assert isinstance(told[1], Unknown)


def test_looking_for_doubts_costs_the_same_however_many_actions_a_tenant_has(world: World) -> None:
    with closing(world.connect()) as connection:
        sql, names, fixed = locks._UNANSWERED._for(sqlite.dialect())
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", [fixed.get(name, "x") for name in names]).fetchall()
    steps = [str(row[3]) for row in plan if str(row[3]).startswith(("SEARCH", "SCAN"))]
    assert [step.split("INDEX ")[1].split(" ")[0] for step in steps] == [
        "agentgate_actions_in_doubt",
        "agentgate_attempts_open",
        "sqlite_autoindex_agentgate_actions_1",
    ]
