"""What a claim reads before it believes its rows: the action's events, and the keys of whoever answered."""

from agentgate.core.history import History, told
from agentgate.core.records import ActionFile
from agentgate.gate.ledger import Transaction
from agentgate.store import events


def read_history(transaction: Transaction, file: ActionFile) -> History:
    """Read what the chain says of an action, in one statement; its rows must agree with it.

    Args:
        transaction: open on the action's run, with nothing drafted yet.
        file: its rows, as they were read there.

    Raises:
        Damaged: they do not.
    """
    run = transaction.draft.run
    links, stored = events.naming(
        transaction.connection, run.id, file.action.id, start=file.action.proposed_n, last=run.n
    )
    return told(run, file, links, stored=stored)
