"""A database that is full, held by another process, or gone: SQLite's own errors, for every command that writes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from agentgate import AgentgateError, Call, Damaged, Done, Effect, Gate, Run, Running, Transactional, Unavailable
from agentgate.store import sqlite
from support import faulty, forking
from support.worlds import World, made, named, opened

BULK = "x" * 6_000  # more than a page, so that what is written needs new ones
TURNS = (0, 1, 2)
WAYS = ("propose", "propose_many", "call", "execute", "credit", "reconcile", "abandon", "cancel", "pause", "limit")
SMALL = ("charge", "sweep")
"""What they write is small, or not theirs to choose: they are asked when the others have filled the file."""


class Office:
    """A gate, and one more of every command on demand, each about an action of its own."""

    def __init__(self, folder: Path, journal: str) -> None:
        self.world: World = made(folder, journal=journal)
        self.world.sql("CREATE TABLE credits (key TEXT, more TEXT)")
        self.gate: Gate = self.world.gate(*self.tools())
        self.run: Run = opened(self.gate)
        self.ready = {way: [self._propose(f"{way}-{n}") for n in TURNS] for way in ("execute", "cancel")}
        self.doubted = {way: [self._doubt(f"{way}-{n}") for n in TURNS] for way in ("reconcile", "abandon")}

    def _propose(self, key: str) -> str:
        return self.gate.propose(self.run, "pay", {"key": key}, key=key).action

    def _doubt(self, key: str) -> str:
        return self.gate.call(self.run, "doubt", {"key": key}, key=key).action

    def tools(self) -> Iterator[Any]:
        def pay(key: str, more: str = "", *, effect: Effect) -> str:
            self.world.downstream.apply(effect, resource=key)
            return BULK + more

        def doubt(key: str) -> None:
            raise ConnectionResetError(key)

        def credit(key: str, *, effect: Effect) -> str:
            effect.connection.execute(text("INSERT INTO credits VALUES (:k, :m)"), {"k": key, "m": BULK})
            return BULK

        yield named("pay", pay, resource="{key}")
        yield named("doubt", doubt, resource="{key}")
        yield named("credit", credit, recovery=Transactional(), timeout=20)

    def do(self, way: str, n: int) -> object:
        """Do one of them; what it has to write down is bulky."""
        tenant, key = "acme", f"{way}-{n}"
        bulky = {"key": key, "more": BULK}
        ways: dict[str, Callable[[], object]] = {
            "propose": lambda: self.gate.propose(self.run, "pay", bulky, key=key),
            "propose_many": lambda: self.gate.propose_many(
                self.run, [Call("pay", {**bulky, "more": BULK + str(i)}, key=f"{key}-{i}") for i in range(3)]
            ),
            "call": lambda: self.gate.call(self.run, "pay", {"key": key}, key=key),
            "execute": lambda: self.gate.execute(self.ready["execute"][n], tenant=tenant),
            "credit": lambda: self.gate.call(self.run, "credit", {"key": key}, key=key),
            "reconcile": lambda: self.gate.reconcile(
                self.doubted["reconcile"][n], applied=False, by="ada", evidence=BULK, tenant=tenant
            ),
            "abandon": lambda: self.gate.abandon(self.doubted["abandon"][n], by="ada", note=BULK, tenant=tenant),
            "cancel": lambda: self.gate.cancel(self.ready["cancel"][n], by="ada", note=BULK, tenant=tenant),
            "pause": lambda: self.gate.pause(by="ada", reason=BULK, tool="doubt"),
            "limit": lambda: self.gate.limit({"actions": 100 + n}, tenant=tenant, by="ada", note=BULK),
            "charge": lambda: self.run.charge(tokens=1),
            "sweep": self.gate.sweep,
        }
        return ways[way]()

    def attempt(self, way: str, n: int) -> object:
        try:
            return self.do(way, n)
        except AgentgateError as error:
            return error

    def check(self) -> None:
        """No effect without its start, no row of a transactional one without its record, and nothing half there."""
        for arrival in self.world.downstream.arrivals:
            states = "SELECT count(*) FROM agentgate_attempts WHERE fence = ?"
            assert self.world.value(states, arrival.fence) == 1
        credited = {key for (key,) in self.world.sql("SELECT key FROM credits")}
        done = "SELECT key_text FROM agentgate_actions WHERE tool = 'credit' AND state = 'SUCCEEDED'"
        assert credited == {key for (key,) in self.world.sql(done)}
        assert not self.world.damage()


@pytest.fixture(params=faulty.JOURNALS)
def office(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 5)  # how long SQLite itself waits for another process
    made_ = Office(tmp_path, request.param)
    yield made_
    made_.gate.close()


@contextmanager
def bounded(office: Office, pages: int) -> Iterator[None]:
    """Let the database grow by so many pages and no further."""
    database = office.gate._shop.ledger.own
    most = office.world.value("PRAGMA page_count") + pages

    def bound(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most}")

    office.gate.close()
    event.listen(database.engine, "connect", bound)
    try:
        yield
    finally:
        event.remove(database.engine, "connect", bound)
        office.gate.close()


def test_a_database_that_is_full_halves_nothing_and_goes_on_once_there_is_room(office: Office) -> None:
    reasons: set[str] = set()
    for way in WAYS:
        failed = 0
        for n in TURNS:
            with bounded(office, n * 2):
                answer = office.attempt(way, n)
                small = [office.attempt(name, n) for name in SMALL]
            errors = [one for one in (answer, *small) if isinstance(one, AgentgateError)]
            assert all(isinstance(error, Unavailable) for error in errors), (way, errors)
            reasons |= {error.reason for error in errors if isinstance(error, Unavailable)}
            failed += isinstance(answer, Unavailable)
            again = office.attempt(way, n)
            assert not isinstance(again, Unavailable), (way, n, again)
            if isinstance(again, Running):  # its end could not be recorded, and its worker is this process
                assert isinstance(answer, Unavailable)
                assert answer.reason == "record"
        assert failed, way
        office.check()
    assert reasons == {"database", "record"}


@contextmanager
def held(world: World) -> Iterator[None]:
    """Let another process hold the database, one that knows nothing of the ledger's own lock."""
    ready, over = os.pipe(), os.pipe()

    def hold() -> None:
        connection = sqlite.module().connect(str(world.path), isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        os.write(ready[1], b"!")
        os.read(over[0], 1)
        connection.execute("ROLLBACK")

    child = forking.start(hold)
    try:
        os.read(ready[0], 1)
        yield
    finally:
        os.write(over[1], b"!")
        assert forking.end(child) == 0
        for end in (*ready, *over):
            os.close(end)


def test_a_database_that_another_process_holds_is_locked_for_every_command_and_free_again(office: Office) -> None:
    office.gate.close()  # so that a connection with the short patience is made
    events = office.world.value("SELECT count(*) FROM agentgate_events")
    with held(office.world):
        for way in (*WAYS, "charge"):
            answer = office.attempt(way, 0)
            assert isinstance(answer, Unavailable), (way, answer)
            assert answer.reason == "locked", (way, answer)
    assert office.world.value("SELECT count(*) FROM agentgate_events") == events
    assert office.world.downstream.total == 0
    office.check()
    for way in WAYS:
        assert not isinstance(office.attempt(way, 0), AgentgateError), way
    assert isinstance(office.attempt("call", 0), Done)
    office.check()


def test_a_database_that_is_gone_is_damage_for_every_command_and_nothing_happens(office: Office) -> None:
    office.world.path.unlink()
    for way in (*WAYS, *SMALL):
        answer = office.attempt(way, 0)
        assert isinstance(answer, Damaged), (way, answer)
    assert office.world.downstream.total == 0
    assert not office.world.path.exists()
