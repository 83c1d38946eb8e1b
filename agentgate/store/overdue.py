"""Rows whose time may be over, a short page at a time by index; whether it is, their own transaction decides."""

from sqlalchemy import bindparam, exists, literal_column, select, tuple_
from sqlalchemy.engine import Connection

from agentgate.store.schema import IN_DOUBT, OPEN, WAITING, actions, approvals, attempts
from agentgate.store.statements import Row, Statement

PAGE = 200

_OPEN = Statement(
    select(attempts.c.fence, attempts.c.run, attempts.c.action, attempts.c.holder, attempts.c.lease_until_us)
    .where(OPEN, attempts.c.fence > bindparam("after"))
    .order_by(attempts.c.fence)
    .limit(PAGE)
)
_QUESTIONS = Statement(
    select(approvals.c.expires_at_us, approvals.c.id, approvals.c.run, approvals.c.action)
    .where(
        approvals.c.state == literal_column("'pending'"),
        approvals.c.expires_at_us <= bindparam("now_us"),
        tuple_(approvals.c.expires_at_us, approvals.c.id) > tuple_(bindparam("after_us"), bindparam("after_id")),
    )
    .order_by(approvals.c.expires_at_us, approvals.c.id)
    .limit(PAGE)
)
_READY = Statement(
    select(actions.c.run, actions.c.id)
    .where(
        WAITING,
        actions.c.expires_at_us <= bindparam("now_us"),
        tuple_(actions.c.run, actions.c.id) > tuple_(bindparam("after_run"), bindparam("after_id")),
    )
    .order_by(actions.c.run, actions.c.id)
    .limit(PAGE)
)
# Not the bare column: SQLite would go through every action by its key to meet the few that are in doubt.
_ID = actions.c.id + ""
_AGAIN = Statement(
    select(actions.c.run, actions.c.id)
    .join(approvals, approvals.c.id == actions.c.approval)
    .where(
        IN_DOUBT,
        approvals.c.state == literal_column("'granted'"),
        approvals.c.until_us <= bindparam("now_us"),
        bindparam("after") < _ID,
    )
    .order_by(_ID)
    .limit(PAGE)
)
_DOUBTED = Statement(
    select(actions.c.id, actions.c.tenant, actions.c.namespace, actions.c.tool)
    .where(IN_DOUBT, bindparam("after") < _ID)
    .order_by(_ID)
    .limit(PAGE)
)
_UNASKED = Statement(
    select(actions.c.id, actions.c.tenant)
    .where(
        IN_DOUBT,
        actions.c.state == literal_column("'UNKNOWN'"),
        ~exists().where(
            approvals.c.id == actions.c.approval,
            approvals.c.kind == literal_column("'question'"),
            approvals.c.state.in_((literal_column("'pending'"), literal_column("'granted'"))),
        ),
        bindparam("after") < _ID,
    )
    .order_by(_ID)
    .limit(PAGE)
)


def open_attempts(connection: Connection, *, after: int) -> list[Row]:
    """Read attempts that execute, by fence: (fence, run, action, holder, lease_until_us)."""
    return _OPEN.rows(connection, after=after)


def doubted(connection: Connection, *, after: str) -> list[Row]:
    """Read actions with an attempt in doubt: (id, tenant, namespace, tool)."""
    return _DOUBTED.rows(connection, after=after)


def unasked(connection: Connection, *, after: str) -> list[Row]:
    """Read actions of unknown outcome that nobody is asked about: (id, tenant)."""
    return _UNASKED.rows(connection, after=after)


def questions(connection: Connection, *, now_us: int, after: tuple[int, str]) -> list[Row]:
    """Read questions that cannot be answered any more, first over first: (expires_at_us, id, run, action)."""
    return _QUESTIONS.rows(connection, now_us=now_us, after_us=after[0], after_id=after[1])


def ready(connection: Connection, *, now_us: int, after: tuple[str, str]) -> list[Row]:
    """Read actions that may not be started any more, by run: (run, id)."""
    return _READY.rows(connection, now_us=now_us, after_run=after[0], after_id=after[1])


def grants(connection: Connection, *, now_us: int, after: str) -> list[Row]:
    """Read actions in doubt that may not be tried again under their grant any more: (run, id)."""
    return _AGAIN.rows(connection, now_us=now_us, after=after)
