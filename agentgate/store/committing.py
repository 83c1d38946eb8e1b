"""Writing a plan: all of it, each row only where it still stands as it was read."""

from collections.abc import Iterable

from sqlalchemy.engine import Connection

from agentgate.core.budgets import Budget
from agentgate.core.draft import Plan
from agentgate.store import actions, budgets, events, runs


class Moved(Exception):
    """A row was no longer as it was read; the transaction must be undone and decided again."""


def write(connection: Connection, plan: Plan) -> None:
    """Write ``plan``.

    Raises:
        Moved: another transaction was faster. Inside BEGIN IMMEDIATE that means that the rows were read before
            it began.
    """
    for digest, kind, content in plan.documents:
        events.add_document(connection, digest, kind, content)
    if not runs.write(connection, plan.before, plan.after):
        raise Moved
    actions.add(connection, [after for before, after in plan.files if before is None])
    for before, after in plan.files:
        if not actions.write(connection, before, after):
            raise Moved
    events.append(connection, plan.after.id, plan.links)
    events.add_payloads(connection, plan.payloads)


def spend(connection: Connection, tenant: str, moves: Iterable[tuple[Budget, Budget]]) -> None:
    """Write what is used of budgets, in the order of their places.

    Raises:
        Moved: as `write`.
    """
    for before, after in moves:
        if not budgets.move(connection, tenant, before, after):
            raise Moved
