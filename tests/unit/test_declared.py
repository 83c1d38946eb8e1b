"""Which arguments a schema declares, and that only the rest are called undeclared."""

import pytest

from agentgate.canonical import Json
from agentgate.tools.declared import undeclared
from agentgate.tools.schemas import admit

SEVEN = "http://json-schema.org/draft-07/schema#"
A: Json = {"properties": {"a": {}}}
B: Json = {"properties": {"b": {}}}


def strangers(schema: Json, *names: str) -> tuple[str, ...]:
    return undeclared(admit(schema, tool="t"), dict.fromkeys(names))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {}, "b": {}}},
        {"properties": {"a": True, "b": False}},
        {"patternProperties": {"^[ab]$": {}}},
        {"$ref": "#/$defs/d", "$defs": {"d": {"allOf": [A, B]}}},
        {"allOf": [A, {"allOf": [B]}]},
        {"anyOf": [A, B]},
        {"oneOf": [A, B]},
        {"if": A, "then": B},
        {"if": True, "then": A, "else": B},
        {"dependentSchemas": {"z": {"allOf": [A, B]}}},
        {"$dynamicRef": "#d", "$defs": {"d": {"$dynamicAnchor": "d", "properties": {"a": {}, "b": {}}}}},
        {"$schema": SEVEN, "dependencies": {"z": {"properties": {"a": {}, "b": {}}}, "y": ["a"]}},
        {"$schema": SEVEN, "$ref": "#/definitions/d", "definitions": {"d": {"properties": {"a": {}, "b": {}}}}},
        {"properties": {"a": {}, "b": {}}, "additionalProperties": False},
    ],
)
def test_a_name_is_declared_wherever_a_subschema_for_the_same_value_names_it(schema: Json) -> None:
    assert strangers(schema, "b", "zz", "a", "c") == ("c", "zz")


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        True,
        {"not": A},
        {"required": ["a"]},
        {"dependentRequired": {"a": ["a"]}},
        {"propertyNames": {"enum": ["a"]}},
        {"properties": {"x": A}},
        {"items": A},
        {"$defs": {"d": A}},
        {"$schema": SEVEN, "$ref": "#/definitions/d", "properties": {"a": {}}, "definitions": {"d": {}}},
        {"additionalProperties": False},
        {"unevaluatedProperties": False},
    ],
)
def test_nothing_else_declares(schema: Json) -> None:
    assert strangers(schema, "a") == ("a",)


@pytest.mark.parametrize(
    "schema",
    [
        {"additionalProperties": True},
        {"additionalProperties": {}},
        {"additionalProperties": {"type": "string"}},
        {"unevaluatedProperties": {"type": "string"}},
        {"allOf": [A, {"additionalProperties": True}]},
        {"$ref": "#/$defs/d", "$defs": {"d": {"additionalProperties": {}}}},
    ],
)
def test_explicit_additional_properties_declare_every_name(schema: Json) -> None:
    assert strangers(schema, "a", "anything") == ()


@pytest.mark.parametrize("value", [None, 1, "a", ["a"], True])
def test_what_is_no_object_carries_no_names(value: Json) -> None:
    assert undeclared(admit(A, tool="t"), value) == ()


def test_a_name_matches_as_patterns_do() -> None:
    assert strangers({"patternProperties": {r"^\d$": {}}}, "7", "٧", "7\n") == ("7\n", "٧")


def test_names_that_would_cost_too_much_to_match_count_as_not_declared() -> None:
    schema: Json = {"patternProperties": {f"a[abc]{{{n}}}d": {} for n in range(880, 900)}}
    names = ["ab" * 5_000 + str(n) for n in range(50)]
    assert strangers(schema, *names) == tuple(sorted(names))
