"""Rewriting a run's chain with fresh hashes, as somebody who may write the whole database can."""

import json
from contextlib import closing
from typing import Any

from agentgate.canonical import canonical
from agentgate.event import event_hash, genesis
from agentgate.store import sqlite
from support.edits import Copy

Document = dict[str, Any]


def events(copy: Copy, run: str) -> list[Document]:
    """Read a run's events as documents, in order."""
    rows = sorted((row for row in copy.rows("events") if row["run"] == run), key=lambda row: int(row["n"]))
    return [json.loads(row["event"]) for row in rows]


def rewrite(copy: Copy, run: str, documents: list[Document]) -> None:
    """Store other events in place of a run's, linked and hashed afresh, and the head on the run's row."""
    (ledger,) = (row["id"] for row in copy.rows("ledger"))
    head = genesis(ledger, run)
    module: Any = sqlite.module()
    with closing(module.connect(copy.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM agentgate_events WHERE run = ?", (run,))
        for n, document in enumerate(documents):
            encoded = canonical(document | {"n": n, "prev": head.hex()})
            head = event_hash(encoded)
            connection.execute("INSERT INTO agentgate_events VALUES (?, ?, ?, ?)", (run, n, head, encoded))
        connection.execute("UPDATE agentgate_runs SET n = ?, head = ? WHERE id = ?", (len(documents) - 1, head, run))
        connection.execute("COMMIT")


def forget(copy: Copy, run: str) -> None:
    """Delete a run with everything that is its own."""
    module: Any = sqlite.module()
    with closing(module.connect(copy.path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        votes = "DELETE FROM agentgate_votes WHERE run = ?"
        connection.execute(votes, (run,))
        for table in ("locks", "approvals", "attempts", "actions", "payloads", "events"):
            connection.execute(f"DELETE FROM agentgate_{table} WHERE run = ?", (run,))
        connection.execute("DELETE FROM agentgate_runs WHERE id = ?", (run,))
        connection.execute("COMMIT")
