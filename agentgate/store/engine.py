"""A ledger's database: connections, and the only two ways to have a transaction.

`Database.write` is one writing transaction (SQLite: behind the front lock, BEGIN IMMEDIATE); `Database.read` is
one consistent snapshot. Nothing else begins or commits. Any database error ends the transaction and the
connection: after a full disk or an I/O error SQLite has rolled back and would commit statement by statement.
Forks are `agentgate.store.forking`'s: no connection is carried into a child.
"""

import os
import sqlite3
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from agentgate.clock import SystemClock
from agentgate.errors import AgentgateError, Damaged, Unavailable, UnsafeStore
from agentgate.store import files, forking, nesting, sqlite
from agentgate.store.front import FrontLock
from agentgate.store.idle import Idle

PATIENCE_US = 30_000_000
_COMMIT_PAUSE_S = 0.005
_WRITING = "BEGIN IMMEDIATE"
_LOG = "agentgate.log"


class Database:
    """One ledger's database, shared by the threads of a process.

    Args:
        url: ``sqlite:///path`` (three slashes relative, four absolute) or ``sqlite://`` for memory;
            ``?journal=delete`` or ``?journal=wal`` chooses the journal.
        patience_us: how long a transaction waits for its turn.
        read_only: open nothing for writing, and take the journal as it is.
    """

    def __init__(self, url: str, *, patience_us: int = PATIENCE_US, read_only: bool = False) -> None:
        parsed = _parse(url)
        asked = parsed.query.get("journal")
        self.url = url.partition("?")[0]
        self.path = _path(self.url)
        self._module = sqlite.module()
        self.journal: sqlite.Journal = "wal"  # of a reader until its first connection has looked
        if not read_only:
            version = self._module.sqlite_version_info
            self.journal = sqlite.choose_journal(None if asked is None else str(asked), version)
        self._identity: tuple[int, int] | None = None
        self._clock = SystemClock()
        self._patience_us = patience_us
        self._read_only = read_only
        lock = None if self.path is None else self.path.with_name(self.path.name + ".lock")
        self._front = FrontLock(lock, clock=self._clock, patience_us=patience_us, create=not read_only)
        self._engine = self._make_engine()
        forking.register(self)

    def _make_engine(self) -> Engine:
        pool: dict[str, Any] = {"poolclass": StaticPool if self.path is None else Idle}
        engine = create_engine(
            URL.create("sqlite"),
            module=self._module,
            creator=self._open_file,
            # Transactions are begun and committed here by hand, and only here.
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
            hide_parameters=True,  # an error of the database quotes no argument
            **pool,
        )
        event.listen(engine, "connect", self._on_connect)
        return engine

    def _open_file(self) -> sqlite3.Connection:
        """Open the file, which must be there: SQLite would make a new one that everybody can read."""
        mode = "ro" if self._read_only else "rw"
        name = ":memory:" if self.path is None else f"file:{quote(os.fsencode(self.path))}?mode={mode}"
        connection: sqlite3.Connection = self._module.connect(name, uri=True, check_same_thread=False)
        return connection

    def _on_connect(self, connection: sqlite3.Connection, _record: object) -> None:
        try:
            if self._read_only:
                self.journal = sqlite.configure_reader(connection)
            else:
                sqlite.configure(connection, self.journal, memory=self.path is None)
            sqlite.check_schema(connection, self.url)
        except BaseException:
            connection.close()
            raise

    @property
    def module(self) -> ModuleType:
        """The DBAPI: whose SQLite it is."""
        return self._module

    @property
    def engine(self) -> Engine:
        """What its connections are of."""
        return self._engine

    @property
    def place(self) -> Hashable:
        """Which file it is, (device, inode); a ledger in memory is itself."""
        return self._identity or id(self)

    def create(self) -> bool:
        """Create the database file, private to its owner; return whether it was new."""
        return self.path is not None and files.create(self.path)

    def open(self) -> None:
        """Check the place of the database, and remember which file it is.

        Raises:
            UnsafeStore: it does not exist, or lies where a ledger must not.
        """
        if self.path is None:
            return
        files.check(self.path)
        if not self.path.exists():
            raise UnsafeStore(str(self.path), "does not exist", f"create it with: agentgate migrate {self.url}")
        self._identity = files.identity(self.path)

    def close(self) -> None:
        """Close every connection of this process."""
        self._engine.dispose()

    def close_idle(self) -> None:
        """Close the connections that no transaction has; a ledger in memory is its connection, and is kept."""
        if self.path is not None:
            self._engine.dispose()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Hold one writing transaction; it commits when the block ends well, and is undone when it raises.

        Raises:
            Unavailable: the lock or the database could not be had; nothing of the block is in the database,
                unless ``reason`` is ``commit``: then it may be, and must be read back.
            Damaged: the file was removed or replaced, or the database contradicts itself.
            Misuse: this thread has one already.
        """
        forking.check()
        with nesting.inside(self.place), self._front.exclusive(), self._transaction(_WRITING) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold one snapshot for reading; keep it short, a writer may be waiting (SQLite's DELETE journal)."""
        forking.check()
        if self.journal == "wal" and self.path is not None:
            with self._transaction("BEGIN") as connection:
                yield connection
            return
        nesting.check(self.place)
        with self._front.shared(), self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with forking.inside():
            connection = self._current()
            raw: Any = connection.connection.dbapi_connection
            pid, committing = os.getpid(), False
            try:
                self._same_file()
                raw.execute(begin)
                yield connection
                forking.check_same(pid)
                committing = True
                self._commit(raw)
                self._remember_log(connection, wrote=begin == _WRITING)
            except BaseException as error:
                if os.getpid() != pid:
                    forking.carry(connection)
                    raise
                told = self._undo(connection, raw, error, committing=committing)
                if told is None:
                    raise
                raise told from error
            finally:
                if os.getpid() == pid:
                    connection.close()

    def _current(self) -> Connection:
        """Return a connection whose write-ahead log is the one beside the database.

        Another SQLite library in this process (the standard library's, beside the extra's) does not know our locks:
        as it closes the file it folds our log into the database and removes it. What was committed is safe then;
        what the old connection would write next is not.
        """
        connection = self._connect()
        known = connection.info.get(_LOG)
        if known is None or known == self._log():
            return connection
        connection.invalidate()
        connection.close()
        return self._connect()

    def _remember_log(self, connection: Connection, *, wrote: bool) -> None:
        if self.journal != "wal" or self.path is None:
            return
        known, now = connection.info.get(_LOG), self._log()
        if (known is not None and now != known) or (wrote and now is None):
            connection.invalidate()  # closed, it brings what it wrote into the database, if it still can
            raise Unavailable("commit", "its write-ahead log was removed meanwhile, by another SQLite in this process")
        connection.info[_LOG] = now

    def _log(self) -> tuple[int, int] | None:
        assert self.path is not None  # only a file has a log
        try:
            return files.identity(self.path.with_name(self.path.name + "-wal"))
        except FileNotFoundError:
            return None

    def _connect(self) -> Connection:
        try:
            return self._engine.connect()
        except (SQLAlchemyError, self._module.Error) as error:
            self._same_file()  # a file that is gone is no reason to try again
            raise self.failed(error, "connect") from error

    def _undo(
        self, connection: Connection, raw: Any, error: BaseException, *, committing: bool
    ) -> AgentgateError | None:
        """Undo the transaction; return what to raise instead of ``error``, None where it goes on as it is."""
        if isinstance(error, (SQLAlchemyError, self._module.Error)):
            self._drop(connection, raw)
            return self.failed(error, "commit" if committing else "database")
        if not connection.invalidated and raw.in_transaction:
            raw.rollback()
        return None

    def failed(self, error: Exception, where: str = "database") -> AgentgateError:
        """Say what the caller should do about a database's error.

        Args:
            error: as the database raised it.
            where: ``connect``, ``database`` (inside the transaction) or ``commit``.
        """
        original, words = _original(error), _reason(error)
        if "not a database" in words:
            return UnsafeStore(self.url, "is no SQLite database, or its head is damaged", "name another, or restore it")
        if self._read_only and where == "connect" and "readonly database" in words:
            return self._unreadable()
        if where == "commit":
            return Unavailable(where, words)
        if "malformed" in words or isinstance(original, self._module.IntegrityError):
            return Damaged(self.url, words)
        return Unavailable("locked" if _is_busy(original) else where, words)

    def _unreadable(self) -> Unavailable:
        """Say why a file could not be read without writing: SQLite needs to undo something, or to write beside it."""
        assert self.path is not None  # only a file is opened to be read alone
        beside = (self.path.with_name(self.path.name + end) for end in ("-journal", "-wal"))
        if any(one.exists() for one in beside):
            words = f"{self.url} was left in a transaction; undo it: agentgate migrate {self.url}"
            return Unavailable("interrupted", words)
        return Unavailable(
            "folder",
            f"{self.url} is read with files beside it, and this user may write none in {self.path.parent}; "
            "look as a user who may, or at a copy in another folder",
        )

    def _same_file(self) -> None:
        if self.path is None or self._identity is None:
            return
        try:
            found = files.identity(self.path)
        except FileNotFoundError:
            raise Damaged(str(self.path), "the database file was removed while in use") from None
        if found != self._identity:
            raise Damaged(str(self.path), "the database file was replaced while in use")

    def _commit(self, raw: Any) -> None:
        """Commit; a reader in our way (DELETE journal) leaves the transaction open, so that one is tried again."""
        if not raw.in_transaction:  # after a full disk, had the block gone on, the rest would stand there alone
            raise Unavailable(
                "database", "the transaction had ended before its commit; nothing of it is to be relied on"
            )
        until_us = self._clock.monotonic_us() + self._patience_us
        while True:
            try:
                raw.commit()
            except self._module.OperationalError as error:
                if not (_is_busy(error) and raw.in_transaction):
                    raise
                if self._clock.monotonic_us() >= until_us:
                    raise Unavailable("locked", "a reader held the database at commit; nothing was written") from error
                time.sleep(_COMMIT_PAUSE_S)
            else:
                return

    def _drop(self, connection: Connection, raw: Any) -> None:
        """Give up the connection with its transaction; a database in memory lives in it and is kept."""
        if self.path is not None:
            connection.invalidate()
        elif raw.in_transaction:
            raw.rollback()


