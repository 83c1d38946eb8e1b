"""The hardened keywords give jsonschema's own verdicts, on schemas and values that nobody thought of."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st
from referencing import Registry

from agentgate.errors import SpecRefused
from agentgate.tools.schemas import admit
from agentgate.tools.validation import check

NAMES = st.sampled_from(["a", "b", "ab", "c"])
PATTERNS = st.sampled_from(["^a", "b$", "^[ab]+$", "c"])
SCALARS = st.sampled_from([None, True, False, 0, 1, -2, 3, 0.5, 1.5, "", "a", "ab", "abc"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4))
TYPES = st.sampled_from(["string", "object", "array", "boolean", "null", "number", "integer"])
COUNTS = st.integers(0, 3)
NEEDED = st.lists(NAMES, max_size=2, unique=True)

Strategy: TypeAlias = Any

LEAVES: dict[str, Strategy] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, max_size=3),
    "const": VALUES,
    "minimum": st.integers(-2, 2),
    "maximum": st.sampled_from([-1, 0.5, 2]),
    "exclusiveMinimum": st.integers(-2, 2),
    "exclusiveMaximum": st.integers(-2, 2),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": COUNTS,
    "maxLength": COUNTS,
    "pattern": PATTERNS,
    "minItems": COUNTS,
    "maxItems": COUNTS,
    "uniqueItems": st.booleans(),
    "minProperties": COUNTS,
    "maxProperties": COUNTS,
    "required": NEEDED,
}


def shared(inner: Strategy) -> dict[str, Strategy]:
    several = st.lists(inner, min_size=1, max_size=3)
    one = dict.fromkeys(
        ("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"), inner
    )
    return {
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        **one,
    }


def newest(inner: Strategy) -> dict[str, Strategy]:
    return {
        **shared(inner),
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minContains": COUNTS,
        "maxContains": COUNTS,
        "dependentRequired": st.dictionaries(NAMES, NEEDED, max_size=2),
        "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
    }


def seventh(inner: Strategy) -> dict[str, Strategy]:
    return {
        **shared(inner),
        "$ref": st.sampled_from(["#/definitions/a", "#/definitions/b"]),
        "items": inner | st.lists(inner, min_size=1, max_size=2),
        "additionalItems": inner,
        "dependencies": st.dictionaries(NAMES, NEEDED | inner, max_size=2),
    }


@st.composite
def objects(draw: st.DrawFn, keywords: dict[str, Strategy]) -> dict[str, Any]:
    """A schema of a few keywords; of all at once nearly every value would be refused."""
    names = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True))
    return {name: draw(keywords[name]) for name in names}


def schemas(applicators: Callable[[Strategy], dict[str, Strategy]], depth: int = 3) -> Strategy:
    if not depth:
        return st.booleans() | objects(LEAVES)
    return objects(LEAVES | applicators(schemas(applicators, depth - 1)))


def verdict(library: Any, schema: Any, value: Any) -> bool:
    return not any(library(schema, registry=Registry()).iter_errors(value))


def agree(library: Any, schema: Any, values: list[Any]) -> None:
    try:
        admitted = admit(schema, tool="t")
    except SpecRefused as refused:
        assert "without end" in refused.problem  # the one reason that these schemas give
        return
    for value in values:
        assert (not check(admitted, value)) == verdict(library, schema, value)


SOME = st.lists(VALUES, min_size=1, max_size=4)
NEWEST = schemas(newest)
SEVENTH = schemas(seventh)
EXAMPLES = 150


@settings(max_examples=EXAMPLES)
@given(NEWEST, NEWEST, NEWEST, SOME)
def test_draft_2020_12_is_decided_as_jsonschema_decides(root: Any, one: Any, other: Any, values: list[Any]) -> None:
    agree(jsonschema.Draft202012Validator, {**root, "$defs": {"a": one, "b": other}}, values)


@settings(max_examples=EXAMPLES)
@given(SEVENTH, SEVENTH, SEVENTH, SOME)
def test_draft_07_is_decided_as_jsonschema_decides(root: Any, one: Any, other: Any, values: list[Any]) -> None:
    schema = {**root, "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": one, "b": other}}
    agree(jsonschema.Draft7Validator, schema, values)
