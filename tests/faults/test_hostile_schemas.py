"""Hostile schemas and arguments: each is answered within a second, in one process that lives on and touches nothing.

Run as a program this file goes through all cases in one process, after one warm-up call and with an audit hook that
notes every file, socket and process that would be opened; the tests read its report. Seconds are of the processor, so
that a machine which others load does not fail them.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentgate.errors import SpecRefused
from agentgate.tools.declared import undeclared
from agentgate.tools.defaults import complete
from agentgate.tools.schemas import admit
from agentgate.tools.validation import check

SEVEN = "http://json-schema.org/draft-07/schema#"
WATCHED = (
    "open",
    "os.",
    "socket.",
    "subprocess.",
    "urllib.",
    "http.",
    "ftplib.",
    "shutil.",
    "glob.",
    "import",
    "ctypes.",
)

TEXT = "x" * 250_000
ROWS = [{"k": number} for number in range(4_900)]


def bomb(keyword: str, leaf: Any, depth: int = 14) -> Any:
    """2^depth evaluations of the leaf from a schema of a kilobyte."""
    links = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/a0", "$defs": {**links, f"a{depth}": leaf}}


def dependent_bomb() -> Any:
    links = {f"a{n}": {"dependentSchemas": {name: {"$ref": f"#/$defs/a{n + 1}"} for name in "ab"}} for n in range(14)}
    return {"$ref": "#/$defs/a0", "unevaluatedProperties": False, "$defs": {**links, "a14": {}}}


def conditional_bomb() -> Any:
    again = [{"$ref": f"#/$defs/a{n + 1}"} for n in range(14)]
    return {"$ref": "#/$defs/a0", "$defs": {**{f"a{n}": {"if": a, "then": a} for n, a in enumerate(again)}, "a14": {}}}


def nested(value: Any, wrap: Callable[[Any], Any], depth: int) -> Any:
    for _ in range(depth):
        value = wrap(value)
    return value


def scopes() -> Any:
    """Every level of the value passes through fifteen identifiers before a dynamic reference looks at them all."""
    hops = {f"d{n}": {"$id": f"http://h{n}.example/", "$ref": f"http://h{n + 1}.example/"} for n in range(14)}
    last = {
        "$id": "http://h14.example/",
        "$dynamicAnchor": "q",
        "items": {"$ref": "http://h0.example/"},
        "contains": {"$dynamicRef": "#q"},
    }
    return {"$ref": "http://h0.example/", "$defs": {**hops, "d14": last}}


def growing_defaults() -> Any:
    fields = {f"d{n}": {"default": "x" * 2_000} for n in range(100)}
    inner = {f"c{n}": {"$ref": "#/$defs/n"} for n in range(100)}
    return {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {**fields, **inner}}}}


REFUSED, COSTLY, FAILED, VIOLATED, FITS = "refused", "$cost", "$internal", "violated", "fits"

# name: (schema, value, what comes of it)
CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    # never admitted
    "reference over http": (lambda: {"$ref": "http://127.0.0.1:9/s.json"}, dict, REFUSED),
    "reference to a file": (lambda: {"$ref": "file:///etc/passwd"}, dict, REFUSED),
    "reference beside the file": (lambda: {"$id": "file:///etc/", "$ref": "passwd"}, dict, REFUSED),
    "dynamic reference over http": (lambda: {"$dynamicRef": "http://127.0.0.1:9/#a"}, dict, REFUSED),
    "identifier that is no address": (lambda: {"$id": "http://[::1", "$ref": "a"}, dict, REFUSED),
    "dialect over http": (lambda: {"$schema": "http://127.0.0.1:9/meta"}, dict, REFUSED),
    "reference to itself": (lambda: {"$ref": "#"}, dict, REFUSED),
    "references to each other": (
        lambda: {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        dict,
        REFUSED,
    ),
    "three thousand references in a row": (
        lambda: {"$defs": {"a3000": {}, **{f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(3_000)}}},
        dict,
        REFUSED,
    ),
    "thirty levels of doubled allOf": (lambda: bomb("allOf", {}, depth=30), dict, REFUSED),
    "five thousand levels": (lambda: nested({}, lambda inner: {"not": inner}, 5_000), dict, REFUSED),
    "a megabyte": (lambda: {"description": "x" * 1_000_000}, dict, REFUSED),
    "ten thousand subschemas too many": (lambda: {"anyOf": [{}] * 20_000}, dict, REFUSED),
    "a number no double holds": (lambda: {"multipleOf": 10**400}, dict, REFUSED),
    "lookahead": (lambda: {"pattern": "^(?=.*a)(?=.*b)"}, dict, REFUSED),
    "backreference": (lambda: {"patternProperties": {r"(a+)\1": {}}}, dict, REFUSED),
    "repetition of repetitions": (lambda: {"pattern": "((a{1,100}){1,100}){1,100}"}, dict, REFUSED),
    "a thousand patterns": (lambda: {"allOf": [{"pattern": f"^a{n}"} for n in range(1_000)]}, dict, REFUSED),
    "a default that costs": (
        lambda: {"properties": {"p": {"default": ["x"] * 4_000, "items": {"allOf": [{"type": "string"}] * 400}}}},
        dict,
        REFUSED,
    ),
    # admitted because nothing in them hangs by itself; the value is what costs
    "as large as is admitted": (
        lambda: {"properties": {f"p{n}": {"$ref": "#/properties/p0"} for n in range(1, 4_900)} | {"p0": {}}},
        dict,
        FITS,
    ),
    "as many booleans as are admitted": (lambda: {"anyOf": [False] * 9_900}, lambda: ROWS, VIOLATED),
    "2^14 allOf": (lambda: bomb("allOf", {"type": "string"}), lambda: "x", COSTLY),
    "2^14 anyOf": (lambda: bomb("anyOf", {"type": "string"}), lambda: 1, COSTLY),
    "2^14 oneOf": (lambda: bomb("oneOf", {"type": "string"}), lambda: 1, COSTLY),
    "2^14 if": (conditional_bomb, dict, COSTLY),
    "2^14 dependent schemas": (dependent_bomb, lambda: {"a": 1, "b": 2}, COSTLY),
    "unevaluatedProperties in each other": (
        lambda: nested(
            {"unevaluatedProperties": False},
            lambda inner: {"anyOf": [inner, {"properties": {"y": {}}}], "unevaluatedProperties": {"type": "integer"}},
            14,
        ),
        lambda: {"x": 1, "y": 2, "z": 3},
        COSTLY,
    ),
    "unevaluatedItems in each other": (
        lambda: nested(
            {"unevaluatedItems": False},
            lambda inner: {"anyOf": [inner, {"prefixItems": [{}]}], "unevaluatedItems": {"type": "integer"}},
            14,
        ),
        lambda: [1, 2, 3],
        COSTLY,
    ),
    "dynamic scope of hundreds": (scopes, lambda: nested([1] * 5_000, lambda inner: [inner], 55), COSTLY),
    "uniqueItems of thousands": (lambda: {"uniqueItems": True}, lambda: ROWS, FITS),
    "uniqueItems of equal beginnings": (
        lambda: {"uniqueItems": True},
        lambda: [[*range(90), number] for number in range(100)],
        FITS,
    ),
    "uniqueItems asked five thousand times": (
        lambda: {"allOf": [{"uniqueItems": True}] * 4_900},
        lambda: list(range(9_900)),
        COSTLY,
    ),
    "enum of thousands for thousands": (
        lambda: {"items": {"enum": [{"k": number, "p": "pp"} for number in range(3_000)]}},
        lambda: ROWS,
        VIOLATED,
    ),
    "const nearly the value, thousands of times": (
        lambda: {"anyOf": [{"$ref": "#/$defs/c"}] * 2_400, "$defs": {"c": {"const": ROWS[:1_000]}}},
        lambda: ROWS[:999],
        VIOLATED,
    ),
    "messages that would print the value": (lambda: {"anyOf": [{"type": "integer"}] * 4_500}, lambda: TEXT, VIOLATED),
    "backtracking": (lambda: {"pattern": "^(x+x+)+y$"}, lambda: TEXT, VIOLATED),
    "an automaton too large to build": (lambda: {"pattern": "a[abc]{900}d"}, lambda: "ab" * 125_000, COSTLY),
    "many automata on one text": (
        lambda: {"allOf": [{"pattern": f"a[abc]{{{n}}}d"} for n in range(840, 900)]},
        lambda: "ab" * 1_250,
        VIOLATED,
    ),
    "patterns for every name": (
        lambda: {"patternProperties": {f"^a{n}$": {} for n in range(60)}, "additionalProperties": False},
        lambda: {f"b{n}": 1 for n in range(9_000)},
        VIOLATED,
    ),
    "nothing, five thousand times for each of ten thousand": (
        lambda: {"items": {"allOf": [{}] * 4_900}},
        lambda: [1] * 9_900,
        COSTLY,
    ),
    "true, nine thousand times for each of ten thousand": (
        lambda: {"items": {"allOf": [True] * 9_900}},
        lambda: [1] * 9_900,
        COSTLY,
    ),
    "properties of thousands for thousands": (
        lambda: {"items": {"properties": {f"p{n}": True for n in range(9_000)}, "additionalProperties": False}},
        lambda: [{}] * 9_000,
        COSTLY,
    ),
    "a reference that is long to follow": (
        lambda: {"items": {"$ref": "#/$defs/" + "%41" * 60_000}, "$defs": {"A" * 60_000: {"type": "integer"}}},
        lambda: [1] * 9_000,
        COSTLY,
    ),
    "multiples of next to nothing": (lambda: {"items": {"multipleOf": 1e-300}}, lambda: [1e308] * 9_000, FITS),
    "an integer of four hundred digits": (lambda: {"multipleOf": 0.5}, lambda: 10**400, FITS),
    "an integer of ten thousand digits": (lambda: {"enum": [1], "multipleOf": 0.5}, lambda: 10**10_000, FAILED),
    "a value of twenty thousand levels": (
        lambda: {"$ref": "#/$defs/n", "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}},
        lambda: nested(1, lambda inner: [inner], 20_000),
        FAILED,
    ),
    "names of a hundred thousand characters": (
        lambda: {"additionalProperties": False},
        lambda: {letter * 100_000: 1 for letter in "mn"},
        VIOLATED,
    ),
    "defaults that multiply": (
        growing_defaults,
        lambda: {f"c{n}": {f"c{m}": {} for m in range(90)} for n in range(90)},
        COSTLY,
    ),
    "what is no JSON at all": (lambda: {"type": "object"}, object, VIOLATED),
    "draft-07, as large as is admitted": (
        lambda: {"$schema": SEVEN, "properties": {f"p{n}": {"type": "string"} for n in range(4_900)}},
        dict,
        FITS,
    ),
}  # fmt: skip


def outcome(schema: Any, value: Any) -> str:
    try:
        admitted = admit(schema, tool="hostile")
    except SpecRefused:
        return REFUSED
    complete(admitted, value)
    undeclared(admitted, value)
    found = check(admitted, value)
    if found and found[0].keyword in (COSTLY, FAILED):
        return found[0].keyword
    return VIOLATED if found else FITS


def report() -> list[dict[str, Any]]:
    """Go through every case in this process."""
    noted: list[str] = []
    made = {name: (schema(), value()) for name, (schema, value, _) in CASES.items()}
    assert outcome({"type": "object", "properties": {"a": {"pattern": "a"}}}, {"a": "a"}) == FITS
    sys.addaudithook(
        lambda event, arguments: noted.append(f"{event} {arguments!r:.99}") if event.startswith(WATCHED) else None
    )
    answers = []
    for name, (schema, value) in made.items():
        started = time.process_time()
        came = outcome(schema, value)
        seconds = time.process_time() - started
        answers.append({"name": name, "outcome": came, "seconds": seconds, "touched": noted[:]})
        noted.clear()
    assert outcome({"type": "object"}, {}) == FITS
    return answers


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    done = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True, timeout=120)
    return {answer["name"]: answer for answer in json.loads(done.stdout)}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_schema_or_value_is_answered_soon_and_touches_nothing(
    name: str, answers: dict[str, dict[str, Any]]
) -> None:
    answer = answers[name]
    assert answer["outcome"] == CASES[name][2]
    assert answer["seconds"] < 1.0
    assert answer["touched"] == []


def test_there_are_about_forty_of_them_and_the_process_lived_to_answer_all(answers: dict[str, dict[str, Any]]) -> None:
    assert len(CASES) >= 40
    assert list(answers) == list(CASES)


def test_the_hook_would_have_noted_a_file() -> None:
    program = "import sys; sys.addaudithook(lambda event, arguments: print(event)); open('/dev/null')"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert any(event.startswith(WATCHED) for event in done.stdout.split())


if __name__ == "__main__":
    print(json.dumps(report()))
