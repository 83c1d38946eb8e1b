"""Which schema a database has, read without alembic, and whether this code may use it.

Nothing here migrates: `agentgate.store.migration` does, on an explicit call alone.
"""

from dataclasses import dataclass

from sqlalchemy import Column, MetaData, String, Table, inspect, select
from sqlalchemy.engine import Connection

from agentgate.errors import Damaged, WrongSchema
from agentgate.store.schema import REVISION, VERSION_TABLE

MISSING = "missing"

# Written by alembic; kept out of `schema.metadata`, which holds the ledger's own tables.
_versions = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What an upgrade found and left.

    Args:
        url: the database, without its options.
        before: its revision before; None where it had none.
        after: its revision now.
        created: whether this call made the ledger.
        ledger: the ledger's id.
    """

    url: str
    before: str | None
    after: str
    created: bool
    ledger: str


def current(connection: Connection) -> str | None:
    """Read the schema's revision; None where no ledger was ever made.

    Raises:
        Damaged: the version table names several revisions; no release writes that.
    """
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(select(_versions.c.version_num)).scalars().all()
    if len(found) > 1:
        raise Damaged(VERSION_TABLE, f"names {len(found)} revisions")
    return str(found[0]) if found else None


def is_newer(found: str | None) -> bool:
    """Tell whether a revision was made by later code than this: revisions are numbered in the order they came."""
    return found is not None and found > REVISION


def check_version(connection: Connection, url: str) -> None:
    """Refuse a database whose tables are not the ones this code was written for.

    Raises:
        WrongSchema: the tables are missing, older or newer; ``remedy`` says which of the two to bring up.
    """
    found = current(connection)
    if found == REVISION:
        return
    if is_newer(found):
        raise newer(url, str(found))
    raise WrongSchema(url, found or MISSING, REVISION, f"run: agentgate migrate {url}")


def newer(url: str, found: str) -> WrongSchema:
    """Make the refusal of a database that later code has migrated."""
    return WrongSchema(url, found, REVISION, "upgrade agentgate: a later version has migrated this database")
