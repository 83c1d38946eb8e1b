"""Rows that wait for a person, a short page at a time by index, of one tenant or of all."""

from sqlalchemy import Select, bindparam, exists, literal_column, select, tuple_
from sqlalchemy.engine import Connection

from agentgate.states import State
from agentgate.store.schema import HALTED, IN_DOUBT, actions, approvals, attempts, runs
from agentgate.store.statements import Row, Statement

PAGE = 100

_ABOUT = (actions.c.tenant, actions.c.run, runs.c.name, actions.c.id, actions.c.namespace, actions.c.tool)
_HELD = (
    select(approvals.c.expires_at_us, approvals.c.id, approvals.c.asked_at_us, *_ABOUT)
    .join(actions, actions.c.id == approvals.c.action)
    .join(runs, runs.c.id == actions.c.run)
    .where(
        approvals.c.state == literal_column("'pending'"),
        actions.c.state == literal_column("'HELD'"),
        tuple_(approvals.c.expires_at_us, approvals.c.id) > tuple_(bindparam("after_us"), bindparam("after_id")),
    )
    .order_by(approvals.c.expires_at_us, approvals.c.id)
    .limit(PAGE)
)
# Not the bare column: SQLite would go through every action by its key to meet the few that are in doubt.
_ID = actions.c.id + ""
_LATE = exists().where(attempts.c.action == actions.c.id, attempts.c.late_n.is_not(None))
_UNKNOWN = (
    select(actions.c.first_started_us, actions.c.state, actions.c.reason, approvals.c.id, _LATE, *_ABOUT)
    .join(runs, runs.c.id == actions.c.run)
    .outerjoin(approvals, (approvals.c.id == actions.c.approval) & (approvals.c.state == literal_column("'pending'")))
    .where(
        IN_DOUBT,
        # What executes tells by itself; what was abandoned nobody waits for.
        actions.c.state != State.EXECUTING.value,
        actions.c.state != State.ABANDONED.value,
        bindparam("after") < _ID,
    )
    .order_by(_ID)
    .limit(PAGE)
)
_RUNS = (
    select(runs.c.tenant, runs.c.id, runs.c.name, runs.c.reason, runs.c.at_us)
    .where(HALTED, tuple_(runs.c.tenant, runs.c.id) > tuple_(bindparam("after_tenant"), bindparam("after_id")))
    .order_by(runs.c.tenant, runs.c.id)
    .limit(PAGE)
)


def _both(everybodys: Select[tuple[object, ...]], of: Select[tuple[object, ...]]) -> dict[bool, Statement]:
    return {False: Statement(everybodys), True: Statement(of)}


_OF_ACTION, _OF_RUN = actions.c.tenant == bindparam("tenant"), runs.c.tenant == bindparam("tenant")
# Not the bare column, again: what is held is few, and a tenant's actions are many.
_HELD_PAGES = _both(_HELD, _HELD.where(actions.c.tenant + "" == bindparam("tenant")))
_UNKNOWN_PAGES = _both(_UNKNOWN, _UNKNOWN.where(_OF_ACTION))
_RUN_PAGES = _both(_RUNS, _RUNS.where(_OF_RUN))


def held(connection: Connection, tenant: str | None, *, after: tuple[int, str]) -> list[Row]:
    """Read what is held, soonest over first: (expires_at_us, approval, asked_at_us, tenant, run, name, id, …)."""
    return _HELD_PAGES[tenant is not None].rows(connection, tenant=tenant, after_us=after[0], after_id=after[1])


def unknown(connection: Connection, tenant: str | None, *, after: str) -> list[Row]:
    """Read what is in doubt, oldest first: (first_started_us, state, reason, question, late, tenant, run, name, …)."""
    return _UNKNOWN_PAGES[tenant is not None].rows(connection, tenant=tenant, after=after)


def halted(connection: Connection, tenant: str | None, *, after: tuple[str, str]) -> list[Row]:
    """Read runs that were halted, by tenant: (tenant, id, name, reason, at_us)."""
    return _RUN_PAGES[tenant is not None].rows(connection, tenant=tenant, after_tenant=after[0], after_id=after[1])
