"""Lending a transaction: a connection for code that may write in it, and may not end it.

What is lent is SQLAlchemy's connection over a stand-in for the DBAPI's, so that a tool that keeps it holds nothing.
Each statement is preceded by a look whether the transaction is still there: after a full disk or an I/O error SQLite
has undone it, and would commit what follows statement by statement.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any, NoReturn
from weakref import WeakSet

from sqlalchemy import create_engine
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

from agentgate.errors import Misuse, Unavailable
from agentgate.store.guarding import ENDS, Guard

_EFFECT = "agentgate_effect"


class _Handing(threading.local):
    """What the engine's next connection stands on."""

    dbapi: Any = None


_handing = _Handing()


class Kept:
    """Stand in for a DBAPI connection that somebody else closes, commits and sets up.

    Args:
        raw: the connection.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def create_function(self, *_given: Any, **_named: Any) -> None:
        """Leave the connection as it is: it has the functions of who made it."""

    def commit(self) -> None:
        """Leave the transaction to who began it."""

    rollback = close = commit


class Lent:
    """Stand in for a DBAPI connection while it is lent.

    Args:
        whole: the connection of the transaction.
        of: whose it is, for the sentence of an error.
        told: where to put what is written in it, for whoever commits it; None where no action may be executed in it.
    """

    def __init__(self, whole: Connection, *, of: str, told: list[Any] | None) -> None:
        self.whole = whole
        self.told = told
        self._raw: Any = whole.connection.dbapi_connection
        self._errors: Any = whole.dialect.dbapi
        self._of = of
        self._guard = Guard(self._raw)
        self._thread = threading.get_ident()
        self._cursors: WeakSet[_Cursor] = WeakSet()
        self._state = "opening"

    def begin(self) -> None:
        """Let it be used."""
        self._guard.set()
        self._state = "lent"

    def pause(self) -> None:
        """Take the guard off, for the ledger's own statements."""
        self._state = "paused"
        self._guard.take_off()

    def end(self) -> None:
        """Let it be used no more, by nobody; what was left open is closed, or it would be in the commit's way."""
        self._state = "over"
        for cursor in tuple(self._cursors):
            cursor.close()
        self._guard.take_off()

    def check(self) -> None:
        """Refuse what cannot be done through it now.

        Raises:
            Misuse: it was lent for something that has ended, or to another thread.
            Unavailable: the database has ended the transaction.
        """
        if self._state in {"over", "paused"}:
            raise Misuse(f"this connection was lent for {self._of}, and is of no use outside of it")
        if self._thread != threading.get_ident():
            raise Misuse(f"this connection was lent for {self._of}, to the thread that it was lent in")
        if self._state == "lent" and not self._raw.in_transaction:
            raise Unavailable("database", "the database has ended the transaction; nothing of it is written")

    def do(self, name: str, statement: str, *values: Any) -> Any:
        """Run a statement.

        Raises:
            Misuse: it does what a borrower may not.
        """
        self.check()
        self._guard.refused = None
        try:
            return getattr(self._raw, name)(statement, *values)
        except self._errors.Error as error:
            if self._guard.refused is None:
                raise
            raise Misuse(f"{self._of}: its statement {self._guard.refused}") from error

    def cursor(self) -> "_Cursor":
        """Return a cursor that ends when this does; whether it may be used is asked at each use."""
        made = _Cursor(self)
        self._cursors.add(made)
        return made

    def create_function(self, *_given: Any, **_named: Any) -> None:
        """Leave the connection as it is: it has the functions of who made it."""
        if self._state != "opening":
            self._refuse("makes a function; make it in Python, or on a connection of your own")

    def commit(self) -> None:
        """Refuse: whoever lends it ends the transaction."""
        if self._state == "lent":
            self._refuse(f"commits; {ENDS}")

    def rollback(self) -> None:
        """Refuse: whoever lends it ends the transaction; raise instead."""
        if self._state == "lent":
            self._refuse(f"rolls back; {ENDS}")

    def close(self) -> None:
        """Leave it open: it is not its borrower's."""

    def _refuse(self, what: str) -> NoReturn:
        raise Misuse(f"{self._of}: it {what}")


