"""A promise in docs/guarantees.md or docs/cases.md that no test holds is advertising."""

import re

import pytest

from support.source import ROOT, collected

GUARANTEES = ROOT / "docs" / "guarantees.md"
CASES = ROOT / "docs" / "cases.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
ROW = re.compile(r"^\| (?P<promise>.+) \| (?P<tests>[^|]+?) \|$", re.MULTILINE)


def _rows() -> list[tuple[str, str]]:
    pages = GUARANTEES.read_text("utf-8") + CASES.read_text("utf-8")
    rows = [(row["promise"], row["tests"]) for row in ROW.finditer(pages)]
    return [row for row in rows if row[1] != "tests"]


def test_there_is_something_to_hold() -> None:
    assert _rows()


@pytest.mark.parametrize(("promise", "tests"), _rows())
def test_a_promise_is_held_by_tests_that_exist(promise: str, tests: str) -> None:
    named = NAMED.findall(tests)
    assert named, f"no test named beside: {promise}"
    missing = [f"{path}::{name}" for path, name in named if name not in _defined(path)]
    assert not missing


def test_every_test_of_a_case_stands_beside_its_case() -> None:
    named = set(NAMED.findall(CASES.read_text("utf-8")))
    files = sorted((ROOT / "tests" / "gate").glob("test_cases_*.py"))
    tests = {(file.relative_to(ROOT).as_posix(), name) for file in files for name in collected(file)}
    assert sorted(test for test in tests - named if test[1].startswith("test_")) == []


def _defined(path: str) -> frozenset[str]:
    file = ROOT / path
    return collected(file) if file.is_file() else frozenset()
