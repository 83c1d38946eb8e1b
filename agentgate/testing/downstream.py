"""A downstream system for tests: what an effect reaches, on a file of its own, shared by any number of processes.

It is the witness that a gate cannot talk to: every call that got through is one row, written in one transaction, so
a process killed in the middle leaves it whole. It knows nothing of the ledger.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from agentgate.effects import Effect
from agentgate.observation import ToolError

_PATIENCE_S = 60
_PAUSE_S = 0.001
_TABLES = """
CREATE TABLE IF NOT EXISTS arrivals (
    n INTEGER PRIMARY KEY, key TEXT NOT NULL, resource TEXT NOT NULL, fence INTEGER NOT NULL, verdict TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS arrivals_by_key ON arrivals (key, verdict);
CREATE TABLE IF NOT EXISTS fences (resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS barred (key TEXT PRIMARY KEY, fence INTEGER NOT NULL) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One call that reached the downstream.

    Args:
        key: the idempotency key it came with.
        resource: what it wanted to change.
        fence: the attempt's fence.
        verdict: ``applied``; ``repeated`` where the key was known and is deduped; ``fenced`` where a higher fence
            had been there before, or where the attempt was asked about and had not come through.
    """

    key: str
    resource: str
    fence: int
    verdict: str


class Downstream:
    """Count effects by idempotency key, and refuse those who come with an old fence.

    Args:
        path: its file; made where it is not there.
        dedupes: whether a key that was applied is applied no second time. Without it every arrival is an effect,
            so that a gate that runs something twice is found out.
    """

    def __init__(self, path: str | PathLike[str], *, dedupes: bool = False) -> None:
        self._path = Path(path)
        self._dedupes = dedupes
        with self._transaction() as connection:
            for statement in _TABLES.split(";"):
                connection.execute(statement)

    def apply(self, effect: Effect, *, resource: str = "") -> bool:
        """Do what a tool wants done, in one transaction; call it from inside an effect.

        Args:
            effect: as the gate handed it to the tool.
            resource: what is changed; fences are compared per resource.

        Returns:
            Whether it was applied now; False where the key was known.

        Raises:
            ToolError: ``precondition_failed``, nothing done: a worker with a higher fence has been here.
        """
        with self._transaction() as connection:
            verdict = self._judge(connection, effect, resource)
            connection.execute(
                "INSERT INTO arrivals (key, resource, fence, verdict) VALUES (?, ?, ?, ?)",
                (effect.idempotency_key, resource, effect.fence, verdict),
            )
        if verdict == "fenced":
            raise ToolError("precondition_failed", "a worker with a higher fence has been here", effect="none")
        return verdict == "applied"

    def has_applied(self, effect: Effect) -> bool:
        """Tell whether a key was applied, and let nobody apply it who comes with this fence or an older one.

        What a downstream that can be probed does: after "no" the attempt that was asked about can no longer come
        through. Call it from a probe, with the effect that it is given.
        """
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT 1 FROM arrivals WHERE key = ? AND verdict = 'applied' LIMIT 1", (effect.idempotency_key,)
            ).fetchone()
            if row is None:
                connection.execute("INSERT OR IGNORE INTO barred VALUES (?, 0)", (effect.idempotency_key,))
                connection.execute(
                    "UPDATE barred SET fence = max(fence, ?) WHERE key = ?", (effect.fence, effect.idempotency_key)
                )
        return row is not None

    def _judge(self, connection: sqlite3.Connection, effect: Effect, resource: str) -> str:
        row = connection.execute("SELECT fence FROM fences WHERE resource = ?", (resource,)).fetchone()
        if row is not None and effect.fence < row[0]:
            return "fenced"
        barred = connection.execute("SELECT fence FROM barred WHERE key = ?", (effect.idempotency_key,)).fetchone()
        if barred is not None and effect.fence <= barred[0]:
            return "fenced"
        connection.execute("INSERT OR REPLACE INTO fences VALUES (?, ?)", (resource, effect.fence))
        known = connection.execute(
            "SELECT 1 FROM arrivals WHERE key = ? AND verdict = 'applied' LIMIT 1", (effect.idempotency_key,)
        ).fetchone()
        return "repeated" if self._dedupes and known is not None else "applied"

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Every call that reached it, in the order they came."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT key, resource, fence, verdict FROM arrivals ORDER BY n").fetchall()
        return tuple(
            Arrival(key=key, resource=resource, fence=fence, verdict=verdict) for key, resource, fence, verdict in rows
        )

    @property
    def effects(self) -> Mapping[str, int]:
        """How often each idempotency key was applied."""
        return Counter(arrival.key for arrival in self.arrivals if arrival.verdict == "applied")

    @property
    def total(self) -> int:
        """How many effects there were in all."""
        return sum(self.effects.values())

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open, write, commit, close: a connection that is kept would not survive a fork."""
        with closing(sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)) as connection:
            # What a killed process committed stays; what a power cut takes is nobody's business in a test.
            connection.execute("PRAGMA synchronous = OFF")
            _begin(connection)
            yield connection
            connection.execute("COMMIT")


def _begin(connection: sqlite3.Connection) -> None:
    """Begin to write; asked in short turns, because SQLite's own waiting grows and leaves somebody out."""
    connection.execute("PRAGMA busy_timeout = 0")
    for left in reversed(range(int(_PATIENCE_S / _PAUSE_S))):
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            if left == 0:
                raise
            time.sleep(_PAUSE_S)
        else:
            connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_S * 1_000}")
            return
