"""Rows of runs, of tenants' fingerprint keys, and the ledger's own row."""

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import bindparam, exists, insert, select, update
from sqlalchemy.engine import Connection

from agentgate.canonical import canonical, parse
from agentgate.core.records import Counters, RunRecord, counted
from agentgate.errors import Damaged, NotCanonical
from agentgate.states import RunState
from agentgate.store.schema import budgets, ledger, runs, tenants
from agentgate.store.statements import Row, Statement, insert_all

_COUNTERS = tuple(Counters.__dataclass_fields__)
_PAGE = 500

_BY_ID = Statement(
    # Asked with the row itself: where nothing is bounded, budgets cost no statement.
    select(runs, exists().where(budgets.c.tenant == runs.c.tenant)).where(runs.c.id == bindparam("id"))
)
_BY_NAME = Statement(select(runs).where(runs.c.tenant == bindparam("tenant"), runs.c.name == bindparam("name")))
_MOVE = Statement(
    update(runs)
    .where(runs.c.id == bindparam("id_"), runs.c.n == bindparam("was_n"), runs.c.head == bindparam("was_head"))
    .values({name: bindparam(name) for name in ("state", "reason", "n", "head", "at_us", *_COUNTERS)})
)
_AFTER = Statement(select(runs).where(runs.c.id > bindparam("after")).order_by(runs.c.id).limit(bindparam("size")))
_IDS = Statement(select(runs.c.id).where(runs.c.id > bindparam("after")).order_by(runs.c.id).limit(bindparam("size")))
_HEAD = Statement(select(runs.c.n, runs.c.head).where(runs.c.id == bindparam("id")))
_TENANT = Statement(select(tenants.c.fingerprint_key).where(tenants.c.tenant == bindparam("tenant")))


def _from_row(row: Row) -> RunRecord:
    id_, tenant, name, principal, limits, opened_at_us, state, reason, n, head, at_us, *counters = row
    return RunRecord(
        id=id_,
        tenant=tenant,
        name=name,
        principal=principal,
        limits=MappingProxyType(_limits(id_, limits)),
        opened_at_us=opened_at_us,
        state=_state(id_, state),
        reason=reason,
        n=n,
        head=head,
        at_us=at_us,
        counters=Counters(**dict(zip(_COUNTERS, counters, strict=True))),
    )


def _state(run: str, word: str) -> RunState:
    try:
        return RunState(word)
    except ValueError as error:
        raise Damaged(f"run {run}", f"is in no state of a run ({word!r})") from error


def _limits(run: str, encoded: bytes) -> dict[str, int]:
    try:
        limits = parse(encoded)
    except NotCanonical as error:
        raise Damaged(f"run {run}", "its limits are no JSON") from error
    if type(limits) is not dict:
        raise Damaged(f"run {run}", "its limits are no object")
    return {name: value for name, value in limits.items() if type(value) is int}


def to_row(run: RunRecord) -> dict[str, Any]:
    """Return a run as its row's columns hold it."""
    return {
        "id": run.id,
        "tenant": run.tenant,
        "name": run.name,
        "principal": run.principal,
        "limits": canonical(dict(run.limits)),
        "opened_at_us": run.opened_at_us,
        "state": run.state.value,
        "reason": run.reason,
        "n": run.n,
        "head": run.head,
        "at_us": run.at_us,
        **counted(run.counters),
    }


def read(connection: Connection, id: str) -> RunRecord | None:
    """Read a run by id, and whether anything of its tenant is bounded."""
    row = _BY_ID.row(connection, id=id)
    return None if row is None else replace(_from_row(row[:-1]), budgeted=bool(row[-1]))


def find(connection: Connection, *, tenant: str, name: str) -> RunRecord | None:
    """Read a run by its tenant and name."""
    row = _BY_NAME.row(connection, tenant=tenant, name=name)
    return None if row is None else _from_row(row)


def write(connection: Connection, before: RunRecord | None, after: RunRecord) -> bool:
    """Write a run that stands as it was read; return False if another transaction moved it."""
    if before is None:
        insert_all(connection, runs, [to_row(after)])
        return True
    counters = counted(after.counters)
    moved = {"state": after.state.value, "reason": after.reason, "n": after.n, "head": after.head, "at_us": after.at_us}
    where = {"id_": after.id, "was_n": before.n, "was_head": before.head}
    return _MOVE.write(connection, moved | counters | where) == 1


def pages(connection: Connection, *, after: str = "") -> list[RunRecord]:
    """Read the next page of runs, by id; the empty list is the end."""
    return [_from_row(row) for row in _AFTER.rows(connection, after=after, size=_PAGE)]


def ids(connection: Connection, *, after: str = "") -> list[str]:
    """Read the next page of runs' ids, whatever else their rows say; the empty list is the end."""
    return [row[0] for row in _IDS.rows(connection, after=after, size=_PAGE)]


def head(connection: Connection, id: str) -> tuple[int, bytes] | None:
    """Read where a run's chain ends: the position and the hash of its last event."""
    row = _HEAD.row(connection, id=id)
    return None if row is None else (row[0], row[1])


def listing(connection: Connection, *, tenant: str | None) -> Iterator[RunRecord]:
    """Read every run, of one tenant or of all, the ledger's own chain left out."""
    after = ""
    while page := pages(connection, after=after):
        yield from (run for run in page if run.tenant == (tenant or run.tenant) and run.tenant != "$ledger")
        after = page[-1].id


def ledger_id(connection: Connection) -> str:
    """Read the ledger's id.

    Raises:
        Damaged: the ledger has no row of its own.
    """
    row = connection.execute(select(ledger.c.id)).one_or_none()
    if row is None:
        raise Damaged("ledger", "its row is missing")
    return str(row[0])


def create_ledger(connection: Connection, *, id: str, at_us: int) -> None:
    """Write the ledger's own row, once."""
    connection.execute(insert(ledger).values(one=1, id=id, created_at_us=at_us))


def has_ledger(connection: Connection) -> bool:
    """Tell whether the ledger's row is there."""
    return connection.execute(select(ledger.c.id)).one_or_none() is not None


def ledger_row(connection: Connection) -> tuple[str, int] | None:
    """Read the ledger's row: (id, created_at_us)."""
    row = connection.execute(select(ledger.c.id, ledger.c.created_at_us)).one_or_none()
    return None if row is None else (str(row[0]), int(row[1]))


def fingerprint_key(connection: Connection, tenant: str) -> bytes | None:
    """Read a tenant's fingerprint key; None where the tenant is new or its key was destroyed."""
    row = _TENANT.row(connection, tenant=tenant)
    return None if row is None else row[0]


def create_tenant(connection: Connection, *, tenant: str, fingerprint_key: bytes) -> None:
    """Write a tenant with its fingerprint key."""
    insert_all(connection, tenants, [{"tenant": tenant, "fingerprint_key": fingerprint_key}])


def has_tenant(connection: Connection, tenant: str) -> bool:
    """Tell whether a tenant is known."""
    return _TENANT.row(connection, tenant=tenant) is not None
