"""Trying again: what came to nothing is begun anew as the tool's spec says, counted over processes in the record.

A call sleeps between attempts and holds nothing meanwhile: the action rests where its last attempt left it. So a
process that dies in between loses nothing, and whoever comes back with the same key goes on from the same count. What
decides whether there is another attempt is `agentgate.core.retrying`; tenacity drives the loop and doubles the pauses.
"""

from collections.abc import Callable

from agentgate.clock import to_us
from agentgate.core.retrying import Ending, start_us
from agentgate.gate.executing import Executor, Trial
from agentgate.gate.ledger import Ledger
from agentgate.gate.thinking import Mind
from agentgate.outcome import Failed, Outcome, Refused, Unknown

# A retry that is only in somebody's way for a moment is worth another pause; a pause or a block is not.
_BRIEF = frozenset({"busy", "limit_parallel"})
_LEAST_PAUSE_US = 100_000  # between two looks at what is in its way, however short the tool's own pauses are
_JITTER = 2**32


def try_again(
    ledger: Ledger, executor: Executor, mind: Mind, tenant: str, outcome: Outcome, *, until_us: int | None
) -> Outcome:
    """Try an action again until it succeeds, or until its tool's spec, its run or its caller has had enough.

    Args:
        ledger: the record, whose clock is slept by.
        executor: begins the attempts.
        mind: what to ask the policy with.
        tenant: whose action it is.
        outcome: what came of it so far; returned where it is not tried again.
        until_us: on the monotonic clock; no sleep ends after it. None where the caller has time.
    """
    if not isinstance(outcome, Failed | Unknown) or executor.trial(mind, tenant, outcome.action) is None:
        return outcome
    from tenacity import RetryCallState, Retrying, stop_never, wait_exponential

    action, clock = outcome.action, ledger.clock
    stands, sleeps_us, tried = outcome, 0, 0  # what the record says of the action; how long to leave it alone
    first: list[Outcome] = [outcome]

    def attempt() -> Outcome:
        return first.pop() if first else executor.execute(mind, tenant, action, by="retry")

    def goes_on(state: RetryCallState) -> bool:
        nonlocal stands, sleeps_us, tried
        if state.outcome is None or state.outcome.failed:
            return False  # the ledger's own errors, and an interruption, go to the caller
        seen = state.outcome.result()
        found = executor.trial(mind, tenant, action)
        hindered = isinstance(seen, Refused) and seen.retryable and found is not None
        if not hindered:
            stands = seen
        if found is None or not isinstance(stands, Failed | Unknown):
            return False
        if hindered and until_us is None and seen.reason not in _BRIEF:
            return False
        if not hindered and found.file.action.attempts == tried:
            return False  # something kept it from being begun, and is on record
        tried = found.file.action.attempts
        retry = found.spec.retry
        state.attempt_number = found.file.action.attempts  # counted by the record, not by this loop
        backoff = wait_exponential(multiplier=to_us(retry.wait) / 1e6, max=to_us(retry.longest_wait) / 1e6)
        since_us = found.now_us if hindered else None
        pause_us = max(_jittered(backoff(state), clock.random), _LEAST_PAUSE_US if hindered else 0)
        planned = _sleep_us(found, pause_us, since_us=since_us)
        if planned is None or (until_us is not None and clock.monotonic_us() + planned > until_us):
            return False
        sleeps_us = planned
        return True

    tries = Retrying(
        retry=goes_on, stop=stop_never, wait=lambda _state: sleeps_us / 1e6, sleep=lambda _s: clock.sleep(sleeps_us)
    )
    tries(attempt)
    return stands  # a retry that may not begin is no refusal of the action, which stands where it stood


def _jittered(pause_s: float, random: Callable[[int], bytes]) -> int:
    """Draw a pause between half of it and the whole, so that those who failed together do not come back together."""
    share = int.from_bytes(random(4), "big") / _JITTER
    return int(pause_s * 1e6 * (1 + share) / 2)


def _sleep_us(found: Trial, pause_us: int, *, since_us: int | None) -> int | None:
    """Return how long to sleep before the next attempt; None where it would begin too late.

    Args:
        found: the action.
        pause_us: between two attempts.
        since_us: from when on, where it is not the last attempt's end.
    """
    ended = found.ended if since_us is None else Ending(at_us=since_us, passing=True)
    begin_us = start_us(found.spec, found.file.action, ended, pause_us=pause_us)
    if begin_us is None:
        return None
    # Never longer than from the attempt's end, whatever a clock that was set back meanwhile says.
    return max(0, min(begin_us - found.now_us, begin_us - ended.at_us))
