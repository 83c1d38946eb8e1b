"""Rows as they are stored, for verification: read in pages, believed by nobody, made into no record.

A verifier compares tuples of columns. What the database holds may be of any type, text that is no UTF-8 included:
`lenient` makes a connection hand that out instead of raising.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, Column, Integer, LargeBinary, Table, bindparam, func, select
from sqlalchemy.engine import Connection

from agentgate.core.counting import LEDGER
from agentgate.core.records import ActionRecord
from agentgate.jcs import encodable
from agentgate.store.schema import (
    actions,
    approvals,
    attempts,
    documents,
    events,
    ledger,
    locks,
    metadata,
    payloads,
    runs,
    tenants,
    votes,
)
from agentgate.store.statements import Row, Statement

# A page of a long read: short enough not to hold a writer up (databases: pages under 20 ms).
PAGE = 400
PAGE_BYTES = 8_388_608
SIZE = 64  # ids asked for at once
LOWEST, HIGHEST = -(2**63), 2**63 - 1

_decoded = partial(str, encoding="utf-8", errors="surrogateescape")


def lenient(connection: Connection) -> Connection:
    """Let a connection hand out text that is no UTF-8, its bytes escaped, instead of raising."""
    raw: Any = connection.connection.dbapi_connection
    raw.text_factory = _decoded
    return connection


def fits(table: Table, row: Row) -> bool:
    """Tell whether every value of a whole row is of its column's type."""
    return all(type(value) in types for value, types in zip(row, _types(table), strict=True))


def _types(table: Table) -> tuple[tuple[type, ...], ...]:
    found = _TYPES.get(table.name)
    if found is None:
        found = _TYPES[table.name] = tuple(
            (_python(column), type(None)) if column.nullable else (_python(column),) for column in table.columns
        )
    return found


def _python(column: Column[Any]) -> type:
    if isinstance(column.type, Integer):
        return int
    return bytes if isinstance(column.type, LargeBinary) else str


_TYPES: dict[str, tuple[tuple[type, ...], ...]] = {}


# --- one chain -------------------------------------------------------------------------------------------

_RUN = Statement(select(runs).where(runs.c.id == bindparam("run")))
_LINKS = Statement(
    select(events.c.n, events.c.hash, events.c.event)
    .where(events.c.run == bindparam("run"), events.c.n >= bindparam("start"))
    .order_by(events.c.n)
    .limit(bindparam("size"))
)
_WITHIN = (payloads.c.run == bindparam("run"), payloads.c.n >= bindparam("start"), payloads.c.n <= bindparam("end"))
_SIZES = Statement(
    select(payloads.c.n, func.sum(func.length(payloads.c.content)))
    .where(*_WITHIN)
    .group_by(payloads.c.n)
    .order_by(payloads.c.n)
    .limit(bindparam("size"))
)
_PAYLOADS = Statement(select(payloads).where(*_WITHIN).order_by(payloads.c.n, payloads.c.kind).limit(bindparam("size")))
_MOST_KINDS = 64  # payloads beside one event: more than there are kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some links of a chain with the payloads beside them, from one snapshot.

    Args:
        links: (run, n, hash, event), in order.
        payloads: whole rows, of those links and of the places between them.
        end: the last place that was read; nothing up to there was left out.
        last: whether the chain ended here when it was read.
    """

    links: list[Row]
    payloads: list[Row]
    end: int
    last: bool


def loose(connection: Connection) -> list[str]:
    """Name the tables that take values of any type: made by no release, so that keys cannot be relied on to sort."""
    strict = {row[0] for row in _STRICT.rows(connection)}
    return [name for name in sorted(metadata.tables) if name not in strict]


_tables = func.pragma_table_list().table_valued("name", "strict")  # SQLite's own; other databases have no such tables
_STRICT = Statement(select(_tables.c.name).where(_tables.c.strict == 1))


def run(connection: Connection, id: str) -> Row | None:
    """Read a run's row, all columns."""
    return _RUN.row(connection, run=id)


def page(connection: Connection, id: str, *, start: int) -> Page | None:
    """Read the next links from place ``start``, as many as `PAGE` and `PAGE_BYTES` allow, but one at least.

    Returns:
        None where a row holds what its columns cannot hold.
    """
    links = _LINKS.rows(connection, run=id, start=start, size=PAGE)
    if not all(type(n) is int and type(hash_) is bytes and type(event) is bytes for n, hash_, event in links):
        return None
    last = len(links) < PAGE
    # The last page has no end: a payload beyond the chain belongs to nothing.
    end = HIGHEST if last else links[-1][0]
    within = {"run": id, "start": start}
    cut = _cut(_SIZES.rows(connection, **within, end=end, size=PAGE + 1))
    if cut is not None:
        links, last, end = [link for link in links if link[0] <= cut], False, cut
    found = _PAYLOADS.rows(connection, **within, end=end, size=_MOST_KINDS * PAGE)
    if not all(fits(payloads, row) for row in found):
        return None
    return Page(links=links, payloads=found, end=end, last=last)


def _cut(sizes: list[Row]) -> int | None:
    """Return the place where the page must end, so that its payloads are not too many; None where they are not."""
    total = 0
    for place, (n, size) in enumerate(sizes):
        total += size if type(size) is int else 0
        if place and (total > PAGE_BYTES or place == PAGE):
            return int(n) - 1
    return None


