"""The set of tools: one of a name, none that looks like another, and suggestions that are never taken instead."""

import time
from typing import Any

import pytest

from agentgate.errors import SpecRefused
from agentgate.tools.decorator import AnyTool, gated, tool
from agentgate.tools.registry import ToolSet
from agentgate.tools.spec import ToolSpec


def made(name: str, namespace: str = "", **changes: Any) -> AnyTool:
    return gated(ToolSpec(name=name, namespace=namespace, input_schema=True, **changes), print)


def refused(*tools: Any) -> SpecRefused:
    with pytest.raises(SpecRefused) as caught:
        ToolSet(tools)
    return caught.value


def test_a_tool_is_found_by_namespace_and_name_alone() -> None:
    plain, server = made("refund"), made("refund", "shop")
    tools = ToolSet([plain, server])
    assert tools.lookup("", "refund") is plain
    assert tools.lookup("shop", "refund") is server
    assert tools.lookup("other", "refund") is None
    assert tools.lookup("", "shop/refund") is None
    assert (list(tools), len(tools)) == ([plain, server], 2)


@pytest.mark.parametrize(
    "name", ["Refund", "refund ", "ＲＥＦＵＮＤ", "re\u200bfund", "refunds", "", "\ud800", "x" * 100_000]
)
def test_a_name_that_is_not_exactly_registered_finds_nothing(name: str) -> None:
    assert ToolSet([made("refund")]).lookup("", name) is None


def test_two_specs_of_one_name_are_refused_unless_one_replaces_the_other() -> None:
    first, second = made("refund"), made("refund", version="2")
    assert "another tool" in refused(first, second).problem
    assert "another tool" in refused(first, first).problem
    tools = ToolSet([first])
    replaced = tools.added(second, replace=True)
    assert replaced.lookup("", "refund") is second
    assert tools.lookup("", "refund") is first
    with pytest.raises(SpecRefused):
        tools.added(second)


def test_there_is_nothing_to_replace_under_a_new_name() -> None:
    with pytest.raises(SpecRefused, match="none of this name"):
        ToolSet([made("refund")]).added(made("refnud"), replace=True)


def test_adding_gives_another_set() -> None:
    tools = ToolSet()
    grown = tools.added(made("a")).added(made("b"))
    assert (len(tools), len(grown)) == (0, 2)


@pytest.mark.parametrize("other", ["Refund", "ＲＥＦＵＮＤ", "reﬁnd", "REFUND"])
def test_look_alikes_of_a_namespace_are_refused(other: str) -> None:
    name = "refind" if "ﬁ" in other else "refund"
    found = refused(made(name), made(other))
    assert name in found.problem
    with pytest.raises(SpecRefused):
        ToolSet([made(name)]).added(made(other), replace=True)


def test_look_alikes_of_two_namespaces_are_two_tools() -> None:
    assert len(ToolSet([made("refund", "a"), made("Refund", "b")])) == 2


@pytest.mark.parametrize("thing", [print, "refund", None, 5, ToolSpec(name="x", input_schema=True)])
def test_only_tools_are_taken(thing: object) -> None:
    assert "no tool" in refused(thing).problem


def test_a_refused_addition_changes_nothing() -> None:
    tools = ToolSet([made("refund")])
    for wrong in (made("Refund"), made("refund"), print):
        with pytest.raises(SpecRefused):
            tools.added(wrong)  # type: ignore[arg-type]
    assert [each.spec.name for each in tools] == ["refund"]


def test_an_unknown_name_may_be_near_to_registered_ones() -> None:
    tools = ToolSet([made("refund"), made("Get Weather"), made("elsewhere", "shop")])
    assert tools.near("", "REFUND") == ("refund",)
    assert tools.near("", "re\u200bfund") == ("refund",)
    assert tools.near("", "refnd") == ("refund",)
    assert tools.near("", "get_weather") == ("Get Weather",)
    assert tools.near("", "drop_table") == ()
    assert tools.near("", "elsewhere") == ()
    assert tools.near("shop", "elsewere") == ("elsewhere",)
    assert tools.near("none", "refund") == ()


@pytest.mark.parametrize("name", ["", "\ud800", "\0", "x" * 1_000_000, "\u202e" * 200])
def test_any_text_may_be_asked_for(name: str) -> None:
    assert ToolSet([made("refund")]).near("", name) == ()


def test_asking_for_what_is_near_stays_cheap_in_a_large_set() -> None:
    tools = ToolSet(made(f"tool number {number} of a large server") for number in range(500))
    began = time.perf_counter()
    tools.near("", "tool numbre 77 of a large sevrer" + "x" * 220)
    assert time.perf_counter() - began < 2


def test_a_set_shows_its_size_alone() -> None:
    assert repr(ToolSet([tool(print_nothing)])) == "ToolSet(1 tools)"


def print_nothing() -> None:
    """Print nothing."""
