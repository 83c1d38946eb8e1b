"""What an effect returned is kept as it was, or said to be what could not be kept."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import NoReturn
from uuid import UUID

import pytest

import agentgate
from agentgate import Done, Failed, Observation, ToolError, Unknown
from support.single import run_one, stored
from support.worlds import World, named, opened

SHORT = 0.05

# --- results -------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


@dataclass
class Receipt:
    amount: Decimal
    colour: Colour


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (None, None),
        (1.0, 1),
        ((1, 2), [1, 2]),
        (datetime(2030, 1, 1, tzinfo=UTC), "2030-01-01T00:00:00.000000Z"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "AP8="),
        (Colour.RED, "red"),
        (Receipt(amount=Decimal(1), colour=Colour.RED), {"amount": "1", "colour": "red"}),
    ],
)
def test_results_have_defined_encodings(world: World, value: object, seen: object) -> None:
    outcome = run_one(world, lambda: value)
    assert isinstance(outcome, Done)
    assert outcome.observation == Observation(status="ok", value=seen)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), {"a": [lambda: 0]}, {1: 2}, "\ud800", 2**60])
def test_a_result_that_cannot_be_encoded_has_succeeded_and_says_what_could_not_be_kept(
    world: World, value: object
) -> None:
    with world.gate(named("act", lambda: value)) as gate:
        run = opened(gate)
        outcome, again = (gate.call(run, "act", {}, key="k") for _ in range(2))
    assert isinstance(outcome, Done)
    assert "unencodable" in outcome.observation.notes
    assert isinstance(again, Done)
    assert again.observation == outcome.observation
    assert world.events(outcome.action)[2].body["notes"] == ["unencodable"]


def test_an_endless_result_has_succeeded_too(world: World) -> None:
    value: list[object] = []
    value.append(value)
    outcome = run_one(world, lambda: value)
    assert isinstance(outcome, Done)
    assert "unencodable" in outcome.observation.notes


def test_a_result_over_the_tools_limit_is_cut_for_the_loop_and_kept_whole(world: World) -> None:
    long = "x" * 10_000
    with world.gate(named("act", lambda: long, max_output_bytes=1_000)) as gate:
        run = opened(gate)
        outcome, again = (gate.call(run, "act", {}, key="k") for _ in range(2))
    assert isinstance(outcome, Done)
    assert outcome.observation.notes == ("capped",)
    assert isinstance(outcome.observation.value, dict)
    assert len(str(outcome.observation.value)) < 2_000
    assert isinstance(again, Done)
    assert again.observation == outcome.observation
    assert long in stored(world, outcome.action)
    assert world.events(outcome.action)[2].body["result_bytes"] > 10_000  # type: ignore[operator]


def test_a_result_that_its_schema_refuses_has_succeeded_and_says_so(world: World) -> None:
    outcome = run_one(world, lambda: "seven", output_schema={"type": "integer"})
    assert isinstance(outcome, Done)
    assert outcome.observation == Observation(status="ok", value="seven", notes=("output_invalid",))


def test_a_function_that_cannot_be_called_with_what_its_schema_accepts_fails_before_anything_happened(
    world: World,
) -> None:
    spec = agentgate.ToolSpec(name="act", input_schema={"type": "object"}, undeclared="allow")
    with world.gate(agentgate.gated(spec, lambda: None)) as gate:
        outcome = gate.call(opened(gate), "act", {"surprise": 1})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "invalid_arguments"


@pytest.mark.parametrize("raw", ["null", "7", '"text"', "[1,2]", "true"])
def test_arguments_that_are_no_object_go_to_the_callable_as_its_one_argument(world: World, raw: str) -> None:
    spec = agentgate.ToolSpec(name="act", input_schema=True)
    given: list[object] = []
    with world.gate(agentgate.gated(spec, given.append)) as gate:
        outcome = gate.call(opened(gate), "act", raw)
    assert isinstance(outcome, Done)
    assert given == [json.loads(raw)]


class Lying:
    """Whatever is asked of it raises."""

    def __getattribute__(self, name: str) -> object:
        raise ZeroDivisionError(name)


class LyingDict(dict[str, object]):
    def items(self) -> NoReturn:
        raise ZeroDivisionError

    __iter__ = keys = __len__ = items


@dataclass
class LyingReceipt:
    amount: int

    def __getattribute__(self, name: str) -> object:
        if name == "amount":
            raise ZeroDivisionError
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "made", [Lying, lambda: LyingDict(a=1), lambda: [LyingReceipt(1)], lambda: {"a": Lying()}, lambda: Lying]
)
def test_a_result_that_lies_has_succeeded_all_the_same(world: World, made: Callable[[], object]) -> None:
    outcome = run_one(world, lambda: made())  # noqa: PLW0108 - a class is no function
    assert isinstance(outcome, Done)


class LyingError(ToolError):
    @property
    def code(self) -> str:
        raise ZeroDivisionError

    @code.setter
    def code(self, value: str) -> None:
        pass


def test_an_error_that_lies_is_recorded_all_the_same(world: World) -> None:
    def act() -> None:
        raise LyingError("not_found", "x")

    outcome = run_one(world, act)
    assert isinstance(outcome, Unknown)
    assert world.state(outcome.action) == "UNKNOWN"
