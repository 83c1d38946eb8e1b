"""The filling algorithm, clause by clause as `agentgate.tools.defaults` states it, because its result is hashed."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.canonical import Json
from agentgate.tools.defaults import MOST_BYTES, complete, refused_defaults
from agentgate.tools.schemas import admit
from agentgate.tools.validation import check

SEVEN = "http://json-schema.org/draft-07/schema#"
ONE: dict[str, Json] = {"type": "integer", "default": 1}


def filled(schema: Json, value: Json) -> Json:
    return complete(admit(schema, tool="t"), value)


def refused(schema: Json) -> tuple[str, ...]:
    return refused_defaults(admit(schema, tool="t"))


# --- 1. admissible defaults


@pytest.mark.parametrize(
    "subschema",
    [
        {"type": "string", "default": None},
        {"type": "integer", "default": "1"},
        {"enum": ["a"], "default": "b"},
        {"minLength": 3, "default": "x"},
        {"$ref": "#/$defs/text", "default": 1},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": 1},
        {"properties": {"k": {"type": "string"}}, "default": {"k": 1}},
        {"items": {"type": "string"}, "default": [1]},
        {"not": {}, "default": 1},
    ],
)
def test_a_default_that_its_own_subschema_refuses_is_never_filled_and_is_listed(subschema: Json) -> None:
    schema: Json = {"properties": {"a": subschema, "b": ONE}, "$defs": {"text": {"type": "string"}}}
    assert filled(schema, {}) == {"b": 1}
    assert refused(schema) == ("/properties/a/default",)


def test_formats_do_not_make_a_default_inadmissible() -> None:
    assert filled({"properties": {"a": {"format": "date", "default": "soon"}}}, {}) == {"a": "soon"}


def test_refused_defaults_are_listed_wherever_they_stand() -> None:
    bad: Json = {"type": "string", "default": 1}
    schema: Json = {
        "$defs": {"d": bad},
        "items": bad,
        "anyOf": [{"properties": {"a/b": bad}}],
        "default": 7,
        "type": "object",
    }
    assert refused(schema) == ("/$defs/d/default", "/anyOf/0/properties/a~1b/default", "/default", "/items/default")


def test_in_draft_07_a_default_beside_a_reference_does_not_exist() -> None:
    beside: Json = {
        "properties": {"a": {"$ref": "#/definitions/n", "default": 1}},
        "definitions": {"n": {"type": "integer"}},
    }
    assert isinstance(beside, dict)
    assert filled(beside, {}) == {"a": 1}
    assert filled({"$schema": SEVEN, **beside}, {}) == {}
    assert refused({"$schema": SEVEN, **beside}) == ()


# --- 2. sources


@pytest.mark.parametrize(
    ("schema", "result"),
    [
        ({"properties": {"a": ONE}}, {"a": 1}),
        ({"$ref": "#/$defs/d", "$defs": {"d": {"properties": {"a": ONE}}}}, {"a": 1}),
        ({"allOf": [{"properties": {"a": ONE}}, {"properties": {"b": ONE}}]}, {"a": 1, "b": 1}),
        ({"allOf": [{"$ref": "#/$defs/d"}], "$defs": {"d": {"allOf": [{"properties": {"a": ONE}}]}}}, {"a": 1}),
        ({"anyOf": [{"properties": {"a": ONE}}]}, {}),
        ({"oneOf": [{"properties": {"a": ONE}}]}, {}),
        ({"if": True, "then": {"properties": {"a": ONE}}}, {}),
        ({"not": {"not": {"properties": {"a": ONE}}}}, {}),
        ({"dependentSchemas": {"z": {"properties": {"a": ONE}}}}, {}),
        ({"$dynamicRef": "#d", "$defs": {"d": {"$dynamicAnchor": "d", "properties": {"a": ONE}}}}, {}),
        ({"patternProperties": {"a": ONE}, "additionalProperties": ONE}, {}),
        ({"default": {"a": 1}}, {}),
        (True, {}),
    ],
)
def test_defaults_come_from_properties_through_references_and_all_of(schema: Json, result: Json) -> None:
    assert filled(schema, {}) == result


def test_in_draft_07_a_schema_with_a_reference_is_the_reference_alone() -> None:
    schema: Json = {
        "$schema": SEVEN,
        "$ref": "#/definitions/d",
        "properties": {"a": ONE},
        "definitions": {"d": {"properties": {"b": ONE}}},
    }
    assert filled(schema, {}) == {"b": 1}


def test_the_first_source_in_order_wins() -> None:
    two: Json = {"properties": {"a": {"default": 2}}}
    three: Json = {"properties": {"a": {"default": 3}}}
    assert filled({"properties": {"a": ONE}, "$ref": "#/$defs/d", "$defs": {"d": two}}, {}) == {"a": 1}
    assert filled({"allOf": [two, three]}, {}) == {"a": 2}
    assert filled({"allOf": [two], "$ref": "#/$defs/d", "$defs": {"d": three}}, {}) == {"a": 3}


# --- 3. filling


def test_what_was_given_stays_even_null() -> None:
    assert filled({"properties": {"a": ONE, "b": ONE}}, {"a": None, "z": 2}) == {"a": None, "b": 1, "z": 2}


def test_a_filled_default_is_not_completed_itself() -> None:
    inner: Json = {"type": "object", "properties": {"x": ONE}, "default": {}}
    assert filled({"properties": {"a": inner}}, {}) == {"a": {}}
    assert filled({"properties": {"a": inner}}, {"a": {}}) == {"a": {"x": 1}}


def test_nested_objects_that_are_there_are_filled_through_every_source() -> None:
    schema: Json = {
        "properties": {"a": {"properties": {"x": ONE}}},
        "allOf": [{"properties": {"a": {"properties": {"y": ONE}}}}, {"properties": {"a": True}}],
    }
    assert filled(schema, {"a": {}}) == {"a": {"x": 1, "y": 1}}
    assert filled(schema, {}) == {}


def test_recursion_follows_the_value() -> None:
    schema: Json = {"properties": {"n": ONE, "next": {"$ref": "#", "default": {}}}}
    assert filled(schema, {"next": {"next": {}}}) == {
        "n": 1,
        "next": {"n": 1, "next": {"n": 1, "next": {}}},
    }


def test_arrays_are_not_entered() -> None:
    schema: Json = {"properties": {"l": {"items": {"properties": {"x": ONE}}}}}
    assert filled(schema, {"l": [{}]}) == {"l": [{}]}


@pytest.mark.parametrize("value", [None, 1, "x", [], [{}], True])
def test_what_is_no_object_is_as_it_is(value: Json) -> None:
    assert filled({"properties": {"a": ONE}}, value) is value


def test_where_nothing_is_missing_the_very_value_comes_back() -> None:
    value: Json = {"a": 2}
    assert filled({"properties": {"a": ONE}}, value) is value
    assert filled({"properties": {"b": {"type": "string"}}}, value) is value


def test_the_value_is_not_changed_and_defaults_are_not_shared() -> None:
    schema = admit({"properties": {"a": {"default": {"k": []}}, "b": {"properties": {"x": ONE}}}}, tool="t")
    value: Any = {"b": {}}
    before = copy.deepcopy(value)
    first: Any = complete(schema, value)
    assert value == before
    first["a"]["k"].append(1)
    assert complete(schema, value) == {"a": {"k": []}, "b": {"x": 1}}


# --- 4. the two exceptions


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": ONE}, "maxProperties": 1}, {"b": 1}),
        ({"properties": {"a": ONE}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}),
        ({"properties": {"a": ONE}, "not": {"required": ["a"]}}, {}),
        ({"properties": {"a": ONE}, "dependentRequired": {"a": ["b"]}}, {}),
        ({"properties": {"a": ONE}, "propertyNames": {"pattern": "^b"}}, {"b": 1}),
        ({"allOf": [{"properties": {"a": ONE}}, {"properties": {"b": True}, "additionalProperties": False}]}, {"b": 1}),
        ({"properties": {"a": ONE}, "if": {"required": ["a"]}, "then": {"required": ["b"]}}, {}),
        ({"properties": {"n": {"properties": {"a": ONE}, "maxProperties": 0}}}, {"n": {}}),
    ],
)
def test_defaults_that_would_turn_a_valid_value_invalid_are_not_filled(schema: Json, value: Json) -> None:
    assert not check(admit(schema, tool="t"), value)
    assert filled(schema, value) is value


def test_an_invalid_value_is_filled_all_the_same() -> None:
    assert filled({"properties": {"a": ONE}, "required": ["b"]}, {}) == {"a": 1}


def test_defaults_that_add_too_many_bytes_are_not_filled() -> None:
    wide: Json = {f"c{n}": {"$ref": "#/$defs/n"} for n in range(200)}
    assert isinstance(wide, dict)
    schema: Json = {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {**wide, "d": {"default": "x" * 2_000}}}}}
    few: Json = {f"c{n}": {} for n in range(100)}
    many: Json = {f"c{n}": {} for n in range(200)}
    result = filled(schema, few)
    assert isinstance(result, dict)
    assert result["d"] == "x" * 2_000
    assert 101 * 2_000 < MOST_BYTES < 201 * 2_000
    assert filled(schema, many) is many


def test_a_schema_that_would_be_gone_through_too_often_fills_nothing() -> None:
    others: list[Json] = [{"title": str(n)} for n in range(1_500)]
    several: list[Json] = [{"$ref": "#/$defs/n"}, *others]
    schema: Json = {"allOf": several, "$defs": {"n": {"properties": {"c": {"$ref": "#"}, "a": ONE}}}}
    value: Json = {}
    for _ in range(20):
        value = {"c": value}
    assert filled(schema, value) is value
    assert filled(schema, {"c": {}}) == {"a": 1, "c": {"a": 1}}


# --- as a law

NAMES = st.sampled_from("abc")
VALUES = st.dictionaries(NAMES, st.integers(0, 3) | st.dictionaries(NAMES, st.integers(0, 3), max_size=2), max_size=3)
DEFAULTED = st.fixed_dictionaries(
    {"default": st.integers(0, 3) | st.none() | st.just({})},
    optional={"type": st.sampled_from(["integer", "null", "object"]), "maximum": st.just(2)},
)


def objects(inner: Any) -> Any:
    return st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, DEFAULTED | inner, min_size=1, max_size=3)},
        optional={
            "maxProperties": st.integers(0, 3),
            "required": st.lists(NAMES, max_size=1),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": st.just({"required": ["a"]}),
            "oneOf": st.just([{"required": ["a"]}, {"required": ["b"]}]),
            "additionalProperties": st.booleans(),
        },
    )


SCHEMAS = objects(objects(DEFAULTED))


@given(SCHEMAS, VALUES)
def test_filling_never_turns_a_valid_value_invalid(schema: Any, value: Any) -> None:
    """Step 4: "filling never turns a valid value invalid"; and nothing that was there is changed or lost."""
    admitted = admit(schema, tool="t")
    completed = complete(admitted, value)
    assert bool(check(admitted, completed)) <= bool(check(admitted, value))
    assert isinstance(completed, dict)
    assert all(completed[name] == held or isinstance(held, dict) for name, held in value.items())


@given(SCHEMAS, VALUES)
def test_filling_twice_adds_nothing_at_the_places_filled_first(schema: Any, value: Any) -> None:
    """Step 3a: a default is added where the member was absent, so a second pass finds the root complete."""
    admitted = admit(schema, tool="t")
    once = complete(admitted, value)
    twice = complete(admitted, once)
    assert isinstance(once, dict)
    assert isinstance(twice, dict)
    if once is not value:
        assert once.keys() == twice.keys()
