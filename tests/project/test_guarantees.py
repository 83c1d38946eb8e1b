"""A promise in docs/guarantees.md that no test holds is advertising."""

import re

import pytest

from support.source import ROOT, collected

PAGE = ROOT / "docs" / "guarantees.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
ROW = re.compile(r"^\| (?P<promise>[^|]+?) \| (?P<tests>[^|]+?) \|$", re.MULTILINE)


def _rows() -> list[tuple[str, str]]:
    rows = [(row["promise"], row["tests"]) for row in ROW.finditer(PAGE.read_text("utf-8"))]
    return [row for row in rows if row[0] != "guarantee" and not set(row[0]) <= set("-: ")]


def test_there_is_something_to_hold() -> None:
    assert _rows()


@pytest.mark.parametrize(("promise", "tests"), _rows())
def test_a_guarantee_is_held_by_tests_that_exist(promise: str, tests: str) -> None:
    named = NAMED.findall(tests)
    assert named, f"no test named beside: {promise}"
    missing = [f"{path}::{name}" for path, name in named if name not in _defined(path)]
    assert not missing


def _defined(path: str) -> frozenset[str]:
    file = ROOT / path
    return collected(file) if file.is_file() else frozenset()
