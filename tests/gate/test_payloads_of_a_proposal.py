"""What a proposal keeps of what was sent: each form once, where it differs from the next (docs/format.md, Payloads)."""

import json
from typing import Any

import pytest

import agentgate
from agentgate import Bounds, Settings, ToolSpec
from agentgate.action import Key, action_digest
from agentgate.tools.decorator import AnyTool
from support.worlds import PRINCIPAL, World, opened

SENT = {"b": 1, "a": "é"}
JCS = b'{"a":"\xc3\xa9","b":1}'
FULL = b'{"a":"\xc3\xa9","b":1,"c":"xxxxxxxxxx"}'
PLACE = {"thread": 7}


def tool(*, default: str | None = None) -> AnyTool:
    properties: dict[str, Any] = {"a": {}, "b": {"type": "integer"}, "c": {"type": "string"}}
    if default is not None:
        properties["c"]["default"] = default
    spec = ToolSpec(name="t", input_schema={"type": "object", "properties": properties})
    return agentgate.gated(spec, lambda **given: given)


def kept(
    world: World,
    *tools: AnyTool,
    arguments: object,
    name: str = "t",
    bounds: Bounds | None = None,
    place: object = PLACE,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    settings = Settings() if bounds is None else Settings(bounds=bounds)
    with world.gate(*tools, settings=settings) as gate:
        action = gate.propose(opened(gate), name, arguments, provenance=place).action
    (proposed,) = world.events(action)
    rows = world.sql("SELECT kind, content FROM agentgate_payloads WHERE run = ? AND n = ?", proposed.run, proposed.n)
    contents = dict(rows)
    named = proposed.body["payloads"]
    assert isinstance(named, dict)
    assert set(named) == set(contents)
    return {kind: contents[kind] for kind in contents if kind != "result"}, dict(proposed.body)


@pytest.mark.parametrize(
    ("arguments", "default", "expected"),
    [
        (SENT, None, {"arguments": JCS}),
        (JCS, None, {"arguments": JCS}),
        (JCS.decode(), None, {"arguments": JCS}),
        (SENT, "x" * 10, {"supplied": JCS, "arguments": FULL}),
        (JCS, "x" * 10, {"supplied": JCS, "arguments": FULL}),
        (b" " + JCS, None, {"raw": b" " + JCS, "arguments": JCS}),
        (" " + JCS.decode(), "x" * 10, {"raw": b" " + JCS, "supplied": JCS, "arguments": FULL}),
        (FULL, "x" * 10, {"arguments": FULL}),
        ('{"b":"wrong"}', None, {"arguments": b'{"b":"wrong"}'}),
        ("{", None, {"raw": b"{"}),
        ('"\ud800"', None, {"raw": b'"\xed\xa0\x80"'}),
        (object(), None, {}),
    ],
)
def test_each_form_is_kept_where_it_differs_from_the_next(
    world: World, arguments: object, default: str | None, expected: dict[str, bytes]
) -> None:
    contents, body = kept(world, tool(default=default), arguments=arguments, place=None)
    assert contents == expected
    assert "raw_bytes" not in body


def test_what_was_supplied_is_kept_where_only_its_defaults_were_too_large(world: World) -> None:
    contents, body = kept(world, tool(default="x" * 10), arguments=b" " + JCS, bounds=Bounds(max_bytes=len(FULL) - 1))
    assert body["reason"] == "invalid_arguments"
    assert contents == {"raw": b" " + JCS, "supplied": JCS, "provenance": b'{"thread":7}'}


@pytest.mark.parametrize(
    ("name", "arguments", "measured"),
    [("t", b"x" * 100, 100), ("nope", b" " + JCS, len(JCS) + 1), ("nope", SENT, None)],
)
def test_of_raw_input_over_the_limit_or_that_reached_no_spec_only_the_length_is_kept(
    world: World, name: str, arguments: object, measured: int | None
) -> None:
    contents, body = kept(world, tool(), arguments=arguments, name=name, bounds=Bounds(max_bytes=99))
    assert contents == {"provenance": b'{"thread":7}'}
    assert body.get("raw_bytes") == measured


@pytest.mark.parametrize(("name", "arguments"), [("t", SENT), ("t", {"b": "wrong"}), ("t", "{"), ("nope", SENT)])
def test_an_action_is_bound_to_where_it_came_from_whatever_becomes_of_it(
    world: World, name: str, arguments: object
) -> None:
    contents, body = kept(world, tool(), arguments=arguments, name=name)
    assert json.loads(contents["provenance"]) == PLACE
    digests = {kind: bytes.fromhex(digest) for kind, digest in body["payloads"].items()}
    bound: dict[str, Any] = {
        "ledger": world.value("SELECT id FROM agentgate_ledger"),
        "run": world.events()[-1].run,
        "tenant": "acme",
        "principal": PRINCIPAL,
        "namespace": "",
        "tool": name,
        "spec": bytes.fromhex(body["spec"]) if "spec" in body else None,
        "arguments": digests.get("arguments"),
        "key": Key(**body["key"]),
        "revision": 1,
    }
    assert action_digest(**bound, provenance=digests["provenance"]).hex() == body["digest"]
    assert action_digest(**bound, provenance=None).hex() != body["digest"]
