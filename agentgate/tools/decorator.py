"""A tool: a spec and the callable that causes the effect, from a decorator or from a spec beside a callable.

Needs no gate and no database. Calling a `Tool` raises `Ungated`: its effect belongs to a gate; ``.fn`` is the bare
function for unit tests.
"""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Generic, Literal, NoReturn, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, overload

from agentgate.canonical import Json, pointer
from agentgate.errors import SpecRefused, Ungated
from agentgate.tools.binding import Bind, Call, Passing, bind_as_given, bind_by_hints
from agentgate.tools.declared import undeclared as undeclared_arguments
from agentgate.tools.hints import Hints, effect_parameter, read_hints
from agentgate.tools.recovery import FunctionName, Recovery, Retry
from agentgate.tools.spec import Errors, Given, Risk, ToolSpec

P = ParamSpec("P")
R = TypeVar("R")

_INVOKING = ("invoke", "ainvoke")
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A confirm or probe function with what it is called in the record; its code is never hashed.

    Args:
        call: the function itself, no coroutine function. A probe is called with ``(effect, arguments)`` and answers
            `Applied`, `NotApplied`, True or False; a confirm with ``(effect, arguments, result)`` and answers
            `Checked`, True or False. None, or a raise, says of either that it cannot tell.
        name: stable over refactorings.
        version: another one whenever it may answer otherwise.
    """

    call: Callable[..., Any]
    name: str
    version: str

    @property
    def declared(self) -> FunctionName:
        """Return what stands in the spec."""
        return FunctionName(name=self.name, version=self.version)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)  # no slots: it bears its function's name and docstring
class Tool(Generic[P, R]):
    """A spec and its callable; made by `tool` or `gated`.

    Args:
        spec: what everyone may know.
        fn: the bare callable, for unit tests and for the gate.
        effect_parameter: the parameter that takes the `Effect`, None when there is none.
        is_coroutine: whether calling ``fn`` gives an awaitable.
        confirm: the function that the spec names as ``confirm``.
        probe: the function that the spec names as ``probe``.
        binding: how JSON arguments become a call.
    """

    spec: ToolSpec
    fn: Callable[P, R]
    effect_parameter: str | None
    is_coroutine: bool
    confirm: Callable[..., Any] | None = None
    probe: Callable[..., Any] | None = None
    binding: Bind

    def __post_init__(self) -> None:
        # As functools.update_wrapper does, without __wrapped__: following it would be a way around the gate.
        for name in _COPIED:
            value = getattr(self.fn, name, None)
            if isinstance(value, str):
                vars(self)[name] = value

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> NoReturn:  # noqa: ARG002 - a Tool has its function's type
        raise Ungated(self.spec.name)

    def bind(self, arguments: Json, effect: object) -> Call:
        """Build the call that these arguments make, without making it.

        Args:
            arguments: completed, validated, and parsed for this call alone.
            effect: handed to the effect parameter where there is one.

        Returns:
            Positional and keyword arguments for ``fn``.

        Raises:
            NoEffect: code ``invalid_arguments``; no call can be made of them, and nothing has happened.
        """
        return self.binding(arguments, effect)

    def __repr__(self) -> str:
        return f"Tool({self.spec!r})"


AnyTool: TypeAlias = Tool[..., Any]


class Declaration(TypedDict, total=False):
    """What `tool` may be told: the fields of `ToolSpec`, whose defaults hold, but for the schema that hints give.

    Spans may be seconds. ``name`` is the function's and ``description`` the first paragraph of its docstring unless
    given. A function cannot take undeclared arguments, so they are always denied.
    """

    name: str
    namespace: str
    version: str
    description: str
    output_schema: Given
    risk: Risk
    recovery: Recovery
    timeout: timedelta | float
    max_output_bytes: int
    resource: str | None
    parallel: bool
    permissions: Collection[str]
    tags: Collection[str]
    sensitive: Collection[str]
    undeclared: Literal["deny"]
    errors: Errors
    retry: Retry
    confirm: Function | None
    probe: Function | None
    dedupe_window: timedelta | float | None


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(**declared: Unpack[Declaration]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **declared: Unpack[Declaration]) -> Any:
    """Make a tool of a function, bare (``@tool``) or with what it declares (``@tool(risk="read_only")``).

    Args:
        function: its hints give the schema (`agentgate.tools.annotations`); it may be a coroutine function.
        declared: see `Declaration`.

    Returns:
        A `Tool`, or the decorator that makes it.

    Raises:
        SpecRefused: naming the field or parameter.
        TypeError: an option that does not exist.
    """
    unknown = declared.keys() - Declaration.__annotations__.keys()
    if unknown:
        raise TypeError(f"tool() has no option {', '.join(sorted(unknown))}; see agentgate.tools.decorator.Declaration")
    return partial(_decorated, declared) if function is None else _decorated(declared, function)


def gated(
    spec: ToolSpec,
    target: object,
    /,
    *,
    passing: Passing | None = None,
    confirm: Callable[..., Any] | Function | None = None,
    probe: Callable[..., Any] | Function | None = None,
) -> AnyTool:
    """Make a tool of an existing callable or a framework's tool object, by the spec that stands beside it.

    Args:
        spec: declared by the operator; nothing is read off the target.
        target: a callable, whose object arguments become keyword arguments; or an object with an ``invoke`` method
            (as LangChain's tools are), or with an ``ainvoke`` alone, which takes the arguments whole and is preferred
            to calling the object. Of a tool whose ``invoke`` only says that it has no synchronous form, give the bound
            ``tool.ainvoke``, with ``passing="one"``. A parameter annotated as `Effect` gets it.
        passing: ``keywords`` or ``one``, where the target wants it otherwise.
        confirm: the function that the spec names as ``confirm``, bare or as a `Function` of that name and version.
        probe: the function that the spec names as ``probe``, bare or as a `Function` of that name and version.

    Raises:
        SpecRefused: no target that can be called, or a function that the spec does not name.
    """
    confirming = _given(confirm, spec.confirm, tool=spec.name, path="/confirm")
    probing = _given(probe, spec.probe, tool=spec.name, path="/probe")
    function, style = _called(target, passing, spec.name)
    effect = effect_parameter(function, tool=spec.name)
    if effect is not None and not undeclared_arguments(spec.checked_input, {effect: None}):
        remedy = "rename the parameter that takes the Effect"
        raise SpecRefused(
            spec.name, f"/input_schema/properties{pointer(effect)}", "stands in the effect's place", remedy
        )
    return Tool(
        spec=spec,
        fn=function,
        effect_parameter=effect,
        is_coroutine=_is_coroutine(function, spec.name),
        confirm=confirming,
        probe=probing,
        binding=bind_as_given(function, style, effect),
    )


def _decorated(declared: Declaration, function: Callable[P, R]) -> Tool[P, R]:
    name = declared.get("name", getattr(function, "__name__", ""))
    _check_function(function, name)
    if declared.get("undeclared", "deny") != "deny":
        raise SpecRefused(name, "/undeclared", "a function takes only what its hints name", "give a spec to gated()")
    is_coroutine = _is_coroutine(function, name)
    hints = read_hints(function, tool=name)
    spec = ToolSpec(**_stated(declared, name, hints))
    refused = spec.refused_defaults()
    if refused:
        raise SpecRefused(
            name, f"/input_schema{refused[0]}", "its own type refuses the default", "widen the type: X | None"
        )
    return Tool(
        spec=spec,
        fn=function,
        effect_parameter=hints.effect,
        is_coroutine=is_coroutine,
        confirm=_given(declared.get("confirm"), spec.confirm, tool=name, path="/confirm"),
        probe=_given(declared.get("probe"), spec.probe, tool=name, path="/probe"),
        binding=bind_by_hints(hints),
    )


_NO_PLAIN_FUNCTIONS = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


def _given(given: object, named: FunctionName | None, *, tool: str, path: str) -> Callable[..., Any] | None:
    """Return the function that the spec names, as the gate asks it: in a thread, under a time-out."""
    if (named is None) != (given is None) or (isinstance(given, Function) and given.declared != named):
        raise SpecRefused(tool, path, "named and not given, or the reverse", "name it in the spec, and give it")
    call = given.call if isinstance(given, Function) else given
    if call is None:
        return None
    if not callable(call):
        raise SpecRefused(tool, path, "nothing that can be called", "give a function")
    if any(kind(called) for kind in _NO_PLAIN_FUNCTIONS for called in (call, type(call).__call__)):
        remedy = "give a plain function; where something is awaited, it can call asyncio.run(...) itself"
        raise SpecRefused(tool, path, "a coroutine function or a generator", remedy)
    return call


def _check_function(function: object, name: object) -> None:
    is_function = inspect.isroutine(function) and not isinstance(function, staticmethod | classmethod)
    if not is_function or not hasattr(function, "__name__"):
        raise SpecRefused(str(name), "", "not a function", "decorate a function, or give a spec to gated()")
    if name == "<lambda>":
        raise SpecRefused(str(name), "/name", "a lambda has no name of its own", "give name=...")


def _stated(declared: Declaration, name: str, hints: Hints) -> dict[str, Any]:
    """Return the spec's fields: as declared, and what the function itself says."""
    stated: dict[str, Any] = {"description": hints.description, **declared, "name": name, "input_schema": hints.schema}
    for field in ("timeout", "dedupe_window"):
        if stated.get(field) is not None:
            stated[field] = _as_span(stated[field], name, f"/{field}_us")
    for field in ("confirm", "probe"):
        function = stated.get(field)
        if function is not None:
            if not isinstance(function, Function):
                raise SpecRefused(name, f"/{field}", "no Function", 'write Function(call=..., name="...", version="1")')
            stated[field] = function.declared
    return stated


def _as_span(value: object, name: str, path: str) -> object:
    if type(value) is not int and type(value) is not float:
        return value
    try:
        return timedelta(seconds=value)
    except (ValueError, OverflowError) as error:
        raise SpecRefused(name, path, "no span", "give seconds, or a timedelta") from error


def _called(target: object, passing: Passing | None, name: str) -> tuple[Callable[..., Any], Passing]:
    """Return what is called and how: a tool object by its ``invoke``, which takes its arguments whole.

    One that has only ``ainvoke`` is called by that: a coroutine runs on a loop of its effect's own thread.
    """
    invoke = next((found for name_ in _INVOKING if callable(found := getattr(target, name_, None))), None)
    if isinstance(target, Tool):
        raise SpecRefused(name, "", "a Tool, which is gated already", "give its bare function, .fn")
    if inspect.isclass(target):
        raise SpecRefused(name, "", "a class", "give an instance of it, or a function")
    if invoke is not None and not inspect.isroutine(target):
        return invoke, passing or "one"
    if not callable(target):
        remedy = "give a callable, or an object with an invoke or ainvoke method"
        raise SpecRefused(name, "", "nothing that can be called", remedy)
    return target, passing or "keywords"


def _is_coroutine(function: Callable[..., Any], name: str) -> bool:
    """Tell a coroutine function, also behind a callable object; a generator would end before its effect."""
    called = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise SpecRefused(name, "", "a generator", "return the whole result")
    return inspect.iscoroutinefunction(called)
