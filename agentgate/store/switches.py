"""Rows of the kill switch, one per scope, and what executes within a scope. A claim reads them by `locks.paused`."""

from sqlalchemy import ColumnElement, and_, bindparam, delete, literal_column, or_, select
from sqlalchemy.engine import Connection

from agentgate.store.schema import OPEN, actions, attempts, switches
from agentgate.store.statements import Row, Statement, insert_all

Place = tuple[str, str, str, str]

_HERE = and_(
    switches.c.kind == bindparam("kind"),
    switches.c.tenant == bindparam("tenant"),
    switches.c.namespace == bindparam("namespace"),
    switches.c.tool == bindparam("tool"),
)
_STANDS = Statement(select(switches.c.paused, switches.c.n).where(_HERE))
_CLEAR = Statement(delete(switches).where(_HERE))
_PAUSED = Statement(
    select(switches.c.kind, switches.c.tenant, switches.c.namespace, switches.c.tool, switches.c.n)
    .where(switches.c.paused == 1)
    .order_by(switches.c.n)
)
_NONE: ColumnElement[str] = literal_column("''")
_EXECUTING = Statement(
    select(
        actions.c.id, actions.c.run, actions.c.tenant, actions.c.namespace, actions.c.tool, attempts.c.lease_until_us
    )
    .select_from(attempts.join(actions, actions.c.id == attempts.c.action))
    .where(
        OPEN,
        or_(bindparam("tenant") == _NONE, actions.c.tenant == bindparam("tenant")),
        or_(
            bindparam("tool") == _NONE,
            and_(actions.c.namespace == bindparam("namespace"), actions.c.tool == bindparam("tool")),
        ),
    )
    .order_by(attempts.c.fence)
)


def stands(connection: Connection, place: Place) -> tuple[bool, int] | None:
    """Read a scope's switch: whether it pauses, and the event that said so; None where it was never thrown."""
    row = _STANDS.row(connection, **_named(place))
    return None if row is None else (bool(row[0]), row[1])


def throw(connection: Connection, place: Place, *, paused: bool, n: int) -> None:
    """Write a scope's switch as event ``n`` says."""
    _CLEAR.write(connection, _named(place))
    insert_all(connection, switches, [_named(place) | {"paused": int(paused), "n": n}])


def paused(connection: Connection) -> list[tuple[Place, int]]:
    """Read every scope that is paused, in the order of the events that said so, with these."""
    return [((kind, tenant, namespace, tool), n) for kind, tenant, namespace, tool, n in _PAUSED.rows(connection)]


def executing(connection: Connection, place: Place) -> list[Row]:
    """Read what executes within a scope, oldest claim first: (action, run, tenant, namespace, tool, lease_until_us)."""
    _, tenant, namespace, tool = place
    return _EXECUTING.rows(connection, tenant=tenant, namespace=namespace, tool=tool)


def _named(place: Place) -> dict[str, str | int]:
    return dict(zip(("kind", "tenant", "namespace", "tool"), place, strict=True))
