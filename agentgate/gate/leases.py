"""Whether an attempt's lease is over, and taking its action over: decided in the transaction that records it.

A transactional effect may hold the ledger for a third of a lease, and renewals queue behind it. So whoever had to wait
for its own turn may meet leases that are over only because their renewals wait as well: it gives them one renewal
interval more (design §5).
"""

from sqlalchemy.engine import Connection

from agentgate.core.recording import take_over
from agentgate.core.records import ActionFile, AttemptRecord
from agentgate.errors import Damaged
from agentgate.event import decode
from agentgate.gate.ledger import Transaction
from agentgate.heartbeat import RENEWALS
from agentgate.lease import Holder
from agentgate.process import is_gone
from agentgate.states import State
from agentgate.store import events

# Less than this is what a transaction takes to begin where nobody is in the way.
UNHINDERED_US = 1_000


def gone(holder: str) -> bool:
    """Tell whether the process that a lease names is known to have ended."""
    named = Holder.parse(holder)
    return named is not None and is_gone(named)


def over_at_us(transaction: Transaction, attempt: AttemptRecord) -> int:
    """Return from when on this transaction may take an attempt's lease for over."""
    if transaction.waited_us < UNHINDERED_US or attempt.lease_until_us > transaction.draft.at_us:
        return attempt.lease_until_us
    return attempt.lease_until_us + _lease_us(transaction.connection, attempt) // RENEWALS


def settle(transaction: Transaction, file: ActionFile, *, crashed: bool, by: str) -> bool:
    """Take an executing action over where its worker is gone or its lease is over; return whether it was.

    Args:
        transaction: open on the action's run.
        file: the action, as read in it.
        crashed: whether the worker's process is known to have ended.
        by: this gate, as its leases name it.
    """
    attempt = file.current
    if file.action.state is not State.EXECUTING or attempt is None:
        return False
    # The heartbeat may have been faster than whoever looked: only what is still over is taken.
    if not crashed and over_at_us(transaction, attempt) > transaction.draft.at_us:
        return False
    take_over(transaction.draft, file, attempt, code="crashed" if crashed else "lease_lost", by=by)
    return True


def _lease_us(connection: Connection, attempt: AttemptRecord) -> int:
    """Return how long the lease was when it was taken: its worker renews it in parts of that."""
    link = events.link(connection, attempt.run, attempt.started_n)
    started = None if link is None else decode(link.encoded)
    until_us = None if started is None else started.body.get("lease_until_us")
    if started is None or type(until_us) is not int:
        raise Damaged(f"action {attempt.action}", f"event {attempt.started_n} did not start it")
    return until_us - started.at_us
