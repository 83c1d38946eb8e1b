"""Rows that no chain leads to: whole tables in key order, a short page at a time, for verification.

A page begins at a key, that key included, and the next one at `after` the last: so no key is too small to be seen.
"""

from typing import Any, Final

from sqlalchemy import Column, bindparam, exists, func, or_, select
from sqlalchemy.engine import Connection

from agentgate.store.schema import (
    actions,
    approvals,
    attempts,
    budgets,
    documents,
    events,
    keys,
    locks,
    payloads,
    policies,
    revoked_keys,
    runs,
    standing,
    switches,
    tenants,
    votes,
)
from agentgate.store.statements import Row, Statement

PAGE: Final = 500
FIRST: Final = ""
_DOCUMENTS_PAGE = 50
_MOST_SWITCHES = 10_000
_TOTAL_PAGE = 10_000


def after(key: str) -> str | None:
    """Return the key that comes next after ``key`` in the database's order; None for text that is no UTF-8."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return None
    return key + "\0"


def _next(child: Column[Any], parent: Column[Any]) -> Statement:
    """Find the next value of a column, with the row it should belong to: an index is skipped through."""
    return Statement(
        select(child, parent)
        .join_from(child.table, parent.table, parent == child, isouter=True)
        .where(child >= bindparam("start"))
        .order_by(child)
        .limit(1)
    )


def _page(child: Column[Any], parent: Column[Any]) -> Statement:
    """Read a page of a column's values, each once, with the row it should belong to."""
    return Statement(
        select(child, func.min(parent))
        .join_from(child.table, parent.table, parent == child, isouter=True)
        .where(child >= bindparam("start"))
        .group_by(child)
        .order_by(child)
        .limit(PAGE)
    )


# Few values, many rows of each: what lies in a run.
_CHAINS = {
    "event": _next(events.c.run, runs.c.id),
    "payload": _next(payloads.c.run, runs.c.id),
    "action_row": _next(actions.c.run, runs.c.id),
}
# Many values, few rows of each: what an action or an approval has.
_PARTS = {
    "attempt_row": _page(attempts.c.action, actions.c.id),
    "approval_row": _page(approvals.c.action, actions.c.id),
    "vote_row": _page(votes.c.approval, approvals.c.id),
}
CHAINS: Final = tuple(_CHAINS)
PARTS: Final = tuple(_PARTS)

_RUNS = Statement(select(runs.c.id).where(runs.c.id >= bindparam("start")).order_by(runs.c.id).limit(PAGE))
_LAST_RUN = Statement(select(func.max(runs.c.id)))
_some = (
    select(runs.c.id, runs.c.n).where(runs.c.id >= bindparam("start")).order_by(runs.c.id).limit(_TOTAL_PAGE).subquery()
)
_TOTAL = Statement(select(func.count(), func.sum(_some.c.n * 1.0), func.max(_some.c.id)))
_ACTIONS = Statement(
    select(actions.c.id, actions.c.proposed_n)
    .where(actions.c.run == bindparam("run"), actions.c.id >= bindparam("start"))
    .order_by(actions.c.id)
    .limit(PAGE)
)
_DOCUMENTS = Statement(
    select(documents)
    .where(documents.c.digest >= bindparam("start"))
    .order_by(documents.c.digest)
    .limit(_DOCUMENTS_PAGE)
)
_TENANTS = Statement(
    select(tenants, exists().where(runs.c.tenant == tenants.c.tenant))
    .where(tenants.c.tenant >= bindparam("start"))
    .order_by(tenants.c.tenant)
    .limit(PAGE)
)
_LOCKS = Statement(
    select(locks, actions)
    .join_from(locks, actions, actions.c.id == locks.c.action, isouter=True)
    .where(
        or_(
            locks.c.tenant > bindparam("tenant"),
            (locks.c.tenant == bindparam("tenant")) & (locks.c.resource >= bindparam("resource")),
        )
    )
    .order_by(locks.c.tenant, locks.c.resource)
    .limit(PAGE)
)
_SWITCHES = Statement(select(switches).limit(_MOST_SWITCHES))
_POLICIES = Statement(select(policies))
_BUDGETS = Statement(
    select(
        budgets.c.tenant,
        budgets.c.kind,
        budgets.c.namespace,
        budgets.c.name,
        budgets.c.measure,
        budgets.c.most,
        budgets.c.n,
    )
)
_GRANTS = Statement(select(standing))
_KEYS = Statement(select(keys))
_REVOKED_KEYS = Statement(select(revoked_keys))
_BOUNDED = Statement(
    select(budgets.c.tenant)
    .where(budgets.c.tenant >= bindparam("start"))
    .group_by(budgets.c.tenant)
    .order_by(budgets.c.tenant)
    .limit(PAGE)
)
_OF_TENANT = Statement(select(budgets).where(budgets.c.tenant == bindparam("tenant")))


