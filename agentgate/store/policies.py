"""Rows of the active policies: one for every tenant, or one of a tenant's own, which takes precedence."""

from sqlalchemy import bindparam, delete, select
from sqlalchemy.engine import Connection

from agentgate.store.schema import policies
from agentgate.store.statements import Row, Statement, insert_all

EVERYBODY = ""

_OF = Statement(select(policies.c.policy, policies.c.n).where(policies.c.tenant == bindparam("tenant")))
_GOVERNING = Statement(
    select(policies.c.tenant, policies.c.policy, policies.c.n)
    .where(policies.c.tenant.in_([EVERYBODY, bindparam("tenant")]))
    .order_by(policies.c.tenant.desc())  # a tenant's own before everybody's, which has no name
    .limit(1)
)
_ALL = Statement(select(policies.c.tenant, policies.c.policy, policies.c.n).order_by(policies.c.tenant))
_CLEAR = Statement(delete(policies).where(policies.c.tenant == bindparam("tenant")))


def of(connection: Connection, tenant: str) -> tuple[bytes, int] | None:
    """Read a tenant's own entry, or that of ``EVERYBODY``: (policy, event); None where there is none."""
    row = _OF.row(connection, tenant=tenant)
    return None if row is None else (row[0], row[1])


def governing(connection: Connection, tenant: str) -> Row | None:
    """Read the entry that holds for a tenant now: (whose entry, policy, event); None where there is none."""
    return _GOVERNING.row(connection, tenant=tenant)


def all_active(connection: Connection) -> list[Row]:
    """Read every entry, everybody's first: (tenant, policy, event)."""
    return _ALL.rows(connection)


def activate(connection: Connection, *, tenant: str, policy: bytes, n: int) -> None:
    """Write an entry as event ``n`` of the ledger's own chain says."""
    _CLEAR.write(connection, {"tenant": tenant})
    insert_all(connection, policies, [{"tenant": tenant, "policy": policy, "n": n}])
