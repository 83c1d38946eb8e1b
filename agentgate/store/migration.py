"""Bringing a database to this code's schema, on an explicit call and in one transaction. The only user of alembic.

Opening a gate never migrates; it only reads the version (`agentgate.store.version`).
"""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection

from agentgate.clock import Clock, SystemClock
from agentgate.errors import UnsafeStore
from agentgate.store.engine import Database
from agentgate.store.founding import found
from agentgate.store.schema import REVISION
from agentgate.store.version import Upgraded, current, is_newer, newer

__all__ = ["Upgraded", "current", "scripts", "upgrade", "upgrade_in"]

_PACKAGE = Path(__file__).resolve().parents[1]
_CLOCK = SystemClock()
_turn = threading.Lock()


def upgrade(url: str, *, clock: Clock = _CLOCK) -> Upgraded:
    """Create or migrate the ledger at ``url``; harmless where nothing is to be done.

    Args:
        url: as for `agentgate.Gate.open`.
        clock: gives a new ledger its id and its first event's time.

    Raises:
        WrongSchema: later code has migrated it.
        UnsafeStore: it lies where a ledger must not, or only in memory.
        Unavailable: the lock or the database could not be had; nothing was changed.
    """
    database = Database(url)
    if database.path is None:
        raise UnsafeStore(
            database.url, "a ledger in memory ends with its connection", "name a file: sqlite:///agent.db"
        )
    database.create()
    database.open()
    try:
        return upgrade_in(database, clock=clock)
    finally:
        database.close()


def upgrade_in(database: Database, *, clock: Clock = _CLOCK) -> Upgraded:
    """Create or migrate the ledger in an open database, in a transaction of its own.

    Raises:
        WrongSchema: later code has migrated it.
        Unavailable: the lock or the database could not be had; nothing was changed.
    """
    # Concurrent upgrades race for the version table unless they queue (databases.md, Alembic).
    with database.write() as connection:
        before = current(connection)
        if is_newer(before):
            raise newer(database.url, str(before))
        _run_scripts(connection)
        ledger, created = found(connection, clock)
    return Upgraded(url=database.url, before=before, after=REVISION, created=created, ledger=ledger)


def scripts() -> Path:
    """Return the folder of migration scripts: the wheel's, or the checkout's under an editable install."""
    packaged = _PACKAGE / "_migrations"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "migrations"


def _run_scripts(connection: Connection) -> None:
    # alembic's environment and its `op` are the process's: two threads, on whatever databases, would share them.
    with _turn:
        _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    command.upgrade(config, REVISION)
