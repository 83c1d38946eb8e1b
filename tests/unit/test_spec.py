"""A ToolSpec: what it accepts, what its document says, and that the document is all of it."""

import copy
import dataclasses
import hashlib
import json
import os
import pickle
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentgate.canonical import canonical, parse
from agentgate.errors import SpecRefused
from agentgate.tools.recovery import FunctionName, Keyed, Operator, Probe, Repeat, Retry, Transactional
from agentgate.tools.spec import ToolSpec, from_document
from support.specs import FULL, SCHEMA, made

# Another valid value for each field: whatever changes, the digest does.
OTHER: dict[str, Any] = {
    "name": "refund2",
    "namespace": "shop2",
    "version": "4",
    "description": "Give money back!",
    "input_schema": {**SCHEMA, "title": "x"},
    "output_schema": {},
    "risk": "destructive",
    "recovery": Keyed(hours=25),
    "timeout": timedelta(seconds=20, microseconds=1),
    "max_output_bytes": 1_001,
    "resource": "account:{cents}",
    "parallel": False,
    "permissions": [],
    "tags": ["money", "x"],
    "sensitive": ["/cents"],
    "undeclared": "deny",
    "errors": "unknown",
    "retry": Retry(attempts=3, wait=timedelta(seconds=2)),
    "confirm": FunctionName(name="check", version="2"),
    "dedupe_window": timedelta(minutes=6),
}


def refused(**changes: Any) -> SpecRefused:
    with pytest.raises(SpecRefused) as caught:
        made(**changes)
    return caught.value


def test_the_document_of_a_bare_spec_states_every_default() -> None:
    assert json.loads(made().document()) == {
        "name": "refund",
        "namespace": "",
        "version": "",
        "description": "",
        "input_schema": SCHEMA,
        "risk": "external",
        "recovery": {"class": "operator"},
        "timeout_us": 60_000_000,
        "max_output_bytes": 65_536,
        "parallel": False,
        "permissions": [],
        "tags": [],
        "sensitive": [],
        "undeclared": "deny",
        "errors": "unknown",
        "retry": {"attempts": 1, "wait_us": 1_000_000, "longest_wait_us": 60_000_000, "within_us": 600_000_000},
    }


def test_the_document_of_a_full_spec_states_every_field() -> None:
    assert json.loads(ToolSpec(**FULL).document()) == {
        "name": "refund",
        "namespace": "shop",
        "version": "3",
        "description": "Give money back.",
        "input_schema": SCHEMA,
        "output_schema": {"type": "object"},
        "risk": "external",
        "recovery": {"class": "keyed", "window_us": 86_400_000_000},
        "timeout_us": 20_000_000,
        "max_output_bytes": 1_000,
        "resource": "account:{account}",
        "parallel": True,
        "permissions": ["refunds.write"],
        "tags": ["money"],
        "sensitive": ["/account"],
        "undeclared": "allow",
        "errors": "no_effect",
        "retry": {"attempts": 3, "wait_us": 1_000_000, "longest_wait_us": 60_000_000, "within_us": 600_000_000},
        "confirm": {"name": "check", "version": "1"},
        "dedupe_window_us": 300_000_000,
    }


def test_the_digest_of_a_spec_is_pinned_for_ever() -> None:
    assert ToolSpec(**FULL).digest.hex() == "3582afc4066e98c05dc84d15039a3d483754e3676a470e31ad27562dbe7948b1"
    assert made().digest.hex() == "1cfa7f2afe053a43bca25b7580f833a2d6e3f290fc6ce80526b3730a29b27361"


def test_the_digest_is_the_document_digest_of_the_format() -> None:
    spec = ToolSpec(**FULL)
    prefix = b"agentgate/document/v1\0spec\0"
    assert spec.digest == hashlib.sha256(prefix + spec.document()).digest()


def test_the_document_is_canonical() -> None:
    document = ToolSpec(**FULL).document()
    assert canonical(parse(document)) == document


@pytest.mark.parametrize("field", sorted(OTHER))
def test_the_digest_is_over_every_field(field: str) -> None:
    assert ToolSpec(**{**FULL, field: OTHER[field]}).digest != ToolSpec(**FULL).digest


def test_every_field_of_a_spec_is_tried_here() -> None:
    fields = {field.name for field in dataclasses.fields(ToolSpec) if field.init}
    assert fields == set(FULL) | {"probe"} == set(OTHER) | {"probe"}


def test_a_probe_and_its_recovery_come_together() -> None:
    name = FunctionName(name="find", version="1")
    assert json.loads(made(recovery=Probe(), probe=name).document())["probe"] == {"name": "find", "version": "1"}
    assert refused(recovery=Probe()).path == "/probe"
    assert refused(probe=name).path == "/probe"


