"""Rows of people's keys: those that were added to the ledger, and those that are revoked in it. Few, read whole.

A row proves nothing: whoever writes the database wrote it. `agentgate.keyring` tells which of them are trusted.
"""

from sqlalchemy import bindparam, delete, select
from sqlalchemy.engine import Connection

from agentgate.canonical import parse
from agentgate.core.keybook import AddedRow
from agentgate.errors import NotCanonical
from agentgate.keyring import LedgerKey
from agentgate.store.schema import keys, revoked_keys
from agentgate.store.statements import Row, Statement, insert_all

_ADDED = Statement(select(keys).order_by(keys.c.n))
_ONE_REVOKED = Statement(
    select(revoked_keys.c.since_us, revoked_keys.c.n).where(revoked_keys.c.key == bindparam("key"))
)
_REVOKED = Statement(select(revoked_keys.c.key, revoked_keys.c.since_us))
_TAKE_OUT = Statement(delete(keys).where(keys.c.key == bindparam("key")))
_CLEAR = Statement(delete(revoked_keys).where(revoked_keys.c.key == bindparam("key")))


def added(connection: Connection) -> list[LedgerKey]:
    """Read the keys that were added, in the order of their events."""
    return [_ledger_key(row) for row in _ADDED.rows(connection)]


def revoked(connection: Connection) -> dict[bytes, int]:
    """Read since when keys are revoked, by their hash."""
    return dict(_REVOKED.rows(connection))


def revocation(connection: Connection, key: bytes) -> tuple[int, int] | None:
    """Read since when a key is revoked, and the event that said so; None where it is not."""
    row = _ONE_REVOKED.row(connection, key=key)
    return None if row is None else (row[0], row[1])


def put(connection: Connection, key: bytes, row: AddedRow) -> None:
    """Write a key as its event says; what stood there of it before is gone."""
    _TAKE_OUT.write(connection, {"key": key})
    names = [column.name for column in keys.columns]
    insert_all(connection, keys, [dict(zip(names, (key, *row), strict=True))])


def revoke(connection: Connection, key: bytes, *, since_us: int, n: int) -> None:
    """Write since when a key is revoked, as event ``n`` says."""
    _CLEAR.write(connection, {"key": key})
    insert_all(connection, revoked_keys, [{"key": key, "since_us": since_us, "n": n}])


def _ledger_key(row: Row) -> LedgerKey:
    _, public, name, roles, from_us, until_us, signer, signature, _ = row
    return LedgerKey(
        public=public,
        name=name,
        roles=_roles(roles),
        from_us=from_us,
        until_us=until_us,
        signer=signer,
        signature=signature,
    )


def _roles(stored: bytes) -> tuple[str, ...]:
    """Read a list of roles; what is none makes a key that nothing was signed for."""
    try:
        found = parse(stored)
    except NotCanonical:
        return ("",)
    return tuple(map(str, found)) if type(found) is list else ("",)