# --- what an action has in the tables --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The rows of one action, from one snapshot; each whole, as (column, …).

    Args:
        action: its own.
        attempts: in no order, as the others.
        approvals: those that name it.
        votes: those on its approvals.
        lock: the one on its resource, read where its row says that it may hold one.
    """

    action: Row | None = None
    attempts: list[Row] = field(default_factory=list)
    approvals: list[Row] = field(default_factory=list)
    votes: list[Row] = field(default_factory=list)
    lock: Row | None = None


_IDS: list[BindParameter[str]] = [bindparam(f"id_{place}") for place in range(SIZE)]
_ACTIONS = Statement(select(actions).where(actions.c.id.in_(_IDS)))
_ATTEMPTS = Statement(select(attempts).where(attempts.c.action.in_(_IDS)))
_APPROVALS = Statement(select(approvals).where(approvals.c.action.in_(_IDS)))
_VOTES = Statement(
    select(approvals.c.action, *votes.columns)
    .join(approvals, approvals.c.id == votes.c.approval)
    .where(approvals.c.action.in_(_IDS))
)
_ATTEMPT_ACTION = list(attempts.columns).index(attempts.c.action)
_APPROVAL_ACTION = list(approvals.columns).index(approvals.c.action)


def files(connection: Connection, ids: Sequence[str]) -> dict[str, Stored]:
    """Read what these actions have in the tables; what is stored of none of them is empty."""
    found = {id_: Stored() for id_ in ids}
    for first in range(0, len(ids), SIZE):
        some = ids[first : first + SIZE]
        asked = {f"id_{place}": some[min(place, len(some) - 1)] for place in range(SIZE)}
        for row in _asked(found, 0, _ACTIONS.rows(connection, **asked)):
            found[row[0]] = replace(found[row[0]], action=row, lock=_lock_of(connection, row))
        for row in _asked(found, _ATTEMPT_ACTION, _ATTEMPTS.rows(connection, **asked)):
            found[row[_ATTEMPT_ACTION]].attempts.append(row)
        for row in _asked(found, _APPROVAL_ACTION, _APPROVALS.rows(connection, **asked)):
            found[row[_APPROVAL_ACTION]].approvals.append(row)
        for row in _asked(found, 0, _VOTES.rows(connection, **asked)):
            found[row[0]].votes.append(row[1:])
    return found


def _asked(found: Mapping[str, Stored], column: int, rows: list[Row]) -> Iterator[Row]:
    """Yield the rows of those that were asked for: a damaged index leads to others."""
    return (row for row in rows if row[column] in found)


def _lock_of(connection: Connection, row: Row) -> Row | None:
    of = dict(zip(actions.columns.keys(), row, strict=True))
    if type(of["tenant"]) is not str or not encodable(of["tenant"]) or type(of["resource"]) is not bytes:
        return None
    if of["state"] not in {"EXECUTING", "UNKNOWN"} and not of["unresolved"]:
        return None
    return lock(connection, tenant=of["tenant"], resource=of["resource"])


# --- what single rows are looked up for ------------------------------------------------------------------

_LOCK = Statement(select(locks).where(locks.c.tenant == bindparam("tenant"), locks.c.resource == bindparam("resource")))
_TENANT = Statement(select(tenants).where(tenants.c.tenant == bindparam("tenant")))
_DOCUMENT = Statement(select(documents).where(documents.c.digest == bindparam("digest")))
_LEDGER = Statement(select(ledger))
_OWN_CHAIN = Statement(select(runs.c.id).where(runs.c.tenant == LEDGER, runs.c.name == LEDGER).limit(1))
_REVISION = Statement(
    select(actions.c.id)
    .where(
        actions.c.tenant == bindparam("tenant"),
        actions.c.namespace == bindparam("namespace"),
        actions.c.tool == bindparam("tool"),
        actions.c.key_source == bindparam("source"),
        actions.c.key_scope == bindparam("scope"),
        actions.c.key_text == bindparam("text"),
        actions.c.revision == bindparam("revision"),
        actions.c.id != bindparam("but"),
    )
    .limit(1)
)
_EVENT = Statement(select(events.c.event).where(events.c.run == bindparam("run"), events.c.n == bindparam("n")))


def lock(connection: Connection, *, tenant: str, resource: bytes) -> Row | None:
    """Read the lock on a resource."""
    return _LOCK.row(connection, tenant=tenant, resource=resource)


def tenant(connection: Connection, name: str) -> Row | None:
    """Read a tenant's row."""
    return _TENANT.row(connection, tenant=name)


def document(connection: Connection, digest: bytes) -> Row | None:
    """Read a document's row."""
    return _DOCUMENT.row(connection, digest=digest)


def ledger_rows(connection: Connection) -> list[Row]:
    """Read the ledger's own row; more than one is as wrong as none."""
    return _LEDGER.rows(connection)


def own_chain(connection: Connection) -> str | None:
    """Read the id of the chain that belongs to no run, which is the ledger's."""
    row = _OWN_CHAIN.row(connection)
    return None if row is None else str(row[0])


def has_revision(connection: Connection, action: ActionRecord, revision: int) -> bool:
    """Tell whether another action of the same key has this revision."""
    key = action.key
    asked = {"tenant": action.tenant, "namespace": action.namespace, "tool": action.tool, "revision": revision}
    asked["but"] = action.id
    return _REVISION.row(connection, **asked, source=key.source, scope=key.scope, text=key.text) is not None


def event(connection: Connection, run: str, n: int) -> Any:
    """Read the bytes of one event; None where it is missing."""
    row = _EVENT.row(connection, run=run, n=n)
    return None if row is None else row[0]
