"""What is admitted at registration, what is refused, and that each refusal says where and what instead."""

import copy
import json
import threading
from typing import Any

import pytest

from agentgate.canonical import Json
from agentgate.errors import SpecRefused
from agentgate.tools.schemas import admit
from agentgate.tools.validation import check

NEWEST = "https://json-schema.org/draft/2020-12/schema"
SEVEN = "http://json-schema.org/draft-07/schema#"


def refusal(schema: Any, path: str = "/input_schema") -> SpecRefused:
    with pytest.raises(SpecRefused) as caught:
        admit(schema, tool="refund", path=path)
    assert caught.value.tool == "refund"
    assert caught.value.problem
    assert caught.value.remedy
    return caught.value


def accepts(schema: Json, value: Json) -> bool:
    return not check(admit(schema, tool="t"), value)


@pytest.mark.parametrize("schema", [True, {}, {"type": "object"}, {"$schema": NEWEST}, {"$schema": SEVEN}])
def test_a_plain_schema_is_admitted(schema: Json) -> None:
    assert accepts(schema, {"any": "thing"})


def test_false_is_a_schema_that_accepts_nothing() -> None:
    (violation,) = check(admit(False, tool="t"), {})
    assert violation.expected == "nothing here"


@pytest.mark.parametrize("schema", [None, 7, "object", [], ["type"]])
def test_what_is_no_schema_at_all_is_refused(schema: Any) -> None:
    assert refusal(schema).path == "/input_schema"


def test_a_refusal_begins_its_pointer_where_the_caller_says() -> None:
    assert refusal({"type": "any"}, path="/output_schema").path == "/output_schema/type"


def test_a_refusal_quotes_no_more_than_it_must_of_a_path() -> None:
    schema = {"properties": {"n" * 100_000: {"type": "any"}}}
    assert len(str(refusal(schema))) < 1_000


# --- dialects


@pytest.mark.parametrize("uri", [SEVEN, SEVEN[:-1], SEVEN.replace("http", "https")])
def test_draft_07_is_known_however_its_address_is_spelt(uri: str) -> None:
    schema: Json = {"$schema": uri, "items": [{"type": "string"}], "additionalItems": False}
    assert accepts(schema, ["a"])
    assert not accepts(schema, ["a", "b"])


def test_without_a_dialect_the_newest_is_meant() -> None:
    assert refusal({"items": [{"type": "string"}]}).path == "/input_schema/items"
    assert not accepts({"prefixItems": [{"type": "string"}]}, [1])


@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/schema#",
        "https://example.com/own",
        "file:///etc/passwd",
        "",
        7,
    ],
)
def test_an_unknown_dialect_is_refused_naming_the_known_ones(uri: Json) -> None:
    refused = refusal({"$schema": uri})
    assert refused.path == "/input_schema/$schema"
    assert "2020-12" in refused.remedy
    assert "draft-07" in refused.remedy


def test_a_dialect_inside_another_is_refused() -> None:
    refused = refusal({"$defs": {"old": {"$id": "old", "$schema": SEVEN}}})
    assert refused.path == "/input_schema/$defs/old/$schema"


def test_the_same_dialect_inside_is_no_way_around_the_hardened_keywords() -> None:
    schema: Json = {"$schema": NEWEST, "properties": {"a": {"$schema": NEWEST, "pattern": "^a$"}}}
    assert not accepts(schema, {"a": "a\n"})


def test_a_property_called_schema_is_a_property() -> None:
    schema: Json = {"properties": {"$schema": {"type": "integer"}, "$ref": {"type": "integer"}}}
    assert accepts(schema, {"$schema": 1, "$ref": 2})
    assert not accepts(schema, {"$schema": "x"})
    assert not accepts(schema, {"$ref": "x"})


