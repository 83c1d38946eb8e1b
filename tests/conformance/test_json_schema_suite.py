"""JSON-Schema-Test-Suite, both dialects: the library's verdicts, but for a named list with its reasons.

Compared with plain jsonschema on a closed registry. A group on the list is refused at registration; every other group
is admitted, and every instance in it gets the library's verdict.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema.exceptions import ValidationError
from referencing import Registry

from agentgate.canonical import Json, snapshot
from agentgate.errors import NotCanonical, SpecRefused
from agentgate.tools.schemas import CheckedSchema, admit
from agentgate.tools.validation import check

NEWEST = ("draft2020-12", "https://json-schema.org/draft/2020-12/schema", jsonschema.Draft202012Validator)
SEVENTH = ("draft7", "http://json-schema.org/draft-07/schema#", jsonschema.Draft7Validator)
FOLDERS = [NEWEST, SEVENTH]

REMOTE = "it refers to a document outside, and nothing is ever fetched"
PROPERTY = r"\p{Letter}: RE2 knows Unicode's properties by their short names only"
NUMBER = "9007199254740992 = 2^53 has no canonical form in I-JSON"
VOCABULARY = "a meta-schema of its own, which may change what every keyword means"

REFUSED: dict[tuple[str, str], str] = {
    ("draft2020-12", "const: float and integers are equal up to 64-bit representation limits"): NUMBER,
    ("draft2020-12", "dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first"): REMOTE,
    ("draft2020-12", "dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first"): REMOTE,
    ("draft2020-12", "dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor"): REMOTE,
    ("draft2020-12", "dynamicRef: strict-tree schema, guards against misspelled properties"): REMOTE,
    ("draft2020-12", "dynamicRef: tests for implementation dynamic anchor and reference link"): REMOTE,
    ("draft2020-12", "pattern: pattern with Unicode property escape requires unicode mode"): PROPERTY,
    ("draft2020-12", "patternProperties: patternProperties with Unicode property escape"): PROPERTY,
    ("draft2020-12", "refRemote: $ref to $ref finds detached $anchor"): REMOTE,
    ("draft2020-12", "refRemote: Location-independent identifier in remote ref"): REMOTE,
    ("draft2020-12", "refRemote: anchor within remote ref"): REMOTE,
    ("draft2020-12", "refRemote: base URI change"): REMOTE,
    ("draft2020-12", "refRemote: base URI change - change folder"): REMOTE,
    ("draft2020-12", "refRemote: base URI change - change folder in subschema"): REMOTE,
    ("draft2020-12", "refRemote: fragment within remote ref"): REMOTE,
    ("draft2020-12", "refRemote: ref within remote ref"): REMOTE,
    ("draft2020-12", "refRemote: remote HTTP ref with different $id"): REMOTE,
    ("draft2020-12", "refRemote: remote HTTP ref with different URN $id"): REMOTE,
    ("draft2020-12", "refRemote: remote HTTP ref with nested absolute ref"): REMOTE,
    ("draft2020-12", "refRemote: remote ref"): REMOTE,
    ("draft2020-12", "refRemote: remote ref with ref to defs"): REMOTE,
    ("draft2020-12", "refRemote: retrieved nested refs resolve relative to their URI not $id"): REMOTE,
    ("draft2020-12", "refRemote: root ref in remote ref"): REMOTE,
    ("draft2020-12", "vocabulary: ignore unrecognized optional vocabulary"): VOCABULARY,
    ("draft2020-12", "vocabulary: schema that uses custom metaschema with with no validation vocabulary"): VOCABULARY,
    ("draft7", "const: float and integers are equal up to 64-bit representation limits"): NUMBER,
    ("draft7", "refRemote: $ref to $ref finds location-independent $id"): REMOTE,
    ("draft7", "refRemote: Location-independent identifier in remote ref"): REMOTE,
    ("draft7", "refRemote: base URI change"): REMOTE,
    ("draft7", "refRemote: base URI change - change folder"): REMOTE,
    ("draft7", "refRemote: base URI change - change folder in subschema"): REMOTE,
    ("draft7", "refRemote: fragment within remote ref"): REMOTE,
    ("draft7", "refRemote: ref within remote ref"): REMOTE,
    ("draft7", "refRemote: remote ref"): REMOTE,
    ("draft7", "refRemote: remote ref with ref to definitions"): REMOTE,
    ("draft7", "refRemote: retrieved nested refs resolve relative to their URI not $id"): REMOTE,
    ("draft7", "refRemote: root ref in remote ref"): REMOTE,
}
# What the oldest jsonschema that is allowed gets wrong; the newest agrees.
LATER = {"unevaluatedProperties: unevaluatedProperties with adjacent non-bool additionalProperties"}
JUDGED = {"draft2020-12": 1_241, "draft7": 900}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One schema of the suite and the instances it is tried on."""

    name: str
    schema: Any
    tests: list[dict[str, Any]]


