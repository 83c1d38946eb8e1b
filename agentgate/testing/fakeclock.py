"""A clock that goes where it is told, and a chance that repeats itself."""

import hashlib
import os
import threading
from datetime import UTC, datetime, timedelta

from agentgate.clock import to_us
from agentgate.errors import Misuse

START = datetime(2030, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FakeClock:
    """A `Clock` for tests: hand it to `Gate.open` or `memory_gate`.

    Two clocks made alike give the same times, ids and salts in the same order of asking. Threads may share one; in a
    forked child its chance goes on another way, so that two processes do not draw the same id.

    Args:
        start: what it shows at first; an aware datetime.
        tick: how far each reading of the wall clock moves it, so that ids made one after another sort in that
            order; ``timedelta(0)`` makes it stand still.
        seed: another seed gives other ids, salts and keys.

    Raises:
        Misuse: ``start`` is naive, or ``tick`` is negative.
    """

    def __init__(self, start: datetime = START, *, tick: timedelta = TICK, seed: int = 0) -> None:
        if start.tzinfo is None:
            raise Misuse("start: a naive datetime names no moment; give one with tzinfo=UTC")
        if tick < timedelta(0):
            raise Misuse("tick: time does not go back by itself; give a timedelta from 0, and jump() where it should")
        self._now_us = to_us(start - _EPOCH)
        self._monotonic_us = 0
        self._tick_us = to_us(tick)
        self._seed = str(seed)
        self._pid = os.getpid()
        self._drawn = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC, and tick."""
        with self._lock:
            self._now_us += self._tick_us
            return self._now_us

    def monotonic_us(self) -> int:
        """Return how far the clock was advanced, in microseconds; jumps and ticks leave it alone."""
        with self._lock:
            return self._monotonic_us

    def random(self, size: int) -> bytes:
        """Return the next ``size`` bytes of the seed's sequence."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._seed += f" child {self._pid}"
            self._drawn += 1
            return hashlib.shake_256(f"agentgate.testing {self._seed} {self._drawn}".encode()).digest(size)

    def sleep(self, span_us: int, *, wake: threading.Event | None = None) -> None:
        """Let the time pass at once: who waits by this clock costs a test nothing."""
        if wake is None or not wake.is_set():
            self.advance(timedelta(microseconds=max(span_us, 0)))

    def advance(self, span: timedelta) -> None:
        """Let time pass: the wall clock and the monotonic one go on together.

        Raises:
            Misuse: a negative span; `jump` sets a wall clock back.
        """
        if span < timedelta(0):
            raise Misuse("span: time does not pass backwards; jump() sets the wall clock back")
        with self._lock:
            self._now_us += to_us(span)
            self._monotonic_us += to_us(span)

    def jump(self, span: timedelta) -> None:
        """Set the wall clock on or back, as an operator or a time server may; the monotonic clock goes on."""
        with self._lock:
            self._now_us += to_us(span)
