"""Noticing that a run goes in circles: the same request that comes to the same outcome again and again.

A warning, one more, and then the run is halted: the loop is told in time, and a loop that does not listen ends.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agentgate.core.claiming import halt_where_over
from agentgate.core.recording import Ended, Kept
from agentgate.core.records import ActionRecord
from agentgate.gate.closing import refuse_waiting
from agentgate.gate.ledger import Transaction
from agentgate.observation import Observation
from agentgate.store import actions

NOTE = "no_progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An end as it is recorded, with the note where it is one too many.

    Args:
        ended: the end.
        result: its observation's payload.
        halts: whether it is the last that the run may come to.
    """

    ended: Ended
    result: Kept | None
    halts: bool = False


def turn(
    transaction: Transaction,
    action: ActionRecord,
    ended: Ended,
    result: Kept | None,
    *,
    keep: Callable[[Observation], Kept],
) -> Turn:
    """Tell whether an end brings its run anywhere, as far as the run bounds that.

    Args:
        transaction: the one that will record it.
        action: the action that it is of.
        ended: the end.
        result: its observation's payload, with the fingerprint of the outcome.
        keep: makes the payload again, for the observation with the note.
    """
    most = transaction.draft.run.limits.get("no_progress")
    if most is None or result is None or result.outcome is None or ended.observation is None:
        return Turn(ended=ended, result=result)
    # The action counts by what it comes to now, whatever an earlier attempt of it came to.
    alike = 1 + actions.alike(transaction.connection, action.run, outcome=result.outcome, but=action.id)
    if alike < most:
        return Turn(ended=ended, result=result)
    noted = replace(ended.observation, notes=(*ended.observation.notes, NOTE))
    return Turn(ended=replace(ended, observation=noted), result=keep(noted), halts=alike > most)


def stop(transaction: Transaction) -> None:
    """Halt the run that went in circles, and refuse whatever waits in it."""
    halt_where_over(transaction.draft, NOTE)
    refuse_waiting(transaction)
