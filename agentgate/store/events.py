"""Rows of the record itself: chained events, the payloads beside them, and documents."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import LargeBinary, bindparam, func, literal_column, or_, select
from sqlalchemy.engine import Connection

from agentgate.chain import Link
from agentgate.core.draft import Payload, StoredPayload
from agentgate.store.schema import documents, events, payloads
from agentgate.store.statements import Statement, insert_all

# A page of a long read: short enough not to hold a writer up (databases: pages under 20 ms).
PAGE = 200

_LINK = Statement(
    select(events.c.n, events.c.hash, events.c.event).where(
        events.c.run == bindparam("run"), events.c.n == bindparam("n")
    )
)
_LINKS = Statement(
    select(events.c.n, events.c.hash, events.c.event)
    .where(events.c.run == bindparam("run"), events.c.n >= bindparam("start"))
    .order_by(events.c.n)
    .limit(bindparam("size"))
)
_FROM = (events.c.run == bindparam("run"), events.c.n >= bindparam("start"))
_stored = select(func.count()).select_from(events).where(*_FROM).scalar_subquery()
# One statement and no index: a claim pays for what its run wrote since the proposal, most often a few events.
_NAMING = Statement(
    select(events.c.n, events.c.hash, events.c.event, _stored)
    .where(
        *_FROM,
        or_(
            events.c.n == bindparam("last"),
            func.instr(events.c.event, bindparam("action", type_=LargeBinary)) > literal_column("0"),
        ),
    )
    .order_by(events.c.n)
)
_PAYLOAD = Statement(
    select(payloads.c.salt, payloads.c.content, payloads.c.sealed_by).where(
        payloads.c.run == bindparam("run"), payloads.c.n == bindparam("n"), payloads.c.kind == bindparam("kind")
    )
)
_PAYLOADS = Statement(
    select(payloads.c.n, payloads.c.kind, payloads.c.salt, payloads.c.content, payloads.c.sealed_by)
    .where(payloads.c.run == bindparam("run"), payloads.c.n >= bindparam("start"), payloads.c.n <= bindparam("end"))
    .order_by(payloads.c.n, payloads.c.kind)
)
_DOCUMENT = Statement(select(documents.c.kind, documents.c.content).where(documents.c.digest == bindparam("digest")))
_DOCUMENTS = Statement(
    select(documents.c.digest, documents.c.kind, documents.c.content)
    .where(documents.c.digest > bindparam("after"))
    .order_by(documents.c.digest)
    .limit(bindparam("size"))
)


def append(connection: Connection, run: str, links: Sequence[Link]) -> None:
    """Write the next links of a chain."""
    insert_all(
        connection, events, [{"run": run, "n": link.n, "hash": link.hash, "event": link.encoded} for link in links]
    )


def add_payloads(connection: Connection, stored: Sequence[StoredPayload]) -> None:
    """Write payloads beside their events."""
    insert_all(connection, payloads, [_payload_row(one) for one in stored])


def _payload_row(stored: StoredPayload) -> dict[str, Any]:
    payload = stored.payload
    return {
        "run": stored.run,
        "n": stored.n,
        "kind": payload.kind,
        "salt": payload.salt or None,
        "content": payload.content,
        "sealed_by": payload.sealed_by,
    }


def add_document(connection: Connection, digest: bytes, kind: str, content: bytes) -> bool:
    """Store a document unless it is there; return whether it was new."""
    if document(connection, digest) is not None:
        return False
    insert_all(connection, documents, [{"digest": digest, "kind": kind, "content": content}])
    return True


def link(connection: Connection, run: str, n: int) -> Link | None:
    """Read one link."""
    row = _LINK.row(connection, run=run, n=n)
    return None if row is None else Link(n=row[0], hash=row[1], encoded=row[2])


def links(connection: Connection, run: str, *, start: int, size: int = PAGE) -> list[Link]:
    """Read a page of a chain, from position ``start``; the empty list is the end."""
    rows = _LINKS.rows(connection, run=run, start=start, size=size)
    return [Link(n=n, hash=hash_, encoded=encoded) for n, hash_, encoded in rows]


def naming(connection: Connection, run: str, action: str, *, start: int, last: int) -> tuple[list[Link], int]:
    """Read the links from ``start`` on that an action's id stands in, and the last one, whatever stands there.

    Returns:
        The links, in order; and how many there are from ``start`` on, of any action.
    """
    rows = _NAMING.rows(connection, run=run, action=action.encode(), start=start, last=last)
    links = [Link(n=n, hash=hash_, encoded=encoded) for n, hash_, encoded, _ in rows]
    return links, rows[0][3] if rows else 0


def payload(connection: Connection, run: str, n: int, kind: str) -> Payload | None:
    """Read one payload; None where it is gone."""
    row = _PAYLOAD.row(connection, run=run, n=n, kind=kind)
    return None if row is None else _payload(kind, *row)


def payloads_between(connection: Connection, run: str, *, start: int, end: int) -> list[StoredPayload]:
    """Read the payloads of the events ``start`` to ``end`` of a run."""
    rows = _PAYLOADS.rows(connection, run=run, start=start, end=end)
    return [
        StoredPayload(run=run, n=n, payload=_payload(kind, salt, content, sealed_by))
        for n, kind, salt, content, sealed_by in rows
    ]


def _payload(kind: str, salt: bytes | None, content: bytes, sealed_by: str | None) -> Payload:
    return Payload(kind=kind, salt=b"" if salt is None else salt, content=content, sealed_by=sealed_by)


def document(connection: Connection, digest: bytes) -> tuple[str, bytes] | None:
    """Read a document by its digest: (kind, content)."""
    row = _DOCUMENT.row(connection, digest=digest)
    return None if row is None else (row[0], row[1])


def all_documents(connection: Connection, *, after: bytes) -> Iterator[tuple[bytes, str, bytes]]:
    """Read the next page of documents, by digest: (digest, kind, content)."""
    yield from _DOCUMENTS.rows(connection, after=after, size=PAGE)
