"""A ledger in the database of a shop: its own tables are what transactional effects write to."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

import agentgate
from agentgate import Effect, Transactional
from agentgate.store import sqlite
from agentgate.tools.decorator import AnyTool
from support.worlds import World, made

CREDIT = text("INSERT INTO credits VALUES (:id, :account, :cents)")
TIMEOUT = timedelta(seconds=20)

Step = Callable[[Effect], object]


@dataclass(frozen=True, kw_only=True)
class Books(World):
    """A migrated ledger beside accounts and what they were credited."""

    def credited(self) -> list[str]:
        """Read whose credits there are, as everybody sees them."""
        return [row[0] for row in self.sql("SELECT id FROM credits ORDER BY id")]

    def credit(self, *steps: Step, **declared: Any) -> AnyTool:
        """Make the tool that credits an account, and does this afterwards, inside its effect."""

        def credit(id: str, account: str = "a1", cents: int = 1, *, effect: Effect) -> dict[str, str]:
            effect.connection.execute(CREDIT, {"id": id, "account": account, "cents": cents})
            for step in steps:
                step(effect)
            return {"credited": id}

        usual: dict[str, Any] = {"risk": "external", "recovery": Transactional(), "timeout": TIMEOUT}
        return agentgate.tool(**usual | declared)(credit)


def opened_books(folder: Path, journal: str | None = None) -> Books:
    """Make a ledger, and the shop's own tables in the same file."""
    made(folder, journal=journal)
    books = Books(folder=folder, journal=journal)
    books.sql("CREATE TABLE accounts (id TEXT PRIMARY KEY) STRICT")
    books.sql("INSERT INTO accounts VALUES ('a1'), ('a2')")
    books.sql(
        "CREATE TABLE credits (id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id), "
        "cents INTEGER NOT NULL CHECK (cents > 0)) STRICT"
    )
    books.sql("CREATE TABLE notes (of TEXT REFERENCES credits (id) DEFERRABLE INITIALLY DEFERRED) STRICT")
    return books


def saying(statement: str) -> Step:
    """Run one more statement inside the effect."""
    return lambda effect: effect.connection.exec_driver_sql(statement)


def raising(error: BaseException) -> Step:
    """End the effect with an exception."""

    def step(_effect: Effect) -> None:
        raise error

    return step


@contextmanager
def plain(books: Books) -> Iterator[Any]:
    """A connection of the caller's own, as they would make it."""
    with closing(sqlite.module().connect(str(books.path))) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection


@contextmanager
def begun(books: Books) -> Iterator[Any]:
    with plain(books) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
