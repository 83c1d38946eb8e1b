"""Two SQLite libraries in one process, on one file: what is acknowledged stays, whatever the other one closes."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentgate.errors import Unavailable
from agentgate.store import runs, sqlite
from agentgate.store.engine import Database
from agentgate.store.schema import metadata

pytestmark = pytest.mark.skipif(
    sqlite.module() is sqlite3 or not sqlite.wal_is_safe(sqlite.module().sqlite_version_info),
    reason="there is one SQLite library here; the extra `sqlite` brings another",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path / 'agent.db'}?journal=wal")
    made.create()
    made.open()
    with made.write() as connection:
        metadata.create_all(connection)
    yield made
    made.close()


def _close_with_the_other_library(database: Database) -> None:
    assert database.path is not None
    log = database.path.with_name("agent.db-wal")
    other = sqlite3.connect(database.path)
    other.execute("SELECT count(*) FROM sqlite_master").fetchone()
    other.close()
    assert not log.exists()  # else this test shows nothing: the other library removed our log


def _write_while_the_log_is_removed(database: Database) -> None:
    assert database.path is not None
    with database.write() as connection:
        runs.create_tenant(connection, tenant="b", fingerprint_key=b"k" * 32)
        database.path.with_name("agent.db-wal").unlink()


def _tenants(database: Database) -> set[str]:
    with database.read() as connection:
        return {name for name in ("a", "b", "c") if runs.has_tenant(connection, name)}


def test_what_is_committed_after_another_library_closed_the_file_is_there_for_everybody(database: Database) -> None:
    with database.write() as connection:
        runs.create_tenant(connection, tenant="a", fingerprint_key=b"k" * 32)
    _close_with_the_other_library(database)
    with database.write() as connection:
        runs.create_tenant(connection, tenant="b", fingerprint_key=b"k" * 32)
    assert _tenants(database) == {"a", "b"}
    fresh = Database(database.url + "?journal=wal")
    fresh.open()
    assert _tenants(fresh) == {"a", "b"}
    fresh.close()


def test_a_commit_whose_log_was_removed_under_it_is_not_called_done(database: Database) -> None:
    with database.write() as connection:
        runs.create_tenant(connection, tenant="a", fingerprint_key=b"k" * 32)
    with pytest.raises(Unavailable, match="write-ahead log was removed") as told:
        _write_while_the_log_is_removed(database)
    assert told.value.reason == "commit"  # it may be there or not: whoever asked reads it back
    with database.write() as connection:
        runs.create_tenant(connection, tenant="c", fingerprint_key=b"k" * 32)
    assert _tenants(database) >= {"a", "c"}
