"""Results: what cannot be kept is marked in place and listed, and nothing is ever refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.canonical import DEFAULT_BOUNDS, REASONS, Bounds, Kept, Lost, canonical, keep, parse
from agentgate.encoding import UNENCODABLE
from support.documents import documents, identical


class Session:
    def __repr__(self) -> str:
        return "Session(token='hunter2')"

    __str__ = __repr__


def marker(name: str) -> dict[str, str]:
    return {UNENCODABLE: name}


def test_an_ordinary_result_is_kept_whole() -> None:
    kept = keep({"rows": [1.0, (2,)], "ok": True})
    assert identical(kept.value, {"rows": [1, [2]], "ok": True})
    assert kept.lost == ()


def test_an_unknown_type_is_a_marked_description_and_never_its_repr() -> None:
    kept = keep({"status": "sent", "session": Session()})
    name = f"{__name__}.Session"
    assert kept == Kept(
        value={"status": "sent", "session": {UNENCODABLE: name}},
        lost=(Lost(path="/session", reason="type", type=name),),
    )
    assert "hunter2" not in repr(kept)


def test_each_lost_part_is_named_with_its_reason() -> None:
    loop: list[Any] = []
    loop.append(loop)
    kept = keep({"a": [float("nan"), 2**60, 1], "b": {1: 2}, "c": {"\ud800": 1}, "d": "\udfff", "e": loop, "f": {3}})
    assert kept.value == {
        "a": [marker("builtins.float"), marker("builtins.int"), 1],
        "b": marker("builtins.dict"),
        "c": marker("builtins.dict"),
        "d": marker("builtins.str"),
        "e": [marker("builtins.list")],
        "f": marker("builtins.set"),
    }
    assert [(lost.path, lost.reason) for lost in kept.lost] == [
        ("/a/0", "not_finite"),
        ("/a/1", "integer_range"),
        ("/b", "key"),
        ("/c", "surrogate"),
        ("/d", "surrogate"),
        ("/e/0", "cycle"),
        ("/f", "type"),
    ]


def test_a_dict_that_only_looks_like_a_marker_is_no_loss() -> None:
    kept = keep([marker("tool.Secret"), object()])
    assert [lost.path for lost in kept.lost] == ["/1"]


@pytest.mark.parametrize(
    ("value", "reason", "name"),
    [
        (Session(), "type", f"{__name__}.Session"),
        ([0] * 10_000, "nodes", "builtins.list"),
        ({"a": "x" * 300_000}, "size", "builtins.dict"),
        ({1: 2}, "key", "builtins.dict"),
        (10**400, "integer_range", "builtins.int"),
    ],
)
def test_a_result_that_is_too_large_or_nothing_else_is_lost_whole(value: object, reason: str, name: str) -> None:
    assert keep(value) == Kept(value={UNENCODABLE: name}, lost=(Lost(path="", reason=reason, type=name),))


def test_a_part_too_deep_is_lost_and_the_marker_itself_fits() -> None:
    value: Any = ["bottom", object()]
    for _ in range(63):
        value = [value]
    kept = keep(value)  # 64 levels are allowed, but a marker in the innermost would be the 65th
    assert [(lost.path, lost.reason) for lost in kept.lost] == [("/0" * 63, "type")]
    assert identical(parse(canonical(kept.value)), kept.value)


def test_many_losses_stay_within_the_bounds() -> None:
    kept = keep([object() for _ in range(6_000)])
    assert kept.lost == (Lost(path="", reason="nodes", type="builtins.list"),)
    assert len(keep([object() for _ in range(3_000)]).lost) == 3_000


def test_a_result_deeper_than_the_stack_is_described() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert [lost.reason for lost in keep(value).lost] == ["depth"]


def test_a_class_that_hides_its_module_is_described_all_the_same() -> None:
    odd = type("Odd\u202e", (), {"__module__": 7})
    endless = type("L" * 5_000, (), {"__module__": "\ud800"})
    assert keep(odd()).value == marker("?.Odd\u202e")
    assert len(canonical(keep(endless()).value)) < 300


ROTTEN = st.sampled_from([float("nan"), 2**53, 2.0**60, "\ud800", object(), {1: 1}, {1}, {"\ud800": 0}, 1j])
SMALL = Bounds(max_bytes=400, max_depth=4, max_nodes=20)


# Law: keep never refuses, what it keeps is canonical within the bounds, and every loss is listed.
@settings(max_examples=300)
@given(
    st.recursive(
        documents() | ROTTEN,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
        max_leaves=12,
    ),
    st.sampled_from([DEFAULT_BOUNDS, SMALL]),
)
def test_what_is_kept_is_canonical_and_every_loss_is_listed(value: object, bounds: Bounds) -> None:
    kept = keep(value, bounds=bounds)
    assert identical(parse(canonical(kept.value), bounds=bounds), kept.value)
    assert canonical(kept.value).count(UNENCODABLE.encode()) == len(kept.lost)
    assert {lost.reason for lost in kept.lost} <= REASONS
