"""SQLite's settings: which journal is safe on this version, and what every connection is told.

Every setting is read back: a pragma that is misspelt or refused is silent otherwise.
"""

import importlib
import sqlite3
from collections.abc import Mapping
from types import ModuleType
from typing import Literal

from agentgate.errors import UnsafeStore

Journal = Literal["wal", "delete"]

# A WAL-reset bug can corrupt a database with a concurrent writer and checkpointer in 3.7.0-3.51.2.
# Source: sqlite.org/releaselog; fixed on three branches.
_FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7, (3, 51): 3}
_FIXED_SINCE = (3, 52, 0)

FULL, _EXTRA = 2, 3
SETTINGS = {"foreign_keys": 1, "trusted_schema": 0, "mmap_size": 0, "cell_size_check": 1}
BUSY_TIMEOUT_MS = 10_000


def module() -> ModuleType:
    """Return the newest SQLite at hand: the package of the extra ``sqlite`` where installed, else Python's."""
    try:
        return importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return sqlite3


def wal_is_safe(version: tuple[int, ...]) -> bool:
    """Tell whether this SQLite version is free of the WAL-reset bug."""
    if version >= _FIXED_SINCE:
        return True
    patch = _FIXED_BRANCHES.get((version[0], version[1]))
    return patch is not None and version[2] >= patch


def choose_journal(asked: str | None, version: tuple[int, ...]) -> Journal:
    """Return the journal to use.

    Args:
        asked: ``wal``, ``delete``, or None for the best safe one.
        version: SQLite's, as three numbers.
    """
    if asked is None:
        return "wal" if wal_is_safe(version) else "delete"
    if asked == "delete":
        return "delete"
    if asked == "wal" and wal_is_safe(version):
        return "wal"
    if asked == "wal":
        spoken = ".".join(map(str, version))
        raise UnsafeStore(
            "journal=wal",
            f"SQLite {spoken} can corrupt a WAL database under a concurrent writer and checkpointer",
            "install the extra `sqlite`, or leave journal out",
        )
    raise UnsafeStore(f"journal={asked}", "is no journal mode of a ledger", "use wal or delete")


def configure(connection: sqlite3.Connection, journal: Journal, *, memory: bool) -> None:
    """Set up a fresh connection, and read every setting back.

    Raises:
        UnsafeStore: a setting did not take; for the journal mode this means that another process holds the
            database in the other mode.
    """
    synchronous = FULL if journal == "wal" else _EXTRA
    _set(connection, {**SETTINGS, "synchronous": synchronous})
    if memory:
        return
    row = connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()
    if row[0] != journal:
        raise UnsafeStore(
            "journal",
            f"the database stays in {row[0]} mode",
            f"end the processes that hold it, or let all of them use the same SQLite (journal={row[0]})",
        )


def configure_reader(connection: sqlite3.Connection) -> Journal:
    """Set up a fresh connection that never writes, and return the journal the database is in.

    Any SQLite may read a WAL database: what corrupts one is a checkpoint, which a reader of this kind never makes.
    """
    _set(connection, {**SETTINGS, "query_only": 1})
    return "wal" if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal" else "delete"


def _set(connection: sqlite3.Connection, settings: Mapping[str, int]) -> None:
    connection.isolation_level = None  # the transaction is ours: SQLAlchemy's legacy mode leaks DDL and savepoints
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    for name, value in settings.items():
        connection.execute(f"PRAGMA {name} = {value}")
        row = connection.execute(f"PRAGMA {name}").fetchone()
        if row is not None and row[0] != value:
            raise UnsafeStore(f"PRAGMA {name}", f"is {row[0]}, not {value}", "use an unmodified SQLite")


def check_schema(connection: sqlite3.Connection, where: str) -> None:
    """Refuse triggers and views that touch our tables: they would write or show what no event says."""
    rows = connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') AND "
        "(tbl_name LIKE 'agentgate\\_%' ESCAPE '\\' OR sql LIKE '%agentgate\\_%' ESCAPE '\\')"
    ).fetchall()
    for kind, name in rows:
        raise UnsafeStore(where, f"has a {kind} {name!r} on the ledger's tables", f"drop the {kind}")
