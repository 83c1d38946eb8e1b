"""Forking a process that has ledgers open: idle connections are closed before, and none is carried over.

SQLite keeps its locks per process and file. A child that inherits a connection, even an idle one it never uses,
believes that it holds the locks of its parent: the parent's last close then takes the write-ahead log away from
under the child, whose later commits are acknowledged and lost (seen). So a fork waits until no other thread is
inside a transaction, and a child that was forked out of one may not open a ledger at all.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

from agentgate.errors import Unavailable

PATIENCE_S = 10.0


class Idle(Protocol):
    """Something with idle connections to close."""

    def close_idle(self) -> None:
        """Close the connections that no transaction has."""
        ...


class _Process:
    """Who is inside a transaction in this process, and what must be closed before it forks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # taken and left in one step of the interpreter, which a Condition's own is not
        self.changed = threading.Condition(self.lock)
        self.inside: dict[object, int] = {}  # the thread of each transaction
        self.known: WeakSet[Idle] = WeakSet()
        self.forking = False
        self.carried = False


_process = _Process()


# Kept open in a child on purpose: SQLite's close would undo the parent's transaction.
_carried: list[object] = []


def carry(connection: object) -> None:
    """Keep a connection of the parent's, unused and never closed, as long as this child lives."""
    _carried.append(connection)


def check() -> None:
    """Refuse to open a ledger in a process that carries its parent's connections.

    Raises:
        Unavailable: it was forked inside a transaction.
    """
    if _process.carried:
        raise Unavailable("forked", "this process was forked inside a transaction; start it anew (spawn) instead")


def check_same(pid: int) -> None:
    """Refuse to end a transaction that another process began.

    Raises:
        Unavailable: this is a child of it.
    """
    if os.getpid() != pid:
        raise Unavailable("forked", "this transaction is the parent's, who goes on with it")


def register(idle: Idle) -> None:
    """Have its idle connections closed before this process forks."""
    with _process.lock:
        _process.known.add(idle)


@contextmanager
def inside() -> Iterator[None]:
    """Be inside a transaction: this process does not fork meanwhile, unless this very thread does it."""
    me, mark = threading.get_ident(), object()
    try:
        with _process.lock:
            _process.changed.wait_for(lambda: not _process.forking or me in _process.inside.values())
            _process.inside[mark] = me
        yield
    finally:
        try:
            _leave(mark)
        finally:
            _leave(mark)  # where a KeyboardInterrupt came in between: a mark that stays makes every child refuse


def _leave(mark: object) -> None:
    with _process.lock:
        _process.inside.pop(mark, None)  # gone already in a child that was forked in here
        _process.changed.notify_all()


def _before() -> None:
    me = threading.get_ident()
    _process.lock.acquire()
    _process.forking = True
    _process.changed.wait_for(lambda: set(_process.inside.values()) <= {me}, PATIENCE_S)
    for idle in _process.known:
        idle.close_idle()


def _after_in_parent() -> None:
    _process.forking = False
    _process.changed.notify_all()
    _process.lock.release()


def _after_in_child() -> None:
    _process.lock = threading.RLock()  # the old one may be waited for by threads that are not here
    _process.changed = threading.Condition(_process.lock)
    _process.carried = _process.carried or bool(_process.inside)
    _process.inside.clear()
    _process.forking = False


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