# --- the meta-schema


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "dict"}, "/type"),
        ({"type": ["string", "any"]}, "/type"),
        ({"properties": []}, "/properties"),
        ({"properties": {"a": {"required": True}}}, "/properties/a/required"),
        ({"required": ["a", "a"]}, "/required"),
        ({"properties": {"page": {"enum": "1-100"}}}, "/properties/page/enum"),
        ({"minimum": "3"}, "/minimum"),
        ({"minLength": -1}, "/minLength"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"anyOf": []}, "/anyOf"),
        ({"$ref": 7}, "/$ref"),
        ({"pattern": 7}, "/pattern"),
        ({"properties": {"a": 7}}, "/properties/a"),
        ({"$schema": SEVEN, "exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"$schema": SEVEN, "definitions": {"a": {"type": "any"}}}, "/definitions/a/type"),
    ],
)
def test_a_keyword_that_the_dialect_does_not_know_so_is_refused_where_it_stands(schema: Json, where: str) -> None:
    refused = refusal(schema)
    assert refused.path == f"/input_schema{where}"
    assert "expects" in refused.remedy


def test_unknown_keywords_and_formats_are_annotations() -> None:
    assert accepts({"x-order": [1], "nullable": True, "format": "date-time", "example": {"$ref": 3}}, "not a date")


# --- references


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/missing",
        "#missing",
        "other.json",
        "other.json#/a",
        "http://localhost:1/schema.json",
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "urn:example:elsewhere",
        "data:application/json,{}",
        "//host/path",
        "http://[::1",
        "#/properties/a/type",
        "#/properties/a/default",
        "#/properties/a/enum/0",
        "#/properties/a/const",
        "#/allOf/x",
        "#/allOf/7",
        "\x00",
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_reference_that_leads_to_no_schema_of_the_document_is_refused(keyword: str, reference: str) -> None:
    a: Json = {"type": "object", "default": {}, "enum": [{}], "const": {}}
    refused = refusal({"properties": {"a": a, "b": {keyword: reference}}, "allOf": [{}]})
    assert refused.path == f"/input_schema/properties/b/{keyword}"
    assert "#/$defs/name" in refused.remedy


def test_a_reference_behind_an_identifier_of_the_document_stays_inside() -> None:
    schema: Json = {
        "$id": "https://example.com/order",
        "properties": {"line": {"$ref": "line"}, "same": {"$ref": "https://example.com/line#sku"}},
        "$defs": {"l": {"$id": "line", "type": "object", "$defs": {"s": {"$anchor": "sku", "type": "string"}}}},
    }
    assert accepts(schema, {"line": {}, "same": "x"})
    assert not accepts(schema, {"line": 1})
    assert not accepts(schema, {"same": 1})


@pytest.mark.parametrize(
    ("uri", "right", "wrong"),
    [(NEWEST, {"type": "string"}, {"type": "any"}), (SEVEN, {"items": [True]}, {"items": 7})],
)
def test_the_meta_schema_of_the_dialect_may_be_referred_to(uri: str, right: Json, wrong: Json) -> None:
    assert accepts({"$schema": uri, "$ref": uri}, right)
    assert not accepts({"$schema": uri, "$ref": uri}, wrong)


def test_the_meta_schema_of_another_dialect_may_not() -> None:
    assert refusal({"$ref": SEVEN}).path == "/input_schema/$ref"


def test_what_a_reference_finds_under_an_unknown_keyword_is_checked_like_the_rest() -> None:
    held: dict[str, Json] = {"$ref": "#/components/schemas/order"}
    assert not accepts({**held, "components": {"schemas": {"order": {"type": "object"}}}}, 1)
    wrong: Json = {**held, "components": {"schemas": {"order": {"properties": {"a": {"pattern": "(?=x)"}}}}}}
    assert refusal(wrong).path == "/input_schema/components/schemas/order/properties/a/pattern"
    wrong = {**held, "components": {"schemas": {"order": {"type": "any"}}}}
    assert refusal(wrong).path == "/input_schema/components/schemas/order/type"
    wrong = {**held, "components": {"schemas": {"order": {"$ref": "#/nowhere"}}}}
    assert refusal(wrong).path == "/input_schema/components/schemas/order/$ref"


def test_draft_07_ignores_what_stands_beside_a_reference() -> None:
    beside: Json = {"$ref": "#/definitions/a", "type": "integer", "definitions": {"a": {"type": "string"}}}
    assert isinstance(beside, dict)
    assert accepts({"$schema": SEVEN, **beside}, "x")
    assert not accepts({"$schema": NEWEST, **beside}, "x")