def is_refused(error: Unavailable) -> bool:
    """Tell whether a commit failed for what a table demands, a deferred foreign key: the same would fail again."""
    cause = error.__cause__
    return error.reason == "commit" and cause is not None and type(cause).__name__ == "IntegrityError"


def _is_busy(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY or "locked" in str(error)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise UnsafeStore(url, "is no database URL", "write sqlite:///path/to/agent.db") from error
    if parsed.drivername != "sqlite":
        raise UnsafeStore(
            parsed.render_as_string(), f"{parsed.drivername!r} is not supported", "write sqlite:///path/to/agent.db"
        )
    if parsed.host is not None:  # sqlite://agent.db would be a ledger in memory, without a word
        raise UnsafeStore(parsed.render_as_string(), "names a host", "write three slashes: sqlite:///path/to/agent.db")
    unknown = set(parsed.query) - {"journal"}
    if unknown:
        raise UnsafeStore(url, f"has an unknown option {min(unknown)!r}", "the options are: journal")
    name = unquote(parsed.database or "")
    if "\0" in name or not _is_encodable(name):
        raise UnsafeStore(ascii(url), "names no file that there can be", "write it in whole characters, without NUL")
    return parsed


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


def _path(url: str) -> Path | None:
    """Return the file, percent-decoded here: SQLAlchemy 2.1 does so and 2.0 does not, and they must find the same."""
    database = unquote(url.removeprefix("sqlite://").removeprefix("/"))
    return None if database in {"", ":memory:"} else Path(database).absolute()


def _original(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _reason(error: Exception) -> str:
    """Return the database's own words, without the statement and the values it was given."""
    original = _original(error)
    return f"{type(original).__name__}: {original}"