@pytest.mark.parametrize("recovery", [Repeat(), Keyed(minutes=1), Transactional(), Operator()])
def test_every_recovery_reads_back(recovery: Any) -> None:
    assert from_document(made(recovery=recovery).document()).recovery == recovery


def test_recovery_and_parallel_follow_the_risk_unless_given() -> None:
    read = made(risk="read_only")
    assert (read.recovery, read.parallel) == (Repeat(), True)
    assert (made().recovery, made().parallel) == (Operator(), False)
    given_ = made(risk="read_only", recovery=Operator(), parallel=False)
    assert (given_.recovery, given_.parallel) == (Operator(), False)


@pytest.mark.parametrize("changes", [{}, FULL, {"recovery": Probe(), "probe": FunctionName(name="p", version="1")}])
def test_a_document_reads_back_as_the_same_spec(changes: dict[str, Any]) -> None:
    spec = made(**changes)
    back = from_document(spec.document())
    assert back == spec
    assert (back.document(), back.digest, hash(back)) == (spec.document(), spec.digest, hash(spec))
    assert all(
        getattr(back, field.name) == getattr(spec, field.name) for field in dataclasses.fields(spec) if field.init
    )


def test_sets_are_sorted_by_code_point_without_repeats() -> None:
    spec = made(tags=["b", "a", "b", "Z", "é", "\U0001f600", "\ue000"], permissions={"y", "x"})
    assert spec.tags == ("Z", "a", "b", "é", "\ue000", "\U0001f600")
    assert spec.permissions == ("x", "y")
    assert made(tags=["a", "b"]).digest == made(tags=("b", "a", "a")).digest


def test_schemas_stand_in_the_document_as_given() -> None:
    schema = {**SCHEMA, "x-vendor": {"b": [1.0, None], "a": "é"}, "title": "T"}
    assert json.loads(made(input_schema=schema).document())["input_schema"] == schema


def test_a_schema_that_says_true_is_another_than_one_that_says_1() -> None:
    assert made(input_schema={"const": True}) != made(input_schema={"const": 1})


def test_changing_the_callers_schema_afterwards_changes_nothing() -> None:
    schema = copy.deepcopy(SCHEMA)
    spec = made(input_schema=schema)
    schema["properties"].clear()
    schema["required"].append("x")
    assert spec == made()
    assert spec.input_schema == SCHEMA


def test_a_reader_who_changes_a_schema_changes_only_its_own_copy() -> None:
    spec = ToolSpec(**FULL)
    for schema in (spec.input_schema, spec.output_schema):
        assert isinstance(schema, dict)
        schema.clear()
    assert spec.input_schema == SCHEMA
    assert spec.output_schema == {"type": "object"}
    assert json.loads(spec.document())["input_schema"] == SCHEMA


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        made().risk = "read_only"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        made().input_schema = {}  # type: ignore[misc]


def test_a_replaced_field_makes_another_valid_spec() -> None:
    spec = dataclasses.replace(ToolSpec(**FULL), version="9")
    assert spec.version == "9"
    assert spec == ToolSpec(**{**FULL, "version": "9"})
    with pytest.raises(SpecRefused):
        dataclasses.replace(spec, timeout=timedelta(0))


def test_specs_are_equal_when_their_documents_are() -> None:
    assert made() == made(tags=[])
    assert len({made(), made(tags=())}) == 1
    assert made() != made(version="1")
    assert made() != "refund"


def test_a_spec_travels_as_its_document() -> None:
    spec = ToolSpec(**FULL)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert copy.deepcopy(spec) == spec


def test_schemas_are_compiled_once_for_a_spec() -> None:
    assert made().checked_input is made().checked_input
    assert from_document(made().document()).checked_input is made().checked_input


