"""Cases of other people's loops, "JSON and schemas", as a whole call meets them. One test per line.

The vectors, the suites and the hostile schemas themselves have rooms of their own.
"""

import json
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest
from pydantic import BaseModel

import agentgate
from agentgate import Done, Held, Refused, SpecRefused, ToolSpec, require_approval
from agentgate.testing import ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, named, opened

ANY = ToolSpec(name="any", input_schema=True, undeclared="allow")


def given(world: World, raw: object, *, spec: ToolSpec = ANY) -> tuple[agentgate.Outcome, list[object]]:
    """Call a tool that remembers what it was given."""
    seen: list[object] = []

    def remember(arguments: object) -> None:
        seen.append(arguments)

    with world.gate(agentgate.gated(spec, remember, passing="one")) as gate:
        return gate.call(opened(gate), "any", raw), seen


def recorded(world: World, action: str) -> bytes:
    (event, *_) = world.events(action)
    sql = "SELECT content FROM agentgate_payloads WHERE run = ? AND n = ? AND kind = 'arguments'"
    return bytes(world.value(sql, event.run, event.n))


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("1.0", b"1"),
        ("-0", b"0"),
        ("1e-7", b"1e-7"),
        ("0.000001", b"0.000001"),
        ("1E2", b"100"),
        ('{"\\ud83d\\ude00":1,"\\uffff":2}', '{"\U0001f600":1,"\uffff":2}'.encode()),
        ('"\\u00e9"', '"é"'.encode()),
    ],
)
def test_what_is_hashed_and_recorded_is_rfc_8785_and_not_sorted_json(world: World, raw: str, canonical: bytes) -> None:
    outcome, _ = given(world, raw)
    assert isinstance(outcome, Done)
    assert recorded(world, outcome.action) == canonical


@pytest.mark.parametrize("number", ["9007199254740992", "-9007199254740993", "123456789012345678901", "1e20"])
def test_integers_that_would_be_rounded_are_refused_with_the_path_and_what_to_send(world: World, number: str) -> None:
    outcome, seen = given(world, f'{{"order": {{"ids": [1, {number}]}}}}')
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error.details, list)
    assert outcome.error.details[0]["path"] == "/order/ids/1"  # type: ignore[index,call-overload]
    assert "string" in str(outcome.error.suggested_action)
    assert not seen


def test_one_and_one_point_zero_are_one_value_and_the_effect_gets_the_canonical_form(world: World) -> None:
    outcome, seen = given(world, '{"a": 1.0, "b": [1.50, 2e0]}')
    assert isinstance(outcome, Done)
    assert seen == [{"a": 1, "b": [1.5, 2]}]
    assert type(seen[0]["a"]) is int  # type: ignore[index]


@pytest.mark.parametrize("raw", ['{"n": NaN}', '{"n": Infinity}', '{"n": 1e400}', {"n": float("nan")}])
def test_nan_and_infinity_pass_no_minimum_and_no_maximum(world: World, raw: object) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "minimum": 0, "maximum": 10}}}
    outcome, seen = given(world, raw, spec=ToolSpec(name="any", input_schema=schema))
    assert isinstance(outcome, Refused)
    assert outcome.reason == "invalid_arguments"
    assert not seen


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        "[" * 65 + "]" * 65,
        "[" * 100_000,
        "1" * 5_000,
        '{"a": 1}'.encode("utf-16"),
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1} trailing',
        '{"a": 1, "a": 2}',
        b'{"a": "\xff"}',
        "",
        {"a": {1: 2}},
        {"a": {1, 2}},
    ],
)
def test_whatever_is_wrong_with_the_input_is_one_kind_of_refusal_with_a_path(world: World, raw: object) -> None:
    outcome, seen = given(world, raw)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "invalid_arguments"
    assert isinstance(outcome.error.details, list)
    assert outcome.error.details[0].keys() == {"path", "keyword", "expected"}  # type: ignore[union-attr]
    assert not seen


