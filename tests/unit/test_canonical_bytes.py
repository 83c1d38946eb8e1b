"""RFC 8785 bytes: what `json.dumps(sort_keys=True)` gets wrong, and where the fast way may be taken."""

import json
import math
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings

from agentgate.canonical import REASONS, canonical, pointer
from agentgate.errors import NotCanonical
from agentgate.jcs import LARGEST_INTEGER
from support.documents import FLOATS, documents, written

VECTORS = [
    (1.0, b"1"),
    (-0.0, b"0"),
    (1e-7, b"1e-7"),
    (1e-6, b"0.000001"),
    (1e-5, b"0.00001"),
    (1e20, b"100000000000000000000"),
    (1e21, b"1e+21"),
    (1e16, b"10000000000000000"),
    (123456789012345680.0, b"123456789012345680"),
    (0.1, b"0.1"),
    (5e-324, b"5e-324"),
    (LARGEST_INTEGER, b"9007199254740991"),
    ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
    ({"\ue000": 1, "\U0001f600": 2}, b'{"\xf0\x9f\x98\x80":2,"\xee\x80\x80":1}'),
    ({"é": "ü"}, b'{"\xc3\xa9":"\xc3\xbc"}'),
    ("\u2028\x7f/<>&", b'"\xe2\x80\xa8\x7f/<>&"'),
    ('\0\x1f\b\t\n\f\r"\\', b'"\\u0000\\u001f\\b\\t\\n\\f\\r\\"\\\\"'),
    ({}, b"{}"),
    ([], b"[]"),
    ([None, True, False, ""], b'[null,true,false,""]'),
]


@pytest.mark.parametrize(("value", "expected"), VECTORS)
def test_the_bytes_are_those_of_rfc_8785(value: object, expected: bytes) -> None:
    assert written(value) == expected
    assert written([value]) == b"[" + expected + b"]"


def test_python_json_dumps_is_not_rfc_8785_on_these_vectors() -> None:
    naive = [json.dumps(value, sort_keys=True, separators=(",", ":")).encode() for value, _ in VECTORS]
    assert sum(mine != expected for mine, (_, expected) in zip(naive, VECTORS, strict=True)) >= 11


# Law: whichever way is taken, the bytes are those of rfc8785 alone.
@settings(max_examples=600)
@given(documents())
def test_the_fast_way_writes_what_rfc8785_writes(value: object) -> None:
    expected: Any = value
    assert written(value) == rfc8785.dumps(expected)


@settings(max_examples=600)
@given(FLOATS)
def test_every_float_is_written_as_ecmascript_writes_it(number: float) -> None:
    assert canonical(number) == rfc8785.dumps(number)


@pytest.mark.parametrize(
    "number", [base * sign for base in (1e-4, 1e16, 1e15, 2.0**53, 1e21, 1e-7) for sign in (1, -1)]
)
def test_floats_at_the_edges_of_the_fast_way_are_written_alike(number: float) -> None:
    for near in (number, math.nextafter(number, math.inf), math.nextafter(number, -math.inf)):
        assert canonical([near]) == rfc8785.dumps([near])


class Text(str):
    pass


class Number(float):
    def __float__(self) -> float:
        return 999.0


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": (1,)}, "/a", "type"),
        ([Number(1.0)], "/0", "type"),
        ([Text("a")], "/0", "type"),
        ({Text("a"): 1}, "", "key"),
        ({1: 1}, "", "key"),
        ({"a": b"x"}, "/a", "type"),
        ({"a": [float("nan")]}, "/a/0", "not_finite"),
        ([float("inf")], "/0", "not_finite"),
        ({"a": 2**53}, "/a", "integer_range"),
        (-(2**53), "", "integer_range"),
        ({"a": "\ud800"}, "/a", "surrogate"),
        ({"\ud800": 1}, "/\\ud800", "surrogate"),
        ({"é\U0001f600": {"\udfff": 1.5}}, "/é\U0001f600/\\udfff", "surrogate"),
    ],
)
def test_what_rfc8785_would_misread_or_raise_on_is_refused_where_it_stands(
    value: object, path: str, reason: str
) -> None:
    with pytest.raises(NotCanonical) as caught:
        written(value)
    assert (caught.value.path, caught.value.reason) == (path, reason)
    assert reason in REASONS


@pytest.mark.parametrize(("leaf", "text"), [(1e-9, b"1e-9"), ("a", b'"a"')], ids=["slow way", "fast way"])
def test_depth_is_refused_and_no_recursion_error(leaf: object, text: bytes) -> None:
    value: list[Any] = [leaf]
    for _ in range(255):
        value = [value]
    assert canonical(value) == b"[" * 256 + text + b"]" * 256
    for deeper in (1, 10_000):
        for _ in range(deeper):
            value = [value]
        with pytest.raises(NotCanonical) as caught:
            canonical(value)
        assert caught.value.reason == "depth"


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotCanonical) as caught:
        canonical(loop)
    assert caught.value.reason == "depth"


def test_a_pointer_escapes_as_rfc_6901_says() -> None:
    # RFC 6901 §5
    assert pointer() == ""
    assert pointer("foo", 0) == "/foo/0"
    assert pointer("") == "/"
    assert pointer("a/b", "m~n", "c%d", " ", 'k"l') == '/a~1b/m~0n/c%d/ /k"l'
    assert pointer("~1") == "/~01"
