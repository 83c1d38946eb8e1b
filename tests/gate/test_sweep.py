"""The sweep: what nobody comes back for is brought where it belongs, and nothing is run."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Done, Gate, Held, Proposal, Running, Settings, Swept
from agentgate.store import overdue
from agentgate.testing import FakeClock, ScriptedPolicy
from support import faulty, forking
from support.worlds import World, grant, made, named, opened

LOST = timedelta(minutes=2)
DAY = timedelta(hours=25)


class Stay:
    """An effect that stays inside until it is let go, and counts how often it was entered."""

    def __init__(self) -> None:
        self.inside, self.go, self.times = threading.Semaphore(0), threading.Event(), 0

    def stay(self, account: str) -> str:
        self.times += 1
        self.inside.release()
        assert self.go.wait(30)
        return account

    def begin(self, gate: Gate, account: str = "a") -> tuple[Proposal, threading.Thread]:
        proposal = gate.propose(opened(gate), "stay", {"account": account})
        thread = threading.Thread(target=gate.execute, args=(proposal,))
        thread.start()
        assert self.inside.acquire(timeout=30)
        return proposal, thread

    def end(self, *threads: threading.Thread) -> None:
        self.go.set()
        for thread in threads:
            thread.join()


def _die(account: str) -> None:
    assert account
    forking.die()


def test_a_dead_workers_action_is_taken_over_once_and_not_run(world: World) -> None:
    tool = named("die", _die, recovery=agentgate.Repeat())
    with world.gate(tool) as gate:
        run = opened(gate)

        def work() -> None:
            with world.gate(tool) as other:
                other.call(run, "die", {"account": "a"}, key="k1")

        assert forking.run(work) == forking.KILLED
        assert gate.sweep() == Swept(looked=1, crashed=1)
        (action,) = (id_ for (id_,) in world.sql("SELECT id FROM agentgate_actions"))
        assert world.words(action) == ["proposed", "started", "in_doubt"]
        assert world.events(action)[-1].body["code"] == "crashed"
        assert gate.sweep() == Swept()
    assert not world.damage()


def test_a_lease_that_is_over_is_taken_over_and_one_that_is_not_is_left_alone(world: World, clock: FakeClock) -> None:
    first, second = Stay(), Stay()
    tools = [named("stay", first.stay), named("other", second.stay)]
    with world.gate(*tools, clock=clock) as gate:
        lost, one = first.begin(gate)
        clock.advance(LOST)
        living = gate.propose(opened(gate, "another"), "other", {"account": "b"})
        two = threading.Thread(target=gate.execute, args=(living,))
        two.start()
        assert second.inside.acquire(timeout=30)
        assert gate.sweep() == Swept(looked=3, lease_lost=1, asked=1)
        assert (world.state(lost.action), world.state(living.action)) == ("UNKNOWN", "EXECUTING")
        first.end(one)
        second.end(two)
        assert world.words(lost.action)[-2:] == ["late", "question_asked"]
        assert world.state(living.action) == "SUCCEEDED"
    assert not world.damage()


def test_what_has_expired_ends_and_what_has_not_stays(world: World, clock: FakeClock) -> None:
    def decide(request: agentgate.PolicyRequest) -> agentgate.Decision:
        asks = type(request.arguments) is dict and request.arguments["cents"] == 7
        return agentgate.require_approval("big") if asks else agentgate.allow()

    with world.gate(policy=ScriptedPolicy(otherwise=decide), clock=clock) as gate:
        run = opened(gate)

        def propose(cents: int) -> Proposal:
            return gate.propose(run, "refund", {"account": "a", "cents": cents})

        ready, held, granted = propose(1), propose(7), propose(7)
        assert isinstance(granted.outcome, Held)
        grant(gate, granted.outcome)
        clock.advance(timedelta(minutes=20))
        assert gate.sweep() == Swept(looked=1, grants=1)
        clock.advance(timedelta(minutes=41))
        fresh = propose(2)
        assert gate.sweep() == Swept(looked=1, actions=1)
        clock.advance(timedelta(hours=23, minutes=20))
        assert gate.sweep() == Swept(looked=2, questions=1, actions=1)
        assert gate.sweep() == Swept()
        read = "SELECT state, reason FROM agentgate_actions WHERE id = ?"
        told = [world.sql(read, one.action)[0] for one in (ready, held, granted, fresh)]
    assert told == [
        ("REFUSED", "action_expired"),
        ("REFUSED", "question_expired"),
        ("REFUSED", "grant_expired"),
        ("REFUSED", "action_expired"),
    ]
    assert world.downstream.total == 0
    assert not world.damage()


@pytest.mark.parametrize("answered", [False, True])
def test_a_question_about_an_unknown_outcome_ends_and_leaves_it_unknown(
    world: World, clock: FakeClock, *, answered: bool
) -> None:
    def vanish() -> None:
        raise RuntimeError("the connection broke")

    settings = agentgate.Settings(grant=timedelta(minutes=1))
    with world.gate(named("vanish", vanish), clock=clock, settings=settings) as gate:
        unknown = gate.call(opened(gate), "vanish", {})
        assert isinstance(unknown, agentgate.Unknown)
        assert unknown.question is not None
        if answered:
            asked = unknown.question
            gate.approvals.answer(asked.id, digest=asked.digest, verdict="again", by="ada", tenant="acme")
        clock.advance(LOST)
        first = gate.sweep()
        assert first == (Swept(looked=2, grants=1, asked=1) if answered else Swept())
        clock.advance(DAY)
        assert gate.sweep() == Swept(looked=2, questions=1, asked=1)
        assert world.state(unknown.action) == "UNKNOWN"
        assert isinstance(gate.execute(unknown.action, tenant="acme"), agentgate.Unknown)
    assert not world.damage()


def test_a_sweep_goes_through_more_than_a_page_of_every_kind(world: World, clock: FakeClock) -> None:
    count = 450
    with world.gate(clock=clock) as gate:
        for n in range(count):
            gate.propose(opened(gate, f"run-{n % 7}"), "refund", {"account": f"a{n}", "cents": 1})
        clock.advance(DAY)
        told: list[int] = []
        found = gate.sweep(on_progress=told.append)
        assert found == Swept(looked=count, actions=count)
        assert told == sorted(told)
        assert (len(told), told[-1]) == (3, count)
    assert world.sql("SELECT DISTINCT state, reason FROM agentgate_actions") == [("REFUSED", "action_expired")]
    assert not world.damage()


def test_sweeps_beside_each_other_change_everything_once(world: World, clock: FakeClock) -> None:
    with world.gate(clock=clock) as gate, world.gate(clock=clock) as other:
        for n in range(90):
            gate.propose(opened(gate, f"run-{n % 3}"), "refund", {"account": f"a{n}", "cents": 1})
        clock.advance(DAY)
        reports: list[Swept] = []
        sweeps = [threading.Thread(target=lambda by=by: reports.append(by.sweep())) for by in (gate, other, gate)]
        for sweep in sweeps:
            sweep.start()
        for sweep in sweeps:
            sweep.join()
        assert sum(report.actions for report in reports) == 90
        assert {report.damaged for report in reports} == {()}
    assert not world.damage()


def test_a_damaged_action_is_named_and_the_others_are_swept(world: World, clock: FakeClock) -> None:
    with world.gate(clock=clock) as gate:
        run = opened(gate)
        proposals = [gate.propose(run, "refund", {"account": f"a{n}", "cents": 1}) for n in range(5)]
        clock.advance(DAY)
        bad = proposals[2].action
        world.sql("UPDATE agentgate_actions SET reserved = x'00' WHERE id = ?", bad)
        found = gate.sweep()
        assert (found.actions, found.damaged) == (4, (bad,))
        assert gate.sweep().damaged == (bad,)


class Watched(FakeClock):
    """A clock that tells when a transaction has come to the door: its first look at the monotonic clock."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Event()

    def monotonic_us(self) -> int:
        found = super().monotonic_us()
        self.came.set()
        return found


