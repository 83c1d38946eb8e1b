"""The last call of a tool that people approved, found by index, whatever the ledger holds."""

from sqlalchemy import bindparam, exists, select
from sqlalchemy.engine import Connection

from agentgate.core.records import ActionRecord
from agentgate.store import actions as action_rows
from agentgate.store.schema import ASKED_ABOUT, actions, attempts
from agentgate.store.statements import Statement

MOST_LOOKED_AT = 16
"""Of the actions that were both asked about and tried, how many of the newest are looked at."""

# What was held and tried was nearly always approved; not so what a policy let through, and asked about at a retry.
_asked = (
    select(actions.c.id)
    .where(
        ASKED_ABOUT,
        actions.c.tenant == bindparam("tenant"),
        actions.c.namespace == bindparam("namespace"),
        actions.c.tool == bindparam("tool"),
        actions.c.principal == bindparam("principal"),
        actions.c.id != bindparam("but"),
    )
    .order_by(actions.c.id.desc())
    .limit(MOST_LOOKED_AT)
    .subquery()
)
_LAST = Statement(
    select(_asked.c.id)
    .where(exists().where(attempts.c.action == _asked.c.id, attempts.c.approval.is_not(None)))
    .order_by(_asked.c.id.desc())
    .limit(1)
)


def last(
    connection: Connection, *, tenant: str, namespace: str, tool: str, principal: str, but: str
) -> ActionRecord | None:
    """Read the newest action of a tool and a principal that was started under an approval.

    Args:
        connection: a snapshot.
        tenant: whose.
        namespace: the tool's server.
        tool: its name.
        principal: on whose behalf it was.
        but: an action that is not meant.
    """
    row = _LAST.row(connection, tenant=tenant, namespace=namespace, tool=tool, principal=principal, but=but)
    return None if row is None else action_rows.read(connection, row[0])
