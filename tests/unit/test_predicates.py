"""What a standing grant's predicate covers: every part of the arguments is named, and each is as it says."""

from typing import Any

import pytest

from agentgate.errors import Misuse
from agentgate.policy.grants import exactly, predicate_of

ANY = {"rest": "any"}


@pytest.mark.parametrize(
    ("where", "rest", "arguments", "covered"),
    [
        ([{"path": "", "equals": {"a": 1}}], {}, {"a": 1}, True),
        ([{"path": "", "equals": {"a": 1}}], {}, {"a": 1.0}, True),
        ([{"path": "", "equals": {"a": 1}}], {}, {"a": True}, False),
        ([{"path": "", "equals": {"a": 1}}], {}, {"a": 1, "b": None}, False),
        ([{"path": "/a", "equals": "x"}], {}, {"a": "x"}, True),
        ([{"path": "/a", "equals": "x"}], {}, {"a": "X"}, False),
        ([{"path": "/a", "equals": "e\u0301"}], {}, {"a": "\u00e9"}, False),
        ([{"path": "/a", "equals": "x"}], {}, {}, False),
        ([{"path": "/a", "equals": "x"}], {}, {"a": "x", "b": 1}, False),
        ([{"path": "/a", "equals": "x"}], ANY, {"a": "x", "b": 1}, True),
        ([{"path": "/a", "equals": "x"}], ANY, {"a": "y", "b": 1}, False),
        ([{"path": "/a", "equals": None}], {}, {"a": None}, True),
        ([{"path": "/a", "equals": None}], {}, {}, False),
        ([{"path": "/a", "one_of": ["x", 2]}], {}, {"a": 2}, True),
        ([{"path": "/a", "one_of": ["x", 2]}], {}, {"a": "2"}, False),
        ([{"path": "/a", "at_most": 5}], {}, {"a": 5}, True),
        ([{"path": "/a", "at_most": 5}], {}, {"a": 5.5}, False),
        ([{"path": "/a", "at_most": 5}], {}, {"a": -(10**9)}, True),
        ([{"path": "/a", "at_most": 5}, {"path": "/a", "at_least": 1}], {}, {"a": 0}, False),
        ([{"path": "/a", "at_most": 5}, {"path": "/a", "at_least": 1}], {}, {"a": 1}, True),
        ([{"path": "/a", "at_most": 5}], {}, {"a": "1"}, False),
        ([{"path": "/a", "at_most": 5}], {}, {"a": True}, False),
        ([{"path": "/a", "at_most": 5}], {}, {"a": None}, False),
        # A part within an argument is named; its neighbours are not.
        ([{"path": "/a/b", "equals": 1}], {}, {"a": {"b": 1}}, True),
        ([{"path": "/a/b", "equals": 1}], {}, {"a": {"b": 1, "c": 2}}, False),
        ([{"path": "/to/0", "equals": "x"}], {}, {"to": ["x"]}, True),
        ([{"path": "/to/0", "equals": "x"}], {}, {"to": ["x", "y"]}, False),
        ([{"path": "/to/00", "equals": "x"}], {}, {"to": ["x"]}, False),
        ([{"path": "/to", "equals": ["x"]}], {}, {"to": ["x"]}, True),
        ([{"path": "/a~1b~0", "equals": 1}], {}, {"a/b~": 1}, True),
        ([{"path": "/a/b", "equals": 1}], {}, {"a/b": 1}, False),
        ([{"path": "/a", "equals": 1}], {}, {"a": 1, "b": {}}, False),
        ([], {}, {}, False),
        ([], {}, {"a": 1}, False),
        ([], ANY, {"a": 1}, True),
        ([{"path": "", "one_of": [1, "x"]}], {}, "x", True),
        ([{"path": "/a", "equals": 1}], {}, [1], False),
    ],
)
def test_a_predicate_covers_what_it_names(where: Any, rest: Any, arguments: Any, covered: object) -> None:
    predicate = predicate_of({"where": where, **rest})
    assert predicate.covers(arguments) is covered
    assert predicate_of(predicate.to_json()) == predicate


def test_exactly_covers_its_arguments_alone() -> None:
    arguments: Any = {"a": [1, {"b": "c"}], "d": {}}
    assert exactly(arguments).covers({"d": {}, "a": [1, {"b": "c"}]})
    assert not exactly(arguments).covers({"d": {}, "a": [1, {"b": "C"}]})
    assert not exactly(arguments).covers({"d": [], "a": [1, {"b": "c"}]})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "where: give"),
        ([], "where: give"),
        ({"where": [], "also": 1}, "where: give"),
        ({"where": [], "rest": True}, r"where\.rest"),
        ({"where": [], "rest": None}, r"where\.rest"),
        ({"where": "x"}, r"where\.where"),
        ({"where": [{"path": "/a"}]}, r"where\.where\[0\]"),
        ({"where": [{"path": "/a", "equals": 1, "at_most": 2}]}, r"where\.where\[0\]"),
        ({"where": [{"equals": 1}]}, r"where\.where\[0\]"),
        ({"where": [{"path": "/a", "begins": "x"}]}, "'begins' is no test"),
        ({"where": [{"path": "a", "equals": 1}]}, "no JSON Pointer"),
        ({"where": [{"path": "/a", "one_of": []}]}, "one_of"),
        ({"where": [{"path": "/a", "one_of": "xy"}]}, "one_of"),
        ({"where": [{"path": "/a", "at_most": "5"}]}, "at_most"),
        ({"where": [{"path": "/a", "at_least": True}]}, "at_least"),
        ({"where": [{"path": "/a", "at_most": float("nan")}]}, "no JSON value"),
        ({"where": [{"path": "/a", "equals": 2**60}]}, "no JSON value"),
        ({"where": [{"path": "/a", "equals": 1}] * 65}, "at most 64"),
    ],
)
def test_what_is_no_predicate_is_refused_by_its_place(value: Any, said: str) -> None:
    with pytest.raises(Misuse, match=said):
        predicate_of(value)
