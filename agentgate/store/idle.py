"""Idle connections, kept for the next transaction without a lock.

SQLAlchemy's own queue holds its mutex in Python code: an interruption (Ctrl-C) at the wrong moment leaves it taken,
and every later transaction of the process waits for ever. A deque's ends are taken and given in one step.
"""

from collections import deque
from typing import Any, Self

from sqlalchemy.pool import NullPool
from sqlalchemy.pool.base import ConnectionPoolEntry


class Idle(NullPool):
    """A pool of as many connections as there were transactions at once."""

    __module__ = NullPool.__module__  # what a pool logs is SQLAlchemy's, and no line of this package's logger

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._idle: deque[ConnectionPoolEntry] = deque()

    def _do_get(self) -> ConnectionPoolEntry:
        try:
            return self._idle.pop()
        except IndexError:
            return self._create_connection()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        self._idle.append(record)

    def dispose(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()

    def recreate(self) -> Self:
        """Go on as the same pool: emptied, it holds nothing of what it was."""
        return self
