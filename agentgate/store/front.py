"""The front lock: one writer of a SQLite ledger at a time, queued here instead of in SQLite's busy handler.

SQLite's own waiting starves (databases: 1.1 s worst at eight threads); threads of one process queue at a lock,
processes at ``flock`` on a file beside the database. Every acquisition opens the file anew and unlocks it by name,
so a forked child neither releases what its parent holds nor keeps it.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentgate.clock import Clock
from agentgate.errors import Unavailable

_FIRST_PAUSE_S = 0.000_2
_LONGEST_PAUSE_S = 0.004


class FrontLock:
    """Queue at one ledger's door.

    Args:
        path: the lock file; None for a database in memory, which has no other process.
        clock: tells how long a wait lasted.
        patience_us: how long to wait before `Unavailable`.
        create: make the lock file where there is none; else nobody has ever written there, and nothing is locked.
    """

    def __init__(self, path: Path | None, *, clock: Clock, patience_us: int, create: bool = True) -> None:
        self._path = path
        self._create = create
        self._clock = clock
        self._patience_us = patience_us
        self._threads = threading.Lock()
        self._pid = os.getpid()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the ledger alone."""
        until_us = self._clock.monotonic_us() + self._patience_us
        threads = self._queue()
        if not threads.acquire(timeout=self._patience_us / 1e6):
            raise self._busy()
        try:
            with self._flock(fcntl.LOCK_EX, until_us):
                yield
        finally:
            threads.release()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the ledger beside other readers, so that no writer meets a reader at its commit."""
        if self._path is None:  # in memory there is one connection, and it takes turns
            with self.exclusive():
                yield
            return
        with self._flock(fcntl.LOCK_SH, self._clock.monotonic_us() + self._patience_us):
            yield

    def _queue(self) -> threading.Lock:
        if self._pid != os.getpid():  # forked: the parent's threads, and what they hold, are not here
            self._threads, self._pid = threading.Lock(), os.getpid()
        return self._threads

    def _busy(self) -> Unavailable:
        return Unavailable("locked", f"another writer held the ledger for {self._patience_us // 1_000} ms; try again")

    @contextmanager
    def _flock(self, kind: int, until_us: int) -> Iterator[None]:
        descriptor = None if self._path is None else self._open(self._path)
        if descriptor is None:
            yield
            return
        pid = os.getpid()
        try:
            self._wait(descriptor, kind, until_us)
            yield
        finally:
            if os.getpid() == pid:
                # Closing is not enough: a child that was forked meanwhile would hold the lock on.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _open(self, path: Path) -> int | None:
        opened = os.O_CREAT | os.O_RDWR if self._create else os.O_RDONLY
        try:
            return os.open(path, opened | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            if not self._create:
                return None
            raise Unavailable("lock_file", f"{path}: its folder is gone") from None
        except OSError as error:
            raise Unavailable("lock_file", f"{path}: {error.strerror}") from error

    def _wait(self, descriptor: int, kind: int, until_us: int) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.monotonic_us() >= until_us:
                    raise self._busy() from None
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE_S)
            else:
                return
