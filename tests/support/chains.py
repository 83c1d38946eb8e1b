"""Whether a ledger's chains are whole, by formats.md and the standard library alone: no code of the package's."""

import hashlib
import json
import sqlite3
from collections import Counter
from typing import Any

ENDS = frozenset({"succeeded", "failed", "in_doubt"})


def broken(connection: sqlite3.Connection) -> list[str]:
    """Return what is wrong, in words; the empty list is a whole ledger.

    Args:
        connection: on the ledger's file, with the SQLite library that its gates use.
    """
    connection.execute("BEGIN")
    try:
        (ledger,) = connection.execute("SELECT id FROM agentgate_ledger").fetchone()
        found = [
            wrong
            for run, n, head in connection.execute("SELECT id, n, head FROM agentgate_runs").fetchall()
            for wrong in _chain(connection, ledger, run, n, head)
        ]
        found += _attempts(connection)
        found += _payloads(connection)
    finally:
        connection.execute("ROLLBACK")
    return found


def _digest(domain: str, content: bytes) -> bytes:
    return hashlib.sha256(f"agentgate/{domain}/v1".encode() + b"\x00" + content).digest()


def _chain(connection: sqlite3.Connection, ledger: str, run: str, n: int, head: bytes) -> list[str]:
    genesis = json.dumps({"ledger": ledger, "run": run}, separators=(",", ":")).encode()
    prev, found = _digest("genesis", genesis), []
    rows = connection.execute("SELECT n, hash, event FROM agentgate_events WHERE run = ? ORDER BY n", (run,)).fetchall()
    for expected, (at, hashed, encoded) in enumerate(rows):
        event = json.loads(encoded)
        if (at, event["n"], event["run"]) != (expected, expected, run):
            found.append(f"run {run}: position {expected} holds event {at}")
        if event["prev"] != prev.hex():
            found.append(f"run {run}: event {at} does not follow the one before it")
        if _digest("event", encoded) != hashed:
            found.append(f"run {run}: event {at} is not what its hash says")
        prev = hashed
    if not rows or (rows[-1][0], rows[-1][1]) != (n, head):
        found.append(f"run {run}: its row stands at {n}, its chain elsewhere")
    return found


def _attempts(connection: sqlite3.Connection) -> list[str]:
    """Every started has one end at most, exactly one unless it still executes, and every fence is given once."""
    started: Counter[tuple[str, int]] = Counter()
    ended: Counter[tuple[str, int]] = Counter()
    for action, event in _events(connection):
        body = event["body"]
        if event["type"] == "started":
            started[action, body["fence"]] += 1
        elif event["type"] in ENDS:
            ended[action, body["fence"]] += 1
    found = [f"fence {fence} started {times} times" for (_, fence), times in started.items() if times > 1]
    found += [f"fence {fence} ended {times} times" for (_, fence), times in ended.items() if times > 1]
    open_ = {row[0] for row in connection.execute("SELECT fence FROM agentgate_attempts WHERE state = 'open'")}
    if {fence for _, fence in started.keys() - ended.keys()} != open_:
        found.append("the attempts that are open are not those that have not ended")
    return found + [f"fence {fence} ended and never started" for _, fence in ended.keys() - started.keys()]


def _payloads(connection: sqlite3.Connection) -> list[str]:
    named = {
        (event["run"], event["n"], kind): digest
        for _, event in _events(connection)
        for kind, digest in event["body"].get("payloads", {}).items()
    }
    stored = {
        (run, n, kind): hashlib.sha256(f"agentgate/payload/v1\x00{kind}\x00".encode() + salt + content).hexdigest()
        for run, n, kind, salt, content in connection.execute(
            "SELECT run, n, kind, salt, content FROM agentgate_payloads"
        )
    }
    return [] if named == stored else [f"payloads differ from what events name: {len(named)} and {len(stored)}"]


def _events(connection: sqlite3.Connection) -> list[tuple[str, dict[str, Any]]]:
    rows = connection.execute("SELECT event FROM agentgate_events").fetchall()
    decoded = [json.loads(encoded) for (encoded,) in rows]
    return [(event.get("action", ""), event) for event in decoded]
