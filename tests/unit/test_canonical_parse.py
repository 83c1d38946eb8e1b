"""Strict reading: what is refused, why, and where."""

import inspect
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgate.canonical import REASONS, Bounds, Json, canonical, parse
from agentgate.errors import NotCanonical
from agentgate.jcs import LARGEST_INTEGER
from support.documents import identical, near_texts


def refused(raw: bytes | str, bounds: Bounds | None = None) -> NotCanonical:
    with pytest.raises(NotCanonical) as caught:
        parse(raw, bounds=bounds or Bounds())
    assert caught.value.reason in REASONS
    assert caught.value.remedy
    return caught.value


def at(raw: bytes | str) -> tuple[str, str]:
    error = refused(raw)
    return error.path, error.reason


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ('{"a":1,"a":2}', "/a"),
        ('{"a":1,"\\u0061":1}', "/a"),
        ('[0,{"x":{"a/b":1,"a/b":1}}]', "/1/x/a~1b"),
    ],
)
def test_a_duplicate_key_is_refused_where_it_stands(raw: str, path: str) -> None:
    assert at(raw) == (path, "duplicate_key")


@pytest.mark.parametrize("digits", ["9007199254740992", "-9007199254740992", "12345678901234567890", "1" * 5_000])
def test_a_64_bit_id_is_refused_with_the_path_and_send_it_as_a_string(digits: str) -> None:
    error = refused(f'{{"user":{{"id":{digits}}}}}')
    assert (error.path, error.reason, error.remedy) == ("/user/id", "integer_range", "send it as a string")


@pytest.mark.parametrize("number", ["9007199254740992.0", "1e16", "-1e20", "999999999999999900000.0"])
def test_an_integral_float_that_cannot_be_read_back_is_refused_with_the_same_remedy(number: str) -> None:
    error = refused(f"[{number}]")
    assert (error.path, error.reason, error.remedy) == ("/0", "float_range", "send it as a string")


@pytest.mark.parametrize(
    ("text", "value"), [(str(LARGEST_INTEGER), LARGEST_INTEGER), ("-9007199254740991", -LARGEST_INTEGER)]
)
def test_the_largest_integers_are_accepted(text: str, value: int) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
def test_a_number_that_is_none_never_reaches_a_validator(number: str) -> None:
    assert at(f'{{"amount":{number}}}') == ("/amount", "not_finite")


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ('{"a":"\\ud800"}', "/a"),
        ('{"a":"\\udc00\\ud800"}', "/a"),
        ('{"a":{"\\ud800":1}}', "/a/\\ud800"),
        ('["\ud800"]', "/0"),
        ('{"\udfff":1}', "/\\udfff"),
    ],
)
def test_a_lone_surrogate_in_value_or_key_is_refused_where_it_stands(raw: str, path: str) -> None:
    error = refused(raw)
    assert (error.path, error.reason) == (path, "surrogate")
    assert str(error).encode()  # the path can be printed


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf{}",
        "\ufeff{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-16-le"),
        "{}".encode("utf-16-be"),
        "{}".encode("utf-32"),
        "{}".encode("utf-32-be"),
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"',
        b'"\xf4\x90\x80\x80"',
        b'"\xe2\x82',
    ],
)
def test_utf_16_a_bom_and_bytes_that_are_not_utf_8_are_refused(raw: bytes | str) -> None:
    assert at(raw) == ("", "encoding")


@pytest.mark.parametrize(
    "raw",
    ["", " ", "{} {}", "1 2", "[1,]", "{'a':1}", "nul", "01", "+1", ".5", "1.", '"\n"', '"\\x41"', "// x\n1", "١"],
)
def test_empty_text_trailing_text_and_whatever_else_is_no_json_are_refused(raw: str) -> None:
    assert at(raw) == ("", "syntax")
    assert at(raw.encode()) == ("", "syntax")


def test_a_syntax_error_names_the_place_and_never_the_text() -> None:
    error = refused('{"password": "hunter2" "x"}')
    assert error.remedy == "send one JSON value; this stops being one at character 23"
    assert "hunter2" not in f"{error!s}{error!r}"
    assert error.__cause__ is None
    assert error.__suppress_context__  # a traceback shows no JSONDecodeError, whose .doc is the whole text


def test_double_encoded_json_is_a_string_and_never_unwrapped() -> None:
    assert parse('"{\\"a\\":1}"') == '{"a":1}'


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("times", [65, 1_000, 40_000])
def test_depth_is_refused_before_the_decoder_recurses(opening: str, times: int) -> None:
    assert at(opening * times) == ("", "depth")


def test_a_million_brackets_are_refused_whatever_the_size_allowed() -> None:
    assert refused(b"[" * 1_000_000, Bounds(max_bytes=10_000_000)).reason == "depth"
    assert refused(b"[" * 1_000_000).reason == "size"


def test_brackets_inside_strings_are_no_depth() -> None:
    text = '["' + "[{" * 500 + '\\"[[' + '", "' + "]" * 70 + '"]'
    assert parse(text) == ["[{" * 500 + '"[[', "]" * 70]


def test_siblings_are_no_depth() -> None:
    assert parse("[" + ",".join(["[[]]"] * 100) + "]") == [[[]]] * 100


