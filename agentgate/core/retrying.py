"""Whether an attempt that came to nothing is followed by another, and not before when.

Only where it is safe: a failure that is known not to have happened and says that trying again can help; a doubt only
where the tool's recovery allows it and the error was a passing one (design §5). Pure: who waits in between is the gate.
"""

from dataclasses import dataclass

from agentgate.clock import to_us
from agentgate.core.claiming import may_retry, may_run_again
from agentgate.core.records import ActionFile, ActionRecord, RunRecord
from agentgate.event import Event
from agentgate.observation import Error
from agentgate.states import RunState, State
from agentgate.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the record says of how an action's latest attempt came to nothing.

    Args:
        at_us: when.
        passing: whether trying again can help: the tool said so, or time ran out.
        retry_at_us: before when the tool asked not to be tried again.
    """

    at_us: int
    passing: bool
    retry_at_us: int | None = None


def ending(event: Event, told: Error | None) -> Ending | None:
    """Read how an attempt ended from the event that says so; None where the event says something else.

    Args:
        event: the action's last state event.
        told: the error in the observation beside it.
    """
    if event.type not in {"failed", "in_doubt"}:
        return None
    retry_at = event.body.get("retry_at_us")
    said = event.body.get("retryable", event.body["code"] == "timeout" or (told is not None and told.retryable))
    return Ending(at_us=event.at_us, passing=bool(said), retry_at_us=retry_at if type(retry_at) is int else None)


def is_used_up(spec: ToolSpec, action: ActionRecord) -> bool:
    """Tell whether a tool that says how often has been tried so often, whoever asked for the attempts."""
    return 1 < spec.retry.attempts <= action.attempts


def comes_again(spec: ToolSpec, run: RunRecord, file: ActionFile, ended: Ending | None, *, at_us: int) -> bool:
    """Tell whether the tool's own retry goes on from here.

    Args:
        spec: whose ``retry`` says how often and how long.
        run: its budget and its state.
        file: FAILED or UNKNOWN.
        ended: how the latest attempt came to nothing.
        at_us: ledger time.
    """
    action = file.action
    if ended is None or not ended.passing or action.attempts >= spec.retry.attempts:
        return False
    if run.state is not RunState.OPEN or not may_retry(run):
        return False
    question = file.question
    if question is not None and question.state == "granted" and (question.until_us or 0) <= at_us:
        return False  # the grant that was given back is over: whoever wants another attempt asks for another one
    if action.state is State.UNKNOWN and not may_run_again(spec, action, at_us):
        return False
    return action.state in {State.FAILED, State.UNKNOWN} and at_us < _last_us(spec, action)


def start_us(spec: ToolSpec, action: ActionRecord, ended: Ending, *, pause_us: int) -> int | None:
    """Return when the next attempt may begin, None where that is too late for the tool's ``within``."""
    at_us = max(ended.at_us + pause_us, ended.retry_at_us or 0)
    return at_us if at_us < _last_us(spec, action) else None


def _last_us(spec: ToolSpec, action: ActionRecord) -> int:
    assert action.first_started_us is not None  # it was attempted
    return action.first_started_us + to_us(spec.retry.within)
