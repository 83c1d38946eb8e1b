"""Ending a run: nothing of it starts any more, and what was waiting is refused in the same transaction."""

from agentgate.core.claiming import refuse
from agentgate.core.draft import Payload
from agentgate.core.rejecting import halt_where_rejected
from agentgate.errors import NotPossible
from agentgate.gate.ledger import Transaction
from agentgate.states import RunState, State, advance_run
from agentgate.store import actions


def refuse_waiting(transaction: Transaction) -> None:
    """Refuse whatever of a halted or closed run is READY or HELD (design §3)."""
    draft = transaction.draft
    if draft.run.state is RunState.OPEN:
        return
    reason = "run_halted" if draft.run.state is RunState.HALTED else "run_closed"
    stored = actions.waiting(transaction.connection, draft.run.id)
    for id_ in dict.fromkeys((*draft.files, *stored)):  # what was drafted may wait already, or not any more
        file = transaction.file(id_)
        if file.action.state in {State.HELD, State.READY}:
            refuse(draft, file, reason)


def end_where_rejected(transaction: Transaction) -> None:
    """Halt the run where people have said no as often as it may hear it; for whoever has drafted a ``rejected``."""
    halt_where_rejected(transaction.draft)
    refuse_waiting(transaction)


def close(transaction: Transaction, *, by: str, payloads: tuple[Payload, ...]) -> None:
    """Close a run that is open, or one that was halted: somebody has looked at it.

    Raises:
        NotPossible: it is closed already, or something of it executes.
    """
    run = transaction.draft.run
    if advance_run(run.state, "run_closed") is None:
        raise NotPossible(f"run {run.name}", "close it", run.state, "nothing is left to do")
    if run.counters.executing:
        executing, remedy = run.counters.executing, "wait until they have ended; a sweep takes over from dead workers"
        raise NotPossible(f"run {run.name}", "close it", f"executing {executing} actions", remedy)
    transaction.draft.add("run_closed", {"reason": "closed", "by": by}, payloads=payloads)
    refuse_waiting(transaction)
