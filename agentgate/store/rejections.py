"""What people have said no to: looked up only where they would be asked."""

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Connection

from agentgate.store.schema import REJECTED, actions
from agentgate.store.statements import Statement

_SAME_REQUEST = Statement(
    select(actions.c.id)
    .where(REJECTED, actions.c.run == bindparam("run"), actions.c.request == bindparam("request"))
    .limit(1)
)


def was_rejected(connection: Connection, run: str, request: bytes | None) -> bool:
    """Tell whether people have said no, in this run, to an action of this request; without a fingerprint nobody can."""
    return request is not None and _SAME_REQUEST.row(connection, run=run, request=request) is not None
