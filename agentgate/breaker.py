"""When a tool that keeps failing is left alone for a while: a value of a gate's settings, which claims judge by."""

from dataclasses import dataclass
from datetime import timedelta

from agentgate.errors import Misuse

MOST = 100
LONGEST_PAUSE = timedelta(days=3_660)  # as every span that a spec may state


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Leave a tool of a tenant alone where ``failures`` of its last ``of`` actions failed, the newest among them.

    A wait, never an end: it makes things stricter only. Once ``pause`` is over, one action at a time tries; the first
    that succeeds closes the breaker.

    Args:
        failures: of how many actions the latest attempt failed, or is in doubt. Failures that say nothing of the
            downstream do not count: invalid_arguments, not_found, conflict, precondition_failed.
        of: how many actions are looked at, the newest; at most 100.
        pause: how long the tool is left alone, from the newest failure.

    Raises:
        Misuse: a number or a span out of bounds.
    """

    failures: int = 5
    of: int = 10
    pause: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if type(self.of) is not int or not 1 <= self.of <= MOST:
            raise Misuse(f"breaker.of: give a whole number from 1 to {MOST}")
        if type(self.failures) is not int or not 1 <= self.failures <= self.of:
            raise Misuse(f"breaker.failures: give a whole number from 1 to {self.of}, which is `of`")
        if type(self.pause) is not timedelta or not timedelta(0) < self.pause <= LONGEST_PAUSE:
            raise Misuse(f"breaker.pause: give a positive timedelta of at most {LONGEST_PAUSE.days} days")
