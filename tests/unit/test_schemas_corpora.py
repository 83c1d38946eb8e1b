"""Real life: 2,516 specs and 5,959 calls that nobody here wrote."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentgate.canonical import Json, canonical, parse
from agentgate.errors import SpecRefused
from agentgate.tools.declared import undeclared
from agentgate.tools.defaults import complete, refused_defaults
from agentgate.tools.schemas import CheckedSchema, admit
from agentgate.tools.validation import check

SPECS = 2_516
BROKEN = {
    "createAuthToken": "/input_schema/properties/options/properties/issuer/type",  # ''
    "Real-Time_Product_Search_Search": "/input_schema/properties/limit/enum",  # '1-100'
    "Real-Time_Product_Search_Product_Details": "/input_schema/properties/limit/enum",
}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def tools(corpora: Path) -> dict[str, dict[str, Any]]:
    return {tool["id"]: tool for tool in lines(corpora / "tools" / "tools.jsonl")}


@pytest.fixture(scope="module")
def admitted(tools: dict[str, dict[str, Any]]) -> dict[str, CheckedSchema | SpecRefused]:
    def settled(tool: dict[str, Any]) -> CheckedSchema | SpecRefused:
        try:
            return admit(tool["schema"], tool=tool["tool"])
        except SpecRefused as refused:
            return refused

    return {name: settled(tool) for name, tool in tools.items()}


Calls = list[tuple[str, str, Json]]


@pytest.fixture(scope="module")
def calls(corpora: Path) -> Calls:
    """Every call that was judged: its tool's id, the recorded verdict and the arguments."""
    return [
        (
            call["tool_id"],
            call["verdict"],
            parse(call["arguments_raw"]) if "arguments_raw" in call else call["arguments"],
        )
        for call in lines(corpora / "tools" / "calls.jsonl")
        if call["verdict"] in ("valid", "invalid")
    ]


def schema_of(admitted: dict[str, CheckedSchema | SpecRefused], name: str) -> CheckedSchema:
    schema = admitted[name]
    assert isinstance(schema, CheckedSchema)
    return schema


def test_every_real_spec_is_admitted_but_the_three_broken_ones(
    admitted: dict[str, CheckedSchema | SpecRefused],
) -> None:
    refused = [each for each in admitted.values() if isinstance(each, SpecRefused)]
    assert len(admitted) == SPECS
    assert {each.tool: each.path for each in refused} == BROKEN
    assert all(each.problem and each.remedy for each in refused)


def test_a_call_whose_spec_was_refused_was_recorded_as_such(
    admitted: dict[str, CheckedSchema | SpecRefused], corpora: Path
) -> None:
    recorded = {call["tool_id"] for call in lines(corpora / "tools" / "calls.jsonl") if call["verdict"] == "bad-schema"}
    assert recorded == {name for name, each in admitted.items() if isinstance(each, SpecRefused)}


def test_every_judged_call_gets_its_recorded_verdict(
    admitted: dict[str, CheckedSchema | SpecRefused], calls: Calls
) -> None:
    counted: Counter[str] = Counter()
    for name, verdict, arguments in calls:
        schema = schema_of(admitted, name)
        completed = complete(schema, arguments)
        found = check(schema, parse(canonical(completed)))
        assert bool(found) == (verdict == "invalid"), (name, found)
        counted[verdict] += 1
    assert counted == {"valid": 5_447, "invalid": 183}


def test_filling_never_turns_a_valid_call_invalid_and_filling_blindly_does(
    admitted: dict[str, CheckedSchema | SpecRefused], tools: dict[str, dict[str, Any]], calls: Calls
) -> None:
    blind = filled = 0
    for name, verdict, arguments in calls:
        schema = schema_of(admitted, name)
        completed = complete(schema, arguments)
        assert bool(check(schema, completed)) == bool(check(schema, arguments))
        filled += completed is not arguments
        if verdict == "valid" and isinstance(arguments, dict):
            properties = tools[name]["schema"].get("properties", {})
            every = {key: inner["default"] for key, inner in properties.items() if "default" in inner}
            blind += bool(check(schema, {**every, **arguments}))
    assert filled > 100
    assert blind == 50


def test_the_specs_with_a_default_that_its_own_subschema_refuses_are_known(
    admitted: dict[str, CheckedSchema | SpecRefused],
) -> None:
    at_root = nested = 0
    for schema in admitted.values():
        if isinstance(schema, CheckedSchema) and (paths := refused_defaults(schema)):
            arguments = any(path.startswith("/properties/") and path.count("/") == 3 for path in paths)
            at_root += arguments
            nested += not arguments
    assert (at_root, nested) == (150, 5)


def test_undeclared_arguments_are_counted_and_root_properties_alone_would_wrong_valid_calls(
    admitted: dict[str, CheckedSchema | SpecRefused], tools: dict[str, dict[str, Any]], calls: Calls
) -> None:
    counted: Counter[str] = Counter()
    for name, verdict, arguments in calls:
        carries = undeclared(schema_of(admitted, name), arguments)
        counted[f"{verdict} with undeclared"] += bool(carries)
        if verdict == "valid" and isinstance(arguments, dict) and not carries:
            schema = tools[name]["schema"]
            beside = arguments.keys() - schema.get("properties", {}).keys()
            counted["declared in a combination"] += bool(beside) and "additionalProperties" not in schema
            counted["declared by additionalProperties"] += bool(beside) and "additionalProperties" in schema
    assert counted == {
        "valid with undeclared": 138,
        "invalid with undeclared": 11,
        "declared in a combination": 24,
        "declared by additionalProperties": 1,
    }


def test_every_schema_with_a_dangling_reference_is_refused(corpora: Path) -> None:
    schemas = json.loads((corpora / "dangling-refs" / "schemas.json").read_text("utf-8"))
    assert len(schemas) == 41
    for each in schemas:
        with pytest.raises(SpecRefused) as caught:
            admit(each["schema"], tool=each["operationId"])
        assert caught.value.path.endswith("/$ref")
        assert "nothing is ever fetched" in caught.value.remedy
