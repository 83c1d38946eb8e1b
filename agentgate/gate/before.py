"""What was there before a question: the last approved call of the same tool, and attempts that may have happened.

Read in a short snapshot before the transaction that asks, and only where people are asked.
"""

from agentgate.core.presenting.masking import mask, mask_more
from agentgate.core.presenting.shown import Doubt, LateAnswer, Previous
from agentgate.core.records import ActionFile, ActionRecord, AttemptRecord
from agentgate.errors import Damaged, NotCanonical, Sealed
from agentgate.event import Event
from agentgate.gate.answers import Reader
from agentgate.gate.ledger import Ledger
from agentgate.store import approved
from agentgate.tools.spec import ToolSpec


def last_approved(ledger: Ledger, spec: ToolSpec, *, tenant: str, principal: str, but: str) -> Previous | None:
    """Read the last call of a tool that people approved and that was started, of this principal.

    Not of another one: whoever proposes is handed what is shown, and would read the other's arguments there.

    Args:
        ledger: the record.
        spec: the tool's, as it is now: it says what is not shown.
        tenant: whose.
        principal: on whose behalf.
        but: the action that people are asked about.
    """
    with ledger.database.read() as connection:
        found = approved.last(
            connection, tenant=tenant, namespace=spec.namespace, tool=spec.name, principal=principal, but=but
        )
        if found is None:
            return None
        return _previous(Reader(connection=connection, sealing=ledger.sealing), found, spec, ledger=ledger.id)


def _previous(reader: Reader, action: ActionRecord, spec: ToolSpec, *, ledger: str) -> Previous:
    """Read what it ran with; what cannot be had, or is not what was recorded, keeps nobody from asking."""
    try:
        arguments, sent_under = reader.proposed(action, ledger=ledger)["arguments"].value(), reader.spec(action)
    except Sealed:
        return Previous(action=action.id, arguments=None, why="sealed")
    except (Damaged, NotCanonical):  # `verify` finds what; an approver is told not to rely on it
        return Previous(action=action.id, arguments=None, why="gone" if _is_gone(reader, action) else "damaged")
    if sent_under is None:
        return Previous(action=action.id, arguments=None, why="damaged")
    # What was sensitive then was sealed, and must not come out because the tool is declared otherwise now.
    return Previous(action=action.id, arguments=mask_more(mask(sent_under, arguments), spec))


def _is_gone(reader: Reader, action: ActionRecord) -> bool:
    """Tell whether the event that proposed an action is there, and its arguments are not."""
    try:
        event = reader.event(action.run, action.proposed_n)
        its_own = event.type == "proposed" and event.action == action.id
        return its_own and reader.kept(action.run, action.proposed_n, "arguments") is None
    except (Damaged, Sealed):
        return False


def doubts_of(reader: Reader, file: ActionFile) -> tuple[Doubt, ...]:
    """Read the attempts of an action that may have happened, in order.

    Raises:
        Damaged: an event of one of them is missing or was changed.
    """
    unresolved = (attempt for _, attempt in sorted(file.attempts.items()) if attempt.unresolved)
    return tuple(_doubt(reader, attempt) for attempt in unresolved)


def _doubt(reader: Reader, attempt: AttemptRecord) -> Doubt:
    ended = None if attempt.ended_n is None else reader.event(attempt.run, attempt.ended_n)
    code = None if ended is None else ended.body.get("code")
    return Doubt(
        attempt=attempt.number,
        started_at_us=attempt.started_at_us,
        code="unknown_outcome" if code is None else str(code),
        late=() if attempt.late_n is None else (_late(reader.event(attempt.run, attempt.late_n)),),
    )


def _late(event: Event) -> LateAnswer:
    code = event.body.get("code")
    return LateAnswer(at_us=event.at_us, ok=event.body["status"] == "ok", code=None if code is None else str(code))
