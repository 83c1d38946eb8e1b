"""A forked child uses connections of its own, and its parent loses nothing by it."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from agentgate.errors import Unavailable
from agentgate.store.engine import Database
from agentgate.store.schema import metadata
from support.forks import in_children
from support.rows import adding, names, write


def test_a_child_writes_what_its_parent_reads_and_the_other_way_round(database: Database) -> None:
    write(database, adding("before"))

    def work(_number: int) -> list[str]:
        write(database, adding("child"))
        return names(database)

    assert in_children(work, 1) == [["before", "child"]]
    assert names(database) == ["before", "child"]


def test_many_children_of_a_warmed_parent_write_at_once(database: Database) -> None:
    assert names(database) == []

    def work(number: int) -> None:
        for turn in range(10):
            write(database, adding(f"{number}-{turn}"))

    in_children(work, 6)
    assert len(names(database)) == 60


def test_what_a_child_commits_outlives_its_parents_last_close(url: str, database: Database) -> None:
    # An inherited connection made the child believe it held the parent's locks; the parent's close then removed the
    # write-ahead log from under it, and what the child committed after that was gone.
    assert names(database) == []
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        write(database, adding("one"))
        os.read(told, 1)
        write(database, adding("two"))
        os._exit(0)
    while names(database) != ["one"]:
        pass
    database.close()
    os.write(tell, b"x")
    assert os.waitpid(pid, 0)[1] == 0
    os.close(told)
    os.close(tell)
    again = Database(url)
    assert names(again) == ["one", "two"]
    again.close()


def _forked(inside: Callable[[], None]) -> str:
    """Run something in a child and return what it was refused with."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            inside()
            told = "nothing"
        except Unavailable as error:
            told = error.reason
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return told


def test_a_child_that_is_forked_inside_a_transaction_may_open_no_ledger(url: str, database: Database) -> None:
    def anew() -> None:
        other = Database(url)
        other.open()
        names(other)

    with database.write() as connection:
        adding("parent")(connection)
        assert _forked(lambda: write(database, adding("child"))) == "forked"
        assert _forked(anew) == "forked"
    assert names(database) == ["parent"]


def _still_open(database: Database) -> None:
    """Check that nobody undid the transaction behind our back: its rollback journal is what a crash would need."""
    if database.journal == "delete":
        assert Path(f"{database.path}-journal").stat().st_size > 0


def test_a_child_that_leaves_its_parents_transaction_neither_ends_nor_undoes_it(database: Database) -> None:
    reader, writer = os.pipe()
    pid = -1
    try:
        with database.write() as connection:
            adding("parent")(connection)
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)  # the child has left the block by now
                _still_open(database)
                adding("later")(connection)
    except Unavailable as error:
        os.write(writer, error.reason.encode())
        os._exit(0)
    finally:
        if not pid:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "forked"
    assert names(database) == ["later", "parent"]


def test_a_child_that_raises_out_of_its_parents_transaction_does_not_undo_it(database: Database) -> None:
    pid = -1
    try:
        with database.write() as connection:
            adding("parent")(connection)
            pid = os.fork()
            if not pid:
                connection.execute(text("SELECT * FROM nowhere"))
            os.waitpid(pid, 0)  # the child has left the block by now
            _still_open(database)
            adding("later")(connection)
    finally:
        if not pid:
            os._exit(0)
    assert names(database) == ["later", "parent"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_the_transactions_of_other_threads(database: Database) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write() as connection:
            adding("thread")(connection)
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(5)
    threading.Timer(0.1, leave.set).start()
    assert _forked(lambda: write(database, adding("child"))) == "nothing"
    thread.join()
    assert names(database) == ["child", "thread"]


def test_a_child_that_lives_on_does_not_keep_its_parents_front_lock(url: str) -> None:
    hasty = Database(url, patience_us=300_000)
    hasty.create()
    go, stop = os.pipe()
    with hasty.write() as connection:
        metadata.create_all(connection)
        pid = os.fork()  # inherits the very lock that is held here
        if not pid:
            os.close(stop)
            os.read(go, 1)
            os._exit(0)
    try:
        write(hasty, adding("next"))
        assert names(hasty) == ["next"]
    finally:
        os.close(stop)
        os.close(go)
        os.waitpid(pid, 0)
        hasty.close()


def test_a_ledger_in_memory_is_copied_into_the_child() -> None:
    database = Database("sqlite://")
    with database.write() as connection:
        connection.execute(text("CREATE TABLE agentgate_tenants (tenant TEXT, fingerprint_key BLOB)"))
        adding("acme")(connection)
    assert in_children(lambda _number: names(database), 1) == [["acme"]]
    assert names(database) == ["acme"]
    database.close()
