"""Questions to people, a short page at a time by index: what waits for an answer, and what was granted and not used."""

from sqlalchemy import Select, bindparam, select, tuple_
from sqlalchemy.engine import Connection

from agentgate.store.schema import GRANTED, PENDING, actions, approvals
from agentgate.store.statements import Row, Statement

PAGE = 50

_PLACE = Statement(
    select(approvals.c.action, approvals.c.run, actions.c.tenant)
    .join(actions, actions.c.id == approvals.c.action)
    .where(approvals.c.id == bindparam("id"))
)
_PENDING = (
    select(approvals.c.expires_at_us, approvals.c.id, approvals.c.action)
    .join(actions, actions.c.id == approvals.c.action)
    .where(
        PENDING,
        tuple_(approvals.c.expires_at_us, approvals.c.id) > tuple_(bindparam("after_us"), bindparam("after_id")),
        approvals.c.expires_at_us <= bindparam("until_us"),
    )
    .order_by(approvals.c.expires_at_us, approvals.c.id)
    .limit(PAGE)
)
_GRANTED = (
    select(approvals.c.until_us, approvals.c.id, approvals.c.action)
    .join(actions, actions.c.id == approvals.c.action)
    .where(
        GRANTED,
        tuple_(approvals.c.until_us, approvals.c.id) > tuple_(bindparam("after_us"), bindparam("after_id")),
    )
    .order_by(approvals.c.until_us, approvals.c.id)
    .limit(PAGE)
)


def _narrowed(everybodys: Select[tuple[object, ...]]) -> dict[tuple[bool, bool], Statement]:
    """Make the page of everybody's questions, a tenant's, one kind's, and a tenant's of one kind."""
    # Not the bare columns: what waits for people is few, and a tenant's actions are many.
    of, kind = actions.c.tenant + "" == bindparam("tenant"), approvals.c.kind + "" == bindparam("kind")
    return {
        (False, False): Statement(everybodys),
        (True, False): Statement(everybodys.where(of)),
        (False, True): Statement(everybodys.where(kind)),
        (True, True): Statement(everybodys.where(of, kind)),
    }


_PENDING_PAGES = _narrowed(_PENDING)
_GRANTED_PAGES = _narrowed(_GRANTED)


def place(connection: Connection, id: str) -> tuple[str, str, str] | None:
    """Return where a question hangs, (action, run, tenant); None where there is no such question."""
    row = _PLACE.row(connection, id=id)
    return None if row is None else (row[0], row[1], row[2])


def pending(
    connection: Connection, tenant: str | None, kind: str | None, *, until_us: int, after: tuple[int, str]
) -> list[Row]:
    """Read questions that wait for an answer, soonest over first: (expires_at_us, id, action)."""
    page = _PENDING_PAGES[tenant is not None, kind is not None]
    return page.rows(connection, tenant=tenant, kind=kind, until_us=until_us, after_us=after[0], after_id=after[1])


def granted(connection: Connection, tenant: str | None, *, after: tuple[int, str]) -> list[Row]:
    """Read grants that were not used, soonest over first: (until_us, id, action)."""
    return _GRANTED_PAGES[tenant is not None, False].rows(
        connection, tenant=tenant, after_us=after[0], after_id=after[1]
    )
