"""Where a question to people hangs: the action that it is about."""

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Connection

from agentgate.store.schema import approvals
from agentgate.store.statements import Statement

_ACTION = Statement(select(approvals.c.action).where(approvals.c.id == bindparam("id")))


def action_of(connection: Connection, approval: str) -> str | None:
    """Return the id of the action that a question is about; None where there is no such question."""
    row = _ACTION.row(connection, id=approval)
    return None if row is None else str(row[0])
