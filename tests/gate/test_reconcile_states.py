"""Reconciling in every state of the table, and what a late answer offers to whoever does it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import agentgate
from agentgate import Done, Gate, Late, Misuse, NotFound, NotPossible, Proposal, Unknown
from agentgate.cli import pages
from agentgate.clock import to_datetime
from agentgate.gate import reading
from agentgate.gate.views import ActionView
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, named, opened

LOST = timedelta(minutes=2)
ACCOUNT = {"account": "a"}


class Worker:
    """Stays inside in its first call, until it is let go."""

    def __init__(self) -> None:
        self.inside, self.go = threading.Event(), threading.Event()

    def pay(self, account: str) -> str:
        if not self.inside.is_set():
            self.inside.set()
            assert self.go.wait(30)
        return f"paid {account}"


@contextmanager
def stale(gate: Gate, clock: FakeClock, worker: Worker) -> Iterator[Proposal]:
    """Have an action whose first worker lost it, and answers when the block ends."""
    begun = gate.propose(opened(gate), "pay", ACCOUNT, key="k1")
    thread = threading.Thread(target=gate.execute, args=(begun,))
    thread.start()
    assert worker.inside.wait(30)
    clock.advance(LOST)
    assert isinstance(gate.execute(begun), Unknown)
    yield begun
    worker.go.set()
    thread.join()


def _not_applied(gate: Gate, action: Proposal) -> Proposal:
    return gate.reconcile(action, applied=False, by="ops:ada", evidence="nothing there")


def test_a_late_answer_is_offered_to_whoever_reconciles(world: World, clock: FakeClock) -> None:
    worker = Worker()
    with world.gate(named("pay", worker.pay), clock=clock) as gate:
        with stale(gate, clock, worker) as begun:
            unknown = gate.execute(begun)
            assert isinstance(unknown, Unknown)
            assert unknown.late == ()
        unknown = gate.execute(begun)
        assert isinstance(unknown, Unknown)
        (late,) = unknown.late
        assert (late.attempt, late.fence, late.status, late.code) == (1, 1, "ok", None)
        assert late.at == to_datetime(next(one.at_us for one in world.events(begun.action) if one.type == "late"))
        assert late.observation is not None
        assert late.observation.value == "paid a"
        # What it said can be handed on as the result.
        gate.reconcile(begun, applied=True, by="ops:ada", evidence="its own answer", result=late.observation.value)
        done = gate.execute(begun)
        assert isinstance(done, Done)
        assert (done.source, done.observation.value) == ("reconciled", "paid a")
    assert not world.damage()


def test_a_late_answer_is_offered_also_where_another_attempt_has_to_wait(world: World, clock: FakeClock) -> None:
    worker = Worker()
    with world.gate(named("pay", worker.pay, recovery=agentgate.Repeat()), clock=clock) as gate:
        begun = gate.propose(opened(gate), "pay", ACCOUNT)
        thread = threading.Thread(target=gate.execute, args=(begun,))
        thread.start()
        assert worker.inside.wait(30)
        clock.advance(LOST)
        gate.pause(by="ops:ada", reason="look first")
        assert isinstance(gate.execute(begun), Unknown)
        worker.go.set()
        thread.join()
        unknown = gate.execute(begun)
        assert isinstance(unknown, Unknown)
        assert [late.status for late in unknown.late] == ["ok"]
    assert world.words(begun.action) == ["proposed", "started", "in_doubt", "waited", "late"]
    assert not world.damage()


def test_the_view_of_an_action_shows_what_came_late(world: World, clock: FakeClock) -> None:
    worker = Worker()
    with world.gate(named("pay", worker.pay), clock=clock) as gate, stale(gate, clock, worker) as begun:
        pass
    with reading.opened(world.url) as ledger:
        view = reading.find(ledger, begun.action, tenant="acme")
    assert isinstance(view, ActionView)
    (attempt,) = view.attempts
    assert isinstance(attempt.late, Late)
    assert attempt.late.status == "ok"
    page = "\n".join(pages.action_page(view))
    told = [line for line in page.splitlines() if "it said that it happened" in line]
    assert len([line for line in told if "paid a" in line]) == 1  # the question that hangs there says the rest


def test_a_late_answer_of_a_ready_action_makes_it_unknown_and_is_reconciled(world: World, clock: FakeClock) -> None:
    worker = Worker()
    with world.gate(named("pay", worker.pay), clock=clock) as gate:
        with stale(gate, clock, worker) as begun:
            assert _not_applied(gate, begun).state == "READY"
            with pytest.raises(NotPossible, match="nothing about it is in doubt"):
                _not_applied(gate, begun)
        assert world.state(begun.action) == "UNKNOWN"
        assert _not_applied(gate, begun).state == "READY"
        assert isinstance(gate.execute(begun), Done)
    assert not world.damage()


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("state", ["REFUSED", "SUCCEEDED", "ABANDONED"])
def test_at_an_end_it_is_recorded_on_the_attempt_and_moves_nothing(
    world: World, clock: FakeClock, state: str, *, applied: bool
) -> None:
    worker = Worker()
    with world.gate(named("pay", worker.pay, resource="account:{account}"), clock=clock) as gate:
        with stale(gate, clock, worker) as begun:
            if state == "ABANDONED":
                gate.abandon(begun, by="ops:ada")
            else:
                _not_applied(gate, begun)
                _ = gate.cancel(begun, by="ops:ada") if state == "REFUSED" else gate.execute(begun)
            assert world.state(begun.action) == state
        assert world.state(begun.action) == state
        assert world.value("SELECT unresolved FROM agentgate_actions WHERE id = ?", begun.action) == 1
        after = gate.reconcile(begun, applied=applied, by="ops:ada", evidence="the bank's book", worker_known_dead=True)
        assert after.state == state
        event = world.events(begun.action)[-1]
        assert (event.type, event.body["attempts"], event.body["worker_known_dead"]) == ("reconciled", [1], True)
        assert not world.sql("SELECT * FROM agentgate_locks")
        with pytest.raises(NotPossible):
            _not_applied(gate, begun)
    assert not world.damage()


def test_while_another_attempt_executes_an_earlier_one_is_reconciled(world: World, clock: FakeClock) -> None:
    worker, successor = Worker(), Worker()
    stays = [worker, successor]

    def pay(account: str) -> str:
        return stays.pop(0).pay(account) if stays else account

    with world.gate(named("pay", pay), clock=clock) as gate:
        with stale(gate, clock, worker) as begun:
            _not_applied(gate, begun)
            other = threading.Thread(target=gate.execute, args=(begun,))
            other.start()
            assert successor.inside.wait(30)
        assert world.state(begun.action) == "EXECUTING"
        assert world.words(begun.action)[-1] == "late"
        assert _not_applied(gate, begun).state == "EXECUTING"
        with pytest.raises(NotPossible, match="its worker may still live"):
            _not_applied(gate, begun)
        successor.go.set()
        other.join()
        assert world.state(begun.action) == "SUCCEEDED"
    assert not world.damage()


# --- ids ----------------------------------------------------------------------------------------------------------


def test_by_id_an_outcome_is_handed_back_to_its_own_principal_alone(world: World) -> None:
    with world.gate(policy=ScriptedPolicy()) as gate:
        run = opened(gate)
        done = gate.call(run, "refund", {"account": "a1", "cents": 5}, key="k1")
        assert isinstance(gate.execute(done.action, tenant="acme", principal="agent:support"), Done)
        assert isinstance(gate.execute(done.action, tenant="acme"), Done)
        before = world.words(done.action)
        with pytest.raises(NotFound) as foreign:
            gate.execute(done.action, tenant="acme", principal="agent:sales")
        with pytest.raises(NotFound) as absent:
            gate.execute(done.action[:-1] + "0", tenant="acme", principal="agent:sales")
        assert str(foreign.value).replace(done.action, "") == str(absent.value).replace(done.action[:-1] + "0", "")
        assert world.words(done.action) == before
        with pytest.raises(agentgate.Misuse, match=r"^principal: "):
            gate.execute(done.action, tenant="acme", principal="")


def test_what_was_found_out_before_another_attempt_began_says_nothing_of_it(world: World, clock: FakeClock) -> None:
    """Two people look at once and find nothing; one says so, it runs again, and its worker is lost after the effect."""
    tried, paid = [], []

    def pay(account: str) -> str:
        tried.append(account)
        if len(tried) > 1:
            paid.append(account)
        raise ConnectionResetError

    with world.gate(named("pay", pay), clock=clock) as gate:
        begun = gate.propose(opened(gate), "pay", ACCOUNT, key="k1")
        unknown = gate.execute(begun)
        assert isinstance(unknown, Unknown)
        assert unknown.attempt == 1
        say = partial(gate.reconcile, begun, applied=False, by="ops:ada", evidence="nothing there")
        say(attempt=unknown.attempt)
        again = gate.execute(begun)
        assert isinstance(again, Unknown)
        assert again.attempt == 2
        before = len(world.events())
        with pytest.raises(NotPossible, match="attempt 1 says nothing of attempt 2"):
            say(attempt=unknown.attempt)
        numberless: list[Any] = [0, True, "2"]
        for attempt in numberless:
            with pytest.raises(Misuse, match="attempt"):
                say(attempt=attempt)
        assert len(world.events()) == before
        say(applied=True, attempt=again.attempt)
        assert isinstance(gate.execute(begun), Done)
        assert paid == ["a"]
    assert not world.damage()
