"""The state that a write should leave behind, said as data."""

import json
from typing import Any

import pytest

import agentgate
from agentgate import Argument, Done, SpecRefused, expected_state
from support.single import stored
from support.worlds import World, named, opened


def check(world: World, found: object, expected: dict[str, Any], **arguments: Any) -> tuple[str, Any]:
    """Call a tool that expects a state, and return what was confirmed, with its evidence."""

    def pay(cents: int, note: str | None = None) -> dict[str, Any]:
        return {"id": "p1", "cents": cents, "note": note}

    def read(_effect: object, arguments: Any, result: Any) -> object:
        assert arguments["cents"] == result["cents"]
        return found(result) if callable(found) else found

    tool = named("pay", pay, confirm=expected_state(read, expected, name="state", version="1"))
    with world.gate(tool) as gate:
        outcome = gate.call(opened(gate), "pay", {"cents": 5} | arguments)
    assert isinstance(outcome, Done)
    assert not world.damage()
    if outcome.confirmed == "unchecked":
        return outcome.confirmed, None
    return outcome.confirmed, json.loads(stored(world, outcome.action, "evidence"))["evidence"]


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [
        ({"status": "refunded", "cents": 5}, {"/status": "refunded", "/cents": Argument("/cents")}, "yes"),
        ({"status": "refunded", "cents": 5.0}, {"/cents": Argument("/cents")}, "yes"),
        ({"status": "pending", "cents": 5}, {"/status": "refunded", "/cents": Argument("/cents")}, "no"),
        ({"status": "refunded", "cents": 6}, {"/status": "refunded", "/cents": Argument("/cents")}, "no"),
        ({}, {"/status": "refunded"}, "no"),
        ({"status": None}, {"/status": None}, "yes"),
        ({}, {"/status": None}, "no"),
        ({"on": True}, {"/on": 1}, "no"),
        ({"on": 1}, {"/on": 1.0}, "yes"),
        ({"lines": [{"sku": "a/b"}]}, {"/lines/0/sku": "a/b", "/lines/0": {"sku": "a/b"}}, "yes"),
        ({"lines": []}, {"/lines/0/sku": "a"}, "no"),
        ({"lines": ["a"]}, {"/lines/-1": "a"}, "no"),
        ({"lines": ["a"]}, {"/lines/00": "a"}, "no"),
        ({"a/b": {"c~d": 1}}, {"/a~1b/c~0d": 1}, "yes"),
        ("refunded", {"": "refunded"}, "yes"),
        (None, {"/status": "refunded"}, "unchecked"),
        ({"note": None}, {"/note": Argument("/absent")}, "unchecked"),
        ({"note": None, "cents": 4}, {"/note": Argument("/absent"), "/cents": 5}, "no"),
        ({"id": object()}, {"/id": {"$unencodable": "x"}}, "no"),
    ],
)
def test_what_is_read_is_compared_place_by_place(
    world: World, found: object, expected: dict[str, Any], said: str
) -> None:
    assert check(world, found, expected)[0] == said


def test_the_evidence_names_what_was_expected_and_what_was_found(world: World) -> None:
    said, evidence = check(world, {"status": "pending"}, {"/status": "refunded", "/cents": Argument("/cents")})
    assert said == "no"
    assert evidence == {"/status": {"expected": "refunded", "found": "pending"}, "/cents": {"expected": 5}}


def test_a_default_that_was_filled_in_is_an_argument_too(world: World) -> None:
    assert check(world, lambda result: result, {"/note": Argument("/note"), "/id": "p1"})[0] == "yes"


def test_a_read_that_raises_leaves_it_unchecked(world: World) -> None:
    def broken(_result: object) -> object:
        raise LookupError

    assert check(world, broken, {"/status": "refunded"})[0] == "unchecked"


@pytest.mark.parametrize(
    ("expected", "path"),
    [
        ({}, "/confirm"),
        ({"status": 1}, "/confirm"),
        ({"/a~2": 1}, "/confirm"),
        ({7: 1}, "/confirm"),
        ({"/a": object()}, "/confirm/a"),
        ({"/a": {"b": float("nan")}}, "/confirm/a/b"),
    ],
)
def test_an_expectation_that_says_nothing_is_refused_when_it_is_made(expected: dict[Any, Any], path: str) -> None:
    with pytest.raises(SpecRefused) as caught:
        expected_state(print, expected, name="state", version="1")
    assert caught.value.path == path


def test_an_argument_is_named_by_a_pointer() -> None:
    with pytest.raises(SpecRefused):
        Argument("cents")


def test_its_name_and_version_stand_in_the_spec() -> None:
    made = expected_state(print, {"/a": 1}, name="state", version="7")
    tool = agentgate.tool(confirm=made)(test_its_name_and_version_stand_in_the_spec)
    assert tool.spec.confirm == agentgate.FunctionName(name="state", version="7")


def test_what_is_expected_is_copied(world: World) -> None:
    wanted: dict[str, Any] = {"status": "refunded"}
    expected = {"": wanted}
    made = expected_state(lambda *_: {"status": "refunded"}, expected, name="state", version="1")
    wanted["status"] = "changed"
    with world.gate(named("act", lambda: None, confirm=made)) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "yes"
