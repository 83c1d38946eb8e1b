"""The private copy: what it reads, what it never asks, what it refuses and where."""

import gc
import sys
import threading
import time
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.canonical import REASONS, Bounds, canonical, parse, snapshot
from agentgate.errors import NotCanonical
from agentgate.jcs import LARGEST_INTEGER
from support.documents import documents, identical


def at(value: object, bounds: Bounds | None = None) -> tuple[str, str]:
    with pytest.raises(NotCanonical) as caught:
        snapshot(value, bounds=bounds or Bounds())
    assert caught.value.reason in REASONS
    assert caught.value.remedy
    assert caught.value.__suppress_context__
    return caught.value.path, caught.value.reason


def lie(*_: object, **__: object) -> NoReturn:
    raise AssertionError("an overridden method was asked")


OPERATORS = "iter len getitem contains bool eq lt le gt ge abs neg str repr format int index float"
PROTOCOLS = "getattribute getattr copy deepcopy reduce_ex"
METHODS = "items keys values get copy encode isascii translate is_integer as_integer_ratio isoformat utcoffset"
LIES = {f"__{name}__": lie for name in f"{OPERATORS} {PROTOCOLS}".split()} | dict.fromkeys(METHODS.split(), lie)


def liar(base: type, *arguments: object) -> Any:
    """Make an instance of a subclass that overrides what a serializer might ask, and claims to be something else."""
    return type("Liar", (base,), {**LIES, "__hash__": base.__hash__, "__class__": property(lie)})(*arguments)


@pytest.mark.parametrize(
    ("make", "copied"),
    [
        (lambda: liar(dict, {"a": 1}), {"a": 1}),
        (lambda: liar(list, [1, 2]), [1, 2]),
        (lambda: liar(tuple, (1, 2)), [1, 2]),
        (lambda: liar(str, "text"), "text"),
        (lambda: liar(int, 7), 7),
        (lambda: liar(float, 1.5), 1.5),
        (lambda: liar(float, 2.0), 2),
        (lambda: liar(OrderedDict, {"a": liar(str, "b")}), {"a": "b"}),
        (lambda: liar(bytes, b"\0\1"), "AAE="),
        (lambda: liar(date, 2024, 2, 29), "2024-02-29"),
        (lambda: liar(datetime, 2024, 2, 29, 1, 2, 3, 4, UTC), "2024-02-29T01:02:03.000004Z"),
        (lambda: liar(Decimal, "1.50"), "1.50"),
        (lambda: {"x": [liar(dict, {"a": liar(int, 3)})]}, {"x": [{"a": 3}]}),
    ],
)
def test_a_subclass_with_lying_methods_is_read_by_what_it_stores(make: Callable[[], object], copied: object) -> None:
    assert identical(snapshot(make()), copied)


def test_a_float_that_says_it_is_another_number_is_hashed_as_what_it_is() -> None:
    class Price(float):
        def __float__(self) -> float:
            return 999.0

    assert canonical(snapshot({"price": Price(1.5)})) == b'{"price":1.5}'


def test_keys_that_are_subclasses_of_str_are_read_by_their_text() -> None:
    class Key(str):
        def __str__(self) -> str:
            return "other"

        def encode(self, *_: object) -> bytes:
            return b"other"

    assert identical(snapshot({Key("a"): 1}), {"a": 1})


@pytest.mark.parametrize("container", [dict, OrderedDict])
def test_two_keys_of_one_text_are_a_duplicate_even_where_their_hashes_differ(container: type) -> None:
    class Twin(str):
        __eq__ = object.__eq__
        __hash__ = object.__hash__

    value = container()
    value[Twin("a")], value["a"] = 1, 2
    assert at({"x": value}) == ("/x", "duplicate_key")


class Point(NamedTuple):
    x: int
    y: int


def test_ordinary_containers_become_plain_ones() -> None:
    value = {"t": (1, (2,)), "p": Point(1, 2), "d": defaultdict(int, a=1), "n": None, "b": True}
    assert identical(snapshot(value), {"t": [1, [2]], "p": [1, 2], "d": {"a": 1}, "n": None, "b": True})