def test_a_dynamic_reference_takes_the_outermost_anchor() -> None:
    tree: Json = {"$id": "tree", "$dynamicAnchor": "node", "properties": {"kids": {"items": {"$dynamicRef": "#node"}}}}
    strict: Json = {
        "$id": "strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "properties": {"kids": True, "data": True},
        "additionalProperties": False,
        "$defs": {"tree": tree},
    }
    assert accepts(strict, {"kids": [{"data": 1}]})
    assert not accepts(strict, {"kids": [{"daat": 1}]})


# --- recursion


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"if": {"$ref": "#"}},
        {"then": {"$ref": "#"}, "if": True},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$dynamicAnchor": "a", "$dynamicRef": "#a"},
        {"$dynamicAnchor": "a", "oneOf": [{"$dynamicRef": "#a"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"$schema": SEVEN, "definitions": {"a": {"$ref": "#/definitions/a"}}},
        {"$schema": SEVEN, "dependencies": {"a": {"$ref": "#"}}},
    ],
)
def test_a_schema_that_applies_itself_to_the_same_value_is_refused(schema: Json) -> None:
    refused = refusal(schema)
    assert "without end" in refused.problem
    assert "properties or items" in refused.remedy


def test_recursion_through_the_value_is_fine() -> None:
    schema: Json = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    assert accepts(schema, {"kids": [{"kids": [{}]}]})
    assert not accepts(schema, {"kids": [{"kids": [1]}]})


def test_a_long_chain_on_one_value_is_refused_and_a_shorter_one_is_not() -> None:
    def chain(length: int) -> Json:
        links: dict[str, Json] = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(length)}
        return {"$ref": "#/$defs/a0", "$defs": {**links, f"a{length}": {"type": "string"}}}

    assert not accepts(chain(30), 1)
    assert "one inside another" in refusal(chain(40)).problem


# --- size and form


def nested(depth: int) -> Json:
    schema: Json = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"description": "x" * 300_000},
        {"enum": list(range(10_001))},
        nested(70),
        nested(50_000),
        {"maximum": 2**53},
        {"maximum": float("inf")},
        {"const": "\ud800"},
        {"const": object()},
        {1: 2},
    ],
    ids=lambda schema: str(schema)[:20] if not isinstance(schema, dict) or "items" not in schema else "deep",
)
def test_a_schema_without_a_canonical_form_within_bounds_is_refused(schema: Any) -> None:
    assert "canonical form" in refusal(schema).problem


def test_a_bound_beyond_what_json_numbers_carry_gets_advice_for_schemas() -> None:
    refused = refusal({"properties": {"id": {"maximum": 9_223_372_036_854_775_807}}})
    assert refused.path == "/input_schema/properties/id/maximum"
    assert "leave the bound out" in refused.remedy


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema
    assert "canonical form" in refusal(schema).problem


def test_what_was_admitted_is_a_private_copy() -> None:
    schema: Any = {"type": "object", "properties": {"a": {"enum": ["x"], "default": {"k": [1]}}}}
    before = copy.deepcopy(schema)
    admitted = admit(schema, tool="t")
    assert schema == before
    schema["properties"]["a"]["enum"].append("y")
    schema["type"] = "string"
    assert check(admitted, {"a": "y"})
    assert not check(admitted, {"a": "x"})


def test_an_admitted_schema_is_frozen_and_prints_short() -> None:
    admitted = admit({"description": "secret plan"}, tool="t")
    with pytest.raises(AttributeError):
        admitted.root = {}  # type: ignore[misc]
    assert "secret" not in repr(admitted)


def test_one_admitted_schema_serves_many_threads() -> None:
    schema = admit({"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer", "uniqueItems": True}}}, tool="t")
    good: Json = list(range(200))
    bad: Json = [*range(199), "x"]
    found: list[bool] = []

    def work() -> None:
        found.extend(bool(check(schema, good)) or not check(schema, bad) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [False] * 80


def test_the_order_of_a_schema_s_members_changes_nothing() -> None:
    text = '{"type":"object","required":["b","a"],"properties":{"z":{"type":"string"},"a":{"minimum":3}}}'
    forward = json.loads(text)
    backward = dict(reversed(list(forward.items()))) | {"properties": dict(reversed(forward["properties"].items()))}
    value: Json = {"z": 1, "a": 2}
    assert check(admit(forward, tool="t"), value) == check(admit(backward, tool="t"), value)
