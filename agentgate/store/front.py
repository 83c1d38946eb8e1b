"""The front lock: one writer of a SQLite ledger at a time, queued here instead of in SQLite's busy handler.

SQLite's own waiting starves (databases: 1.1 s worst at eight threads); threads of one process queue at a lock,
processes at ``flock`` on a file beside the database. Every acquisition opens the file anew and unlocks it by name,
and a forked child closes what its parent had open, so it neither releases what its parent holds nor keeps it.
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
# Whoever has just been served has the processor and asks first: that is fast, and starves some. So nobody only asks
# for longer than this. With 16 processes the worst wait fell from 1.9 to 0.3 s, at the same number of calls a second.
_ASKING_US = 20_000

# Open lock files of this process, and only those.
_descriptors: set[int] = set()


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
        self._threads = threading.RLock()  # it knows who holds it, so that an interruption in between loses nothing
        self._pid = os.getpid()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the ledger alone."""
        until_us = self._clock.monotonic_us() + self._patience_us
        threads, me = self._queue(), threading.get_ident()
        try:
            if not threads.acquire(timeout=self._patience_us / 1e6):
                raise self._busy()
            with self._flock(fcntl.LOCK_EX, until_us):
                yield
        finally:
            try:
                _leave(threads)
            finally:
                _leave(threads)  # where a KeyboardInterrupt came in between: a lock that stays is nobody's for ever
            if threading.get_ident() != me:
                self._abandon(threads)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the ledger beside other readers, so that no writer meets a reader at its commit."""
        if self._path is None:  # in memory there is one connection, and it takes turns
            with self.exclusive():
                yield
            return
        with self._flock(fcntl.LOCK_SH, self._clock.monotonic_us() + self._patience_us):
            yield

    def _queue(self) -> "threading.RLock":
        if self._pid != os.getpid():  # forked: the parent's threads, and what they hold, are not here
            self._threads, self._pid = threading.RLock(), os.getpid()
        return self._threads

    def _abandon(self, threads: "threading.RLock") -> None:
        """Queue somewhere else, once what one thread has locked was left in another, which cannot unlock it.

        So it is where a web framework runs the two halves of a dependency in two threads of its pool. Between those who
        stand in two queues the lock on the file decides.
        """
        if self._threads is threads:
            self._threads = threading.RLock()

    def _busy(self) -> Unavailable:
        return Unavailable("locked", f"another writer held the ledger for {self._patience_us // 1_000} ms; try again")

    @contextmanager
    def _flock(self, kind: int, until_us: int) -> Iterator[None]:
        descriptor = None if self._path is None else self._open(self._path)
        if descriptor is None:
            yield
            return
        held = [descriptor]
        try:
            _descriptors.add(descriptor)
            self._wait(descriptor, kind, until_us)
            yield
        finally:
            try:
                _give_back(held)
            finally:
                _give_back(held)

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
        """Ask again and again for a moment, which costs nobody a change of process; then stand in the queue."""
        pause, queue_us = _FIRST_PAUSE_S, self._clock.monotonic_us() + _ASKING_US
        while not _had(descriptor, kind):
            now_us = self._clock.monotonic_us()
            if now_us >= until_us:
                raise self._busy()
            if now_us >= queue_us:
                if _Turn(descriptor, kind).comes(within_s=(until_us - now_us) / 1e6):
                    return
                raise self._busy()
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def _had(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leave(threads: "threading.RLock") -> None:
    """Let go of a lock as often as this thread holds it; not at all where it does not."""
    try:
        while True:
            threads.release()
    except RuntimeError:  # it is not ours, or not any more
        return


def _give_back(held: list[int]) -> None:
    """Unlock and close, once, however often it is called."""
    if held and held[0] in _descriptors:  # not so in a child that was forked in here
        # Closing is not enough: a child that was forked meanwhile may not have come to close it yet.
        fcntl.flock(held[0], fcntl.LOCK_UN)
        _close(held.pop())


def _close(descriptor: int) -> None:
    _descriptors.discard(descriptor)
    os.close(descriptor)


def _close_all() -> None:
    while _descriptors:
        os.close(_descriptors.pop())


class _Turn:
    """A place in the kernel's own queue, which is first come, first served.

    The kernel's wait has no time-out, so a thread does it, on a descriptor of its own for the same lock; whoever gives
    up leaves it there, and it gives back what it gets too late.
    """

    def __init__(self, descriptor: int, kind: int) -> None:
        self._kind = kind
        self._descriptor = os.dup(descriptor)
        _descriptors.add(self._descriptor)
        self._decided = threading.Lock()
        self._came = threading.Event()
        self._left = False

    def comes(self, *, within_s: float) -> bool:
        """Wait for the lock; return whether it was had."""
        try:
            threading.Thread(target=self._stand, name="agentgate-front", daemon=True).start()
        except RuntimeError:  # the system gives no further thread
            _close(self._descriptor)
            return False
        try:
            self._came.wait(within_s)
        finally:
            with self._decided:
                self._left = True
        return self._came.is_set()

    def _stand(self) -> None:
        fcntl.flock(self._descriptor, self._kind)
        with self._decided:
            if self._left:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            else:
                self._came.set()
        _close(self._descriptor)


os.register_at_fork(after_in_child=_close_all)
