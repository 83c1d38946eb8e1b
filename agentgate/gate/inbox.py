"""One list of all that waits for a person: what is paused, held, in doubt, halted. Read in short snapshots."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from sqlalchemy.engine import Connection

from agentgate.clock import to_datetime
from agentgate.errors import Damaged
from agentgate.event import decode
from agentgate.gate.ledger import Ledger
from agentgate.gate.switching import Scope
from agentgate.states import State
from agentgate.store import events, inbox, switches
from agentgate.store.statements import Row

Kind = Literal["paused", "held", "unknown", "halted"]
_ID = 8  # of an action in doubt, in a page of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Something that goes on, or ends, only once a person says so.

    Args:
        kind: ``paused``: a scope that is resumed; ``held``: an action that is approved or not; ``unknown``: one that is
            reconciled or abandoned; ``halted``: a run that is closed.
        since: when it was paused, asked about, first started or halted.
        until: when it ends by itself: the question's, where it is held.
        reason: the code of why.
        tenant: whose it is; None where a pause is of everybody.
        run: its run's id, where it is of one.
        name: its run's name.
        action: its id, where it is one.
        namespace: the tool's server.
        tool: the tool's name.
        approval: id of the question that can be answered, where there is one.
        late: whether an attempt has answered too late: look at it with `show`, or at ``Unknown.late``.
    """

    kind: Kind
    since: datetime
    until: datetime | None = None
    reason: str
    tenant: str | None
    run: str | None = None
    name: str | None = None
    action: str | None = None
    namespace: str = ""
    tool: str | None = None
    approval: str | None = None
    late: bool = False


def waiting(ledger: Ledger, *, tenant: str | None) -> Iterator[Waiting]:
    """Read all that waits for a person: what is paused, then what is held, in doubt, and halted.

    Args:
        ledger: the record.
        tenant: whose; None for everybody's.
    """
    with ledger.database.read() as connection:
        paused = list(_paused(connection, ledger, tenant))
    yield from paused
    yield from _pages(ledger, tenant, inbox.held, _held, after=(0, ""), place=lambda row: row[:2])
    yield from _pages(ledger, tenant, inbox.unknown, _unknown, after="", place=lambda row: row[_ID])
    yield from _pages(ledger, tenant, inbox.halted, _halted, after=(tenant or "", ""), place=lambda row: row[:2])


class _Page(Protocol):
    def __call__(self, connection: Connection, tenant: str | None, *, after: Any) -> list[Row]: ...


def _pages(
    ledger: Ledger,
    tenant: str | None,
    read: _Page,
    make: Callable[[Row], Waiting],
    *,
    after: object,
    place: Callable[[Row], object],
) -> Iterator[Waiting]:
    while True:
        with ledger.database.read() as connection:
            page = read(connection, tenant, after=after)
        if not page:
            return
        yield from map(make, page)
        after = place(page[-1])


def _paused(connection: Connection, ledger: Ledger, tenant: str | None) -> Iterator[Waiting]:
    for (_, of, namespace, tool), n in switches.paused(connection):
        if tenant is not None and of not in ("", tenant):
            continue
        link = events.link(connection, ledger.id, n)
        if link is None:
            raise Damaged("a switch", f"event {n} of the ledger is missing")
        scope, at_us = Scope(tenant=of or None, tool=tool or None, namespace=namespace), decode(link.encoded).at_us
        yield Waiting(
            kind="paused",
            since=to_datetime(at_us),
            reason="paused",
            tenant=scope.tenant,
            namespace=scope.namespace,
            tool=scope.tool,
        )


def _held(row: Row) -> Waiting:
    expires_at_us, approval, asked_at_us, *about = row
    return Waiting(
        kind="held",
        since=to_datetime(asked_at_us),
        until=to_datetime(expires_at_us),
        reason="approval_required",
        approval=approval,
        **_about(about),
    )


def _unknown(row: Row) -> Waiting:
    started_us, state, reason, approval, late, *about = row
    said = reason if state == State.UNKNOWN and reason is not None else "late"
    return Waiting(
        kind="unknown", since=to_datetime(started_us), reason=said, approval=approval, late=bool(late), **_about(about)
    )


def _halted(row: Row) -> Waiting:
    tenant, id_, name, reason, at_us = row
    return Waiting(
        kind="halted", since=to_datetime(at_us), reason=reason or "halted", tenant=tenant, run=id_, name=name
    )


def _about(columns: list[Any]) -> dict[str, Any]:
    return dict(zip(("tenant", "run", "name", "action", "namespace", "tool"), columns, strict=True))
