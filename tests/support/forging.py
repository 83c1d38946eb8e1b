"""Somebody who may write the whole database, and knows how: rows that agree with events, events with each other.

The most careful forger there is uses our own fold. What they do not have is what lies outside the database: people's
private keys, the keyring's file, and the gate's own policy.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agentgate.core.attempts import took_us
from agentgate.core.counting import fold_run
from agentgate.core.fold import fold_action, with_tenant
from agentgate.core.records import ActionFile, RunRecord
from agentgate.event import decode
from agentgate.states import State
from agentgate.store import votes
from agentgate.store.actions import to_row
from support.edits import Copy
from support.rewriting import Document, events, rewrite


def forge(copy: Copy, run: str, change: Callable[[list[Document]], list[Document]]) -> None:
    """Rewrite a run's events, and make every row of it say what they add up to.

    Args:
        copy: the ledger.
        run: the run's id.
        change: from the events as they are to those that are to be.
    """
    documents = change(events(copy, run))
    places = {one["n"]: n for n, one in enumerate(documents) if "n" in one}
    rewrite(copy, run, documents)
    for row in _taken(copy, run, "payloads"):
        if row["n"] in places:
            copy.insert("payloads", row | {"n": places[row["n"]]})
    for table in ("votes", "approvals", "attempts", "locks", "actions"):
        _taken(copy, run, table)
    record, files = _folded(copy, run)
    for file in files.values():
        _insert(copy, file)
    moved = {"state": record.state.value, "reason": record.reason, "at_us": record.at_us} | asdict(record.counters)
    columns = ", ".join(f'"{name}" = ?' for name in moved)
    copy.run((f"UPDATE agentgate_runs SET {columns} WHERE id = ?", (*moved.values(), run)))


def _taken(copy: Copy, run: str, table: str) -> list[dict[str, Any]]:
    """Take a run's rows out of a table, and return them."""
    rows = [row for row in copy.rows(table) if row["run"] == run]
    for row in rows:
        copy.delete(table, row["rowid"])
    return rows


def _insert(copy: Copy, file: ActionFile) -> None:
    copy.insert("actions", to_row(file.action))
    for attempt in file.attempts.values():
        copy.insert("attempts", asdict(attempt) | {"unresolved": int(attempt.unresolved)})
    for approval in file.approvals.values():
        copy.insert("approvals", asdict(approval))
    for vote in file.votes.values():
        copy.insert("votes", votes.to_row(vote))


def _folded(copy: Copy, run: str) -> tuple[RunRecord, dict[str, ActionFile]]:
    record: RunRecord | None = None
    files: dict[str, ActionFile] = {}
    for row in sorted((row for row in copy.rows("events") if row["run"] == run), key=lambda row: int(row["n"])):
        event, was, now, took = decode(row["event"]), None, None, 0
        if event.action is not None:
            before = files.get(event.action)
            took = took_us(before, event)
            after = fold_action(before, event)
            assert record is not None
            if before is None:
                after = with_tenant(after, record.tenant)
            files[event.action] = after
            was, now = State.NEW if before is None else before.action.state, after.action.state
        record = fold_run(record, event, row["hash"], was=was, now=now, took_us=took)
    assert record is not None
    return record, files


def appended(*more: Document) -> Callable[[list[Document]], list[Document]]:
    """Return a change that puts events at the end of a run, each without what every event has."""

    def change(documents: list[Document]) -> list[Document]:
        last = documents[-1]
        usual = {"v": 1, "run": last["run"], "at_us": last["at_us"]}
        return [*documents, *(usual | one for one in more)]

    return change


def without(*types: str, action: str) -> Callable[[list[Document]], list[Document]]:
    """Return a change that takes an action's events of these types out of a run."""
    return lambda documents: [one for one in documents if one.get("action") != action or one["type"] not in types]


def edited(kind: str, change: Callable[[Any], None], *, action: str) -> Callable[[list[Document]], list[Document]]:
    """Return a change that edits an action's events of a type."""

    def changed(documents: list[Document]) -> list[Document]:
        documents = json.loads(json.dumps(documents))
        for one in documents:
            if one.get("action") == action and one["type"] == kind:
                change(one)
        return documents

    return changed
