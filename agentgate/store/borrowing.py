"""Working inside a transaction that somebody else began: what a connection must be for it, and our steps in it.

A caller's own connection is trusted with the record for one transaction, so it is held to what the ledger's own are:
the same SQLite (docs/decisions/0003), the same file, synced commits, and no trigger of a third on our tables.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import false, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from agentgate.errors import AgentgateError, Misuse, Unavailable
from agentgate.store import files, forking, lending, nesting, sqlite
from agentgate.store.engine import Database
from agentgate.store.lending import Kept, Lent
from agentgate.store.schema import runs
from agentgate.store.statements import Statement

_STEP = "agentgate_step"
_BEGIN = "begin it first, for writing: BEGIN IMMEDIATE"
_LOCK = Statement(update(runs).where(false()).values(id=runs.c.id))


class Borrowed:
    """A ledger's database inside a transaction that is not its own.

    Args:
        database: the ledger's.
        connection: in the transaction.
        told: where to put what was written, for whoever commits it; None where nobody asks.
    """

    def __init__(self, database: Database, connection: Connection, *, told: list[Any] | None = None) -> None:
        self._told = told
        self.url = database.url
        self._database = database
        self._connection = connection
        self._raw: Any = connection.connection.dbapi_connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read as the transaction stands."""
        with self._translated():
            yield self._connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Write, all of the block or nothing of it; whoever began the transaction commits it.

        Raises:
            Unavailable: the database failed; where it ended the whole transaction, the sentence says so.
        """
        with self._translated():
            self._raw.execute(f"SAVEPOINT {_STEP}")
            try:
                yield self._connection
                self._raw.execute(f"RELEASE {_STEP}")
            except BaseException:
                if self._is_begun():
                    self._raw.execute(f"ROLLBACK TO {_STEP}")
                    self._raw.execute(f"RELEASE {_STEP}")
                raise

    def tell(self, written: object) -> None:
        """Say what was written, to whoever commits it."""
        if self._told is not None:
            self._told.append(written)

    def close(self) -> None:
        """Leave it to whoever lends it."""

    def _is_begun(self) -> bool:
        module: Any = self._connection.dialect.dbapi
        try:
            return bool(self._raw.in_transaction)
        except module.Error:  # closed by the effect, which undid it
            return False

    @contextmanager
    def _translated(self) -> Iterator[None]:
        module: Any = self._connection.dialect.dbapi
        try:
            yield
        except (SQLAlchemyError, module.Error) as error:
            ended = "" if self._is_begun() else "; it has undone your whole transaction"
            told = self._database.failed(error)
            if ended and isinstance(told, Unavailable):
                told = Unavailable(told.reason, told.detail + ended)
            raise told from error


@contextmanager
def borrowed(database: Database, given: object) -> Iterator[Borrowed]:
    """Work inside a caller's transaction while the block runs.

    Args:
        database: the ledger's.
        given: what `lending.lent` gave for a transaction of this ledger; or the caller's own connection, SQLAlchemy's
            or the DBAPI's, in a writing transaction on the ledger's file.

    Raises:
        Misuse: it is none of these, and what to do about it.
        Unavailable: another transaction holds the database.
    """
    forking.check()
    raw = _raw(given)
    if isinstance(raw, Lent):
        with lending.paused(_ours(raw, database)) as connection:
            yield Borrowed(database, connection, told=raw.told)
        return
    _check_module(raw, database.module)
    with nesting.inside(database.place), forking.inside(), _plain(raw):
        connection = lending.over(Kept(raw), database.module)
        try:
            _check(raw, connection, database)
            yield Borrowed(database, connection)
        finally:
            connection.close()


def _raw(given: object) -> Any:
    """Return the DBAPI's connection, or our stand-in for one."""
    if not isinstance(given, Connection):
        return given
    if given.closed or given.invalidated:
        raise Misuse("connection: it is closed")
    return given.connection.dbapi_connection


def _ours(raw: Lent, database: Database) -> Lent:
    raw.check()
    if raw.told is None:
        raise Misuse("connection: an effect's own connection carries its own effect alone; propose the other one apart")
    if raw.whole.engine is not database.engine:
        raise Misuse("connection: it is of another gate; use the gate whose transaction() gave it")
    return raw


def _check_module(raw: Any, module: Any) -> None:
    if isinstance(raw, module.Connection):
        return
    name = f"{type(raw).__module__}.{type(raw).__qualname__}"
    raise Misuse(
        f"connection: a {name}, and this gate's SQLite is {module.Connection.__module__}: two SQLite libraries of one "
        f"process do not see each other's locks; connect with that one, or use gate.transaction()"
    )


@contextmanager
def _plain(raw: Any) -> Iterator[None]:
    """Read rows as they are while the block runs, however the caller has them made."""
    was = raw.row_factory, raw.text_factory
    raw.row_factory, raw.text_factory = None, str
    try:
        yield
    finally:
        raw.row_factory, raw.text_factory = was


def _check(raw: Any, connection: Connection, database: Database) -> None:
    try:
        _check_transaction(raw)
        _check_place(raw, database)
        _check_settings(raw)
        sqlite.check_schema(raw, database.url)
        _LOCK.write(connection, {})
    except database.module.ProgrammingError as error:  # closed, or another thread's
        raise Misuse(f"connection: it cannot be used here ({error})") from error
    except database.module.Error as error:
        told = database.failed(error)
        raise _locked(told) from error


def _locked(told: AgentgateError) -> AgentgateError:
    if isinstance(told, Unavailable) and told.reason == "locked":
        return Unavailable(
            "locked", f"your transaction cannot be written in now ({told.detail}); undo it, and {_BEGIN}"
        )
    return told


def _check_transaction(raw: Any) -> None:
    if not raw.in_transaction:
        raise Misuse(f"connection: it is in no transaction; {_BEGIN}")


def _check_place(raw: Any, database: Database) -> None:
    name = next(file for _, schema, file in raw.execute("PRAGMA database_list").fetchall() if schema == "main")
    if not name or files.identity(Path(name)) != database.place:
        raise Misuse(f"connection: its database is {name or 'in memory'}, not the ledger's ({database.url})")


def _check_settings(raw: Any) -> None:
    for setting, least in (("foreign_keys", 1), ("synchronous", sqlite.FULL)):
        found = raw.execute(f"PRAGMA {setting}").fetchone()[0]
        if found < least:
            raise Misuse(
                f"connection: PRAGMA {setting} is {found}; the ledger needs {least}: set it when you connect, "
                "before the transaction"
            )
    found = raw.execute("SELECT name FROM sqlite_temp_master WHERE sql LIKE '%agentgate\\_%' ESCAPE '\\'").fetchone()
    if found is not None:
        raise Misuse(f"connection: it has a temporary {found[0]!r} that stands before the ledger's tables; drop it")
