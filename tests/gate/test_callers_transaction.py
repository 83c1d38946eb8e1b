"""An action inside a transaction of the caller's: their commit makes it real, their rollback leaves it as it was."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import NullPool

import agentgate
from agentgate import Done, Effect, Failed, Gate, Held, Misuse, Outcome, Refused, Run, Unavailable
from agentgate.store import sqlite
from agentgate.testing import ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import faulty
from support.books import Books, begun, opened_books, plain, raising
from support.worlds import named, opened

MODULE = sqlite.module()
OWN = "INSERT INTO credits VALUES ('own', 'a1', 1)"


@pytest.fixture(params=faulty.JOURNALS)
def books(tmp_path: Path, request: pytest.FixtureRequest) -> Books:
    return opened_books(tmp_path, request.param)


@contextmanager
def alchemy(books: Books) -> Iterator[Connection]:
    """A connection of the caller's own engine."""
    engine = create_engine(f"sqlite:///{books.path}", module=MODULE, poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


Own = Callable[[Books], Any]
OWN_CONNECTIONS = [begun, alchemy]


RUNS: WeakKeyDictionary[Gate, Run] = WeakKeyDictionary()


@contextmanager
def at(books: Books, *tools: AnyTool, **options: Any) -> Iterator[Gate]:
    """Open a gate, and a run: which is a transaction of its own, and waits for the caller's."""
    with books.gate(*tools, **options) as gate:
        RUNS[gate] = opened(gate)
        yield gate


def call(gate: Gate, connection: object = None, id: str = "c1") -> Outcome:
    return gate.call(RUNS[gate], "credit", {"id": id}, key=id, connection=connection)


# --- gate.transaction() ------------------------------------------------------------------------


def test_what_the_caller_and_the_effect_write_is_committed_together(books: Books) -> None:
    with at(books, books.credit()) as gate:
        proposal = gate.propose(RUNS[gate], "credit", {"id": "c1"})
        with gate.transaction() as connection:
            connection.exec_driver_sql(OWN)
            outcome = gate.execute(proposal, connection=connection)
            assert connection.execute(text("SELECT count(*) FROM credits")).scalar() == 2
            assert books.credited() == []
            assert books.state(proposal.action) == "READY"
        assert books.credited() == ["c1", "own"]
        assert isinstance(outcome, Done)
        assert books.words(proposal.action) == ["proposed", "started", "succeeded"]
        again = gate.execute(proposal)
    assert isinstance(again, Done)
    assert again.source == "replayed"
    assert not books.damage()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_raises_leaves_the_action_as_it_was(books: Books, error: type[BaseException]) -> None:
    with at(books, books.credit()) as gate:
        proposal = gate.propose(RUNS[gate], "credit", {"id": "c1"})

        def work() -> None:
            with gate.transaction() as connection:
                connection.exec_driver_sql(OWN)
                assert isinstance(gate.execute(proposal, connection=connection), Done)
                raise error

        with pytest.raises(error):
            work()
        assert books.credited() == []
        assert books.state(proposal.action) == "READY"
        assert isinstance(gate.execute(proposal), Done)
    assert books.credited() == ["c1"]
    assert not books.damage()


def test_several_actions_and_their_failures_share_one_transaction(books: Books) -> None:
    def fails_for_c2(effect: Effect) -> None:
        if effect.connection.exec_driver_sql("SELECT 1 FROM credits WHERE id = 'c2'").first():
            raise ValueError("no")

    with at(books, books.credit(fails_for_c2)) as gate, gate.transaction() as connection:
        outcomes = [call(gate, connection, id) for id in ("c1", "c2", "c3")]
    assert [type(outcome) for outcome in outcomes] == [Done, Failed, Done]
    assert books.credited() == ["c1", "c3"]
    assert not books.damage()


def test_a_held_and_a_refused_call_are_recorded_with_the_callers_commit(books: Books) -> None:
    policy = ScriptedPolicy(agentgate.require_approval("big"), agentgate.deny("no"))
    with at(books, books.credit(), policy=policy) as gate, gate.transaction() as connection:
        held, refused = call(gate, connection), call(gate, connection, "c2")
    assert isinstance(held, Held)
    assert isinstance(refused, Refused)
    assert books.state(held.action) == "HELD"
    assert not books.damage()


def test_going_back_to_a_savepoint_takes_the_action_back_and_tells_nobody_of_it(
    books: Books, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agentgate")
    with at(books, books.credit()) as gate:
        caplog.clear()
        with gate.transaction() as connection:
            first = call(gate, connection)
            savepoint = connection.begin_nested()
            second = call(gate, connection, "c2")
            savepoint.rollback()
            assert not caplog.records  # nothing is committed yet
    assert books.credited() == ["c1"]
    assert {record.action for record in caplog.records} == {first.action}  # type: ignore[attr-defined]
    assert second.action != first.action
    assert not books.damage()


@pytest.mark.parametrize(("end", "words"), [("commit", "it commits"), ("rollback", "it rolls back")])
def test_the_block_may_not_end_its_transaction_or_touch_the_ledgers_tables(books: Books, end: str, words: str) -> None:
    with at(books, books.credit()) as gate, gate.transaction() as connection:
        with pytest.raises(Misuse, match="the ledger's"):
            connection.exec_driver_sql("DELETE FROM agentgate_events")
        assert isinstance(call(gate, connection), Done)
        connection.exec_driver_sql("SELECT 1")
        with pytest.raises(Misuse, match=f"{words}; the gate begins and ends"):
            getattr(connection, end)()
    assert books.credited() == ["c1"]
    assert not books.damage()


def test_an_error_of_the_blocks_own_statement_is_raised_as_it_is(books: Books) -> None:
    with at(books, books.credit()) as gate:

        def work() -> None:
            with gate.transaction() as connection:
                call(gate, connection)
                connection.exec_driver_sql("INSERT INTO credits VALUES ('own', 'a1', -1)")

        with pytest.raises(IntegrityError, match="CHECK"):
            work()
        with pytest.raises(Misuse, match="FOREIGN KEY"), gate.transaction() as connection:
            connection.exec_driver_sql("INSERT INTO notes VALUES ('nobody')")
        assert books.credited() == []
        with gate.transaction() as connection:
            connection.exec_driver_sql(OWN)
    assert books.credited() == ["own"]


def test_a_result_that_is_read_halfway_goes_on_after_an_action(books: Books) -> None:
    with at(books, books.credit()) as gate, gate.transaction() as connection:
        rows = connection.exec_driver_sql("SELECT id FROM accounts ORDER BY id")
        assert rows.fetchone() == ("a1",)
        call(gate, connection)
        assert rows.fetchone() == ("a2",)


def test_a_transaction_inside_another_is_refused_at_once(books: Books) -> None:
    action = "00000000-0000-0000-0000-000000000000"
    with at(books, books.credit()) as gate, at(books, books.credit()) as other, gate.transaction() as connection:
        for inside in (gate, other):
            with pytest.raises(Misuse, match="inside a transaction"), inside.transaction():
                pass
            with pytest.raises(Misuse, match="inside a transaction"):
                call(inside)
        with pytest.raises(Misuse, match="of another gate"):
            other.execute(action, connection=connection)


def test_an_effect_that_executes_another_action_fails_cleanly(books: Books) -> None:
    steps: list[Callable[[Effect], object]] = []
    with at(books, books.credit(lambda effect: [step(effect) for step in steps])) as gate:
        steps.append(lambda effect: call(gate, effect.connection, "c9"))
        first = call(gate)
        steps[:] = [lambda _effect: call(gate, None, "c9")]
        second = call(gate, None, "c2")
    assert isinstance(first, Failed)
    assert "its own effect alone" in first.error.message
    assert isinstance(second, Failed)
    assert "inside a transaction" in second.error.message
    assert books.credited() == []


def test_its_connection_is_of_no_use_in_another_thread_or_afterwards(books: Books) -> None:
    told: list[BaseException] = []

    def use(connection: Connection, gate: Gate) -> None:
        for step in (lambda: connection.exec_driver_sql(OWN), lambda: call(gate, connection)):
            try:
                step()
            except Misuse as error:
                told.append(error)

    with at(books, books.credit()) as gate:
        with gate.transaction() as connection:
            raw = connection.connection.dbapi_connection
            thread = threading.Thread(target=use, args=(connection, gate))
            thread.start()
            thread.join()
        assert ["to the thread" in str(error) for error in told] == [True, True]
        assert raw is not None
        with pytest.raises(Misuse, match="of no use outside"):
            raw.cursor().execute(OWN)
        with pytest.raises(Misuse):
            call(gate, connection)
    assert books.credited() == []


# --- a connection of the caller's own ----------------------------------------------------------


@pytest.mark.parametrize("connect", OWN_CONNECTIONS)
def test_in_a_transaction_of_their_own_their_commit_makes_it_real(books: Books, connect: Own) -> None:
    with at(books, books.credit()) as gate:
        proposal = gate.propose(RUNS[gate], "credit", {"id": "c1"})
        with connect(books) as connection:
            outcome = gate.execute(proposal, connection=connection)
            assert (books.credited(), books.state(proposal.action)) == ([], "READY")
            connection.commit()
        assert isinstance(outcome, Done)
        assert (books.credited(), books.state(proposal.action)) == (["c1"], "SUCCEEDED")
    assert not books.damage()


@pytest.mark.parametrize("connect", OWN_CONNECTIONS)
def test_in_a_transaction_of_their_own_their_rollback_leaves_the_action_as_it_was(books: Books, connect: Own) -> None:
    with at(books, books.credit()) as gate:
        proposal = gate.propose(RUNS[gate], "credit", {"id": "c1"})
        for _ in range(2):
            with connect(books) as connection:
                assert isinstance(gate.execute(proposal, connection=connection), Done)
                connection.rollback()
            assert (books.credited(), books.state(proposal.action)) == ([], "READY")
        with connect(books) as connection:
            call(gate, connection, "c2")
            connection.rollback()
        assert books.value("SELECT count(*) FROM agentgate_actions") == 1
        assert isinstance(gate.execute(proposal), Done)
        assert isinstance(call(gate, None, "c2"), Done)
    assert books.credited() == ["c1", "c2"]
    assert not books.damage()


def test_their_rows_are_made_as_they_like_afterwards(books: Books) -> None:
    with at(books, books.credit()) as gate, begun(books) as connection:
        connection.row_factory = lambda _cursor, row: {"row": row}
        connection.text_factory = bytes
        assert isinstance(call(gate, connection), Done)
        assert connection.execute("SELECT id FROM credits").fetchone() == {"row": (b"c1",)}
        connection.commit()
    assert books.credited() == ["c1"]


def test_an_interruption_inside_leaves_their_transaction_and_not_the_action(books: Books) -> None:
    with at(books, books.credit(raising(KeyboardInterrupt()))) as gate, begun(books) as connection:
        connection.execute(OWN)
        with pytest.raises(KeyboardInterrupt):
            call(gate, connection)
        connection.commit()
    assert books.credited() == ["own"]
    assert books.sql("SELECT id FROM agentgate_actions") == []
    assert not books.damage()


# --- what is refused ---------------------------------------------------------------------------


def test_a_tool_that_is_not_transactional_is_refused_before_anything_is_written(books: Books) -> None:
    reached: list[str] = []

    def send(id: str) -> None:
        reached.append(id)

    with at(books, named("send", send)) as gate:
        run = RUNS[gate]
        proposal = gate.propose(run, "send", {"id": "x"})
        with gate.transaction() as connection:
            with pytest.raises(Misuse, match=r"'send' does not declare recovery=Transactional\(\)"):
                gate.execute(proposal, connection=connection)
            with pytest.raises(Misuse, match="'send' does not declare"):
                gate.call(run, "send", {"id": "y"}, connection=connection)
        assert books.words(proposal.action) == ["proposed"]
    assert reached == []


def test_a_connection_of_another_library_is_refused(books: Books) -> None:
    if MODULE is sqlite3:
        pytest.skip("there is one SQLite here")
    with at(books, books.credit()) as gate, closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(Misuse, match="two SQLite libraries"):
            call(gate, connection)
        with pytest.raises(Misuse, match="two SQLite libraries"):
            call(gate, object())


def test_a_connection_to_another_file_or_in_no_transaction_is_refused(books: Books, tmp_path: Path) -> None:
    with at(books, books.credit()) as gate:
        with plain(books) as connection, pytest.raises(Misuse, match="in no transaction; begin it first"):
            call(gate, connection)
        with closing(MODULE.connect(str(tmp_path / "other.db"))) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(Misuse, match=r"other\.db, not the ledger's"):
                call(gate, connection)
        with closing(MODULE.connect(":memory:")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(Misuse, match="in memory, not the ledger's"):
                call(gate, connection)
    assert books.sql("SELECT id FROM agentgate_actions") == []


@pytest.mark.parametrize("setting", ["foreign_keys = OFF", "synchronous = NORMAL"])
def test_settings_that_the_ledger_needs_are_named(books: Books, setting: str) -> None:
    with at(books, books.credit()) as gate, plain(books) as connection:
        connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(Misuse, match=setting.split(" ", maxsplit=1)[0]):
            call(gate, connection)


def test_what_stands_before_the_ledgers_tables_is_refused(books: Books) -> None:
    with at(books, books.credit()) as gate, plain(books) as connection:
        connection.execute("CREATE TEMP TRIGGER t AFTER INSERT ON main.agentgate_events BEGIN SELECT 1; END")
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(Misuse, match="temporary 't'"):
            call(gate, connection)


def test_a_transaction_that_cannot_write_any_more_is_unavailable_and_says_how_to_begin(books: Books) -> None:
    with at(books, books.credit()) as gate, plain(books) as connection:
        run = RUNS[gate]
        connection.execute("PRAGMA busy_timeout = 50")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM credits").fetchone()
        with begun(books), pytest.raises(Unavailable, match="BEGIN IMMEDIATE"):
            gate.call(run, "credit", {"id": "c1"}, connection=connection)
    assert books.credited() == []


def test_a_connection_that_is_closed_or_anothers_is_refused(books: Books) -> None:
    told: list[BaseException] = []
    with at(books, books.credit()) as gate:
        run = RUNS[gate]
        with begun(books) as connection:

            def use() -> None:
                try:
                    gate.call(run, "credit", {"id": "c1"}, connection=connection)
                except Misuse as error:
                    told.append(error)

            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
        assert len(told) == 1
        with pytest.raises(Misuse):
            gate.call(run, "credit", {"id": "c1"}, connection=connection)
        with alchemy(books) as closed:
            pass
        with pytest.raises(Misuse, match="closed"):
            gate.call(run, "credit", {"id": "c1"}, connection=closed)
