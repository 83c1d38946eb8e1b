"""Tools made from a spec beside a callable, and the call that their arguments make."""

import asyncio
import functools
from typing import Any

import pytest

from agentgate.errors import SpecRefused, Ungated
from agentgate.observation import NoEffect
from agentgate.tools.decorator import gated, tool
from agentgate.tools.recovery import FunctionName, Probe
from support.callables import AsyncCaller, Caller, Effect, Generating, Line, called, pause, spec


def plain(a: str, when: str | None = None) -> str:
    return f"{a} {when}"


def test_an_existing_callable_takes_object_arguments_as_keywords() -> None:
    made = gated(spec(), plain)
    assert made.bind({"a": "x"}, None) == ((), {"a": "x"})
    assert called(made, {"a": "x"}) == "x None"


@pytest.mark.parametrize("arguments", ["x", 5, None, True, 1.5, ["x"]])
def test_arguments_that_are_no_object_are_the_one_argument(arguments: Any) -> None:
    made = gated(spec(input_schema=True), lambda value: value)
    assert made.bind(arguments, None) == ((arguments,), {})


def test_a_callable_may_want_its_object_whole() -> None:
    made = gated(spec(), lambda arguments: arguments, passing="one")
    assert called(made, {"a": "x"}) == {"a": "x"}


class FrameworkTool:
    """What LangChain's and others' tool objects are: something to be invoked with the arguments whole."""

    name = "framework"

    def invoke(self, arguments: dict[str, Any], config: object = None, **more: Any) -> object:
        return arguments, config, more


def test_a_frameworks_tool_object_is_invoked_with_its_arguments_whole() -> None:
    assert called(gated(spec(), FrameworkTool()), {"a": "x"}) == ({"a": "x"}, None, {})


class CoroutineTool:
    """A tool object that has no synchronous form."""

    async def ainvoke(self, arguments: dict[str, Any], config: object = None) -> object:
        return arguments, config


class BothTool(FrameworkTool, CoroutineTool):
    """A tool object that has both."""


def test_a_frameworks_tool_object_that_has_a_coroutine_alone_is_awaited_with_its_arguments_whole() -> None:
    made = gated(spec(), CoroutineTool())
    assert made.is_coroutine
    assert asyncio.run(called(made, {"a": "x"})) == ({"a": "x"}, None)
    assert asyncio.run(called(gated(spec(), CoroutineTool().ainvoke, passing="one"), {"a": "x"})) == ({"a": "x"}, None)
    assert not gated(spec(), BothTool()).is_coroutine


def test_a_callable_object_is_called() -> None:
    assert called(gated(spec(), Caller()), {"a": "x"}) == "x"
    assert gated(spec(), AsyncCaller()).is_coroutine
    assert gated(spec(), functools.partial(pause, 3)).is_coroutine
    assert gated(spec(), Caller().later).is_coroutine
    with pytest.raises(SpecRefused, match="generator"):
        gated(spec(), Generating())


def test_a_callable_with_an_effect_parameter_gets_it() -> None:
    def function(a: str, effect: Effect) -> list[Any]:
        return [a, effect]

    made = gated(spec(), function)
    assert made.effect_parameter == "effect"
    assert called(made, {"a": "x"}, "e") == ["x", "e"]
    one = gated(spec(), function, passing="one")
    assert called(one, {"a": "x"}, "e") == [{"a": "x"}, "e"]


def test_an_argument_in_the_effects_place_is_refused_at_registration_and_at_the_call() -> None:
    def function(effect: Effect, **rest: Any) -> None: ...

    declared = {"type": "object", "properties": {"effect": {"type": "string"}}}
    with pytest.raises(SpecRefused) as caught:
        gated(spec(input_schema=declared), function)
    assert caught.value.path == "/input_schema/properties/effect"
    with pytest.raises(NoEffect):
        gated(spec(undeclared="allow"), function).bind({"a": "x", "effect": "forged"}, Effect())


@pytest.mark.parametrize("arguments", [{"b": 1}, {}, {"a": "x", "c": 1}, ["x", "y"]])
def test_a_call_that_python_would_refuse_is_a_clean_refusal(arguments: Any) -> None:
    def function(a: str, when: str, /) -> None: ...

    with pytest.raises(NoEffect) as caught:
        gated(spec(), function).bind(arguments, None)
    assert (caught.value.code, caught.value.effect) == ("invalid_arguments", "none")


def test_a_callable_without_a_signature_is_called_as_it_comes() -> None:
    assert gated(spec(input_schema=True), max).bind(["x"], None) == ((["x"],), {})
    assert gated(spec(), max).bind({"a": "x"}, None) == ((), {"a": "x"})


@pytest.mark.parametrize("target", [Line, 5, "x", None, object(), tool(plain)])
def test_what_cannot_be_called_is_refused(target: object) -> None:
    with pytest.raises(SpecRefused):
        gated(spec(), target)


def test_confirm_and_probe_are_named_in_the_spec_and_given_beside_it() -> None:
    name = FunctionName(name="check", version="1")
    assert gated(spec(confirm=name), print, confirm=repr).confirm is repr
    assert gated(spec(recovery=Probe(), probe=name), print, probe=repr).probe is repr


@pytest.mark.parametrize(("named", "given"), [(True, None), (False, repr), (True, "check")])
def test_a_function_that_is_named_and_not_given_or_the_reverse_is_refused(named: bool, given: Any) -> None:  # noqa: FBT001
    confirm = FunctionName(name="check", version="1") if named else None
    with pytest.raises(SpecRefused) as caught:
        gated(spec(confirm=confirm), print, confirm=given)
    assert caught.value.path == "/confirm"


def test_a_tool_gated_by_a_spec_is_not_called_either() -> None:
    with pytest.raises(Ungated):
        gated(spec(), plain)("x")
