"""Rows of standing grants: an index into the ledger's own chain, and what has been taken back.

What a grant says is read from its event and the payload beside it, never from its row: a row alone grants nothing.
"""

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, literal_column, select, update
from sqlalchemy.engine import Connection

from agentgate.core.draft import Payload
from agentgate.policy.grants import PREFIX
from agentgate.store.schema import LIVE, budgets, documents, events, payloads, standing
from agentgate.store.statements import Row, Statement, insert_all

MOST_LIVE = 64
_PAGE = 100

_SAID = (
    standing.c.id, standing.c.revoked_n, budgets.c.most, budgets.c.used, events.c.hash, events.c.event,
    payloads.c.salt, payloads.c.content, payloads.c.sealed_by,
)  # fmt: skip
_FROM = (
    standing.outerjoin(
        budgets,
        and_(
            budgets.c.tenant == standing.c.tenant,
            budgets.c.kind == literal_column("'account'"),
            budgets.c.namespace == literal_column("''"),
            budgets.c.name == literal_column(f"'{PREFIX}'").concat(standing.c.id),
            budgets.c.measure == literal_column("'amount'"),
        ),
    )
    .outerjoin(events, and_(events.c.run == bindparam("ledger"), events.c.n == standing.c.n))
    .outerjoin(
        payloads,
        and_(
            payloads.c.run == bindparam("ledger"),
            payloads.c.n == standing.c.n,
            payloads.c.kind == bindparam("kind"),
        ),
    )
)
_WHOLE = (*_SAID, documents.c.content)
_FROM_ALL = _FROM.outerjoin(documents, documents.c.digest == standing.c.spec)
_OF_TOOL = (
    LIVE,
    standing.c.tenant == bindparam("tenant"),
    standing.c.namespace == bindparam("namespace"),
    standing.c.tool == bindparam("tool"),
    standing.c.until_us > bindparam("at_us"),
)
_LIVE = Statement(
    select(*_SAID).select_from(_FROM).where(*_OF_TOOL).order_by(standing.c.until_us, standing.c.id).limit(MOST_LIVE)
)
_COUNT = Statement(select(func.count()).select_from(standing).where(*_OF_TOOL))
_ONE = Statement(select(*_WHOLE).select_from(_FROM_ALL).where(standing.c.id == bindparam("id")))
_ALL = Statement(
    select(*_WHOLE)
    .select_from(_FROM_ALL)
    .where(standing.c.id > bindparam("after"))
    .order_by(standing.c.id)
    .limit(_PAGE)
)
_SERVES = Statement(
    select(standing.c.id).where(
        LIVE,
        standing.c.id == bindparam("id"),
        standing.c.tenant == bindparam("tenant"),
        standing.c.namespace == bindparam("namespace"),
        standing.c.tool == bindparam("tool"),
        standing.c.spec == bindparam("spec"),
        standing.c.until_us > bindparam("at_us"),
    )
)
_REVOKE = Statement(update(standing).where(LIVE, standing.c.id == bindparam("id")).values(revoked_n=bindparam("by_n")))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGrant:
    """A grant as it lies in the tables.

    Args:
        id: its id.
        revoked: whether it was taken back.
        most: the bound of its account; None where there is none.
        used: of it.
        hash: its event's.
        encoded: its event; None where it is missing.
        payload: the payload of the kind that was asked for; None where it is gone.
        definition: its tool's, as it lies there; None where that is missing, or was not asked for.
    """

    id: str
    revoked: bool
    most: int | None
    used: int
    hash: bytes | None
    encoded: bytes | None
    payload: Payload | None
    definition: bytes | None = None


def add(connection: Connection, row: dict[str, object]) -> None:
    """Add a grant's row."""
    insert_all(connection, standing, [row])


def revoke(connection: Connection, id: str, *, n: int) -> bool:
    """Take a grant back, as event ``n`` says; return False where that was done before."""
    return _REVOKE.write(connection, {"id": id, "by_n": n}) == 1


def live(
    connection: Connection, *, ledger: str, tenant: str, namespace: str, tool: str, at_us: int
) -> list[StoredGrant]:
    """Read a tool's grants that are neither revoked nor over, soonest over first, with their predicates."""
    about = {"tenant": tenant, "namespace": namespace, "tool": tool, "at_us": at_us}
    return [_stored(row, "facts") for row in _LIVE.rows(connection, ledger=ledger, kind="facts", **about)]


def count(connection: Connection, *, tenant: str, namespace: str, tool: str, at_us: int) -> int:
    """Count a tool's grants that are neither revoked nor over."""
    row = _COUNT.row(connection, tenant=tenant, namespace=namespace, tool=tool, at_us=at_us)
    return 0 if row is None else int(row[0])


def one(connection: Connection, id: str, *, ledger: str, kind: str) -> StoredGrant | None:
    """Read a grant, with one of its payloads."""
    row = _ONE.row(connection, ledger=ledger, kind=kind, id=id)
    return None if row is None else _stored(row, kind)


def page(connection: Connection, *, ledger: str, kind: str, after: str) -> list[StoredGrant]:
    """Read the next grants by id, each with one of its payloads."""
    return [_stored(row, kind) for row in _ALL.rows(connection, ledger=ledger, kind=kind, after=after)]


def serves(
    connection: Connection, id: str, *, tenant: str, namespace: str, tool: str, spec: bytes | None, at_us: int
) -> bool:
    """Tell whether a grant stands, for this tool as it is."""
    about = {"tenant": tenant, "namespace": namespace, "tool": tool, "spec": spec, "at_us": at_us}
    return _SERVES.row(connection, id=id, **about) is not None


def _stored(row: Row, kind: str) -> StoredGrant:
    id_, revoked_n, most, used, hash_, encoded, salt, content, sealed_by, *whole = row
    payload = None
    if content is not None:
        payload = Payload(kind=kind, salt=salt or b"", content=content, sealed_by=sealed_by)
    return StoredGrant(
        id=id_,
        revoked=revoked_n is not None,
        most=most,
        used=used or 0,
        hash=hash_,
        encoded=encoded,
        payload=payload,
        definition=whole[0] if whole else None,
    )
