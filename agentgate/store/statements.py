"""Statements that run at every call: SQLAlchemy Core expressions, compiled once, executed on the raw cursor.

Core writes the SQL, so both databases share one text; compiling per call would cost twice the statement itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Table, bindparam, insert
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import ClauseElement

from agentgate.errors import Damaged

Row = tuple[Any, ...]

MOST_ROWS = 256  # of one INSERT: SQLite takes 32,766 values unless it was built for more, a row has up to 34
_EXACT = 8


class Statement:
    """A Core expression that is compiled once per dialect."""

    def __init__(self, expression: ClauseElement) -> None:
        self._expression = expression
        self._compiled: dict[str, tuple[str, tuple[str, ...], Mapping[str, Any]]] = {}

    def _for(self, dialect: Dialect) -> tuple[str, tuple[str, ...], Mapping[str, Any]]:
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled: Any = self._expression.compile(dialect=dialect)
            # What the expression itself binds: a compared word, a fixed LIMIT, and the OFFSET that SQLite's LIMIT gets.
            fixed = {name: bound.value for name, bound in compiled.binds.items() if not bound.required}
            found = self._compiled[dialect.name] = (str(compiled), tuple(compiled.positiontup), fixed)
        return found

    def _execute(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        sql, names, fixed = self._for(connection.dialect)
        raw: Any = connection.connection.dbapi_connection
        return raw.execute(sql, [fixed[name] if name in fixed else values[name] for name in names])

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        """Return every row."""
        return list(self._execute(connection, values).fetchall())

    def each(self, connection: Connection, **values: Any) -> Iterator[Row]:
        """Yield row after row, however many there are."""
        yield from self._execute(connection, values)

    def row(self, connection: Connection, **values: Any) -> Row | None:
        """Return the first row, or None."""
        found: Row | None = self._execute(connection, values).fetchone()
        return found

    def write(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Run an UPDATE, INSERT or DELETE, and return how many rows it touched."""
        return int(self._execute(connection, values).rowcount)

    def insert_one(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Insert a row whose integer key the database gives, and return that key."""
        return int(self._execute(connection, values).lastrowid)


def flag(where: str, stored: int) -> bool:
    """Read a yes or no; any other number would pass for a yes, and be one that no compare-and-set finds again.

    Raises:
        Damaged: it is one.
    """
    if stored not in (0, 1):
        raise Damaged(where, "its row holds a number where there is yes or no")
    return bool(stored)


def insert_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows: up to eight with one statement, more with one for each power of two in their number.

    So each table has a dozen shapes of statement that are ever compiled, whatever the numbers that come.
    """
    start = 0
    while start < len(rows):
        left = min(len(rows) - start, MOST_ROWS)
        part = rows[start : start + (left if left <= _EXACT else 1 << (left.bit_length() - 1))]
        values = {f"{name}_{i}": value for i, row in enumerate(part) for name, value in row.items()}
        _insert(table, len(part)).write(connection, values)
        start += len(part)


@lru_cache(maxsize=256)
def _insert(table: Table, count: int) -> Statement:
    columns: list[Column[Any]] = list(table.columns)
    rows = [
        {column.name: bindparam(f"{column.name}_{i}", type_=column.type) for column in columns} for i in range(count)
    ]
    return Statement(insert(table).values(rows))
