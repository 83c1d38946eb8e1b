"""What a gate is opened with or a call is told, and is none, is misuse that names the field and the remedy."""

from typing import Any

import pytest

from agentgate import Gate, Misuse
from agentgate.testing import ScriptedPolicy
from support.worlds import World, named, opened


def echo(n: int) -> int:
    return n


ECHO = named("echo", echo)


@pytest.mark.parametrize(
    ("field", "values", "told"),
    [
        ("tools", (3, None, "echo", b"echo", {"echo": ECHO}), "tools: give a list of tools, made by agentgate.tool"),
        ("tools", (ECHO,), "tools: give a list of tools, [refund], also of one"),
        ("facts", (3, "x", [("a", len)]), "facts: give a mapping from each fact's name"),
        ("facts", ({1: len}, {"": len}), "facts: each name is a text"),
        ("facts", ({"freeze": True},), "facts['freeze']: give a function that takes a PolicyRequest"),
        ("settings", (3, {}, "x", False), "settings: give agentgate.Settings(...)"),
    ],
)
def test_a_gate_is_opened_with_what_it_can_use_or_says_which_field_is_wrong(
    world: World, field: str, values: tuple[Any, ...], told: str
) -> None:
    for value in values:
        with pytest.raises(Misuse) as raised:
            Gate.open(world.url, policy=ScriptedPolicy(), **{field: value})
        assert str(raised.value).startswith(told), value


def test_tools_may_come_from_anything_that_gives_them_once(world: World) -> None:
    with Gate.open(world.url, policy=ScriptedPolicy(), tools=(tool for tool in [ECHO])) as gate:
        assert gate.call(opened(gate), "echo", {"n": 1}).reason == "succeeded"


@pytest.mark.parametrize("limits", [3, {"actions": 3}])
def test_limits_that_are_none_are_misuse(world: World, limits: Any) -> None:
    with world.gate() as gate, pytest.raises(Misuse, match=r"limits: give agentgate.Limits\(...\)"):
        gate.run("ticket-1", principal="agent:support", limits=limits)


def test_a_flag_is_true_or_false_and_nothing_that_python_takes_for_either(world: World) -> None:
    with world.gate(ECHO) as gate:
        run = opened(gate)
        proposal = gate.propose(run, "echo", {"n": 1})
        with pytest.raises(Misuse, match="supersede: say True or False"):
            gate.propose(run, "echo", {"n": 1}, supersede="no")  # type: ignore[arg-type]
        with pytest.raises(Misuse, match="retry: say True or False"):
            gate.execute(proposal, retry="no")  # type: ignore[arg-type]
        with pytest.raises(Misuse, match="replace: say True or False"):
            gate.register(ECHO, replace="no")  # type: ignore[arg-type]
        with pytest.raises(Misuse, match="retry: say True or False"):
            gate.call(run, "echo", {"n": 2}, retry=1)  # type: ignore[arg-type]
    assert world.value("SELECT count(*) FROM agentgate_actions") == 1
