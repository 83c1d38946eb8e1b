"""Which pending question was told on which channel. The pending questions themselves are the queue.

A mark lies here only while its question is pending: whoever has told some takes the marks of ended ones away.
"""

from sqlalchemy import and_, bindparam, delete, exists, insert, literal_column, or_, select, update
from sqlalchemy.engine import Connection

from agentgate.store.schema import actions, approvals, notices
from agentgate.store.statements import Row, Statement

_PENDING = approvals.c.state == literal_column("'pending'")
_MINE = and_(notices.c.approval == approvals.c.id, notices.c.channel == bindparam("channel"))
# A mark for later than anybody would set was made by a clock that has been set back since: it holds nobody up.
_OVER = or_(notices.c.again_at_us <= bindparam("now_us"), notices.c.again_at_us > bindparam("latest_us"))
# In the order of the index over what is pending, and from one place on: what was told is passed over once, not each
# time. What is over lies before that place: of two bounds SQLite would take either to begin at.
_LAST = "~"  # behind every id
_BEHIND = and_(
    approvals.c.expires_at_us >= bindparam("after_us"),
    or_(approvals.c.expires_at_us > bindparam("after_us"), approvals.c.id > bindparam("after_id")),
)
_DUE = Statement(
    select(approvals.c.id, approvals.c.action, notices.c.tries, approvals.c.expires_at_us)
    .join(actions, actions.c.id == approvals.c.action)
    .outerjoin(notices, _MINE)
    .where(
        _PENDING,
        _BEHIND,
        or_(notices.c.approval.is_(None), and_(notices.c.told == literal_column("0"), _OVER)),
    )
    .order_by(approvals.c.expires_at_us, approvals.c.id)
    .limit(1)
)
_FIRST = Statement(insert(notices).values({name: bindparam(name) for name in notices.columns.keys()}))  # noqa: SIM118
_THIS = (notices.c.channel == bindparam("channel_"), notices.c.approval == bindparam("approval_"))
_AGAIN = Statement(update(notices).where(*_THIS).values(tries=bindparam("tries"), again_at_us=bindparam("again_at_us")))
_TOLD = Statement(update(notices).where(*_THIS).values(told=literal_column("1")))
_FORGET = Statement(
    delete(notices).where(
        notices.c.channel == bindparam("channel"),
        ~exists(select(approvals.c.id).where(approvals.c.id == notices.c.approval, _PENDING)),
    )
)


def due(
    connection: Connection, channel: str, *, now_us: int, latest_us: int, after: tuple[int, str] = (0, "")
) -> Row | None:
    """Read the question soonest over that a channel has to be told now: (id, action, tries or None, over at).

    Args:
        connection: where it is read.
        channel: its name.
        now_us: the ledger clock.
        latest_us: the latest time for which a mark can have been set.
        after: when the last one that was told is over, and its id: only those behind it.
    """
    over_us, id_ = max(after, (now_us, _LAST))
    return _DUE.row(connection, channel=channel, now_us=now_us, latest_us=latest_us, after_us=over_us, after_id=id_)


def take(connection: Connection, channel: str, approval: str, *, tries: int, again_at_us: int) -> None:
    """Mark that a question is being told, for the ``tries``-th time, and from when on somebody else may tell it."""
    if tries == 1:
        first = {"channel": channel, "approval": approval, "tries": tries, "again_at_us": again_at_us, "told": 0}
        _FIRST.write(connection, first)
    else:
        put_off(connection, channel, approval, tries=tries, again_at_us=again_at_us)


def put_off(connection: Connection, channel: str, approval: str, *, tries: int, again_at_us: int) -> None:
    """Mark from when on a question is told again."""
    moved = {"channel_": channel, "approval_": approval, "tries": tries, "again_at_us": again_at_us}
    _AGAIN.write(connection, moved)


def told(connection: Connection, channel: str, approval: str) -> None:
    """Mark that a question was told."""
    _TOLD.write(connection, {"channel_": channel, "approval_": approval})


def forget(connection: Connection, channel: str) -> None:
    """Take the marks of questions that have ended away."""
    _FORGET.write(connection, {"channel": channel})
