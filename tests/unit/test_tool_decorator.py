"""Tools: made by a decorator or from a spec beside a callable, and the call that their arguments make."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.errors import SpecRefused, Ungated
from agentgate.observation import NoEffect
from agentgate.tools.decorator import Function, Tool, gated, tool
from agentgate.tools.defaults import complete
from agentgate.tools.recovery import FunctionName, Keyed, Probe, Repeat, Retry
from agentgate.tools.spec import ToolSpec
from support.callables import Caller, Effect, Line, called, count, pause, spec, stream


@tool(risk="external", recovery=Keyed(hours=24), timeout=20, resource="account:{account}")
def refund(account: str, cents: int, *, effect: Effect) -> dict[str, str]:
    """Give money back.

    To an account.
    """
    return {account: f"{cents} {effect}"}


@tool
def bare(a: str, when: date | None = None) -> str:
    return f"{a} {when}"


def test_a_decorated_function_is_a_tool_with_a_spec() -> None:
    assert isinstance(refund, Tool)
    assert refund.spec == ToolSpec(
        name="refund",
        description="Give money back.",
        risk="external",
        recovery=Keyed(hours=24),
        timeout=timedelta(seconds=20),
        resource="account:{account}",
        input_schema={
            "type": "object",
            "properties": {"account": {"type": "string"}, "cents": {"type": "integer"}},
            "required": ["account", "cents"],
        },
    )
    assert refund.effect_parameter == "effect"


def test_the_digest_of_a_decorated_tool_is_pinned_for_ever() -> None:
    assert refund.spec.digest.hex() == "54284b3dabe83428ab91377e240a782d26341d00093715ad9e81b8b83db4a29c"


def test_a_bare_decorator_takes_every_default() -> None:
    assert bare.spec.name == "bare"
    assert bare.spec == ToolSpec(name="bare", input_schema=bare.spec.input_schema)


def test_calling_a_tool_is_refused() -> None:
    with pytest.raises(Ungated, match="refund"):
        refund("a1", 5, effect=Effect())
    with pytest.raises(Ungated):
        tool(pause)(1)  # also a coroutine function's: it gives nothing that could be awaited


def test_the_bare_function_is_there_for_unit_tests() -> None:
    assert bare.fn("x") == "x None"


def test_a_tool_bears_its_functions_name_and_no_way_around_the_gate() -> None:
    assert (refund.__name__, refund.__module__) == ("refund", __name__)  # type: ignore[attr-defined]
    assert refund.__doc__ == refund.fn.__doc__
    assert inspect.unwrap(refund) is refund


def test_a_tool_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        bare.spec = refund.spec  # type: ignore[misc]


def test_options_override_what_the_function_says() -> None:
    made = tool(name="other name", description="Said.", namespace="shop", version="2", tags=["x"])(bare.fn)
    assert (made.spec.name, made.spec.description, made.spec.namespace) == ("other name", "Said.", "shop")
    assert (made.spec.version, made.spec.tags) == ("2", ("x",))


def test_spans_may_be_seconds() -> None:
    made = tool(timeout=0.5, dedupe_window=60)(bare.fn)
    assert (made.spec.timeout, made.spec.dedupe_window) == (timedelta(milliseconds=500), timedelta(minutes=1))
    assert tool(timeout=timedelta(hours=1))(bare.fn).spec.timeout == timedelta(hours=1)


def test_everything_a_spec_holds_can_be_declared() -> None:
    made = tool(
        risk="reversible",
        recovery=Probe(),
        probe=Function(call=print, name="find", version="2"),
        confirm=Function(call=repr, name="check", version="1"),
        retry=Retry(attempts=2),
        permissions=["p"],
        sensitive=["/a"],
        errors="no_effect",
        output_schema={"type": "string"},
        max_output_bytes=5,
        parallel=True,
        undeclared="deny",
    )(bare.fn)
    assert (made.probe, made.confirm) == (print, repr)
    assert made.spec.probe == FunctionName(name="find", version="2")
    assert made.spec.confirm == FunctionName(name="check", version="1")
    assert (made.spec.sensitive, made.spec.output_schema) == (("/a",), {"type": "string"})


def test_a_misspelt_option_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="retires"):
        tool(retires=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="input_schema"):
        tool(input_schema={})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"timeout": 0}, "/timeout_us"),
        ({"timeout": float("nan")}, "/timeout_us"),
        ({"timeout": float("inf")}, "/timeout_us"),
        ({"timeout": True}, "/timeout_us"),
        ({"timeout": "20"}, "/timeout_us"),
        ({"dedupe_window": 1e300}, "/dedupe_window_us"),
        ({"confirm": print}, "/confirm"),
        ({"probe": Function(call=print, name="", version="1"), "recovery": Probe()}, "/name"),
        ({"undeclared": "allow"}, "/undeclared"),
        ({"resource": "x:{when}"}, "/resource"),
        ({"name": ""}, "/name"),
        ({"sensitive": ["/b"]}, "/sensitive"),
    ],
)
def test_a_wrong_option_is_refused_by_its_field(options: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecRefused) as caught:
        tool(**options)(bare.fn)
    assert caught.value.path == path


@dataclass
class Counted:
    sku: str
    seen: bool = field(default=False, init=False)


@pytest.mark.parametrize(
    ("hint", "default"),
    [(str, None), (date, None), (date | None, "x"), (Literal["a"], "b"), (int, 1.5), (Counted, Counted("a"))],
)
def test_a_default_that_its_own_type_refuses_is_refused(hint: Any, default: Any) -> None:
    def function(a: Any = default) -> None: ...

    function.__annotations__["a"] = hint
    with pytest.raises(SpecRefused) as caught:
        tool(function)
    assert caught.value.path == "/input_schema/properties/a/default"


def test_a_default_of_any_type_that_has_a_form_is_filled_and_built_back() -> None:
    def function(
        when: date = date(2026, 1, 31),
        line: Line = Line("a"),  # noqa: B008 - read once, as JSON
        price: Decimal = Decimal("1.50"),
        tags: tuple[str, ...] = ("x",),
    ) -> list[Any]:
        return [when, line, price, tags]

    made = tool(function)
    assert called(made, complete(made.spec.checked_input, {})) == [
        date(2026, 1, 31),
        Line("a"),
        Decimal("1.50"),
        ("x",),
    ]


def test_coroutine_functions_are_told_apart() -> None:
    assert tool(pause).is_coroutine
    assert not bare.is_coroutine
    assert tool(Caller().later).is_coroutine
    assert asyncio.run(tool(pause).fn(3)) == 3


@pytest.mark.parametrize("function", [count, stream])
def test_generators_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(SpecRefused, match="generator"):
        tool(function)
    with pytest.raises(SpecRefused, match="generator"):
        gated(spec(), function)


@pytest.mark.parametrize(
    "target", [Line, Caller(), 5, "refund", functools.partial(bare.fn, a="x"), staticmethod(pause), None, bare]
)
def test_only_functions_are_decorated(target: Any) -> None:
    with pytest.raises(SpecRefused):
        tool()(target)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(SpecRefused) as caught:
        tool(lambda: None)
    assert caught.value.path == "/name"
    assert tool(name="nothing")(lambda: None).spec.name == "nothing"


def test_a_bound_method_is_a_function() -> None:
    made = tool(Caller().method)
    assert made.spec.name == "method"
    assert called(made, {"a": "x"}) == "x"


# The call that arguments make


def test_arguments_become_keywords_with_the_effect_beside_them() -> None:
    handle = Effect()
    assert refund.bind({"account": "a1", "cents": 5}, handle) == ((), {"account": "a1", "cents": 5, "effect": handle})


def test_arguments_are_built_as_their_hints_say() -> None:
    def function(line: Line, when: date, price: float, tags: tuple[str, ...] = ()) -> list[Any]:
        return [line, when, price, tags]

    made = tool(function)
    given_ = {"line": {"sku": "x"}, "when": "2026-01-31", "price": 3, "tags": ["t"]}
    assert called(made, given_) == [Line("x"), date(2026, 1, 31), 3.0, ("t",)]


def test_positional_parameters_are_passed_by_position() -> None:
    def function(a: int, b: int = 2, /, c: int = 3, *, effect: Effect) -> list[Any]:
        return [a, b, c, effect]

    assert called(tool(function), {"a": 1, "b": 5, "c": 7}, "e") == [1, 5, 7, "e"]
    assert called(tool(function), {"a": 1}, "e") == [1, 2, 3, "e"]


def test_an_effect_is_taken_by_name() -> None:
    def function(effect: Effect, a: int, /) -> None: ...

    for make in (tool, lambda target: gated(spec(), target)):
        with pytest.raises(SpecRefused) as caught:
            make(function)
        assert caught.value.path == "/input_schema/properties/effect"


@pytest.mark.parametrize(
    "arguments", [{"account": "a1", "cents": 5, "effect": "forged"}, {"account": "a1", "other": 1}, [], "a1", None]
)
def test_arguments_that_the_function_does_not_take_are_a_clean_refusal(arguments: Any) -> None:
    with pytest.raises(NoEffect) as caught:
        refund.bind(arguments, Effect())
    assert caught.value.code == "invalid_arguments"


def test_a_read_only_tool_repeats() -> None:
    assert tool(risk="read_only")(bare.fn).spec.recovery == Repeat()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_binding_either_makes_a_call_or_refuses_cleanly(arguments: Any) -> None:
    for made in (refund, bare, gated(spec(), bare.fn), gated(spec(), bare.fn, passing="one")):
        try:
            positional, named = made.bind(arguments, Effect())
        except NoEffect as refusal:
            assert refusal.code == "invalid_arguments"
        else:
            inspect.signature(made.fn).bind_partial(*positional, **named)
