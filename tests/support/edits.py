"""Editing a copy of a ledger behind everybody's back, one cell or row at a time."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Integer, LargeBinary, Table

import agentgate
from agentgate import Verification
from agentgate.core.verification import VOLATILE
from agentgate.states import STATES, RunState
from agentgate.store import sqlite
from agentgate.store.schema import metadata

TABLES: dict[str, Table] = {table.name.removeprefix("agentgate_"): table for table in metadata.sorted_tables}
COLUMNS = tuple(f"{name}.{column.name}" for name, table in TABLES.items() for column in table.columns)
PROVED = tuple(name for name in COLUMNS if name not in VOLATILE)
PROVED_TABLES = tuple(name for name in TABLES if any(place.startswith(f"{name}.") for place in PROVED))

# What a CHECK allows: another of these words is what an edit can write there.
WORDS: dict[str, tuple[str, ...]] = {
    "runs.state": tuple(RunState),
    "actions.state": tuple(STATES),
    "actions.confirmed": ("yes", "no"),
    "attempts.state": ("open", "succeeded", "failed", "in_doubt"),
    "approvals.kind": ("approval", "question"),
    "approvals.state": ("pending", "granted", "used", "rejected", "expired", "revoked", "void"),
    "switches.kind": ("all", "tenant", "tool"),
    "budgets.kind": ("tenant", "tool", "account"),
}


class Refused(Exception):
    """The database itself does not take the edit."""


@dataclass(frozen=True)
class Copy:
    """A ledger that may be edited, and is taken back to what it was by `fresh`."""

    original: Path
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def fresh(self) -> "Copy":
        shutil.copyfile(self.original, self.path)
        return self

    def run(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        """Write in one transaction, without the database's own checks of references.

        Raises:
            Refused: a CHECK, a key or a type is in the way.
        """
        module: Any = sqlite.module()
        with closing(module.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("BEGIN")
            try:
                for sql, values in statements:
                    assert connection.execute(sql, values).rowcount == 1, sql
            except module.IntegrityError as error:
                raise Refused(str(error)) from error
            connection.execute("COMMIT")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Read a table, each row with its ``rowid``."""
        module: Any = sqlite.module()
        with closing(module.connect(self.path)) as connection:
            found = connection.execute(f"SELECT rowid, * FROM {TABLES[name].name} ORDER BY rowid").fetchall()
        names = ("rowid", *TABLES[name].columns.keys())
        return [dict(zip(names, row, strict=True)) for row in found]

    def set(self, name: str, column: str, rowid: int, value: object) -> None:
        self.run((f'UPDATE {TABLES[name].name} SET "{column}" = ? WHERE rowid = ?', (value, rowid)))

    def delete(self, name: str, rowid: int) -> None:
        self.run((f"DELETE FROM {TABLES[name].name} WHERE rowid = ?", (rowid,)))

    def insert(self, name: str, row: dict[str, Any]) -> None:
        columns = [column for column in row if column != "rowid"]
        marks = ", ".join("?" * len(columns))
        quoted = ", ".join(f'"{column}"' for column in columns)
        values = tuple(row[column] for column in columns)
        self.run((f"INSERT INTO {TABLES[name].name} ({quoted}) VALUES ({marks})", values))

    def verify(self) -> Verification:
        return agentgate.verify(self.url)


def others(name: str, column: Column[Any], value: Any) -> Iterator[Any]:
    """Yield what else a cell could hold: another value of its type, and NULL where it may be."""
    yield another(f"{name}.{column.name}", column, value)
    if column.nullable and value is not None:
        yield None


def another(place: str, column: Column[Any], value: Any) -> Any:
    """Return another value of a column's type, not far from the one that stands there."""
    if place in WORDS:
        return next(word for word in WORDS[place] if word != value)
    if isinstance(column.type, Integer):
        return 1 if value is None else value + 1
    if isinstance(column.type, LargeBinary):
        return bytes([value[0] ^ 1]) + value[1:] if value else bytes(32)
    return "x" if value is None else f"{value}x"
