"""Whether a tool that keeps failing is left alone, judged by what came of its last actions."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentgate.breaker import Breaker
from agentgate.clock import to_us
from agentgate.core.claiming import Wait
from agentgate.event import Event

# A failure for one of these shows that the arguments or the state of things were wrong, not the downstream.
SAYS_NOTHING = frozenset({"invalid_arguments", "not_found", "conflict", "precondition_failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The latest attempt of one action.

    Args:
        action: the action's id.
        fence: the attempt's; the higher, the later it began.
        holder: who runs it.
        lease_until_us: until when.
        ended: the event that ended it; None while it runs.
    """

    action: str
    fence: int
    holder: str
    lease_until_us: int
    ended: Event | None


def broken(breaker: Breaker, tried: Sequence[Tried], *, trying: str | None, at_us: int) -> Wait | None:
    """Return the wait that a breaker imposes, or None.

    Open while the newest outcome is a failure and enough of the last ones are; after its pause one action at a time.

    Args:
        breaker: how many of how many, and how long.
        tried: the tool's last actions.
        trying: one of them that executes now, under a worker that lives.
        at_us: ledger time.
    """
    newest_first = sorted(tried, key=lambda one: one.fence, reverse=True)
    said = [one.ended for one in newest_first if one.ended is not None and _speaks(one.ended)]
    if not said or said[0].type == "succeeded" or sum(event.type != "succeeded" for event in said) < breaker.failures:
        return None
    if at_us < said[0].at_us + to_us(breaker.pause):
        return Wait(reason="breaker")
    return None if trying is None else Wait(reason="breaker", blocking=trying)


def _speaks(event: Event) -> bool:
    return event.type != "failed" or event.body["code"] not in SAYS_NOTHING
