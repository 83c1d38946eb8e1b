"""Recounting what is used of every budget: each against the sums over rows, in the snapshot that it was read in.

Those who write meanwhile move both in one transaction, so any snapshot holds sums that agree. What the rows of runs
and actions say themselves is proved by walking their chains.
"""

from typing import Any

from sqlalchemy.engine import Connection

from agentgate.core.budgets import MEASURES, Place, held
from agentgate.errors import Damaged
from agentgate.gate.auditing import Audit
from agentgate.jcs import encodable
from agentgate.store import budgets, inspecting, sweeping
from agentgate.store.agreement import named
from agentgate.store.schema import budgets as table
from agentgate.store.statements import Row


def sweep_budgets(audit: Audit) -> None:
    """Find budgets of which something else is used than their rows add up to."""
    start: str | None = sweeping.FIRST
    while start is not None:
        with audit.read() as connection:
            rows = sweeping.bounded_tenants(connection, start=start)
        for (tenant,) in rows:
            if type(tenant) is str and encodable(tenant):
                _recount(audit, tenant)
        start = audit.after(rows[-1][0]) if len(rows) == sweeping.PAGE else None


def _recount(audit: Audit, tenant: str) -> None:
    with audit.read() as connection:
        rows = sweeping.budgets_of(connection, tenant)
        sums = _Sums(connection, tenant)
        wrong = [(row, why) for row in rows if (why := _wrong(row, sums)) is not None]
    for row, why in wrong:
        audit.broken("budget_row", why, row="/".join(map(str, row[:5])))


class _Sums:
    """What is used of a tenant's budgets, each summed up once within one snapshot."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._found: dict[tuple[str, str, str], dict[str, int]] = {}
        self._accounts: dict[str, int] | None = None

    def used(self, place: Place) -> dict[str, int]:
        """Return what is used at a place by measure.

        Raises:
            Damaged: a row that is summed up holds no amounts.
        """
        if place.kind == "account":
            if self._accounts is None:
                self._accounts = budgets.used_of_accounts(self._connection, tenant=self._tenant)
            return {"amount": self._accounts.get(place.name, 0)}
        key = (place.kind, place.namespace, place.name)
        if key not in self._found:
            self._found[key] = budgets.used(self._connection, tenant=self._tenant, place=place)
        return self._found[key]


def _wrong(row: Row, sums: _Sums) -> str | None:
    """Say why a row should not be as it is; None where it should."""
    if not inspecting.fits(table, row):
        return "it holds what its columns cannot"
    of: dict[str, Any] = named(table, row)
    if of["measure"] not in MEASURES.get(of["kind"], ()) or (
        of["kind"] == "tenant" and (of["namespace"], of["name"]) != ("", "")
    ):
        return "nothing of its kind is measured so"
    place = Place(kind=of["kind"], namespace=of["namespace"], name=of["name"])
    try:
        used = held(sums.used(place)[of["measure"]])
    except Damaged:
        return "what is used of it cannot be added up"
    return None if of["used"] == used else "not what its rows add up to: used"
