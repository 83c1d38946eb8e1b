"""Every inconsistent edit of a ledger is found: each cell, each row, one at a time, where all has happened."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import agentgate
from agentgate.core.verification import KINDS, VOLATILE
from support.edits import COLUMNS, PROVED, PROVED_TABLES, TABLES, Copy, Refused, another, others
from support.source import ROOT

# A CHECK leaves these no other value.
FIXED = {"ledger.one"}
# What must differ, so that the database takes a row a second time.
KEYS = {
    "tenants": ("tenant",),
    "runs": ("id", "name"),
    "events": ("n",),
    "payloads": ("n",),
    "documents": ("digest",),
    "actions": ("id", "key_text"),
    "attempts": ("fence", "number"),
    "approvals": ("id",),
    "votes": ("n",),
    "switches": ("tool",),
    "policies": ("tenant",),
    "budgets": ("measure",),
    "locks": ("resource",),
    "keys": ("key",),
    "standing": ("id",),
    "revoked_keys": ("key",),
}


def test_the_ledger_that_is_edited_is_whole_and_has_rows_in_every_table(copy: Copy) -> None:
    found = copy.verify()
    assert found.ok, found.breaks
    assert (found.runs, found.omitted) == (len(copy.rows("runs")), 0)
    assert found.events == len(copy.rows("events"))
    assert found.payloads == len(copy.rows("payloads"))
    assert found.documents == len(copy.rows("documents"))
    assert all(copy.rows(name) for name in TABLES)


def _documented() -> list[tuple[str, bool]]:
    """Read the table of columns in docs/format.md: each column, and whether it is called volatile."""
    page = (ROOT / "docs" / "format.md").read_text("utf-8").partition("## Columns: proved or volatile")[2]
    lines = (line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| `") and line.count("|") == 4)
    return [
        (f"{table.strip(' `')}.{column}", "*volatile*" in by)
        for table, by, columns in lines
        for column in re.findall(r"`(\w+)`", columns)
    ]


def test_every_column_is_written_down_as_proved_or_volatile() -> None:
    """A new column needs a verdict before anything else works."""
    documented = _documented()
    assert sorted(column for column, _ in documented) == sorted(COLUMNS)
    assert {column for column, volatile in documented if volatile} == VOLATILE


def test_every_kind_of_break_is_written_down() -> None:
    page = (ROOT / "docs" / "format.md").read_text("utf-8").partition("A break is told by a stable word")[2]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `") and line.count("|") == 3]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(KINDS)


def _first_rows(copy: Copy, name: str) -> list[dict[str, Any]]:
    rows = copy.rows(name)
    return [*rows[:1], *rows[len(rows) // 2 : len(rows) // 2 + 1], *rows[-1:]]


def _edited(copy: Copy, place: str, rows: list[dict[str, Any]]) -> Iterator[tuple[int, object]]:
    """Make each edit of a column in these rows, one at a time; yield those that the database takes."""
    name, _, column = place.partition(".")
    for row in rows:
        for value in others(name, TABLES[name].columns[column], row[column]):
            copy.fresh()
            try:
                copy.set(name, column, row["rowid"], value)
            except Refused:
                continue
            yield row["rowid"], value


@pytest.mark.parametrize("place", PROVED)
def test_a_change_of_a_proved_column_is_found(copy: Copy, place: str) -> None:
    edits = 0
    for rowid, _value in _edited(copy, place, _first_rows(copy, place.partition(".")[0])):
        edits += 1
        assert not copy.verify().ok, f"{place} of row {rowid}"
    assert edits or place in FIXED


@pytest.mark.slow
@pytest.mark.parametrize("place", PROVED)
def test_a_change_of_a_proved_column_is_found_in_every_row(copy: Copy, place: str) -> None:
    unseen = [edit for edit in _edited(copy, place, copy.rows(place.partition(".")[0])) if copy.verify().ok]
    assert not unseen


@pytest.mark.parametrize("name", PROVED_TABLES)
def test_a_row_that_is_gone_is_found(copy: Copy, name: str) -> None:
    unseen = []
    for row in copy.rows(name):
        copy.fresh().delete(name, row["rowid"])
        unseen += [row] if copy.verify().ok else []
    assert not unseen


@pytest.mark.parametrize("name", [name for name in PROVED_TABLES if name != "ledger"])
def test_a_row_that_nothing_made_is_found(copy: Copy, name: str) -> None:
    """Each row once more, under another key."""
    unseen = []
    for row in copy.rows(name):
        forged = row | {column: _free(name, column, row[column]) for column in KEYS[name]}
        copy.fresh().insert(name, forged)
        unseen += [forged] if copy.verify().ok else []
    assert not unseen


def _free(name: str, column: str, value: Any) -> Any:
    return value + 1_000 if type(value) is int else another(f"{name}.{column}", TABLES[name].columns[column], value)


def test_a_payload_that_an_event_does_not_name_is_found(copy: Copy) -> None:
    for row in copy.rows("payloads")[::10]:
        copy.fresh().insert("payloads", row | {"kind": "no kind"})
        (found,) = copy.verify().breaks
        assert (found.kind, found.run, found.n) == ("payload", row["run"], row["n"])


def test_a_ledger_has_one_row(copy: Copy) -> None:
    with pytest.raises(Refused):
        copy.insert("ledger", copy.rows("ledger")[0] | {"one": 2})


@pytest.mark.parametrize("place", PROVED)
def test_values_that_were_swapped_between_rows_are_found(copy: Copy, place: str) -> None:
    name, _, column = place.partition(".")
    table = TABLES[name].name
    differing = [(one, other) for one, other in pairwise(copy.rows(name)) if one[column] != other[column]]
    for one, other in differing[:4]:
        copy.fresh()
        set_ = f'UPDATE {table} SET "{column}" = ? WHERE rowid = ?'
        away = another(f"{name}.{column}", TABLES[name].columns[column], other[column])
        try:
            copy.run(
                (set_, (away, other["rowid"])),
                (set_, (other[column], one["rowid"])),
                (set_, (one[column], other["rowid"])),
            )
        except Refused:
            continue
        assert not copy.verify().ok, f"{place} of rows {one['rowid']} and {other['rowid']}"


def test_an_edit_is_told_with_its_place_and_without_its_value(copy: Copy) -> None:
    row = next(row for row in copy.rows("actions") if row["state"] == "SUCCEEDED")
    copy.set("actions", "principal", row["rowid"], "agent:mallory")
    (found,) = copy.verify().breaks
    assert (found.kind, found.run, found.row) == ("action_row", row["run"], row["id"])
    assert found.detail == "not what its events add up to: principal"
    assert agentgate.Break(kind="x", detail="y").to_json() == {
        "kind": "x", "run": None, "n": None, "row": None, "detail": "y",
    }  # fmt: skip
