"""A repeat is found by what is left of the call it repeats, and where nothing is left it is a conflict."""

from typing import Any

import pytest

import agentgate
from agentgate import Done, Gate, KeyConflict, ToolSpec
from agentgate.tools.decorator import AnyTool
from support.worlds import World, opened

ONE = {"account": "a1"}
COMPLETED = {"account": "a1", "cents": 5}


def defaulting(**defaults: int) -> AnyTool:
    """Make a tool whose schema fills these in."""
    kinds = {"account": "string", "cents": "integer", "fee": "integer"}
    properties: dict[str, Any] = {name: {"type": kind} for name, kind in kinds.items()}
    for name, value in defaults.items():
        properties[name]["default"] = value
    schema = {"type": "object", "properties": properties}
    return agentgate.gated(ToolSpec(name="pay", input_schema=schema), lambda **given: dict(given))


def erase(world: World, *kinds: str) -> None:
    for kind in kinds:
        world.sql("DELETE FROM agentgate_payloads WHERE kind = ?", kind)


def call(gate: Gate, arguments: dict[str, Any]) -> str:
    outcome = gate.call(opened(gate), "pay", arguments, key="k")
    assert isinstance(outcome, Done)
    return outcome.source


def test_what_was_erased_is_not_taken_for_what_was_never_there(world: World) -> None:
    with world.gate(defaulting(cents=5)) as gate:
        assert call(gate, ONE) == "executed"
    with world.gate(defaulting(cents=5, fee=1)) as gate:
        assert call(gate, ONE) == "replayed"  # as supplied, though it is completed otherwise today
        erase(world, "supplied")
        with pytest.raises(KeyConflict):
            call(gate, COMPLETED)  # sends what the first was completed to: never shown to be the same


def test_what_was_never_there_is_the_next_one(world: World) -> None:
    with world.gate(defaulting(cents=5)) as gate:
        assert call(gate, COMPLETED) == "executed"
    with world.gate(defaulting(cents=5, fee=1)) as gate:
        assert call(gate, COMPLETED) == "replayed"


def test_where_the_bytes_are_gone_the_fingerprint_tells(world: World) -> None:
    with world.gate(defaulting(cents=5)) as gate:
        assert call(gate, ONE) == "executed"
        erase(world, "supplied", "arguments")
        assert call(gate, ONE) == "replayed"
        with pytest.raises(KeyConflict):
            call(gate, {"account": "a2"})


def test_where_the_fingerprint_is_gone_too_it_is_a_conflict_and_never_a_run(world: World) -> None:
    with world.gate(defaulting(cents=5)) as gate:
        assert call(gate, ONE) == "executed"
    erase(world, "supplied", "arguments")
    world.sql("UPDATE agentgate_tenants SET fingerprint_key = NULL")
    with world.gate(defaulting(cents=5)) as gate, pytest.raises(KeyConflict):
        call(gate, ONE)
    assert world.value("SELECT count(*) FROM agentgate_actions") == 1
