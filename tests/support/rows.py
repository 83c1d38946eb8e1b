"""The plainest rows there are, for tests of transactions: a tenant's name is one text in one table."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import insert, select, text
from sqlalchemy.engine import Connection

from agentgate.core.draft import Plan
from agentgate.store import committing
from agentgate.store.engine import Database
from agentgate.store.schema import attempts as attempts_table
from agentgate.store.schema import tenants
from agentgate.store.statements import insert_all


def add(connection: Connection, name: str) -> None:
    connection.execute(insert(tenants).values(tenant=name))


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return names_in(connection)


def names_in(connection: Connection) -> list[str]:
    return list(connection.execute(select(tenants.c.tenant).order_by(tenants.c.tenant)).scalars())


def write(database: Database, *steps: Callable[[Connection], object]) -> None:
    """Take these steps in one transaction."""
    with database.write() as connection:
        for step in steps:
            step(connection)


def adding(name: str) -> Callable[[Connection], object]:
    return lambda connection: add(connection, name)


def running(sql: str, **values: object) -> Callable[[Connection], object]:
    return lambda connection: connection.execute(text(sql), values)


def raising(error: BaseException | type[BaseException]) -> Callable[[Connection], object]:
    def fail(_connection: Connection) -> None:
        raise error

    return fail


def commit(connection: Connection, plan: Plan) -> None:
    """Write a plan as a claim does: an attempt's row is there, open, before the event that starts it."""
    for before, after in plan.files:
        known: Mapping[int, Any] = {} if before is None else before.attempts
        for number, attempt in after.attempts.items():
            if number not in known:
                opened = replace(attempt, state="open", unresolved=False, ended_n=None, late_n=None)
                insert_all(connection, attempts_table, [asdict(opened) | {"unresolved": 0}])
    committing.write(connection, plan)
