"""How defaults are filled in before the arguments are hashed; what comes out is written by hand."""

from typing import Any

from cases.case import Case, accepted
from independent import jcs

S = {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


NESTED = _object(inner=_object(x={"default": 1}, y={"default": 2}))
REFERRING = {
    "$defs": {"place": _object(city={"default": "Bern"})},
    "type": "object",
    "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
}

# name, schema, value, completed
FILLED: list[tuple[str, Any, Any, Any]] = [
    ("a missing member", _object(a={"default": 1}), {}, {"a": 1}),
    (
        "several, in no order that shows",
        _object(b={"default": 2}, a={"default": [1]}),
        {"c": 0},
        {"a": [1], "b": 2, "c": 0},
    ),
    ("a default that is null", _object(a={"default": None}), {}, {"a": None}),
    ("a member that is there stays, null or not", _object(a={"default": 1}), {"a": None}, {"a": None}),
    ("a required member too", {**_object(a={"default": "x"}), "required": ["a"]}, {}, {"a": "x"}),
    ("a default that its own subschema refuses is never filled", _object(a={**S, "default": 1}), {}, {}),
    ("nor null where null is no text", _object(a={**S, "default": None}, b={"default": 1}), {}, {"b": 1}),
    ("members of an object that is there", NESTED, {"inner": {"x": 5}}, {"inner": {"x": 5, "y": 2}}),
    ("nothing inside an object that is not", NESTED, {}, {}),
    ("a default is not completed itself", _object(a={**_object(b={"default": 1}), "default": {}}), {}, {"a": {}}),
    (
        "what a reference leads to",
        REFERRING,
        {"from": {}, "to": {"city": "Biel"}},
        {"from": {"city": "Bern"}, "to": {"city": "Biel"}},
    ),
    ("what allOf adds", {"allOf": [_object(a={"default": 1}), _object(b={"default": 2})]}, {}, {"a": 1, "b": 2}),
    (
        "its own properties come before those of allOf",
        {**_object(a={"default": 1}), "allOf": [_object(a={"default": 2})]},
        {},
        {"a": 1},
    ),
    (
        "the first of allOf comes before the second",
        {"allOf": [_object(a={"default": 1}), _object(a={"default": 2})]},
        {},
        {"a": 1},
    ),
    (
        "a reference comes before allOf",
        {"$defs": {"d": _object(a={"default": 1})}, "allOf": [_object(a={"default": 2})], "$ref": "#/$defs/d"},
        {},
        {"a": 1},
    ),
    ("nothing of anyOf", {"anyOf": [_object(a={"default": 1}), True]}, {}, {}),
    ("nothing of oneOf", {"oneOf": [_object(a={"default": 1})]}, {}, {}),
    ("nothing of if and then", {"if": True, "then": _object(a={"default": 1})}, {}, {}),
    ("items of arrays are not entered", _object(a={"items": _object(b={"default": 1})}), {"a": [{}]}, {"a": [{}]}),
    ("what is no object is as it is", _object(a={"default": 1}), [1], [1]),
    ("a schema that is true fills nothing", True, {"a": 1}, {"a": 1}),
    (
        "filling never turns a valid value invalid",
        {**_object(a={"default": 1}), "maxProperties": 1},
        {"b": 0},
        {"b": 0},
    ),
    (
        "what is invalid either way is filled",
        {**_object(a={"default": 1}), "maxProperties": 0},
        {"b": 0},
        {"a": 1, "b": 0},
    ),
    (
        "beside a reference in draft-07 a default does not exist",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"d": S},
            "properties": {"a": {"$ref": "#/definitions/d", "default": "x"}},
        },
        {},
        {},
    ),
    (
        "in 2020-12 it does",
        {"$defs": {"d": S}, "properties": {"a": {"$ref": "#/$defs/d", "default": "x"}}},
        {},
        {"a": "x"},
    ),
]


def cases() -> list[Case]:
    """Build the group."""
    return [
        accepted(name, "complete", {"schema": schema, "value": jcs(value).decode()}, text=jcs(completed).decode())
        for name, schema, value, completed in FILLED
    ]
