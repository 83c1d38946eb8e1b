"""What a check tells: where, which keyword, what was expected; never the value, never an exception."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.canonical import Json
from agentgate.tools import validation
from agentgate.tools.schemas import admit
from agentgate.tools.validation import VALIDATOR, Violation, check

SEVEN = "http://json-schema.org/draft-07/schema#"
SECRET = "hunter2-and-more"


def violations(schema: Json, value: Any) -> tuple[Violation, ...]:
    return check(admit(schema, tool="t"), value)


def only(schema: Json, value: Any) -> tuple[str, str, str]:
    (violation,) = violations(schema, value)
    return violation.path, violation.keyword, violation.expected


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "string"}, 1, ("", "type", "string")),
        ({"type": ["integer", "null"]}, "x", ("", "type", "integer or null")),
        ({"enum": ["a", 2, None]}, "b", ("", "enum", 'one of "a", 2, null')),
        ({"const": {"k": [1]}}, 1, ("", "const", 'exactly {"k": [1]}')),
        ({"minimum": 3}, 2, ("", "minimum", "a number of at least 3")),
        ({"maximum": 3}, 4, ("", "maximum", "a number of at most 3")),
        ({"exclusiveMinimum": 3}, 3, ("", "exclusiveMinimum", "a number above 3")),
        ({"exclusiveMaximum": 0.5}, 0.5, ("", "exclusiveMaximum", "a number below 0.5")),
        ({"multipleOf": 5}, 7, ("", "multipleOf", "a multiple of 5")),
        ({"minLength": 1}, "", ("", "minLength", "at least 1 character")),
        ({"maxLength": 2}, "abc", ("", "maxLength", "at most 2 characters")),
        ({"pattern": "^a$"}, "b", ("", "pattern", "text matching ^a$")),
        ({"minItems": 2}, [], ("", "minItems", "at least 2 items")),
        ({"maxItems": 1}, [1, 2], ("", "maxItems", "at most 1 item")),
        ({"uniqueItems": True}, [1, 1], ("", "uniqueItems", "items that all differ")),
        ({"contains": {"type": "string"}}, [1], ("", "contains", "at least 1 item that fit `contains`")),
        ({"contains": True, "minContains": 2}, [1], ("", "minContains", "at least 2 items that fit `contains`")),
        ({"contains": True, "maxContains": 1}, [1, 2], ("", "maxContains", "at most 1 item that fit `contains`")),
        ({"items": False}, [1], ("/0", "items", "no further items")),
        ({"prefixItems": [{}], "items": False}, [1, 2], ("/1", "items", "no further items")),
        ({"items": {"type": "string"}}, ["a", 1], ("/1", "type", "string")),
        ({"unevaluatedItems": False}, [1], ("/0", "unevaluatedItems", "no further items")),
        ({"minProperties": 1}, {}, ("", "minProperties", "at least 1 property")),
        ({"maxProperties": 0}, {"a": 1}, ("", "maxProperties", "at most 0 properties")),
        ({"required": ["a"]}, {}, ("", "required", 'the property "a"')),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ("", "dependentRequired", 'the property "b"')),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, ("", "required", 'the property "b"')),
        ({"properties": {"a/b": {"type": "null"}}}, {"a/b": 1}, ("/a~1b", "type", "null")),
        ({"additionalProperties": False}, {"a": 1}, ("/a", "additionalProperties", "no property of this name")),
        ({"additionalProperties": {"type": "null"}}, {"a": 1}, ("/a", "type", "null")),
        ({"unevaluatedProperties": False}, {"a": 1}, ("/a", "unevaluatedProperties", "no property of this name")),
        (
            {"propertyNames": {"maxLength": 1}},
            {"ab": 1},
            ("/ab", "propertyNames", "another property name: at most 1 character"),
        ),
        ({"properties": {"a": False}}, {"a": 1}, ("/a", "not", "nothing here")),
        ({"not": {"type": "string"}}, "a", ("", "not", "a value that the schema under `not` does not accept")),
        ({"if": {"type": "string"}, "then": {"minLength": 1}}, "", ("", "minLength", "at least 1 character")),
        ({"if": {"type": "string"}, "else": {"minimum": 1}}, 0, ("", "minimum", "a number of at least 1")),
        (
            {"$schema": SEVEN, "items": [True], "additionalItems": False},
            [1, 2],
            ("/1", "additionalItems", "no further items"),
        ),
        ({"$schema": SEVEN, "dependencies": {"a": ["b"]}}, {"a": 1}, ("", "dependencies", 'the property "b"')),
        (
            {"$schema": SEVEN, "contains": {"type": "null"}},
            [1],
            ("", "contains", "at least 1 item that fit `contains`"),
        ),
    ],
)
def test_each_keyword_tells_where_and_what_it_expected(schema: Json, value: Json, told: tuple[str, str, str]) -> None:
    assert only(schema, value) == told


def test_every_wrong_place_is_told_in_order() -> None:
    schema: Json = {
        "required": ["account", "cents"],
        "properties": {"cents": {"type": "integer"}, "note": {"type": "string"}},
        "additionalProperties": False,
    }
    found = violations(schema, {"zeta": 1, "cents": "x", "note": 2})
    assert [(violation.path, violation.keyword) for violation in found] == [
        ("", "required"),
        ("/cents", "type"),
        ("/note", "type"),
        ("/zeta", "additionalProperties"),
    ]


def test_a_long_list_of_violations_is_cut_at_twenty() -> None:
    assert len(violations({"items": {"type": "string"}}, list(range(500)))) == 20


def test_what_is_expected_stays_short() -> None:
    schema: Json = {"properties": {"a": {"enum": ["x" * 1_000, *map(str, range(500))]}, "b": {"pattern": "y" * 1_000}}}
    for violation in violations(schema, {"a": "q", "b": "q"}):
        assert len(violation.expected) <= 200


def test_a_path_of_long_names_points_to_what_contains_it() -> None:
    schema: Json = {"properties": {"a": {"additionalProperties": False}}}
    assert violations(schema, {"a": {"n" * 100_000: 1}})[0].path == "/a"


# --- alternatives


OPTIONAL: Json = {"anyOf": [{"type": "object", "properties": {"n": {"type": "integer"}}}, {"type": "null"}]}
TAGGED: Json = {
    "oneOf": [
        {"properties": {"kind": {"const": "card"}, "number": {"type": "string"}}, "required": ["kind", "number"]},
        {"properties": {"kind": {"const": "cash"}}, "required": ["kind"]},
    ]
}


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, ("", "anyOf", "string or null")),
        (OPTIONAL, {"n": "x"}, ("/n", "type", "integer")),
        (OPTIONAL, 7, ("", "anyOf", "object or null")),
        (TAGGED, {"kind": "card"}, ("", "required", 'the property "number"')),
        (TAGGED, {"kind": "card", "number": 7}, ("/number", "type", "string")),
        (TAGGED, {"kind": "coin"}, ("", "oneOf", 'inside, exactly "card" or inside, exactly "cash"')),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            ("", "oneOf", 'the property "a" or the property "b"'),
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 2},
            ("", "oneOf", "no more than one of the 2 alternatives to fit"),
        ),
        (
            {"anyOf": [{"const": n} for n in range(40)]},
            "x",
            ("", "anyOf", " or ".join(f"exactly {n}" for n in range(6)) + " or one of 26 more"),
        ),
    ],
)
def test_of_alternatives_the_one_aimed_at_is_told_or_what_each_wants(
    schema: Json, value: Json, told: tuple[str, str, str]
) -> None:
    assert only(schema, value) == told


def test_nested_alternatives_tell_the_innermost() -> None:
    inner = OPTIONAL
    for _ in range(12):
        inner = {"anyOf": [{"type": "object", "required": ["k"], "properties": {"k": inner}}, {"type": "null"}]}
    value: Json = {"n": "x"}
    for _ in range(12):
        value = {"k": value}
    assert only(inner, value) == ("/k" * 12 + "/n", "type", "integer")


# --- never the value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"enum": [1]},
        {"const": 1},
        {"pattern": "^x$"},
        {"maxLength": 2},
        {"not": {}},
        False,
        {"anyOf": [{"type": "integer"}, {"maxLength": 3}]},
        {"oneOf": [True, True]},
        {"minLength": 100},
        {"if": True, "then": False},
    ],
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"k": v}])
def test_a_violation_never_holds_the_value(schema: Json, wrap: Any) -> None:
    for holder in (schema, {"items": schema, "additionalProperties": schema}, {"contains": schema, "minProperties": 9}):
        assert SECRET not in repr(violations(holder, wrap(SECRET)))


def test_a_property_s_name_stands_in_the_path_only() -> None:
    schema: Json = {"additionalProperties": False, "properties": {"a": {"additionalProperties": {"type": "null"}}}}
    for violation in violations(schema, {SECRET: 1, "a": {SECRET: 1}}):
        assert SECRET in violation.path
        assert SECRET not in violation.expected + violation.keyword


# --- what the numbers mean


@pytest.mark.parametrize(
    ("value", "divisor", "fits"),
    [
        (19.99, 0.01, True),
        (0.3, 0.1, True),
        (0.0075, 0.0001, True),
        (0.00751, 0.0001, False),
        (1e308, 0.5, True),
        (1e308, 1e-300, True),
        (1.5, 1e308, False),
        (12, 3, True),
        (12, 2.5, False),
        (7.5, 3, False),
        (True, 2, True),
    ],
)
def test_multiples_are_those_of_the_decimal_numbers(value: Json, divisor: Json, fits: bool) -> None:  # noqa: FBT001
    assert (not violations({"multipleOf": divisor}, value)) is fits


@pytest.mark.parametrize(
    ("items", "differ"),
    [
        ([1, 1.0], False),
        ([1, True], True),
        ([0, False], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ([[1, 2], [2, 1]], True),
        (["1", 1], True),
        ([None, None], False),
        ([0.0, -0.0], False),
        ([{"a": [True]}, {"a": [1]}], True),
    ],
)
def test_items_are_the_same_by_json_s_own_equality(items: Json, differ: bool) -> None:  # noqa: FBT001
    assert (not violations({"uniqueItems": True}, items)) is differ
    assert isinstance(items, list)
    assert (not violations({"not": {"const": items[0]}}, items[1])) is differ
    assert (not violations({"not": {"enum": ["x", items[0]]}}, items[1])) is differ


# --- never an exception


class Odd(dict):  # type: ignore[type-arg]
    def __contains__(self, key: object) -> bool:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError


ODDITIES = (object(), {1, 2}, (1,), b"x", 10**5_000, float("nan"), Odd(), Odd, {1: 2}, "\ud800")


@pytest.mark.parametrize("value", ODDITIES, ids=[type(value).__name__ for value in ODDITIES])
@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["a"], "properties": {"a": {}}, "minProperties": 1},
        {"enum": [1]},
        {"multipleOf": 0.5},
        {"uniqueItems": True, "pattern": "a"},
        {"patternProperties": {"a": {}}, "additionalProperties": False, "propertyNames": {"minLength": 1}},
    ],
)
def test_a_value_that_is_no_json_is_refused_or_accepted_but_never_raises(schema: Json, value: Any) -> None:
    for violation in violations(schema, value):
        assert isinstance(violation, Violation)


def test_a_validator_that_fails_refuses() -> None:
    assert only({"enum": [1]}, 10**400) == ("", "$internal", "a value that the validator can check")


def test_a_value_too_deep_for_the_stack_is_refused() -> None:
    value: Json = 1
    for _ in range(10_000):
        value = [value]
    schema: Json = {"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}}
    assert only(schema, value)[1] == "$internal"
    assert not violations(schema, [[1]])


def test_checking_stops_at_twenty_thousand_keyword_evaluations() -> None:
    schema: Json = {"items": {"type": "integer"}}
    assert not violations(schema, [1] * 15_000)
    assert only(schema, [1] * 25_000) == ("", "$cost", "a value that 20,000 keyword evaluations can check")


def test_the_validator_is_named_with_its_version() -> None:
    name, version = VALIDATOR
    assert name == "jsonschema"
    assert version[0].isdigit()
    assert not hasattr(validation, "NOTHING")


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "ab", "A"]) | st.just(1.5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@given(VALUES, VALUES)
def test_const_enum_and_unique_items_agree_on_what_is_the_same(one: Any, other: Any) -> None:
    """`uniqueItems`: "all of its elements are unique"; `const`: "is equal to the value of the keyword"."""
    same = not violations({"const": one}, other)
    assert same == (not violations({"enum": [one]}, other))
    assert same == bool(violations({"uniqueItems": True}, [one, other]))
    assert same == (not violations({"const": other}, one))