def test_json_that_was_encoded_twice_is_a_text_and_meets_its_schema(world: World) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    outcome, seen = given(world, json.dumps(json.dumps({"a": 1})), spec=ToolSpec(name="any", input_schema=schema))
    assert isinstance(outcome, Refused)
    assert not seen


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#"},
        {"$ref": "#/$defs/nowhere"},
        {"type": "object", "properties": {"a": {"pattern": "(?=look)ahead"}}},
    ],
)
def test_a_schema_that_cannot_be_checked_always_and_cheaply_is_refused_at_registration(schema: object) -> None:
    with pytest.raises(SpecRefused):
        ToolSpec(name="any", input_schema=schema)  # type: ignore[arg-type]


def test_a_pattern_that_backtracks_elsewhere_is_answered_at_once(world: World) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    began = time.monotonic()
    outcome, _ = given(world, {"a": "a" * 28 + "!"}, spec=ToolSpec(name="any", input_schema=schema))
    assert time.monotonic() - began < 5
    assert isinstance(outcome, Refused)
    assert "aaaa" not in str(outcome)


def test_defaults_are_filled_before_hashing_so_that_the_approver_sees_them(world: World) -> None:
    def transfer(to: str, currency: str = "EUR") -> str:
        return to + currency

    with world.gate(named("transfer", transfer), policy=ScriptedPolicy(require_approval("big"))) as gate:
        held = gate.call(opened(gate), "transfer", {"to": "a1"})
    assert isinstance(held, Held)
    assert recorded(world, held.action) == b'{"currency":"EUR","to":"a1"}'
    assert '  currency = "EUR"\n    ^ filled in by default' in held.approval.shown


def test_undeclared_arguments_are_refused_unless_the_spec_allows_them_and_then_shown(world: World) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    strict = ToolSpec(name="strict", input_schema=schema)
    loose = ToolSpec(name="loose", input_schema=schema, undeclared="allow")
    tools = [agentgate.gated(spec, lambda **_: None) for spec in (strict, loose)]
    with world.gate(*tools, policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        run = opened(gate)
        refused = gate.call(run, "strict", {"a": 1, "b": 2})
        held = gate.call(run, "loose", {"a": 1, "b": 2})
    assert isinstance(refused, Refused)
    assert isinstance(held, Held)
    assert "  b = 2\n    ^ not declared by the tool" in held.approval.shown


@pytest.mark.parametrize("name", ["files/read", "read file", "{weird}", "über.lesen", "a" * 128, "mcp::tool", "-"])
def test_real_tool_names_are_taken_as_they_are(world: World, name: str) -> None:
    with world.gate(named(name, lambda: name), named(name, lambda: "other", namespace="server")) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, name, {}), gate.call(run, name, {}, namespace="server")]
    assert [outcome.observation.value for outcome in outcomes if isinstance(outcome, Done)] == [name, "other"]


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Money(BaseModel):
    amount: Decimal


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        (datetime(2030, 1, 1, 12, tzinfo=UTC), b'"2030-01-01T12:00:00.000000Z"'),
        (date(2030, 1, 1), b'"2030-01-01"'),
        (Decimal("1.50"), b'"1.50"'),
        (UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        (b"\x00\xff", b'"AP8="'),
        (Colour.RED, b'"red"'),
        (Point(x=1), b'{"x":1}'),
        (Money(amount=Decimal("1.50")), b'{"amount":"1.50"}'),
    ],
)
def test_values_of_known_types_have_defined_encodings_in_arguments_and_in_results(
    world: World, value: object, canonical: bytes
) -> None:
    outcome, _ = given(world, {"v": value})
    assert isinstance(outcome, Done)
    assert recorded(world, outcome.action) == b'{"v":' + canonical + b"}"
    with world.gate(_returning(value)) as gate:
        returned = gate.call(opened(gate), "give", {})
    assert isinstance(returned, Done)
    assert returned.observation.value == json.loads(canonical)
    assert not returned.observation.notes


def test_an_unknown_type_is_refused_in_arguments_and_kept_as_a_description_in_a_result(world: World) -> None:
    outcome, seen = given(world, {"v": object()})
    assert isinstance(outcome, Refused)
    assert not seen
    with world.gate(_returning(object())) as gate:
        returned = gate.call(opened(gate), "give", {})
    assert isinstance(returned, Done)
    assert returned.observation.notes == ("unencodable",)


def _returning(value: object) -> AnyTool:
    return named("give", lambda: value)