def test_1_0_and_minus_zero_are_the_ints_1_and_0() -> None:
    assert identical(snapshot([1.0, -0.0, 0.0, 1e15, 1.5, 1e21]), [1, 0, 0, 10**15, 1.5, 1e21])


def test_the_snapshot_shares_nothing_with_the_callers_value() -> None:
    value: dict[str, Any] = {"a": [{"b": 1}], "c": {}}
    copied = snapshot(value)
    value["a"][0]["b"] = 2
    value["a"].append(3)
    value["c"]["d"] = 4
    assert copied == {"a": [{"b": 1}], "c": {}}


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": {"b": {1, 2}}}, "/a/b", "type"),
        ([frozenset()], "/0", "type"),
        ({"a": object()}, "/a", "type"),
        ({"a": bytearray(b"x")}, "/a", "type"),
        ({"a": deque([1])}, "/a", "type"),
        (UserDict({"a": 1}), "", "type"),
        ({"a": (i for i in range(3))}, "/a", "type"),
        ({"a": 1j}, "/a", "type"),
        ({"a": int}, "/a", "type"),
        ({"a": {1: 2}}, "/a", "key"),
        ({"a": {None: 2}}, "/a", "key"),
        ({"a": {b"k": 2}}, "/a", "key"),
        (defaultdict(int, {3: 4}), "", "key"),
        ({"a": [0, LARGEST_INTEGER + 1]}, "/a/1", "integer_range"),
        ({"a": -(2**53)}, "/a", "integer_range"),
        ({"a": 10**5_000}, "/a", "integer_range"),
        ({"a": 2.0**53}, "/a", "float_range"),
        ({"a": -1e20}, "/a", "float_range"),
        ({"a": float("nan")}, "/a", "not_finite"),
        ({"a": float("inf")}, "/a", "not_finite"),
        ({"a": float("-inf")}, "/a", "not_finite"),
        ({"a": "\ud800"}, "/a", "surrogate"),
        ({"a": {"x\udfff": 1}}, "/a/x\\udfff", "surrogate"),
        ({"a/b": {"~": 2**60}}, "/a~1b/~0", "integer_range"),
        ("x" * 262_143, "", "size"),
        ({"a": "é" * 262_145}, "/a", "size"),
        ("\x01" * 50_000, "", "size"),
        ([0] * 10_000, "", "nodes"),
        ({"a": dict.fromkeys(map(str, range(10_000)))}, "/a", "nodes"),
    ],
)
def test_what_has_no_canonical_form_is_refused_where_it_stands(value: object, path: str, reason: str) -> None:
    assert at(value) == (path, reason)


def test_integers_out_of_range_are_refused_with_send_it_as_a_string() -> None:
    with pytest.raises(NotCanonical) as caught:
        snapshot({"id": 2**64})
    assert caught.value.remedy == "send it as a string"


def test_a_set_is_refused_with_advice_and_without_its_content() -> None:
    with pytest.raises(NotCanonical) as caught:
        snapshot({"secret": {"hunter2"}})
    assert str(caught.value) == "/secret: type; builtins.set has no JSON form; a set has no order: send a sorted list"


def test_a_long_key_is_cut_in_the_path_of_an_error() -> None:
    path, _ = at({"k" * 100_000: object()})
    assert path == f"/{'k' * 128}…"


def test_a_value_that_contains_itself_is_refused_where_it_closes() -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append(loop)
    assert at(loop) == ("/a/1", "cycle")
    ring: list[Any] = []
    ring.append((ring,))
    assert at({"x": ring}) == ("/x/0/0", "cycle")


def test_a_value_held_twice_is_no_cycle() -> None:
    shared = {"s": [1]}
    copied = snapshot([shared, shared])
    assert copied == [shared, shared]
    assert isinstance(copied, list)
    assert copied[0] is not copied[1]