class _Cursor:
    """A cursor of what is lent: it goes through `Lent.do`, and ends with it."""

    def __init__(self, lent: Lent) -> None:
        self._lent = lent
        self._cursor: Any = None

    @property
    def connection(self) -> Lent:
        """The stand-in: whoever has a cursor has no more than that."""
        return self._lent

    def execute(self, statement: str, *values: Any) -> "_Cursor":
        self.close()
        self._cursor = self._lent.do("execute", statement, *values)
        return self

    def executemany(self, statement: str, *values: Any) -> "_Cursor":
        self.close()
        self._cursor = self._lent.do("executemany", statement, *values)
        return self

    def executescript(self, _script: str) -> NoReturn:
        """Refuse: it would commit first."""
        raise Misuse("executescript commits before it runs; execute the statements one by one")

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()

    def __getattr__(self, name: str) -> Any:
        self._lent.check()
        if self._cursor is None:
            raise AttributeError(f"{name}: nothing was executed yet")
        return getattr(self._cursor, name)

    def __iter__(self) -> Any:
        self._lent.check()
        return iter(self._cursor)


@lru_cache(maxsize=8)
def _engine(module: ModuleType) -> Engine:
    engine = create_engine(
        "sqlite://",
        module=module,
        creator=lambda: _handing.dbapi,
        poolclass=NullPool,
        pool_reset_on_return=None,
        hide_parameters=True,  # what an effect's error says is recorded, and told to a model
    )
    _handing.dbapi = module.connect(":memory:")  # what an engine asks of its first connection is not ours to ask
    engine.connect().close()
    return engine


def over(dbapi: Any, module: ModuleType) -> Connection:
    """Make SQLAlchemy's connection over a DBAPI connection, or a stand-in for one."""
    engine = _engine(module)
    _handing.dbapi = dbapi
    try:
        return engine.connect()
    finally:
        _handing.dbapi = None


@contextmanager
def lent(connection: Connection, *, of: str, told: list[Any] | None = None) -> Iterator[Connection]:
    """Lend a transaction's connection while the block runs.

    Args:
        connection: in the transaction.
        of: for what, as the sentence of an error says it.
        told: where to put what is written in it, for whoever commits it; None where no action may be executed in it.
    """
    module: Any = connection.dialect.dbapi
    stand_in = Lent(connection, of=of, told=told)
    outer = over(stand_in, module)
    try:
        stand_in.begin()
        yield outer
    finally:
        try:
            stand_in.end()
        finally:
            outer.close()


@contextmanager
def paused(stand_in: Lent) -> Iterator[Connection]:
    """Use what is lent for the ledger's own statements while the block runs."""
    stand_in.check()
    stand_in.pause()
    try:
        yield stand_in.whole
    finally:
        stand_in.begin()


class Attempt:
    """What an effect wrote so far, which can be undone alone.

    Args:
        connection: of the transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self._raw: Any = connection.connection.dbapi_connection

    def begin(self) -> None:
        """Mark the place to go back to."""
        self._raw.execute(f"SAVEPOINT {_EFFECT}")

    def keep(self) -> None:
        """Let what was written be part of the transaction."""
        self._raw.execute(f"RELEASE {_EFFECT}")

    def undo(self) -> None:
        """Go back to where the effect began."""
        self._raw.execute(f"ROLLBACK TO {_EFFECT}")
        self.keep()

    def check(self) -> None:
        """Look whether the transaction is still there.

        Raises:
            Unavailable: the database ended it inside the effect.
        """
        if not self._raw.in_transaction:
            raise Unavailable(
                "database",
                "the database ended the transaction inside the effect (is the disk full?); nothing of it is written, "
                "and the action is as it was before",
            )
