"""A function's signature: the schema of its arguments, and the parameter that takes the Effect."""

import json
import sys
from typing import Annotated, Any

import pytest

from agentgate.errors import SpecRefused
from agentgate.tools.hints import effect_parameter, first_paragraph, read_hints


class Effect:
    __agentgate_effect__ = True


def plain(account: str, cents: int = 5, *, memo: str | None = None) -> dict[str, str]:
    """Give money
    back.

    More about it.
    """
    return {account: f"{cents}{memo}"}


def test_a_signature_becomes_an_object_schema() -> None:
    assert read_hints(plain, tool="plain").schema == {
        "type": "object",
        "properties": {
            "account": {"type": "string"},
            "cents": {"type": "integer", "default": 5},
            "memo": {"anyOf": [{"type": "null"}, {"type": "string"}], "default": None},
        },
        "required": ["account"],
    }


def test_the_description_is_the_first_paragraph_on_one_line() -> None:
    assert read_hints(plain, tool="plain").description == "Give money back."
    assert first_paragraph(lambda: None) == ""


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def nothing() -> None: ...

    assert read_hints(nothing, tool="t").schema == {"type": "object", "properties": {}}


def test_the_effect_is_found_by_its_annotation_and_left_out() -> None:
    def named(a: int, *, handle: Effect) -> None: ...
    def written(a: int, *, handle: "Effect") -> None: ...
    def annotated(a: int, handle: Annotated[Effect, "x"]) -> None: ...
    def optional(a: int, handle: Effect | None = None) -> None: ...
    def misleading(a: int, effect: str) -> None: ...

    for function in (named, written, annotated, optional):
        hints = read_hints(function, tool="t")
        assert hints.effect == "handle"
        assert [parameter.name for parameter in hints.parameters] == ["a"]
        assert "handle" not in json.dumps(hints.schema)
    assert read_hints(misleading, tool="t").effect is None


def test_an_instance_of_an_effect_is_no_annotation_of_one() -> None:
    def function(a: Effect()) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(SpecRefused):
        read_hints(function, tool="t")


def test_two_effects_are_refused() -> None:
    def function(a: Effect, b: Effect) -> None: ...

    with pytest.raises(SpecRefused, match="a, b"):
        read_hints(function, tool="t")


def test_an_effect_whose_name_cannot_be_resolved_is_refused_by_its_parameter() -> None:
    def function(a: int, effect: "agentgate.NoSuch.Effect") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SpecRefused) as caught:
        read_hints(function, tool="t")
    assert caught.value.path == "/input_schema/properties/effect"


def test_what_has_no_signature_has_no_effect() -> None:
    assert effect_parameter(max, tool="t") is None
    assert effect_parameter(type, tool="t") is None


@pytest.mark.parametrize(
    ("source", "parameter"),
    [
        ("def f(a, b: int): ...", "a"),
        ("def f(a: int, *args: int): ...", "args"),
        ("def f(a: int, **kwargs: int): ...", "kwargs"),
        ("def f(a: 'Nowhere'): ...", "a"),
        ("def f(a: 'list[Nowhere]'): ...", "a"),
        ("def f(a: '1 +'): ...", "a"),
        ("def f(a: object): ...", "a"),
        ("def f(a: int = object()): ...", "a"),
        ("def f(a: int = float('nan')): ...", "a"),
        ("def f(self, a: int): ...", "self"),
    ],
)
def test_a_refusal_names_the_parameter(source: str, parameter: str) -> None:
    names: dict[str, Any] = {}
    exec(source, names)
    with pytest.raises(SpecRefused) as caught:
        read_hints(names["f"], tool="t")
    assert caught.value.path.startswith(f"/input_schema/properties/{parameter}")


def test_a_result_that_only_type_checkers_can_name_is_no_matter() -> None:
    def function(a: int) -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821

    assert read_hints(function, tool="t").schema["required"] == ["a"]


def test_hints_written_as_texts_mean_the_same() -> None:
    names: dict[str, Any] = {}
    source = """
from __future__ import annotations
from typing import NotRequired, TypedDict
from dataclasses import dataclass
class Address(TypedDict):
    street: str
    since: NotRequired[int]
@dataclass
class Line:
    sku: str
    address: Address | None = None
def f(line: Line, address: Address, count: int = 1): ...
"""
    exec(source, names)
    sys.modules["postponed"] = type(sys)("postponed")
    for each in ("Address", "Line", "f"):
        names[each].__module__ = "postponed"
    vars(sys.modules["postponed"]).update(names)
    read: Any = read_hints(names["f"], tool="t").schema
    assert read["properties"]["address"]["required"] == ["street"]
    assert read["properties"]["line"]["required"] == ["sku"]
    assert read["properties"]["count"] == {"type": "integer", "default": 1}
    del sys.modules["postponed"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is Python 3.12's")
def test_a_type_statement_is_another_name_for_its_hint() -> None:
    names: dict[str, Any] = {}
    exec("type Cents = int\ntype Loop = list[Loop]\ntype Of[T] = list[T]\ndef f(a: Cents): ...", names)
    assert read_hints(names["f"], tool="t").schema["properties"] == {"a": {"type": "integer"}}
    for hint in (names["Loop"], names["Of"][int]):
        names["f"].__annotations__ = {"a": hint}
        with pytest.raises(SpecRefused):
            read_hints(names["f"], tool="t")