def test_a_repr_names_the_spec_and_shows_nothing_long() -> None:
    assert repr(made(description="x" * 1000)).startswith("ToolSpec(namespace='', name='refund', digest=")
    assert len(repr(made(description="x" * 1000))) < 100


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("/name", {"name": ""}),
        ("/name", {"name": 5}),
        ("/namespace", {"namespace": " shop"}),
        ("/namespace", {"namespace": None}),
        ("/version", {"version": "1\n"}),
        ("/version", {"version": 1}),
        ("/description", {"description": None}),
        ("/description", {"description": "x" * 65_537}),
        ("/description", {"description": "\ud800"}),
        ("/input_schema", {"input_schema": {"type": "no such type"}}),
        ("/input_schema/a", {"input_schema": {"a": float("nan")}}),
        ("/input_schema/a", {"input_schema": {"a": {1, 2}}}),
        ("/output_schema", {"output_schema": {"$ref": "https://example.org/x"}}),
        ("/risk", {"risk": "harmless"}),
        ("/risk", {"risk": None}),
        ("/recovery", {"recovery": "repeat"}),
        ("/recovery", {"recovery": Keyed}),
        ("/timeout_us", {"timeout": timedelta(0)}),
        ("/timeout_us", {"timeout": -timedelta(seconds=1)}),
        ("/timeout_us", {"timeout": timedelta(days=4000)}),
        ("/timeout_us", {"timeout": 20}),
        ("/max_output_bytes", {"max_output_bytes": 0}),
        ("/max_output_bytes", {"max_output_bytes": True}),
        ("/max_output_bytes", {"max_output_bytes": 1.5}),
        ("/max_output_bytes", {"max_output_bytes": 2**40}),
        ("/resource", {"resource": "account:{nobody}"}),
        ("/resource", {"resource": ""}),
        ("/parallel", {"parallel": 1}),
        ("/permissions", {"permissions": "refunds.write"}),
        ("/permissions", {"permissions": None}),
        ("/tags", {"tags": [""]}),
        ("/tags", {"tags": [1]}),
        ("/sensitive", {"sensitive": ["account"]}),
        ("/sensitive", {"sensitive": ["/a~"]}),
        ("/sensitive", {"sensitive": ["/a~2"]}),
        ("/sensitive", {"sensitive": ["/acount"]}),
        ("/sensitive", {"sensitive": "/account"}),
        ("/sensitive", {"sensitive": ["/" + "x" * 1_024]}),
        ("/sensitive", {"sensitive": ["/account/\ud800"]}),
        ("/undeclared", {"undeclared": "maybe"}),
        ("/errors", {"errors": "none"}),
        ("/retry", {"retry": 3}),
        ("/confirm", {"confirm": print}),
        ("/confirm", {"confirm": "check"}),
        ("/dedupe_window_us", {"dedupe_window": timedelta(0)}),
    ],
)
def test_a_refusal_names_the_tool_the_field_and_a_remedy(path: str, changes: dict[str, Any]) -> None:
    refusal = refused(**changes)
    assert refusal.path.startswith(path)
    assert refusal.remedy
    assert refusal.tool == str(changes.get("name", "refund"))


def test_a_sensitive_pointer_may_reach_into_a_declared_argument_or_name_all_of_them() -> None:
    assert made(sensitive=["", "/account/0/x~1y"]).sensitive == ("", "/account/0/x~1y")


def test_a_sensitive_pointer_may_name_an_undeclared_argument_where_those_are_allowed() -> None:
    assert made(sensitive=["/anything"], undeclared="allow").sensitive == ("/anything",)


def test_a_sensitive_pointer_into_arguments_that_are_no_object_is_taken_as_it_is() -> None:
    assert made(input_schema={"type": "array"}, sensitive=["/0"]).sensitive == ("/0",)


def test_a_spec_tells_the_resource_that_arguments_name() -> None:
    assert made(resource="account:{account}").resource_of({"account": "a/1", "cents": 5}) == "account:a%2F1"
    assert made().resource_of({"account": "a1", "cents": 5}) is None


def test_defaults_that_their_own_schema_refuses_are_told() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": None}}}
    assert made(input_schema=schema).refused_defaults() == ("/properties/a/default",)
    assert made().refused_defaults() == ()


@pytest.mark.parametrize("window", [{}, {"window": 5}, {"hours": 0}, {"hours": -1}, {"days": 4000}])
def test_a_keyed_window_is_positive_and_bounded(window: dict[str, Any]) -> None:
    with pytest.raises(SpecRefused) as caught:
        Keyed(**window)
    assert caught.value.path == "/recovery/window_us"


def test_a_keyed_window_may_be_said_in_several_units() -> None:
    assert Keyed(days=1, hours=2, minutes=3) == Keyed(window=timedelta(days=1, hours=2, minutes=3))


@pytest.mark.parametrize(
    "fields",
    [
        {"attempts": 0},
        {"attempts": 101},
        {"attempts": True},
        {"attempts": 2.0},
        {"wait": -timedelta(1)},
        {"wait": timedelta(minutes=2)},
        {"longest_wait": 5},
        {"within": timedelta(0)},
        {"within": -timedelta(1)},
        {"within": timedelta(days=4_000)},
        {"within": 600},
    ],
)
def test_a_retry_is_bounded(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecRefused):
        Retry(**fields)


@pytest.mark.parametrize(
    "fields", [{"name": "", "version": "1"}, {"name": "a", "version": ""}, {"name": 1, "version": "1"}]
)
def test_a_function_is_called_something_and_has_a_version(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecRefused):
        FunctionName(**fields)


def test_a_fresh_process_gives_the_same_digest() -> None:
    there = subprocess.run(
        [sys.executable, "-c", "from support.specs import FULL, made; print(made(**FULL).digest.hex())"],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == ToolSpec(**FULL).digest.hex()
