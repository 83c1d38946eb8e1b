"""Founding a ledger: its id, its own row, and the first link of the chain that belongs to no run."""

from sqlalchemy.engine import Connection

from agentgate.chain import start
from agentgate.clock import Clock, new_id
from agentgate.core.draft import Draft
from agentgate.errors import Damaged
from agentgate.store import runs
from agentgate.store.committing import write

FORMAT = 1


def found(connection: Connection, clock: Clock) -> tuple[str, bool]:
    """Make the ledger where it has not been made; return its id and whether it is new.

    Args:
        connection: in a writing transaction, over empty or present tables.
        clock: gives the id and the time of the first event.

    Raises:
        Damaged: there are runs but no ledger they belong to; a new id would hide that.
    """
    row = runs.ledger_row(connection)
    if row is not None:
        return row[0], False
    if runs.pages(connection):
        raise Damaged("ledger", "its row is missing, but it has runs")
    id_, at_us = new_id(clock), clock.now_us()
    runs.create_ledger(connection, id=id_, at_us=at_us)
    draft = Draft(start(id_, id_), None, at_us=at_us)
    # formats.md: schema-less, ending in the ledger's id; every checkpoint of the log will carry it.
    draft.add("ledger_created", {"format": FORMAT, "origin": f"agentgate/{id_}"})
    write(connection, draft.plan())
    return id_, True
