"""What came of the last actions of a tool, in one statement by index."""

from sqlalchemy import and_, bindparam, select
from sqlalchemy.engine import Connection

from agentgate.core.breaking import Tried
from agentgate.core.records import ActionRecord
from agentgate.errors import Damaged
from agentgate.event import decode
from agentgate.store.schema import TRIED, actions, attempts, events
from agentgate.store.statements import Statement

_LAST = Statement(
    select(
        actions.c.id, attempts.c.fence, attempts.c.holder, attempts.c.lease_until_us, attempts.c.state, events.c.event
    )
    .join(attempts, attempts.c.fence == actions.c.fence)
    .outerjoin(events, and_(events.c.run == attempts.c.run, events.c.n == attempts.c.ended_n))
    .where(
        TRIED,
        actions.c.tenant == bindparam("tenant"),
        actions.c.namespace == bindparam("namespace"),
        actions.c.tool == bindparam("tool"),
    )
    .order_by(actions.c.id.desc())
    .limit(bindparam("most"))
)


def last(connection: Connection, action: ActionRecord, *, most: int) -> list[Tried]:
    """Read the latest attempts of the tool's last actions, in the order in which they were proposed, newest first.

    Raises:
        Damaged: an attempt has ended, and no event says so.
    """
    found = _LAST.rows(connection, tenant=action.tenant, namespace=action.namespace, tool=action.tool, most=most)
    tried = []
    for id_, fence, holder, lease_until_us, state, encoded in found:
        if state != "open" and encoded is None:
            raise Damaged(f"action {id_}", "the event that ended its attempt is missing")
        ended = None if state == "open" else decode(encoded)
        tried.append(Tried(action=id_, fence=fence, holder=holder, lease_until_us=lease_until_us, ended=ended))
    return tried
