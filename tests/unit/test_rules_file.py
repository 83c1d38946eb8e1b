"""A rule file is YAML that can mean one thing only; anything else is refused with its line."""

from typing import Any

import pytest

from agentgate.errors import PolicyRefused
from agentgate.policy.rulefile import MAX_BYTES, read


def value(text: str) -> Any:
    return read(text.encode(), source="p.yaml").value


def refused(content: str | bytes) -> PolicyRefused:
    with pytest.raises(PolicyRefused) as caught:
        read(content if isinstance(content, bytes) else content.encode(), source="p.yaml")
    assert caught.value.source == "p.yaml"
    return caught.value


# Source: YAML 1.2.2 §10.3.2, the core schema.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("0", 0),
        ("-12", -12),
        ("+12", 12),
        ("0o17", 15),
        ("0xFf", 255),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        ("1e3", 1000),
        (".5", 0.5),
        ("2026-01-01", "2026-01-01"),
        ("12:30:45", "12:30:45"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
        ("[1, [a]]", [1, ["a"]]),
        ("{a: {b: }}", {"a": {"b": None}}),
        ('"9007199254740993"', "9007199254740993"),
    ],
)
def test_a_value_means_what_yaml_1_2_says(text: str, expected: Any) -> None:
    found = value(f"k: {text}")["k"]
    assert found == expected
    assert type(found) is type(expected)


AMBIGUOUS: dict[str, tuple[str, str]] = {
    "an anchor": ("a: &x 1\nb: 2\n", "/a"),
    "an anchor on a mapping": ("a: &x {b: 1}\n", "/a"),
    "an alias": ("a: *x\n", "/a"),
    "an alias as a key": ("*x : 1\n", ""),
    "a billion laughs": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "/a"),
    "a tag": ("a: !!str 1\n", "/a"),
    "a tag of Python's": ("a: !!python/object/apply:os.system ['id']\n", "/a"),
    "a verbatim tag": ("a: !<tag:yaml.org,2002:int> '1'\n", "/a"),
    "a tag on a key": ("!!str a: 1\n", ""),
    "a merge key": ("a:\n  <<: {b: 1}\n", "/a"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", "/a"),
    "a key twice in flow": ("a: {b: 1, 'b': 2}\n", "/a/b"),
    "a number as a key": ("1: a\n", ""),
    "a null key": ("~: a\n", ""),
    "a bool as a key": ("true: a\n", ""),
    "a list as a key": ("? [1]\n: a\n", ""),
    "a leading zero": ("a: 012\n", "/a"),
    "infinity": ("a: .inf\n", "/a"),
    "not a number": ("a: .NaN\n", "/a"),
    "an integer no double holds": ("a: 9007199254740993\n", "/a"),
    "a huge integer": ("a: " + "9" * 5000 + "\n", "/a"),
    "a huge float": ("a: 1e400\n", "/a"),
    "a second document": ("a: 1\n---\nb: 2\n", ""),
    "a version directive": ("%YAML 1.1\n---\na: 1\n", ""),
    "a tag directive": ("%TAG ! tag:x,2000:\n---\na: 1\n", ""),
    "nothing": ("", ""),
    "comments alone": ("# rules: []\n", ""),
    "an open list": ("a: [1\n", ""),
    "a tab": ("a:\n\t- b\n", ""),
    "a control character": ("a: \x07\n", ""),
    "an escaped surrogate": ('a: "\\ud800"\n', "/a"),
    "depth": ("a: " + "[" * 100 + "]" * 100, "/a" + "/0" * 63),
    "breadth": ("a: [" + "1," * 10_001 + "]", "/a/9998"),
}


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_what_two_readers_could_take_differently_is_refused(what: str) -> None:
    text, path = AMBIGUOUS[what]
    assert refused(text).path == path


def test_a_refusal_names_the_line() -> None:
    assert refused("a: 1\nb:\n  c: &x 2\n").problem.startswith("line 3: ")
    assert refused("a: 1\nb: [\n").problem.startswith("line ")


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    assert "UTF-8" in refused(b"a: \xff\n").problem
    assert refused("a: 1\n".encode("utf-16")).problem


def test_a_file_beyond_its_bound_is_refused_before_it_is_parsed() -> None:
    assert "larger" in refused("#" * (MAX_BYTES + 1)).problem


def test_a_byte_order_mark_is_passed_over() -> None:
    assert value("\ufeffa: 1") == {"a": 1}


def test_the_line_of_every_value_is_known() -> None:
    file = read(b"a: 1\nb:\n  - c\n  - d/e: f\n", source="p.yaml")
    assert file.lines == {"": 1, "/a": 1, "/b": 3, "/b/0": 3, "/b/1": 4, "/b/1/d~1e": 4}
