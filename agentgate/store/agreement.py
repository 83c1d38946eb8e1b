"""Whether stored rows are what the events add up to: each whole row against its record, column by column.

Reads nothing; yields what disagrees as (kind, row, detail), with names of columns and never their values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from sqlalchemy import Table

from agentgate.core.records import ActionFile, ApprovalRecord, AttemptRecord, RunRecord, VoteRecord
from agentgate.core.verification import VOLATILE
from agentgate.states import State
from agentgate.store import actions as action_rows
from agentgate.store import runs as run_rows
from agentgate.store import votes as vote_rows
from agentgate.store.inspecting import Stored
from agentgate.store.schema import actions, approvals, attempts, locks, metadata, runs, votes
from agentgate.store.statements import Row

Disagreement: TypeAlias = tuple[str, str, str]

_VOLATILE = {
    table.name: frozenset(
        column.name for column in table.columns if f"{table.name.removeprefix('agentgate_')}.{column.name}" in VOLATILE
    )
    for table in metadata.tables.values()
}


def named(table: Table, row: Row) -> dict[str, Any]:
    """Return a whole row by column names."""
    return dict(zip(table.columns.keys(), row, strict=True))


def differing(table: Table, expected: Mapping[str, Any], row: Row) -> str | None:
    """Name the proved columns in which a row is not what it should be; None where it is."""
    volatile = _VOLATILE[table.name]
    found = [
        name
        for name, value in zip(table.columns.keys(), row, strict=True)
        if name not in volatile and (value != expected[name] or type(value) is not type(expected[name]))
    ]
    return ", ".join(found) if found else None


def compare_run(record: RunRecord, row: Row) -> Iterator[Disagreement]:
    """Compare a run's row with what its events add up to."""
    found = differing(runs, run_rows.to_row(record), row)
    if found is not None:
        yield "run_row", record.id, f"not what its events add up to: {found}"


def compare_action(file: ActionFile, stored: Stored, *, parallel: bool) -> Iterator[Disagreement]:
    """Compare an action's rows in every table with what its events add up to.

    Args:
        file: as its events leave it.
        stored: its rows.
        parallel: whether its spec lets it share its resource.
    """
    id_ = file.action.id
    if stored.action is None:
        yield "action_row", id_, "its row is missing"
    else:
        found = differing(actions, action_rows.to_row(file.action), stored.action)
        if found is not None:
            yield "action_row", id_, f"not what its events add up to: {found}"
    parts = (
        ("attempt_row", attempts, "number", file.attempts.values(), stored.attempts),
        ("approval_row", approvals, "id", file.approvals.values(), stored.approvals),
        ("vote_row", votes, "n", file.votes.values(), stored.votes),
    )
    for kind, table, key, records, rows in parts:
        expected = {getattr(one, key): _columns(one) for one in records}
        for place, detail in _compare_all(table, key, expected, rows):
            yield kind, f"{id_}/{place}", detail
    if holds(file, parallel=parallel):
        yield from _compare_lock(file, stored.lock)


def _columns(record: AttemptRecord | ApprovalRecord | VoteRecord) -> dict[str, Any]:
    if isinstance(record, VoteRecord):
        return vote_rows.to_row(record)
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: int(value) if type(value) is bool else value for name, value in values.items()}


def _compare_all(
    table: Table, key: str, expected: Mapping[Any, Mapping[str, Any]], rows: list[Row]
) -> Iterator[tuple[str, str]]:
    stored = {named(table, row)[key]: row for row in rows}
    for place, columns in expected.items():
        row = stored.get(place)
        found = None if row is None else differing(table, columns, row)
        if row is None:
            yield str(place), "its row is missing"
        elif found is not None:
            yield str(place), f"not what its events add up to: {found}"
    for place in stored.keys() - expected.keys():
        yield str(place), "no event made this row"


def holds(file: ActionFile, *, parallel: bool) -> bool:
    """Tell whether an action keeps others from its resource now (design §5)."""
    action = file.action
    if action.resource is None or parallel or action.state is State.ABANDONED:
        return False
    return action.state in {State.EXECUTING, State.UNKNOWN} or action.unresolved > 0


def _compare_lock(file: ActionFile, lock: Row | None) -> Iterator[Disagreement]:
    action = file.action
    if lock is None:
        yield "lock_row", action.id, "its resource is free, though it may be at work there"
        return
    of = named(locks, lock)
    # After a late answer somebody else may be at work there already: then they wait for each other's end.
    late = any(one.unresolved and one.late_n is not None for one in file.attempts.values())
    if of["action"] != action.id and not late:
        yield "lock_row", action.id, "its resource is held by another action, though it may be at work there"
    if of["action"] == action.id and (of["run"], of["fence"]) != (action.run, action.fence):
        yield "lock_row", action.id, "its lock names another run, or another attempt's fence"
