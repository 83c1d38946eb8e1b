"""Rows that stand in an action's way: switches that pause, locks on resources, and the same request a while ago."""

from sqlalchemy import and_, bindparam, delete, literal_column, or_, select, union_all
from sqlalchemy.engine import Connection

from agentgate.core.records import TAKEN, ActionRecord
from agentgate.states import State
from agentgate.store.schema import DEDUPED, IN_DOUBT, OPEN, actions, attempts, locks, switches
from agentgate.store.statements import Row, Statement, insert_all

_PAUSED = Statement(
    select(switches.c.kind)
    .where(
        switches.c.paused == 1,
        or_(
            switches.c.kind == "all",
            and_(switches.c.kind == "tenant", switches.c.tenant == bindparam("tenant")),
            and_(
                switches.c.kind == "tool",
                switches.c.tenant.in_(["", bindparam("tenant")]),
                switches.c.namespace == bindparam("namespace"),
                switches.c.tool == bindparam("tool"),
            ),
        ),
    )
    .limit(1)
)
_LOCK = Statement(
    select(locks.c.action, actions.c.state)
    .join(actions, actions.c.id == locks.c.action)
    .where(locks.c.tenant == bindparam("tenant"), locks.c.resource == bindparam("resource"))
)
_DOUBTED = Statement(
    select(actions.c.id, actions.c.run, actions.c.fence, actions.c.spec)
    .where(
        IN_DOUBT,
        actions.c.tenant == bindparam("tenant"),
        actions.c.resource == bindparam("resource"),
        actions.c.id != bindparam("but"),
        actions.c.state != State.ABANDONED.value,
    )
    .order_by(actions.c.id)
)
_ALIKE = and_(
    # Not the bare column: SQLite would go through every action of the tenant to meet the few attempts that are open.
    actions.c.tenant + "" == bindparam("tenant"),
    actions.c.resource.is_(None),
    actions.c.id != bindparam("but"),
    or_(
        actions.c.request == bindparam("request"),
        and_(
            actions.c.run == bindparam("run"),
            actions.c.namespace == bindparam("namespace"),
            actions.c.tool == bindparam("tool"),
        ),
    ),
)
_UNANSWERED = Statement(
    union_all(
        select(actions.c.id, literal_column("NULL"), literal_column("NULL")).where(
            IN_DOUBT, actions.c.tenant == bindparam("tenant"), _ALIKE, actions.c.state != State.ABANDONED.value
        ),
        select(actions.c.id, attempts.c.holder, attempts.c.lease_until_us)
        .join(actions, actions.c.id == attempts.c.action)
        .where(OPEN, _ALIKE),
    )
)
_EARLIER = Statement(
    select(actions.c.id)
    .where(
        DEDUPED,
        actions.c.tenant == bindparam("tenant"),
        actions.c.request == bindparam("request"),
        actions.c.id != bindparam("but"),
        actions.c.dedupe_until_us > bindparam("at_us"),
        # What is known not to have happened is no earlier one; an answer that came late may say otherwise, rightly.
        or_(*(actions.c.state == state.value for state in sorted(TAKEN)), IN_DOUBT, actions.c.reason == "happened"),
    )
    .order_by(actions.c.fence.desc())
    .limit(1)
)
_RELEASE = Statement(
    delete(locks).where(
        locks.c.tenant == bindparam("tenant"),
        locks.c.resource == bindparam("resource"),
        locks.c.action == bindparam("action"),
    )
)


def paused(connection: Connection, *, tenant: str, namespace: str, tool: str) -> bool:
    """Tell whether a switch stops this tool for this tenant now."""
    return _PAUSED.row(connection, tenant=tenant, namespace=namespace, tool=tool) is not None


def holder(connection: Connection, *, tenant: str, resource: bytes) -> tuple[str, bool] | None:
    """Read which action holds a resource, and whether its outcome is unknown."""
    row = _LOCK.row(connection, tenant=tenant, resource=resource)
    return None if row is None else (row[0], row[1] != State.EXECUTING)


def take(connection: Connection, *, tenant: str, resource: bytes, run: str, action: str, fence: int) -> None:
    """Lock a resource for an attempt; a lock of an earlier attempt of the same action passes on."""
    release(connection, tenant=tenant, resource=resource, action=action)
    row = {"tenant": tenant, "resource": resource, "run": run, "action": action, "fence": fence}
    insert_all(connection, locks, [row])


def release(connection: Connection, *, tenant: str, resource: bytes, action: str) -> None:
    """Give a resource back, where this action holds it."""
    _RELEASE.write(connection, {"tenant": tenant, "resource": resource, "action": action})


def doubted(connection: Connection, *, tenant: str, resource: bytes, but: str) -> list[Row]:
    """Read the actions that may still be at work on a resource, ``but`` one: (id, run, fence, spec)."""
    return _DOUBTED.rows(connection, tenant=tenant, resource=resource, but=but)


def unanswered(connection: Connection, action: ActionRecord) -> list[Row]:
    """Read the actions without a resource that this one may repeat: (id, holder, lease_until_us).

    The same request anywhere in the tenant, or the same tool in the run; those in doubt have no holder, those at
    work have.
    """
    return _UNANSWERED.rows(
        connection,
        tenant=action.tenant,
        but=action.id,
        request=action.request,
        run=action.run,
        namespace=action.namespace,
        tool=action.tool,
    )


def earlier(connection: Connection, action: ActionRecord, *, at_us: int) -> str | None:
    """Read which action has made the same request within its tool's window; None where none has."""
    row = _EARLIER.row(connection, tenant=action.tenant, request=action.request, but=action.id, at_us=at_us)
    return None if row is None else str(row[0])
