"""What may be done through a connection that was lent: SQLite's authorizer, asked as each statement is prepared.

Everything is refused that is not named here. A statement of somebody else's may read and write tables that are not
the ledger's, and make and drop such tables and their indexes; it may not end the transaction, leave the file, set the
connection up otherwise, or leave something behind in the connection (a temporary table, a trigger).
"""

import sqlite3
from typing import Any

ENDS = "the gate begins and ends this transaction: return to have it committed, raise to have it undone"
OURS = "agentgate_"  # tables, and the savepoints that are set around what is lent

_ELSEWHERE = "keep to tables of your own"
_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_WRITES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_SHAPES = frozenset(
    {
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_REINDEX,  # part of making an index
    }
)
_LOOKING = frozenset(
    {
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
        "foreign_key_check", "collation_list", "compile_options",
    }
)  # fmt: skip
_SCHEMA = frozenset({"sqlite_master", "sqlite_schema"})  # SQLite itself writes there where a table is made
_KINDS = {
    sqlite3.SQLITE_ATTACH: "attaches another database",
    sqlite3.SQLITE_DETACH: "detaches a database",
    sqlite3.SQLITE_CREATE_TRIGGER: "makes a trigger",
    sqlite3.SQLITE_CREATE_VIEW: "makes a view",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "makes a temporary table",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "makes a temporary trigger",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "makes a temporary view",
}


def offence(action: int, first: str | None, second: str | None) -> str | None:
    """Say what a statement does that it may not; None where it may.

    Args:
        action: SQLite's number of it.
        first: its first operand, as the authorizer is told: mostly a table.
        second: its second one.
    """
    one, two = (first or "").lower(), (second or "").lower()
    if action in _READS:
        return f"reads {first}, which is the ledger's; {_ELSEWHERE}" if one.startswith(OURS) else None
    if action in _WRITES:
        return _written(one)
    if action in _SHAPES:
        ours = one.startswith((OURS, "sqlite_")) or two.startswith(OURS)
        return (
            f"changes tables that are the ledger's; {_ELSEWHERE}"
            if ours and not one.startswith("sqlite_autoindex_")
            else None
        )
    if action == sqlite3.SQLITE_FUNCTION:
        return "loads code into the database" if two == "load_extension" else None
    if action == sqlite3.SQLITE_SAVEPOINT:
        return f"touches the gate's own savepoint {second}" if two.startswith(OURS) else None
    if action == sqlite3.SQLITE_PRAGMA:
        return None if one in _LOOKING else f"sets the connection up (PRAGMA {first}); leave it as it is"
    if action == sqlite3.SQLITE_TRANSACTION:
        return f"begins or ends a transaction ({first}); {ENDS}"
    kind = _KINDS.get(action, f"does what SQLite numbers {action}")
    return f"{kind}; it may read and write tables, and make and drop them"


def _written(table: str) -> str | None:
    if table.startswith(OURS):
        return f"writes {table}, which is the ledger's; {_ELSEWHERE}"
    if table == "sqlite_temp_master":
        return "makes something temporary, which would stay in the connection; make it a table"
    if table.startswith("sqlite_") and table not in _SCHEMA:
        return f"writes {table}, which is SQLite's; {_ELSEWHERE}"
    return None


class Guard:
    """An authorizer, for as long as it is set.

    Args:
        raw: the connection of the DBAPI.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._on = False
        self.refused: str | None = None

    def set(self) -> None:
        """Judge every statement from now on, also those that were prepared before."""
        self._on = True
        self._raw.set_authorizer(self._judge)

    def take_off(self) -> None:
        """Judge no statement any more."""
        self._on = False  # first: where an interruption comes in between, what stays set refuses nothing
        self._raw.set_authorizer(None)

    def _judge(self, action: int, first: str | None, second: str | None, *_place: str | None) -> int:
        if not self._on:
            return sqlite3.SQLITE_OK
        found = offence(action, first, second)
        if found is None:
            return sqlite3.SQLITE_OK
        self.refused = found
        return sqlite3.SQLITE_DENY
