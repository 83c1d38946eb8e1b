"""The plainest rows there are, for tests of transactions: a tenant's name is one text in one table."""

from collections.abc import Callable

from sqlalchemy import insert, select, text
from sqlalchemy.engine import Connection

from agentgate.store.engine import Database
from agentgate.store.schema import tenants


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
