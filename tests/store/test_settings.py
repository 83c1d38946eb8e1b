"""What every connection is told, and that it took; which journal a version of SQLite may use."""

import importlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from agentgate.errors import Misuse, Unavailable, UnsafeStore
from agentgate.store import sqlite
from agentgate.store.engine import Database
from support.rows import adding, names, write

# databases.md: fixed in 3.51.3, 3.50.7, 3.44.6; broken in 3.7.0-3.51.2.
VERSIONS = {
    (3, 7, 0): False,
    (3, 40, 1): False,
    (3, 44, 5): False,
    (3, 44, 6): True,
    (3, 44, 9): True,
    (3, 45, 9): False,
    (3, 49, 2): False,
    (3, 50, 6): False,
    (3, 50, 7): True,
    (3, 51, 2): False,
    (3, 51, 3): True,
    (3, 52, 0): True,
    (3, 53, 4): True,
    (4, 0, 0): True,
}


@pytest.mark.parametrize(("version", "safe"), list(VERSIONS.items()))
def test_the_journal_is_gated_by_the_version(version: tuple[int, int, int], safe: bool) -> None:  # noqa: FBT001
    assert sqlite.wal_is_safe(version) == safe
    assert sqlite.choose_journal(None, version) == ("wal" if safe else "delete")
    assert sqlite.choose_journal("delete", version) == "delete"
    if safe:
        assert sqlite.choose_journal("wal", version) == "wal"
        return
    with pytest.raises(UnsafeStore) as caught:
        sqlite.choose_journal("wal", version)
    assert "extra `sqlite`" in caught.value.remedy


@pytest.mark.parametrize("asked", ["memory", "off", "truncate", "WAL", ""])
def test_another_journal_is_refused_by_name(asked: str) -> None:
    with pytest.raises(UnsafeStore) as caught:
        sqlite.choose_journal(asked, (3, 53, 4))
    assert caught.value.where == f"journal={asked}"


def test_every_setting_is_as_it_must_be(database: Database) -> None:
    with database.read() as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "mmap_size", "busy_timeout")
        }
    assert found == {
        "journal_mode": database.journal,
        "synchronous": 2 if database.journal == "wal" else 3,  # FULL, EXTRA
        "foreign_keys": 1,
        "trusted_schema": 0,
        "mmap_size": 0,
        "busy_timeout": 10_000,
    }


def test_the_settings_hold_on_every_connection(database: Database) -> None:
    if database.journal == "delete":
        pytest.skip("one connection at a time")
    with database.read() as first, database.read() as second:
        assert first.connection.dbapi_connection is not second.connection.dbapi_connection
        for connection in (first, second):
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
            assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1


@pytest.mark.parametrize("deaf_to", ["synchronous", "foreign_keys", "trusted_schema"])
def test_a_setting_that_does_not_take_is_refused(tmp_path: Path, deaf_to: str) -> None:
    class Deaf(sqlite3.Connection):
        """A SQLite that was built without a setting: it takes the words and does nothing."""

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute("SELECT 1" if sql.startswith(f"PRAGMA {deaf_to} =") else sql, *values)

    with closing(sqlite3.connect(tmp_path / "x.db", factory=Deaf)) as connection:
        with pytest.raises(UnsafeStore) as caught:
            sqlite.configure(connection, "delete", memory=False)
        assert caught.value.where == f"PRAGMA {deaf_to}"


def test_a_database_that_others_hold_in_the_other_mode_is_refused(tmp_path: Path) -> None:
    module = sqlite.module()
    if not sqlite.wal_is_safe(module.sqlite_version_info):
        pytest.skip("needs a SQLite whose WAL is safe")
    path = tmp_path / "agent.db"
    with closing(module.connect(str(path), isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode = wal")
        holder.execute("CREATE TABLE t (x)")
        database = Database(f"sqlite:///{path}?journal=delete")
        with pytest.raises((UnsafeStore, Unavailable)):
            names(database)
        database.close()


def test_a_database_goes_over_to_the_other_journal_when_nobody_holds_it(url: str, database: Database) -> None:
    write(database, adding("acme"))
    database.close()
    before, after = ("wal", "delete") if database.journal == "wal" else ("delete", "wal")
    if after == "wal" and not sqlite.wal_is_safe(sqlite.module().sqlite_version_info):
        pytest.skip("needs a SQLite whose WAL is safe")
    other = Database(url.replace(before, after))
    assert names(other) == ["acme"]
    other.close()


def test_without_the_extra_pythons_own_sqlite_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    monkeypatch.setitem(sys.modules, "pysqlite3.dbapi2", None)
    assert sqlite.module() is sqlite3
    database = Database(f"sqlite:///{tmp_path / 'agent.db'}")
    database.create()
    write(database, lambda connection: connection.execute(text("CREATE TABLE agentgate_tenants (tenant TEXT)")))
    assert names(database) == []
    safe = sqlite.wal_is_safe(sqlite3.sqlite_version_info)
    assert database.journal == ("wal" if safe else "delete")
    database.close()


def test_with_the_extra_its_newer_sqlite_is_used() -> None:
    newer: Any = pytest.importorskip(
        "pysqlite3.dbapi2", reason="the extra `sqlite` is not installed", exc_type=ImportError
    )
    assert sqlite.module() is importlib.import_module("pysqlite3.dbapi2")
    assert newer.sqlite_version_info >= (3, 52, 0)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("agent.db", "no database URL"),
        ("postgresql://host/db", "not supported"),
        ("sqlite+aiosqlite:///agent.db", "not supported"),
        ("sqlite://agent.db", "three slashes"),
        ("sqlite:///agent.db?mode=ro", "'mode'"),
        ("sqlite:///agent.db?journal=wal&uri=true", "'uri'"),
        ("sqlite:///agent.db?journal=off", "journal=off"),
        ("sqlite:///agent.db?journal=wal&journal=delete", "no journal mode"),
    ],
)
def test_an_url_that_cannot_be_used_is_refused_before_anything_is_opened(url: str, told: str) -> None:
    with pytest.raises(Misuse, match=told):
        Database(url)


def test_an_url_with_a_password_is_not_repeated() -> None:
    with pytest.raises(UnsafeStore) as caught:
        Database("postgresql://me:hunter2@host/db")
    assert "hunter2" not in str(caught.value)
