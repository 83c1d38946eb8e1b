"""Writers take turns at the front lock: threads and processes, each in finite time, nothing lost."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from agentgate.clock import SystemClock
from agentgate.errors import Unavailable, UnsafeStore
from agentgate.store.engine import Database
from agentgate.store.front import FrontLock
from support.forks import in_children
from support.rows import adding, names, write

SHORT_US = 60_000


def _lock(path: Path | None, patience_us: int = SHORT_US) -> FrontLock:
    return FrontLock(path, clock=SystemClock(), patience_us=patience_us)


@pytest.fixture(params=["file", "memory"])
def lock(request: pytest.FixtureRequest, tmp_path: Path) -> FrontLock:
    return _lock(tmp_path / "lock" if request.param == "file" else None)


@pytest.fixture
def two(tmp_path: Path) -> tuple[FrontLock, FrontLock]:
    """Two doors of one ledger, as two processes have."""
    return _lock(tmp_path / "lock"), _lock(tmp_path / "lock")


def _refusal(take: Callable[[], object]) -> str:
    """Try from another thread, where nothing is held already."""
    told: list[str] = []

    def attempt() -> None:
        try:
            take()
        except Unavailable as error:
            told.append(error.reason)
        else:
            told.append("taken")

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return told[0]


def _exclusive(lock: FrontLock) -> None:
    with lock.exclusive():
        pass


def _shared(lock: FrontLock) -> None:
    with lock.shared():
        pass


def test_who_waits_too_long_is_told_that_it_is_locked(lock: FrontLock) -> None:
    with lock.exclusive():
        assert _refusal(lambda: _exclusive(lock)) == "locked"
    assert _refusal(lambda: _exclusive(lock)) == "taken"


def test_a_lock_is_left_by_whoever_raises(lock: FrontLock) -> None:
    with pytest.raises(ValueError, match="no"), lock.exclusive():
        raise ValueError("no")
    assert _refusal(lambda: _exclusive(lock)) == "taken"


def test_readers_stand_beside_each_other_and_a_writer_alone(two: tuple[FrontLock, FrontLock]) -> None:
    one, other = two
    with one.shared():
        assert _refusal(lambda: _shared(other)) == "taken"
        assert _refusal(lambda: _exclusive(other)) == "locked"
    with one.exclusive():
        assert _refusal(lambda: _shared(other)) == "locked"
        assert _refusal(lambda: _exclusive(other)) == "locked"


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    assert _refusal(lambda: _exclusive(_lock(tmp_path / "lock"))) == "lock_file"
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_that_cannot_be_had_is_unavailable(tmp_path: Path) -> None:
    assert _refusal(lambda: _exclusive(_lock(tmp_path / "no" / "lock"))) == "lock_file"


def _count(database: Database, times: int) -> None:
    """Read and write, so that two who were inside at once would lose a step."""
    for _ in range(times):
        with database.write() as connection:
            found = connection.execute(text("SELECT tenant FROM agentgate_tenants")).scalar()
            connection.execute(text("UPDATE agentgate_tenants SET tenant = :n"), {"n": str(int(str(found)) + 1)})


def test_threads_and_processes_take_turns_and_lose_no_step(database: Database) -> None:
    write(database, adding("0"))

    def work(_number: int) -> None:
        threads = [threading.Thread(target=_count, args=(database, 10)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    in_children(work, 4)
    assert names(database) == ["120"]


@pytest.fixture
def hasty(url: str, database: Database) -> Iterator[Database]:
    """Another process's view of the database, which gives up soon."""
    assert database.create() is False
    made = Database(url, patience_us=SHORT_US)
    made.open()
    yield made
    made.close()


def test_a_writer_gives_up_with_nothing_written(database: Database, hasty: Database) -> None:
    with database.write() as connection:
        adding("first")(connection)
        assert _refusal(lambda: write(hasty, adding("second"))) == "locked"
    assert names(database) == ["first"]


def test_readers_and_the_writer_share_the_door_only_where_the_journal_needs_it(
    database: Database, hasty: Database
) -> None:
    needs_it = database.journal == "delete"
    with database.write():
        assert _refusal(lambda: names(hasty)) == ("locked" if needs_it else "taken")
    with database.read():
        assert _refusal(lambda: write(hasty, adding("a"))) == ("locked" if needs_it else "taken")


def test_a_ledger_in_memory_takes_turns_between_threads() -> None:
    database = Database("sqlite://", patience_us=SHORT_US)

    def inside(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        assert _refusal(lambda: write(database)) == "locked"
        assert _refusal(lambda: names(database)) == "locked"

    write(database, inside)
    database.close()


def test_a_lock_in_the_way_of_a_place_is_refused_before_it_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "agent.db.lock").mkdir()
    with pytest.raises(UnsafeStore, match="no regular file"):
        Database(f"sqlite:///{tmp_path / 'agent.db'}").create()
