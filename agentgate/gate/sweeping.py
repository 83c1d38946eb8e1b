"""Sweeping the tables for rows that no chain leads to: strays, locks, tenants, documents."""

from collections.abc import Callable, Iterator
from typing import Any

from agentgate.gate.auditing import Audit
from agentgate.gate.recounting import sweep_budgets
from agentgate.jcs import encodable
from agentgate.store import inspecting, sweeping
from agentgate.store.agreement import named
from agentgate.store.schema import actions, locks, tenants
from agentgate.store.statements import Row

_HOLDING = frozenset({"EXECUTING", "UNKNOWN"})


def sweep_documents(audit: Audit) -> None:
    """Check every stored document; what names them is found out by the walks that follow."""
    start: bytes | None = b""
    while start is not None:
        with audit.read() as connection:
            rows = sweeping.stored_documents(connection, start=start)
        for row in rows:
            audit.documents.take(row)
        start = rows[-1][0] + b"\0" if rows and type(rows[-1][0]) is bytes else None


def run_ids(audit: Audit) -> Iterator[str]:
    """Yield the ids of the runs there were at the beginning, in order; what made itself one since is left out."""
    with audit.read() as connection:
        last = sweeping.last_run(connection)
    start: str | None = sweeping.FIRST
    while start is not None:
        with audit.read() as connection:
            rows = sweeping.run_ids(connection, start=start)
        for (id_,) in rows:
            if type(id_) is str and encodable(id_):
                yield id_
            else:
                audit.broken("unreadable", "a run's id is no text", row=id_)
            if id_ == last:
                return
        start = audit.after(rows[-1][0]) if rows else None


def sweep_strays(audit: Audit) -> None:
    """Find rows whose run, action or approval has no row."""
    for kind in sweeping.CHAINS:
        with audit.surviving():
            _sweep_chains(audit, kind)
    for kind in sweeping.PARTS:
        with audit.surviving():
            _sweep_parts(audit, kind)


def _sweep_chains(audit: Audit, kind: str) -> None:
    start: str | None = sweeping.FIRST
    while start is not None:
        with audit.read() as connection:
            found = sweeping.chains(connection, kind, start=start)
        if found is None:
            return
        run, there = found
        if there is None:
            told = "run_row" if kind == "event" else kind
            audit.broken(told, f"{_WHAT[kind]} of a run that has no row", row=run)
        start = audit.after(run)


def _sweep_parts(audit: Audit, kind: str) -> None:
    start: str | None = sweeping.FIRST
    while start is not None:
        with audit.read() as connection:
            rows = sweeping.parts(connection, kind, start=start)
        for owner, there in rows:
            if there is None:
                audit.broken(kind, f"it belongs to {_WHAT[kind]} that has no row", row=owner)
        start = audit.after(rows[-1][0]) if len(rows) == sweeping.PAGE else None


_WHAT = {
    "event": "events",
    "payload": "payloads",
    "action_row": "actions",
    "attempt_row": "an action",
    "approval_row": "an action",
    "vote_row": "an approval",
}


def sweep_tenants(audit: Audit) -> None:
    """Find tenants that no run has, and those whose key is none."""
    start: str | None = sweeping.FIRST
    while start is not None:
        with audit.read() as connection:
            rows = sweeping.known_tenants(connection, start=start)
        for *row, in_use in rows:
            if not in_use:
                audit.broken("tenant_row", "no run is of this tenant", row=row[0])
            elif not inspecting.fits(tenants, tuple(row)):
                audit.broken("unreadable", "a tenant's row holds what its columns cannot", row=row[0])
            elif audit.keys.key(row[0]) is None:
                audit.broken("fingerprint", "the tenant's key is no key, and no event says that it is gone", row=row[0])
        start = audit.after(rows[-1][0]) if len(rows) == sweeping.PAGE else None


def sweep_locks(audit: Audit) -> None:
    """Find locks that nobody should hold."""
    tenant: str | None = sweeping.FIRST
    resource = b""
    while tenant is not None:
        with audit.read() as connection:
            rows = sweeping.held_locks(connection, tenant=tenant, resource=resource)
        for lock, action in rows:
            wrong = _wrong(audit, lock, action)
            if wrong is not None:
                audit.broken("lock_row", wrong, row=_place(lock))
        if len(rows) < sweeping.PAGE:
            return
        last = rows[-1][0]
        # Not past the last tenant, but on in it: what `after` says is whether it can be asked for.
        tenant = None if audit.after(last[0]) is None or type(last[1]) is not bytes else last[0]
        resource = last[1] + b"\0" if type(last[1]) is bytes else b""


def _wrong(audit: Audit, lock: Row, action: Row) -> str | None:
    """Say why a lock should not be there, as its action stands in the same snapshot; None where it should."""
    held, by = named(locks, lock), named(actions, action)
    if not inspecting.fits(locks, lock):
        return "it holds what its columns cannot"
    if by["id"] is None or not inspecting.fits(actions, action):
        return "the action that it names is not there"
    if any(held[name] != by[name] for name in ("tenant", "resource", "run", "fence")):
        return "its action has another tenant, resource, run or fence"
    at_work = by["state"] in _HOLDING or (by["unresolved"] > 0 and by["state"] != "ABANDONED")
    if not at_work:
        return "its action is at rest, with nothing in doubt"
    said = None if by["spec"] is None else audit.documents.spec(by["spec"])
    return "its action's tool locks nothing" if said is not None and said.parallel else None


def _place(lock: Row) -> str:
    tenant, resource, *_ = lock
    return f"{tenant}/{resource.hex() if type(resource) is bytes else '?'}"


def count_events(audit: Audit) -> int:
    """Count the events there are, as the runs' rows tell."""
    total = 0
    start: str | None = sweeping.FIRST
    while start is not None:
        with audit.read() as connection:
            count, last = sweeping.total(connection, start=start)
        total += count
        start = None if last is None else sweeping.after(last)
    return total


SWEEPS: tuple[Callable[[Audit], Any], ...] = (sweep_strays, sweep_tenants, sweep_locks, sweep_budgets)