@pytest.mark.parametrize(
    "raw",
    [
        "[" + "[]," * 70 + '"' + '\\"' * 100_000,
        "[" + "[]," * 70 + '"' * 200_000,
        "[0." + "1" * 250_000 + "]",
        "[1" + "0" * 250_000 + "e-250000]",
        "[" + "1," * 130_000,
        "{" + '"a":1,' * 9_000 + '"b":1}',
    ],
    ids=["escaped quotes", "quotes", "fraction", "exponent", "commas", "duplicates"],
)
def test_hostile_text_is_answered_in_linear_time(raw: str) -> None:
    started = time.perf_counter()
    with suppress(NotCanonical):
        parse(raw)
    assert time.perf_counter() - started < 1


def test_64_levels_are_accepted_and_65_are_not() -> None:
    assert canonical(parse("[" * 64 + "]" * 64)) == b"[" * 64 + b"]" * 64
    assert at("[" * 65 + "]" * 65) == ("", "depth")


def test_10_000_values_are_accepted_and_one_more_is_not() -> None:
    assert len(canonical(parse("[" + ",".join("1" * 9_999) + "]"))) == 2 * 9_999 + 1
    assert at('{"a":[' + ",".join("1" * 9_999) + "]}") == ("/a", "nodes")


def test_256_kib_are_accepted_and_one_byte_more_is_not() -> None:
    text = '"' + "é" * (131_072 - 1) + '"'
    assert len(canonical(parse(text))) == 262_144
    assert at(text + " ") == ("", "size")
    assert at((text + " ").encode()) == ("", "size")


def test_a_text_whose_canonical_form_is_larger_than_the_bounds_is_refused() -> None:
    # "1e15" is four bytes here and sixteen there: what parse returns must pass parse again.
    assert refused("[1e15,1e15]", Bounds(max_bytes=20)).reason == "size"
    assert parse("[1e15,1e15]", bounds=Bounds(max_bytes=35)) == [10**15, 10**15]


def test_1_and_1_0_are_one_value() -> None:
    for text, value in {
        "1": 1,
        "1.0": 1,
        "1e0": 1,
        "-0.0": 0,
        "-0": 0,
        "0e7": 0,
        "1e-999": 0,
        "1e6": 1_000_000,
    }.items():
        assert identical(parse(text), value), text
    assert identical(parse('{"a":[2.0]}'), {"a": [2]})
    assert identical(parse("1e21"), 1e21)
    assert identical(parse("1.5"), 1.5)


@pytest.mark.parametrize("raw", [bytearray(b"{}"), memoryview(b"{}"), None, 1, {}, ["{}"]])
def test_what_is_neither_bytes_nor_text_is_refused(raw: bytes) -> None:
    assert at(raw) == ("", "type")


def test_a_subclass_of_str_or_bytes_is_read_by_its_content_alone() -> None:
    class LyingText(str):
        def __str__(self) -> str:
            raise AssertionError

        encode = count = isascii = startswith = __len__ = __getitem__ = __str__  # type: ignore[assignment]

    class LyingBytes(bytes):
        def decode(self, *_: object) -> str:
            raise AssertionError

        __len__ = __getitem__ = __bytes__ = decode  # type: ignore[assignment]

    assert parse(LyingText("[1]")) == [1]
    assert parse(LyingBytes(b"[1]")) == [1]


def test_noncharacters_are_kept_as_rfc_8785_writes_them() -> None:
    assert canonical(parse('["\\uffff\\udbff\\udfff"]')) == '["\uffff\U0010ffff"]'.encode()


@pytest.mark.parametrize(
    "bounds",
    [
        lambda: Bounds(max_depth=257),
        lambda: Bounds(max_nodes=0),
        lambda: Bounds(max_bytes=-1),
        lambda: Bounds(max_depth=True),
    ],
)
def test_bounds_that_bound_nothing_are_refused(bounds: Callable[[], Bounds]) -> None:
    with pytest.raises(Exception, match=r"^/max_(depth|nodes|bytes): ") as caught:
        bounds()
    assert getattr(caught.value, "code", "") == "misuse"


@pytest.mark.parametrize("room", [30, 60, 90])
def test_a_caller_near_the_end_of_the_stack_gets_a_refusal_and_no_recursion_error(room: int) -> None:
    def descend(frames: int) -> NotCanonical:
        return descend(frames - 1) if frames else refused("[" * 64 + "]" * 64)

    used = sum(1 for _ in inspect.stack(0))
    error = descend(sys.getrecursionlimit() - used - room)
    assert (error.path, error.reason) == ("", "depth")


# Law (cases.md): "one refusal type with a path; never another exception", for any bytes.
@given(
    st.one_of(
        st.binary(max_size=40), near_texts().map(lambda text: text.encode("utf-8", "surrogatepass")), near_texts()
    )
)
@example(b"[" * 1_000_000)
@example(b'{"a":' * 50_000)
@example(b"1" * 5_000)
@example(b'"\\ud800"')
@example(b"[1e400]")
def test_any_text_is_parsed_or_refused_and_what_is_parsed_stays_so(raw: bytes | str) -> None:
    try:
        value: Json = parse(raw)
    except NotCanonical as error:
        assert error.reason in REASONS
        assert str(error).encode()
        return
    # Law: what parse returns is exactly what parsing its canonical bytes returns.
    again = canonical(value)
    assert identical(parse(again), value)
    assert canonical(parse(again)) == again
