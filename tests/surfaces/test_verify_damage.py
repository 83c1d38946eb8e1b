"""Damage of any kind is a break: whatever bytes a file holds, nothing is raised but that it cannot be opened."""

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate import Unavailable, UnsafeStore, Verification, WrongSchema
from agentgate.core.verification import KINDS, MOST, Break, Findings
from agentgate.store import sqlite
from support.edits import PROVED, TABLES, Copy, Refused
from support.rewriting import rewrite

ANYTHING: list[Any] = [None, 0, -1, 2**63 - 1, -(2**63), 1.5, "", "x", "\x00", "9" * 40, b"", b"\xff", b"{}", bytes(32)]


def _verified(copy: Copy) -> Verification | None:
    """Verify; None where the database could not be opened or read at all."""
    try:
        return copy.verify()
    except (Unavailable, UnsafeStore, WrongSchema):
        return None


def _loosened(copy: Copy) -> None:
    """Take the types from every table, as who writes the file can."""
    module: Any = sqlite.module()
    with closing(module.connect(copy.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')"
            " WHERE type = 'table' AND name LIKE 'agentgate%'"
        )
        connection.execute("PRAGMA writable_schema = OFF")


@pytest.mark.parametrize("name", TABLES)
def test_a_value_of_another_type_is_a_break(copy: Copy, name: str) -> None:
    _loosened(copy)
    loose = Copy(original=copy.path, path=copy.path.with_name("loose.db"))
    rows = copy.rows(name)
    for column in TABLES[name].columns:
        row = rows[len(rows) // 2]
        for value in ANYTHING:
            if (value, type(value)) == (row[column.name], type(row[column.name])):
                continue
            try:
                loose.fresh().set(name, column.name, row["rowid"], value)
            except Refused:
                continue
            found = loose.verify()
            assert not found.ok or f"{name}.{column.name}" not in PROVED, value
            assert all(one.kind in KINDS for one in found.breaks)


def test_text_that_is_no_utf_8_is_a_break(copy: Copy) -> None:
    for name, table in TABLES.items():
        for column in table.columns:
            row = copy.fresh().rows(name)[-1]
            if type(row[column.name]) is not str:
                continue
            spoilt = f'UPDATE {table.name} SET "{column.name}" = CAST(? AS TEXT) WHERE rowid = ?'
            try:
                copy.run((spoilt, (b"\xff\xfe" + row[column.name].encode(), row["rowid"])))
            except Refused:
                continue
            found = copy.verify()
            assert not found.ok or f"{name}.{column.name}" not in PROVED, f"{name}.{column.name}"
            assert "\udcff" not in str(found.to_json())


@given(seed=st.integers(0, 2**32), flips=st.integers(1, 40))
@settings(max_examples=150)
def test_a_file_with_flipped_bits_is_a_break_or_cannot_be_read(
    original: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, flips: int
) -> None:
    copy = Copy(original=original, path=tmp_path_factory.mktemp("flipped") / "agent.db").fresh()
    content, chance = bytearray(original.read_bytes()), random.Random(seed)
    for _ in range(flips):
        content[chance.randrange(100, len(content))] ^= 1 << chance.randrange(8)
    copy.path.write_bytes(content)
    found = _verified(copy)
    assert found is None or all(one.kind in KINDS for one in found.breaks)


def test_an_empty_ledger_table_is_a_break_and_the_rest_is_looked_at(copy: Copy) -> None:
    copy.delete("ledger", 1)
    found = copy.verify()
    assert [one.kind for one in found.breaks] == ["ledger_row"]
    assert found.ledger == next(row["id"] for row in copy.rows("runs") if row["tenant"] == "$ledger")
    assert found.events == len(copy.rows("events"))


@pytest.mark.parametrize("encoded", [b"", b"{}", b"null", b"[" * 2_000, b"\xff", b'{"v":1}', b"1" * 100_000])
def test_bytes_that_are_no_event_are_a_break(copy: Copy, encoded: bytes) -> None:
    row = copy.rows("events")[5]
    copy.set("events", "event", row["rowid"], encoded)
    (found,) = copy.verify().breaks
    assert (found.kind, found.run, found.n) == ("hash", row["run"], row["n"])


def test_a_chain_that_is_gone_is_one_gap(copy: Copy) -> None:
    run = copy.rows("runs")[-1]["id"]
    rewrite(copy, run, [])
    assert ("gap", run) in {(one.kind, one.run) for one in copy.verify().breaks}


def test_only_the_first_break_of_a_kind_in_a_run_is_told_and_the_others_are_counted() -> None:
    findings = Findings(most=3)
    for run in ("a", "b"):
        for n in range(5):
            findings.add(Break(kind="payload", run=run, n=n, detail="x"))
    assert [(one.run, one.n) for one in findings.breaks] == [("a", 0), ("b", 0)]
    assert findings.omitted == 8
    for kind in ("hash", "prev", "gap"):
        findings.add(Break(kind=kind, run="a", detail="x"))
    assert [one.kind for one in findings.breaks] == ["payload", "payload", "hash"]
    assert findings.omitted == 10
    assert MOST >= 1_000