def groups(folder: Path, uri: str) -> Iterator[Group]:
    for file in sorted(folder.glob("*.json")):
        for group in json.loads(file.read_text("utf-8")):
            schema = group["schema"]
            dated = {"$schema": uri, **schema} if isinstance(schema, dict) else schema
            yield Group(name=f"{file.stem}: {group['description']}", schema=dated, tests=group["tests"])


def admitted(schema: Json) -> CheckedSchema | None:
    try:
        return admit(schema, tool="suite")
    except SpecRefused as refused:
        assert refused.problem
        assert refused.remedy
        return None


def plain(library: Any, schema: Any, instance: Any) -> bool:
    found: list[ValidationError] = list(library(schema, registry=Registry()).iter_errors(instance))
    return not found


@pytest.mark.parametrize(("name", "uri", "library"), FOLDERS, ids=[folder[0] for folder in FOLDERS])
def test_required_tests_get_the_library_s_verdict_but_for_the_named_list(
    corpora: Path, name: str, uri: str, library: Any
) -> None:
    refused = set()
    judged = 0
    for group in groups(corpora / "json-schema-test-suite" / "tests" / name, uri):
        schema = admitted(group.schema)
        if schema is None:
            refused.add((name, group.name))
            continue
        for test in group.tests:
            mine = not check(schema, snapshot(test["data"]))
            assert mine == test["valid"], (group.name, test["description"])
            assert group.name in LATER or mine == plain(library, group.schema, test["data"])
            judged += 1
    assert refused == {key for key in REFUSED if key[0] == name}
    assert judged == JUDGED[name]


@pytest.mark.parametrize(("name", "uri", "library"), FOLDERS, ids=[folder[0] for folder in FOLDERS])
def test_ecma_262_s_patterns_mean_what_the_suite_says_where_the_library_errs(
    corpora: Path, name: str, uri: str, library: Any
) -> None:
    wrong_in_the_library = judged = 0
    for group in groups(corpora / "json-schema-test-suite" / "tests" / name / "optional", uri):
        if not group.name.startswith(("ecmascript-regex:", "non-bmp-regex:", "float-overflow:")):
            continue
        schema = admitted(group.schema)
        if schema is None:
            assert "digit" in group.name or "unicode semantics" in group.name  # \p{digit}, \p{Letter}
            continue
        for test in group.tests:
            assert (not check(schema, test["data"])) == test["valid"], (group.name, test["description"])
            judged += 1
            try:
                wrong_in_the_library += plain(library, group.schema, test["data"]) != test["valid"]
            except Exception:  # noqa: BLE001 - Python's re does not know \c
                wrong_in_the_library += 1
    assert judged > 50
    assert wrong_in_the_library > 10


@pytest.mark.parametrize(("name", "uri", "library"), FOLDERS, ids=[folder[0] for folder in FOLDERS])
def test_no_optional_test_makes_the_validator_fail(corpora: Path, name: str, uri: str, library: Any) -> None:
    assert library
    for group in groups(corpora / "json-schema-test-suite" / "tests" / name / "optional", uri):
        schema = admitted(group.schema)
        for test in group.tests if schema is not None else ():
            assert schema is not None
            try:
                found = check(schema, snapshot(test["data"]))
            except NotCanonical:
                continue  # a number that no canonical form holds never reaches a schema
            assert not [violation for violation in found if violation.keyword.startswith("$")]
