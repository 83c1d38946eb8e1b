"""Hints: the value that each one builds from JSON, or a clean refusal that does not tell the value."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, TypeAlias
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.canonical import Json, snapshot
from agentgate.observation import NoEffect
from agentgate.tools.schemas import admit
from agentgate.tools.validation import check
from support.hinted import Address, Colour, Even, Level, Line, Order, Partial, built, schema

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOME = UUID("0190a7f0-0000-7000-8000-0123456789ab")

BUILT: list[tuple[object, Json, object]] = [
    (str, "a", "a"),
    (int, 1, 1),
    (int, 1e21, 10**21),
    (float, 1, 1.0),
    (float, 1.5, 1.5),
    (list[float], [1, 2.5], [1.0, 2.5]),
    (tuple, [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[float, ...], [1], (1.0,)),
    (Sequence[str], ["a"], ["a"]),
    (dict[str, float], {"a": 1}, {"a": 1.0}),
    (dict[str, date], {"a": "2026-01-31"}, {"a": date(2026, 1, 31)}),
    (Literal["a"], "a", "a"),
    (Colour, "red", Colour.RED),
    (Level, 2, Level.HIGH),
    (Colour | None, None, None),
    (Colour | None, "red", Colour.RED),
    (date | str, "2026-01-31", date(2026, 1, 31)),
    (date | str, "2026-02-31", "2026-02-31"),
    (date | str, "tomorrow", "tomorrow"),
    (int | float, 1, 1),
    (int | float, 1.5, 1.5),
    (int | float, 1e21, 10**21),
    (list[int], [1, 1e21], [1, 10**21]),
    (date, "2026-01-31", date(2026, 1, 31)),
    (datetime, "2026-01-31T12:00:00Z", NOON),
    (datetime, "2026-01-31T13:00:00.000000+01:00", NOON),
    (UUID, "0190A7F0-0000-7000-8000-0123456789ab", SOME),
    (Decimal, "12.50", Decimal("12.50")),
    (Decimal, "-1E+3", Decimal(-1000)),
    (bytes, "aGk=", b"hi"),
    (bytes, "", b""),
    (Address, {"street": "s", "since": "2026-01-31"}, {"street": "s", "since": date(2026, 1, 31)}),
    (Address, {"street": "s", "extra": 1}, {"street": "s", "extra": 1}),
    (Partial, {"b": "x"}, {"b": "x"}),
    (Line, {"sku": "a"}, Line("a")),
    (Line, {"sku": "a", "count": 3, "note": None, "tags": ["x"]}, Line("a", 3, None, ["x"])),
    (
        Order,
        {"lines": [{"sku": "a"}, {"sku": "b", "count": 2}], "placed": "2026-01-31"},
        Order((Line("a"), Line("b", 2)), date(2026, 1, 31)),
    ),
    (Line | None, {"sku": "a"}, Line("a")),
    (Annotated[Colour, "which"], "blue", Colour.BLUE),
]


@pytest.mark.parametrize(("hint", "value", "expected"), BUILT, ids=[f"{hint}-{value}" for hint, value, _ in BUILT])
def test_a_value_is_built_from_json(hint: object, value: Json, expected: object) -> None:
    made = built(hint, value)
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (datetime, NOON),
        (datetime, NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))),
        (date, date(2026, 1, 31)),
        (UUID, SOME),
        (Decimal, Decimal("1E+3")),
        (Decimal, Decimal("-0.10")),
        (bytes, b"\0\xff"),
        (Colour, Colour.RED),
        (Order, Order((Line("a"),), date(2026, 1, 31))),
    ],
)
def test_what_the_encoders_write_is_built_back(hint: object, value: object) -> None:
    if isinstance(value, Order):  # `seen` is no argument of a Line: nobody may give it
        encoded: Json = {"lines": [{"sku": "a", "count": 1, "note": None, "tags": []}], "placed": "2026-01-31"}
    else:
        encoded = snapshot(value)
    assert built(hint, encoded) == value


@pytest.mark.parametrize(
    ("hint", "value", "path"),
    [
        (date, "2026-02-31", "/x"),
        (datetime, "2026-01-31T25:00:00Z", "/x"),
        (list[date], ["2026-01-31", "2026-02-31"], "/x/1"),
        (dict[str, date], {"a/b": "2026-02-31"}, "/x/a~1b"),
        (bytes, "a", "/x"),
        (Order, {"lines": [], "placed": "2026-02-31"}, "/x/placed"),
        (Line, {"sku": "a", "seen": True}, "/x"),
        (Line, {"sku": "a", "surprise": 1}, "/x"),
        (Even, {"number": 7}, "/x"),
        (date | None, "2026-02-31", "/x"),
    ],
)
def test_what_cannot_be_built_is_a_clean_refusal_without_the_value(hint: object, value: Json, path: str) -> None:
    with pytest.raises(NoEffect) as caught:
        built(hint, value)
    error = caught.value
    assert (error.code, error.effect, error.retryable) == ("invalid_arguments", "none", False)
    assert isinstance(error.details, dict)
    assert error.details["path"] == path
    assert error.__cause__ is None
    assert "secret" not in f"{error} {error.details}"
    assert not any(text in str(error) for text in ("02-31", "25:00", "surprise"))


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (date, "20260131"),
        (date, "2026-W05-6"),
        (datetime, "2026-01-31"),
        (datetime, "2026-01-31T12:00:00"),
        (datetime, "2026-01-31 12:00:00Z"),
        (UUID, "{0190a7f0-0000-7000-8000-0123456789ab}"),
        (UUID, "0190a7f0000070008000 0123456789ab"),
        (Decimal, "NaN"),
        (Decimal, " 1"),
        (Decimal, "1_000"),
        (Decimal, "1E+99999"),
        (Decimal, 1.5),
        (bytes, "a b="),
        (date, "2026-01-31\n"),
    ],
)
def test_a_text_of_another_form_never_gets_past_the_schema(hint: object, value: Json) -> None:
    assert check(admit(schema(hint), tool="t"), value)


Pair: TypeAlias = tuple[Any, st.SearchStrategy[Any]]

# Hints, each with values of its own; further ones are made of them.
PAIRS: list[Pair] = [
    (str, st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    (int, st.integers(-(2**53) + 1, 2**53 - 1)),
    (float, st.floats(-1e9, 1e9)),
    (bool, st.booleans()),
    (date, st.dates()),
    (datetime, st.datetimes(NOON.replace(year=1000, tzinfo=None), timezones=st.just(UTC))),
    (UUID, st.uuids()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    (bytes, st.binary(max_size=5)),
    (Colour, st.sampled_from(Colour)),
]


def _wrapped(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(inner.map(_listed), inner.map(_tupled), inner.map(_keyed), inner.map(_optional))


def _listed(pair: Pair) -> Pair:
    return list.__class_getitem__(pair[0]), st.lists(pair[1], max_size=3)


def _tupled(pair: Pair) -> Pair:
    return tuple.__class_getitem__((pair[0], ...)), st.lists(pair[1], max_size=3).map(tuple)


def _keyed(pair: Pair) -> Pair:
    return dict.__class_getitem__((str, pair[0])), st.dictionaries(st.text("a/~é", max_size=2), pair[1], max_size=3)


def _optional(pair: Pair) -> Pair:
    return Optional.__getitem__(pair[0]), st.none() | pair[1]


@given(st.recursive(st.sampled_from(PAIRS), _wrapped, max_leaves=4), st.data())
def test_building_inverts_encoding(pair: Pair, data: st.DataObject) -> None:
    hint, values = pair
    value = data.draw(values)
    assert built(hint, snapshot(value)) == value
