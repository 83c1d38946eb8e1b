"""A transaction is all or nothing, whatever ends it, and one that ends badly takes its connection with it."""

import threading
import time
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from agentgate.errors import Damaged, Unavailable
from agentgate.store import sqlite
from agentgate.store.engine import Database
from support.rows import add, adding, names, names_in, raising, running, write

BROKEN = "SELECT * FROM nowhere"


def _foreign(database: Database) -> Any:
    """Connect as another program would, which knows nothing of the front lock."""
    return database._module.connect(str(database.path), isolation_level=None, check_same_thread=False)


def _raw(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def test_what_a_block_writes_is_committed_when_it_ends(database: Database) -> None:
    with database.write() as connection:
        add(connection, "acme")
        assert names(database) == [] if database.journal == "wal" else True
    assert names(database) == ["acme"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_a_block_that_raises_leaves_nothing(database: Database, error: type[BaseException]) -> None:
    with pytest.raises(error):
        write(database, adding("acme"), raising(error))
    assert names(database) == []


def test_tables_made_in_a_block_that_raises_are_gone_too(database: Database) -> None:
    with pytest.raises(ValueError, match="no"):
        write(database, running("CREATE TABLE extra (x)"), raising(ValueError("no")))
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM sqlite_master WHERE name = 'extra'")).scalar() == 0


def test_a_database_error_undoes_the_block_and_ends_its_connection(database: Database) -> None:
    used: list[Any] = []
    with pytest.raises(Unavailable) as caught:
        write(database, lambda connection: used.append(_raw(connection)), adding("acme"), running(BROKEN))
    assert caught.value.reason == "database"
    assert isinstance(caught.value.__cause__, OperationalError)
    with pytest.raises(database._module.ProgrammingError, match="closed"):
        used[0].execute("SELECT 1")
    assert names(database) == []


def test_an_error_of_the_raw_cursor_is_of_our_tree_as_well(database: Database) -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        write(database, lambda connection: _raw(connection).execute(BROKEN))


def test_an_error_does_not_repeat_the_values_it_was_given(database: Database) -> None:
    with pytest.raises(Unavailable) as caught:
        write(database, running("INSERT INTO nowhere VALUES (:secret)", secret="hunter2"))
    assert "hunter2" not in str(caught.value)
    assert "INSERT" not in str(caught.value)


def test_a_row_that_contradicts_another_is_damage(database: Database) -> None:
    write(database, adding("acme"))
    with pytest.raises(Damaged, match="UNIQUE"):
        write(database, adding("other"), adding("acme"))
    assert names(database) == ["acme"]


def test_an_error_at_commit_says_so_and_the_next_transaction_is_fine(database: Database) -> None:
    orphan = "INSERT INTO agentgate_events VALUES ('nobody', 0, x'00', x'00')"
    with pytest.raises(Unavailable) as caught:
        write(database, running("PRAGMA defer_foreign_keys = ON"), adding("acme"), running(orphan))
    assert caught.value.reason == "commit"
    assert names(database) == []
    write(database, adding("later"))
    assert names(database) == ["later"]


def test_a_transaction_that_somebody_ended_inside_is_not_reported_as_committed(database: Database) -> None:
    with pytest.raises(Unavailable, match="ended before its commit"):
        write(database, adding("acme"), lambda connection: _raw(connection).execute("ROLLBACK"))
    assert names(database) == []


def _full(connection: Connection) -> None:
    """Let the file grow no more, and go on writing."""
    (pages,) = _raw(connection).execute("PRAGMA page_count").fetchone()
    connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    for number in range(500):
        add(connection, f"{number:0500}")


def test_a_full_disk_undoes_the_block_and_space_lets_the_next_one_in(database: Database) -> None:
    with pytest.raises(Unavailable, match="full") as caught:
        write(database, adding("acme"), _full)
    assert caught.value.reason == "database"
    assert names(database) == []
    write(database, adding("later"))
    assert names(database) == ["later"]


def test_a_reader_sees_one_moment_however_long_it_reads(database: Database) -> None:
    if database.journal == "delete":
        pytest.skip("a writer waits for readers here")
    with database.read() as connection:
        assert names_in(connection) == []
        with database.write() as other:
            add(other, "acme")
        assert names_in(connection) == []
    assert names(database) == ["acme"]


def test_a_foreign_reader_in_the_way_of_a_commit_is_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.journal == "wal":
        pytest.skip("readers are in nobody's way here")
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    database.close()  # so that the next connection has the short patience
    with closing(_foreign(database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM agentgate_tenants").fetchall()
        timer = threading.Timer(0.3, reader.execute, ["ROLLBACK"])
        timer.start()
        began = time.monotonic()
        with database.write() as connection:
            add(connection, "acme")
        assert time.monotonic() - began > 0.25
        timer.join()
    assert names(database) == ["acme"]


def test_a_reader_that_does_not_go_is_reported_and_nothing_is_written(
    url: str, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    if database.journal == "wal":
        pytest.skip("readers are in nobody's way here")
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    hasty = Database(url, patience_us=100_000)
    hasty.open()
    with closing(_foreign(database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM agentgate_tenants").fetchall()
        with pytest.raises(Unavailable) as caught:
            write(hasty, adding("acme"))
    assert caught.value.reason == "locked"
    assert names(hasty) == []
    hasty.close()


def test_a_foreign_writer_is_locked_and_told_so(monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    database.close()
    with closing(_foreign(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable) as caught:
            write(database, adding("acme"))
        assert caught.value.reason == "locked"
        other.execute("ROLLBACK")


def test_a_writer_shuts_other_writers_out_from_its_beginning(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A deferred BEGIN would let another writer in between what it reads and what it writes.
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    with closing(_foreign(database)) as other:
        other.execute("PRAGMA busy_timeout = 20")
        with database.write(), pytest.raises(database._module.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")


def test_a_ledger_in_memory_lives_as_long_as_its_database() -> None:
    database = Database("sqlite://")
    write(database, running("CREATE TABLE agentgate_tenants (tenant TEXT, fingerprint_key BLOB)"), adding("acme"))
    with pytest.raises(Unavailable):
        write(database, adding("other"), running(BROKEN))
    assert names(database) == ["acme"]
    database.close()
