"""Waiting with a deadline: for a turn at a resource, for a limit, a breaker or a switch, or for another worker's end.

Who waits looks into a snapshot and writes nothing; only where nothing is in the way any more is the action claimed. In
one process whoever ends wakes up those who wait; what ends elsewhere is noticed by looking again, ever more seldom.
"""

from datetime import timedelta
from typing import TypeAlias

from agentgate.clock import to_us
from agentgate.errors import Misuse
from agentgate.gate.executing import Executor
from agentgate.gate.ledger import Ledger
from agentgate.gate.retrying import try_again
from agentgate.gate.thinking import Mind
from agentgate.outcome import Outcome, Refused, Running
from agentgate.tools.recovery import LONGEST_SPAN

Span: TypeAlias = timedelta | float | None

_FIRST_PAUSE_US = 5_000
_LONGEST_PAUSE_US = 100_000


def check_wait(value: object, field: str = "wait", *, none: str = "to wait for nothing") -> int | None:
    """Return how long a caller waits, in microseconds; None where it says nothing.

    Raises:
        Misuse: no span.
    """
    if value is None:
        return None
    if type(value) is timedelta and timedelta(0) <= value <= LONGEST_SPAN:
        return to_us(value)
    if isinstance(value, int | float) and type(value) in (int, float) and 0 <= value <= LONGEST_SPAN.total_seconds():
        return int(value * 1e6)
    raise Misuse(f"{field}: give a timedelta or seconds from 0, or None {none}")


def see_through(
    ledger: Ledger, executor: Executor, mind: Mind, tenant: str, outcome: Outcome, *, until_us: int | None
) -> Outcome:
    """Go on with an action for its caller: between attempts, and until it gets its turn.

    Args:
        ledger: the record.
        executor: takes the steps.
        mind: what to ask the policy with.
        tenant: whose action it is.
        outcome: what came of it so far.
        until_us: on the monotonic clock: how long the caller waits. None: for no turn, and between the attempts of a
            retry as long as the tool's spec says.
    """
    while True:
        waits = until_us is not None and _waits(outcome)
        if waits and until_us is not None:
            outcome = _until_its_turn(ledger, executor, mind, tenant, outcome, until_us=until_us)
        tried = try_again(ledger, executor, mind, tenant, outcome, until_us=until_us)
        if tried is outcome or until_us is None:
            return tried
        outcome = tried


def _waits(outcome: Outcome) -> bool:
    return isinstance(outcome, Running) or (isinstance(outcome, Refused) and outcome.retryable)


def _until_its_turn(
    ledger: Ledger, executor: Executor, mind: Mind, tenant: str, outcome: Outcome, *, until_us: int
) -> Outcome:
    """Look again until the action gets its turn, or the time is over: then the last answer is handed back."""
    clock, pause_us = ledger.clock, _FIRST_PAUSE_US
    with ledger.turns.waiting() as wake:
        while _waits(outcome):
            left_us = until_us - clock.monotonic_us()
            if left_us <= 0:
                break
            clock.sleep(min(pause_us, left_us), wake=wake)
            pause_us = _FIRST_PAUSE_US if wake.is_set() else min(pause_us * 2, _LONGEST_PAUSE_US)
            wake.clear()  # before the look: what ends from here on wakes us up again
            if not executor.is_hindered(mind, tenant, outcome):
                outcome = executor.execute(mind, tenant, outcome.action, by=None)
    return outcome