def test_a_value_held_twice_at_each_level_stops_at_the_bound() -> None:
    bomb: list[Any] = []
    for _ in range(60):
        bomb = [bomb, bomb]
    started = time.perf_counter()
    assert at(bomb)[1] == "nodes"
    assert time.perf_counter() - started < 1


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_64_levels_are_copied_and_65_are_refused_with_the_whole_path() -> None:
    assert snapshot(nested(64)) == nested(64)
    assert at(nested(65)) == ("/0" * 64, "depth")
    assert at(nested(100_000))[1] == "depth"


def test_bounds_can_be_widened_as_far_as_the_stack_carries() -> None:
    deep = Bounds(max_depth=256, max_nodes=100_000, max_bytes=10_000_000)
    value = nested(256)
    assert parse(canonical(snapshot(value, bounds=deep)), bounds=deep) == value
    assert len(canonical(snapshot(["x" * 100] * 50_000, bounds=deep))) == 103 * 50_000 + 1


def test_the_size_bound_is_that_of_the_canonical_bytes() -> None:
    assert snapshot(["é" * 10], bounds=Bounds(max_bytes=24)) == ["é" * 10]
    assert at(["é" * 10], Bounds(max_bytes=23)) == ("", "size")


@settings(max_examples=200)
@given(documents())
def test_what_a_snapshot_returns_is_what_parsing_its_canonical_bytes_returns(value: object) -> None:
    try:
        copied = snapshot(value)
    except NotCanonical as error:
        assert error.reason == "float_range"
        return
    assert identical(parse(canonical(copied)), copied)
    assert identical(snapshot(copied), copied)


def mutate(value: dict[str, Any], stop: threading.Event) -> None:
    turn = 0
    while not stop.is_set():
        turn += 1
        value[f"k{turn % 97}"] = {"n": turn}
        value["list"].append(turn)
        value["list"][:1] = []
        value.pop(f"k{(turn * 31) % 97}", None)


# Law (cases.md): "The caller's dict is changed ... by another thread => nothing changes."
@pytest.mark.parametrize("make", [dict, OrderedDict, defaultdict], ids=["dict", "OrderedDict", "defaultdict"])
def test_a_dict_changed_by_another_thread_is_copied_or_refused(make: Callable[[], dict[str, Any]]) -> None:
    value, stop, interval = make(), threading.Event(), sys.getswitchinterval()
    value["list"] = list(range(50))
    writer = threading.Thread(target=mutate, args=(value, stop))
    sys.setswitchinterval(1e-6)
    writer.start()
    try:
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            try:
                copied = snapshot(value)
            except NotCanonical as error:
                assert error.reason == "changed"
            else:
                assert identical(parse(canonical(copied)), copied)
    finally:
        stop.set()
        writer.join()
        sys.setswitchinterval(interval)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 a collection never runs inside one C call")
def test_a_dict_changed_in_the_middle_of_its_copy_is_refused_and_no_runtime_error() -> None:
    value: dict[str, Any] = {f"k{number}": number for number in range(50)}

    class Meddler:
        def __init__(self) -> None:
            self.myself = self  # garbage that only a collection finds

        def __del__(self) -> None:
            value["another"] = 1

    gc.collect()
    thresholds = gc.get_threshold()
    Meddler()
    gc.set_threshold(30)  # reached while the 50 pairs are taken
    try:
        assert at({"x": value}) == ("/x", "changed")
    finally:
        gc.set_threshold(*thresholds)


EXOTIC = st.one_of(
    st.binary(max_size=3),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.complex_numbers(),
    st.floats(),
    st.integers(),
    st.text(max_size=3),
    st.text(st.characters(categories=["Cs"]), max_size=1),
    st.sets(st.integers(), max_size=2),
    st.sampled_from([Point(1, 2), Point, ..., NotImplemented, at, sys, object(), range(3)]),
)


KEYS = st.text(max_size=2) | st.binary(max_size=2) | st.integers() | st.none() | st.uuids()


# Law: a snapshot is canonical or refused with a reason, whatever it is of.
@settings(max_examples=300)
@given(
    st.recursive(
        EXOTIC,
        lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    )
)
def test_any_object_is_copied_or_refused(value: object) -> None:
    try:
        copied = snapshot(value)
    except NotCanonical as error:
        assert error.reason in REASONS
        return
    assert identical(parse(canonical(copied)), copied)
