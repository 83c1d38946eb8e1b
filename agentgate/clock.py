"""The only place that asks for time, ids or chance.

Everything else is handed a `Clock`, so a test can stop time and repeat every id. Times are integer
microseconds UTC; a monotonic reading is for deadlines inside one process and is never stored.
"""

import secrets
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from agentgate.errors import Damaged

MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Time, ids and randomness, as one seam."""

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC."""
        ...

    def monotonic_us(self) -> int:
        """Return a clock of this process that never steps back, in microseconds."""
        ...

    def random(self, size: int) -> bytes:
        """Return ``size`` unpredictable bytes."""
        ...

    def sleep(self, span_us: int, *, wake: threading.Event | None = None) -> None:
        """Let so many microseconds pass, or fewer where ``wake`` is set meanwhile."""
        ...


class SystemClock:
    """The host's clocks and the operating system's randomness."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1_000

    def random(self, size: int) -> bytes:
        return secrets.token_bytes(size)

    def sleep(self, span_us: int, *, wake: threading.Event | None = None) -> None:
        span_s = min(max(span_us, 0) / 1e6, threading.TIMEOUT_MAX)
        if wake is None:
            time.sleep(span_s)
        else:
            wake.wait(span_s)


def new_id(clock: Clock) -> str:
    """Make a UUIDv7 as 36 characters of lower-case text.

    Source: RFC 9562 §5.7; the 12 bits after the version hold the sub-millisecond fraction (§6.2, method 3),
    so ids made one after another in a process sort in that order.
    """
    at_us = clock.now_us()
    fraction = (at_us % 1_000) * 4_096 // 1_000
    noise = int.from_bytes(clock.random(8), "big") & (2**62 - 1)
    number = (at_us // 1_000 & (2**48 - 1)) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | noise
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def to_us(span: timedelta) -> int:
    """Turn a span into whole microseconds."""
    return span // MICROSECOND


def to_datetime(at_us: int) -> datetime:
    """Turn stored microseconds into an aware UTC datetime.

    Raises:
        Damaged: no calendar has that time; what the gate stores always has one.
    """
    try:
        return datetime.fromtimestamp(at_us // 1_000_000, UTC) + timedelta(microseconds=at_us % 1_000_000)
    except (ValueError, OverflowError, OSError) as error:
        raise Damaged("time", f"{at_us} microseconds are no date") from error