def chains(connection: Connection, kind: str, *, start: str) -> Row | None:
    """Read the next run that rows of this kind name: (run named, run there is)."""
    return _CHAINS[kind].row(connection, start=start)


def parts(connection: Connection, kind: str, *, start: str) -> list[Row]:
    """Read the next owners that rows of this kind name: (owner named, owner there is)."""
    return _PARTS[kind].rows(connection, start=start)


def run_ids(connection: Connection, *, start: str) -> list[Row]:
    """Read the next runs' ids."""
    return _RUNS.rows(connection, start=start)


def last_run(connection: Connection) -> Any:
    """Read the greatest id of a run."""
    row = _LAST_RUN.row(connection)
    return None if row is None else row[0]


def actions_of(connection: Connection, run: str, *, start: str) -> list[Row]:
    """Read the next actions of a run: (id, proposed_n)."""
    return _ACTIONS.rows(connection, run=run, start=start)


def stored_documents(connection: Connection, *, start: bytes) -> list[Row]:
    """Read the next documents, whole rows."""
    return _DOCUMENTS.rows(connection, start=start)


def known_tenants(connection: Connection, *, start: str) -> list[Row]:
    """Read the next tenants: (tenant, fingerprint_key, whether it has a run)."""
    return _TENANTS.rows(connection, start=start)


def held_locks(connection: Connection, *, tenant: str, resource: bytes) -> list[tuple[Row, Row]]:
    """Read the next locks, each with the whole row of the action that it names."""
    width = len(locks.columns)
    rows = _LOCKS.rows(connection, tenant=tenant, resource=resource)
    return [(row[:width], row[width:]) for row in rows]


def all_switches(connection: Connection) -> list[Row]:
    """Read every switch; there are few."""
    return _SWITCHES.rows(connection)


def all_policies(connection: Connection) -> list[Row]:
    """Read every active policy, whole rows; there are no more than tenants."""
    return _POLICIES.rows(connection)


def all_budgets(connection: Connection) -> list[Row]:
    """Read every bound, without what is used of it: (tenant, kind, namespace, name, measure, most, n)."""
    return _BUDGETS.rows(connection)


def all_grants(connection: Connection) -> list[Row]:
    """Read every standing grant, whole rows."""
    return _GRANTS.rows(connection)


def all_keys(connection: Connection) -> tuple[list[Row], list[Row]]:
    """Read every key that was added, and every one that was revoked; there are few."""
    return _KEYS.rows(connection), _REVOKED_KEYS.rows(connection)


def bounded_tenants(connection: Connection, *, start: str) -> list[Row]:
    """Read the next tenants of whom anything is bounded."""
    return _BOUNDED.rows(connection, start=start)


def budgets_of(connection: Connection, tenant: str) -> list[Row]:
    """Read a tenant's budgets, whole rows."""
    return _OF_TENANT.rows(connection, tenant=tenant)


def total(connection: Connection, *, start: str) -> tuple[int, str | None]:
    """Count the events of the next runs by their rows' heads, and return the last of those runs."""
    row = _TOTAL.row(connection, start=start)
    count, heads, last = row or (0, 0, None)
    return count + max(0, int(heads or 0)), last if type(last) is str else None
