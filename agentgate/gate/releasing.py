"""Giving a resource back, and keeping it from others while nobody knows: the lock row is the block (design §5)."""

from agentgate.core.records import ActionRecord
from agentgate.gate.ledger import Transaction
from agentgate.states import State
from agentgate.store import events, locks
from agentgate.tools.spec import from_document


def release(transaction: Transaction, action: str, *, parallel: bool) -> None:
    """Give the action's resource back, unless it may still be at work there."""
    record = transaction.draft.file(action).action
    if record.resource is None or parallel or _blocks(record):
        return
    connection, tenant, resource = transaction.connection, record.tenant, record.resource
    locks.release(connection, tenant=tenant, resource=resource, action=action)
    # Who came to be in doubt while this one was at work gets its block now (design §5: the lock row is the block).
    for id_, its_run, fence, spec in locks.doubted(connection, tenant=tenant, resource=resource, but=action):
        stored = events.document(connection, spec)
        if stored is not None and not from_document(stored[1]).parallel:
            # Where it is another's all the while, that one passes it on at its own end.
            if locks.holder(connection, tenant=tenant, resource=resource) is None:
                locks.take(connection, tenant=tenant, resource=resource, run=its_run, action=id_, fence=fence)
            return


def _blocks(record: ActionRecord) -> bool:
    if record.state is State.ABANDONED:  # nobody will know, and nobody waits for it any more (design §5)
        return False
    return record.state in {State.UNKNOWN, State.EXECUTING} or record.unresolved > 0


def block_again(transaction: Transaction, action: str, *, parallel: bool) -> None:
    """Lock the resource of an action that a late answer put in doubt, unless somebody is at work there already."""
    record = transaction.draft.file(action).action
    if record.resource is None or parallel or not record.unresolved or record.state is State.ABANDONED:
        return
    connection, tenant, resource, fence = transaction.connection, record.tenant, record.resource, record.fence
    if locks.holder(connection, tenant=tenant, resource=resource) is None:
        assert fence is not None  # it was attempted, or nothing could come late
        locks.take(connection, tenant=tenant, resource=resource, run=record.run, action=action, fence=fence)