def _meanwhile(gate: Gate, clock: Watched, work: Callable[[], Any], span: timedelta) -> Any:
    """Do ``work`` while another writer holds the ledger for as long as ``span``."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    with gate._shop.ledger.database.write():
        clock.came.clear()
        thread.start()
        assert clock.came.wait(30)
        clock.advance(span)
    thread.join()
    return done[0]


@pytest.mark.skipif(not faulty.is_wal_possible(), reason="a reader would wait at the door as well")
@pytest.mark.parametrize("way", ["sweep", "execute", "abandon"])
def test_whoever_waited_for_the_ledger_gives_a_lease_one_renewal_interval_more(tmp_path: Path, way: str) -> None:
    world, clock, stay = made(tmp_path, journal="wal"), Watched(), Stay()
    settings = Settings(lease=timedelta(seconds=60))
    with (
        world.gate(named("stay", stay.stay), clock=clock, settings=settings) as gate,
        world.gate(clock=clock) as holder,
    ):
        begun, thread = stay.begin(gate)
        clock.advance(timedelta(seconds=55))

        def judge() -> object:
            if way == "sweep":
                return gate.sweep().lease_lost
            if way == "execute":
                return type(gate.execute(begun))
            try:
                return gate.abandon(begun, by="ada").state
            except agentgate.NotPossible as error:
                return error.state

        kept, lost = {"sweep": (0, 1), "execute": (Running, agentgate.Unknown), "abandon": ("EXECUTING", "ABANDONED")}[
            way
        ]
        # Whoever looked before saw it over; it came to the door at 61 s and got in at 75: renewals may wait as well.
        clock.advance(timedelta(seconds=6))
        assert _meanwhile(holder, clock, judge, timedelta(seconds=14)) == kept
        assert world.state(begun.action) == "EXECUTING"
        assert _meanwhile(holder, clock, judge, timedelta(seconds=6)) == lost
        stay.end(thread)
    assert not world.damage()


def test_whoever_did_not_wait_takes_a_lease_for_what_it_says(world: World, clock: FakeClock) -> None:
    stay = Stay()
    with world.gate(named("stay", stay.stay), clock=clock) as gate:
        _, thread = stay.begin(gate)
        clock.advance(timedelta(seconds=61))
        assert gate.sweep() == Swept(looked=2, lease_lost=1, asked=1)
        stay.end(thread)


def test_a_sweep_takes_no_effect_from_its_worker_that_renews(world: World, clock: FakeClock) -> None:
    stay = Stay()
    with world.gate(named("stay", stay.stay), clock=clock) as gate:
        begun, thread = stay.begin(gate)
        clock.advance(timedelta(seconds=61))
        gate._shop._renew((1,))  # as its heartbeat does
        assert gate.sweep() == Swept(looked=1)
        stay.end(thread)
        assert isinstance(gate.execute(begun), Done)
    assert stay.times == 1


def test_the_pages_of_a_sweep_go_by_index(world: World) -> None:
    with world.gate() as gate, gate._shop.ledger.database.read() as connection:
        for statement, index in (
            (overdue._OPEN, "agentgate_attempts_open"),
            (overdue._QUESTIONS, "agentgate_approvals_pending"),
            (overdue._READY, "agentgate_actions_waiting"),
            (overdue._AGAIN, "agentgate_actions_in_doubt"),
        ):
            sql, names, _ = statement._for(connection.dialect)
            raw: Any = connection.connection.dbapi_connection
            plan = " ".join(row[3] for row in raw.execute("EXPLAIN QUERY PLAN " + sql, [0] * len(names)))
            assert index in plan, plan
