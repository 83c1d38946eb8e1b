"""Hints: the schema that each one means, byte for byte, in every process; and what has none."""
# ruff: noqa: PYI061, UP006, UP007, UP035, UP045 - the forms that people still write are what is tested

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Dict, Generic, List, Literal, Optional, TypeVar, Union

import annotated_types as at
import pytest

from agentgate.canonical import canonical, snapshot
from agentgate.errors import SpecRefused
from agentgate.tools.schemas import admit
from support.hinted import (
    Address,
    Cents,
    Colour,
    Inherited,
    Level,
    Line,
    Loop,
    Mixed,
    Node,
    Partial,
    Permission,
    Plain,
    Point,
    Unresolved,
    WithInitVar,
    WithOwnInit,
    Word,
    form,
    schema,
)

T = TypeVar("T")


def refusal(hint: object) -> SpecRefused:
    with pytest.raises(SpecRefused) as caught:
        form(hint)
    return caught.value


DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date"}

SCHEMAS: list[tuple[object, Any]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (type(None), {"type": "null"}),
    (Any, {}),
    (list, {"type": "array"}),
    (List, {"type": "array"}),
    (list[str], {"type": "array", "items": {"type": "string"}}),
    (List[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (tuple, {"type": "array"}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (list[Any], {"type": "array", "items": {}}),
    (dict, {"type": "object"}),
    (Dict, {"type": "object"}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
    (Literal["b", "a"], {"enum": ["a", "b"], "type": "string"}),
    (Literal[2, 1], {"enum": [1, 2], "type": "integer"}),
    (Literal[True], {"enum": [True], "type": "boolean"}),
    (Literal["a", 1, None, True], {"enum": ["a", 1, None, True]}),
    (Literal[1, True], {"enum": [1, True]}),
    (Colour, {"enum": ["blue", "red"], "type": "string"}),
    (Level, {"enum": [1, 2], "type": "integer"}),
    (Word, {"enum": ["yes"], "type": "string"}),
    (Optional[str], {"anyOf": [{"type": "null"}, {"type": "string"}]}),
    (str | None, {"anyOf": [{"type": "null"}, {"type": "string"}]}),
    (Union[str, int, None], {"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "string"}]}),
    (Cents, {"type": "integer"}),
    (date, DATE),
    (Annotated[str, "who"], {"type": "string", "description": "who"}),
    (
        Annotated[int, "how many", at.Ge(1), at.Lt(10)],
        {"type": "integer", "description": "how many", "minimum": 1, "exclusiveMaximum": 10},
    ),
    (Annotated[float, at.Interval(gt=0, le=1.5)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}),
    (Annotated[int, at.MultipleOf(5)], {"type": "integer", "multipleOf": 5}),
    (Annotated[str, at.Len(1, 9)], {"type": "string", "minLength": 1, "maxLength": 9}),
    (Annotated[list[int], at.MinLen(1)], {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
    (
        Annotated[dict[str, int], at.MaxLen(3)],
        {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 3},
    ),
    (Annotated[str | None, "who"], {"anyOf": [{"type": "null"}, {"type": "string"}], "description": "who"}),
    (
        Address,
        {"type": "object", "properties": {"street": {"type": "string"}, "since": DATE}, "required": ["street"]},
    ),
    (
        Partial,
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string", "description": "the b"}},
            "required": ["b"],
        },
    ),
    (
        Inherited,
        {
            "type": "object",
            "properties": {
                "street": {"type": "string"},
                "since": DATE,
                "country": {"enum": ["DE", "FR"], "type": "string"},
            },
            "required": ["street", "country"],
        },
    ),
    (
        Line,
        {
            "type": "object",
            "properties": {
                "sku": {"type": "string"},
                "count": {"type": "integer", "default": 1},
                "note": {"anyOf": [{"type": "null"}, {"type": "string"}], "default": None},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["sku"],
        },
    ),
]


@pytest.mark.parametrize(("hint", "expected"), SCHEMAS, ids=[str(hint) for hint, _ in SCHEMAS])
def test_a_hint_means_exactly_one_schema(hint: object, expected: Any) -> None:
    assert canonical(snapshot(schema(hint))) == canonical(expected)


@pytest.mark.parametrize("hint", [hint for hint, _ in SCHEMAS], ids=[str(hint) for hint, _ in SCHEMAS])
def test_every_schema_made_of_hints_is_admitted(hint: object) -> None:
    admit(schema(hint), tool="t")


def test_the_order_of_alternatives_and_literals_does_not_matter() -> None:
    # typing keeps one cache entry for both orders: which of them is seen depends on what was imported before.
    assert schema(List[Literal["x", "y"]]) == schema(List[Literal["y", "x"]])
    assert canonical(schema(int | str | None)) == canonical(schema(None | str | int))


@pytest.mark.parametrize(
    "hint",
    [
        object,
        complex,
        set,
        set[int],
        frozenset,
        bytearray,
        timedelta,
        Plain,
        Point,
        Permission,
        Mixed,
        T,
        Generic,
        Callable[[int], int],
        type[int],
        tuple[int, str],
        tuple[()],
        dict[int, str],
        dict[Any, str],
        Literal[b"a"],
        Literal[Colour.RED],
        list[set[int]],
        dict[str, Plain],
        int | Plain,
        Annotated[Plain, "x"],
        Annotated[str, 5],
        Annotated[str, "one", "two"],
        Annotated[str, at.Ge(1)],
        Annotated[int, at.MinLen(1)],
        Annotated[int, at.Ge(1), at.Ge(2)],
        Annotated[int, at.Ge("a")],
        Annotated[int, at.Ge(float("inf"))],
        Annotated[int | None, at.Ge(1)],
        Annotated[int, at.Predicate(bool)],
        Annotated[int, {"minimum": 1}],
        Node,
        Loop,
        WithInitVar,
        WithOwnInit,
        Unresolved,
        "str",
    ],
    ids=str,
)
def test_a_hint_outside_the_table_is_refused_by_name(hint: object) -> None:
    found = refusal(hint)
    assert found.path.startswith("/input_schema/properties/x")
    assert found.problem
    assert found.remedy


def test_two_alternatives_of_one_schema_cannot_be_told_apart() -> None:
    @dataclass
    class Twin:
        sku: str

    @dataclass
    class Other:
        sku: str

    assert "alternatives" in refusal(Twin | Other).problem


PROGRAM = """
import typing
typing.List[typing.Literal["z", "a", "m"]], typing.Optional[typing.Union[str, int]]
typing.Optional[typing.Literal["high", "low"]]
import test_hints_schemas
print(test_hints_schemas.everything().decode())
"""


def everything() -> bytes:
    """The canonical bytes of all schemas of this module's table."""
    more = [List[Literal["m", "a", "z"]], Optional[Union[int, str]], Optional[Literal["low", "high"]]]
    return canonical([schema(hint) for hint in (*(hint for hint, _ in SCHEMAS), *more)])


def test_another_process_that_imported_otherwise_gives_the_same_bytes() -> None:
    folders = os.pathsep.join(str(folder) for folder in Path(__file__).parents[:2])
    there = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
    )
    assert there.stdout.strip() == everything()
