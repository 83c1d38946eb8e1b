"""Connections that do what a test wants at the n-th statement: count, kill the process, or fail.

The product has no hooks for this: `agentgate.store.sqlite.module`, which every engine asks for its SQLite, is made to
answer a copy of the module whose ``connect`` gives connections of this kind.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from agentgate.store import sqlite
from support import forking

REAL = sqlite.module()
Fault = Callable[[str, str], None]
"""Called with ``before`` or ``after`` and the statement; what it raises, the statement raises."""


def nothing(_when: str, _statement: str) -> None:
    """Let every statement be."""


class Switchboard:
    """What statements do now, for every connection of this process."""

    fault: Fault = staticmethod(nothing)


def is_counted(statement: str) -> bool:
    """Leave out what a fresh connection is told, which writes nothing and is different each time."""
    return not statement.startswith("PRAGMA") and "sqlite_master" not in statement


class Connection(REAL.Connection):  # type: ignore[misc,name-defined]
    """A connection of the real library that asks the switchboard around each statement and each commit."""

    def execute(self, statement: str, *values: Any) -> Any:
        return self._around(statement, super().execute, statement, *values)

    def commit(self) -> None:
        self._around("COMMIT", super().commit)

    def _around(self, statement: str, call: Callable[..., Any], *values: Any) -> Any:
        if not is_counted(statement):
            return call(*values)
        Switchboard.fault("before", statement)
        result = call(*values)
        Switchboard.fault("after", statement)
        return result


def _module() -> ModuleType:
    module = ModuleType("faulty_sqlite")
    vars(module).update({name: value for name, value in vars(REAL).items() if not name.startswith("__")})

    def connect(*args: Any, **named: Any) -> Any:
        if isinstance(Switchboard.fault, ForGood) and Switchboard.fault.is_dead:
            raise REAL.OperationalError("unable to open database file")
        return REAL.connect(*args, factory=Connection, **named)

    vars(module)["connect"] = connect
    return module


MODULE = _module()


def install(patch: pytest.MonkeyPatch) -> None:
    """Give every engine that is made from now on connections of this kind."""
    patch.setattr(sqlite, "module", lambda: MODULE)


@contextmanager
def during(fault: Fault) -> Iterator[None]:
    """Let statements do this while the block runs."""
    Switchboard.fault = staticmethod(fault)
    try:
        yield
    finally:
        Switchboard.fault = staticmethod(nothing)


class Count:
    """A fault that is none: it remembers every statement."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, when: str, statement: str) -> None:
        if when == "before":
            self.statements.append(statement)


class At:
    """Do something before or after the n-th statement, counted from 0, once."""

    def __init__(self, n: int, when: str, what: Callable[[], object]) -> None:
        self._n = n
        self._when = when
        self._what = what
        self._seen = -1

    def __call__(self, when: str, _statement: str) -> None:
        self._seen += when == "before"
        if self._seen == self._n and when == self._when:
            self._n = -1
            self._what()


def killed(n: int, when: str) -> At:
    """Kill this process before or after the n-th statement."""
    return At(n, when, forking.die)


def failed(n: int, when: str, words: str = "disk I/O error") -> At:
    """Raise what SQLite raises before or after the n-th statement."""

    def fail() -> None:
        raise REAL.OperationalError(words)

    return At(n, when, fail)


class ForGood:
    """Fail at the n-th statement, counted from 0, and at all that is asked of the database from then on.

    Args:
        n: which.
        when: before or after it; after a commit, what it wrote is there.
        words: what SQLite says.
    """

    def __init__(self, n: int, when: str, words: str) -> None:
        self._n = n
        self._when = when
        self._words = words
        self._seen = -1
        self.is_dead = False

    def __call__(self, when: str, _statement: str) -> None:
        self._seen += when == "before"
        if self.is_dead or (self._seen == self._n and when == self._when):
            self.is_dead = True
            raise REAL.OperationalError(self._words)


def is_wal_possible() -> bool:
    """Tell whether the SQLite at hand is one whose WAL can be trusted."""
    return sqlite.wal_is_safe(REAL.sqlite_version_info)


JOURNALS = [
    "delete",
    pytest.param(
        "wal",
        marks=pytest.mark.skipif(
            not is_wal_possible(), reason=f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug; install pysqlite3"
        ),
    ),
]
