"""Rows of people's votes."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection

from agentgate.canonical import canonical, parse
from agentgate.core.records import VoteRecord
from agentgate.errors import Damaged, NotCanonical
from agentgate.store.schema import approvals, votes
from agentgate.store.statements import Row, Statement, flag, insert_all

_FIELDS = tuple(field.name for field in fields(VoteRecord))

_OF_ACTION = Statement(
    select(*(votes.c[name] for name in _FIELDS))
    .join(approvals, approvals.c.id == votes.c.approval)
    .where(approvals.c.action == bindparam("action"))
)
_MOVE = Statement(
    update(votes)
    .where(votes.c.approval == bindparam("approval_"), votes.c.n == bindparam("n_"))
    .values(counted=bindparam("counted"))
)


def of_action(connection: Connection, action: str) -> list[VoteRecord]:
    """Read every vote on an action's questions."""
    return [_vote(row) for row in _OF_ACTION.rows(connection, action=action)]


def write(connection: Connection, before: Mapping[int, VoteRecord], after: Mapping[int, VoteRecord]) -> bool:
    """Write what changed of an action's votes; return False if another transaction moved one."""
    for n, vote in after.items():
        was = before.get(n)
        if was is None:
            insert_all(connection, votes, [to_row(vote)])
        elif was != vote:
            moved = {"approval_": vote.approval, "n_": n, "counted": int(vote.counted)}
            if _MOVE.write(connection, moved) != 1:
                return False
    return True


def to_row(vote: VoteRecord) -> dict[str, Any]:
    """Return a vote as its row's columns hold it."""
    return asdict(vote) | {"counted": int(vote.counted), "roles": canonical([*vote.roles])}


def _vote(row: Row) -> VoteRecord:
    columns = dict(zip(_FIELDS, row, strict=True))
    where = f"a vote on {columns['approval']}"
    return VoteRecord(
        **columns | {"counted": flag(where, columns["counted"]), "roles": _roles(where, columns["roles"])}
    )


def _roles(where: str, stored: bytes) -> tuple[str, ...]:
    try:
        roles = parse(stored)
    except NotCanonical as error:
        raise Damaged(where, "its roles are no JSON") from error
    if type(roles) is not list or any(type(role) is not str for role in roles):
        raise Damaged(where, "its roles are no list of names")
    return tuple(str(role) for role in roles)
