"""A decorated function's hints: the schema of its arguments, and the call that JSON arguments make.

Reads a signature; what a single hint means is `agentgate.tools.annotations`. The parameter whose annotation is the
`Effect` (a class marked ``__agentgate_effect__``) is left out of the schema: the gate fills it in, never a model.
Results are not described by hints: an effect has happened by then, so a schema of results is stated on purpose.
"""

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

from agentgate.canonical import Json
from agentgate.errors import SpecRefused
from agentgate.tools.annotations import default_of, described_object, form_of
from agentgate.tools.forms import Form, Site

_EMPTY = inspect.Parameter.empty
_BY_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a function.

    Args:
        name: as in the signature and in the schema.
        form: its schema and how it is built.
        positional: it cannot be passed by name.
    """

    name: str
    form: Form
    positional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a function's signature says.

    Args:
        schema: of its arguments, one object.
        parameters: in the order of the signature, the effect left out.
        effect: the name of the parameter that takes the `Effect`, None when there is none.
        description: the first paragraph of its docstring, on one line.
    """

    schema: dict[str, Json]
    parameters: tuple[Parameter, ...]
    effect: str | None
    description: str


def read_hints(function: Callable[..., object], *, tool: str) -> Hints:
    """Read the hints of a function.

    Args:
        function: anything with a signature.
        tool: for refusals.

    Raises:
        SpecRefused: naming the parameter that has no annotation, one that is not understood, ``*args`` or
            ``**kwargs``, or a default that has no JSON form.
    """
    definitions: dict[str, Json] = {}
    effect = effect_parameter(function, tool=tool)
    forms: dict[str, Form] = {}
    required: list[str] = []
    defaults: dict[str, Json] = {}
    parameters: list[Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == effect:
            continue
        site = _site(parameter.name, tool, definitions)
        form = form_of(_hint(function, parameter, site), site)
        forms[parameter.name] = form
        if parameter.default is _EMPTY:
            required.append(parameter.name)
        else:
            defaults[parameter.name] = default_of(parameter.default, form, site.at("default"))
        positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        parameters.append(Parameter(name=parameter.name, form=form, positional=positional))
    schema = described_object(forms, required, defaults)
    return Hints(
        schema={**schema, "$defs": definitions} if definitions else schema,
        parameters=tuple(parameters),
        effect=effect,
        description=first_paragraph(function),
    )


def effect_parameter(function: Callable[..., object], *, tool: str) -> str | None:
    """Find the parameter that takes the `Effect`, by its annotation.

    Args:
        function: anything; what has no signature has no such parameter.
        tool: for refusals.

    Raises:
        SpecRefused: two of them, or an annotation that names an Effect and cannot be resolved.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    found = [parameter.name for parameter in parameters if _takes_effect(function, parameter, tool)]
    if len(found) > 1:
        raise SpecRefused(tool, "/input_schema", f"{', '.join(found)} all take the Effect", "take it once")
    return found[0] if found else None


def first_paragraph(function: object) -> str:
    """Return the first paragraph of a docstring on one line, ``""`` when there is none."""
    paragraph = (inspect.getdoc(function) or "").strip().split("\n\n")[0]
    return " ".join(paragraph.split())


def _site(name: str, tool: str, definitions: dict[str, Json]) -> Site:
    return Site(tool=tool, path="/input_schema", definitions=definitions).at("properties", name)


def _hint(function: Callable[..., object], parameter: inspect.Parameter, site: Site) -> object:
    if parameter.kind in _OPEN:
        raise site.refusal("*args or **kwargs", "name each argument, or give a spec beside the callable")
    if parameter.annotation is _EMPTY:
        raise site.refusal("no annotation", "annotate it, or give a spec beside the callable")
    try:
        return _resolved(function, parameter)
    except Exception as error:
        raise site.refusal(
            "its annotation cannot be resolved", "define what it names at the module's top level"
        ) from error


def _takes_effect(function: Callable[..., object], parameter: inspect.Parameter, tool: str) -> bool:
    try:
        hint = _resolved(function, parameter)
    except Exception as error:
        if "Effect" in str(parameter.annotation):
            problem = "an annotation that names an Effect cannot be resolved"
            raise SpecRefused(tool, _site(parameter.name, tool, {}).path, problem, "import it at run time") from error
        return False  # read_hints names it; a callable with a spec of its own does not need it
    takes = _is_effect(hint)
    if takes and parameter.kind is not inspect.Parameter.KEYWORD_ONLY and parameter.kind is not _BY_EITHER:
        raise SpecRefused(
            tool, _site(parameter.name, tool, {}).path, "the Effect cannot be passed by name", "let it be"
        )
    return takes


def _is_effect(hint: object) -> bool:
    """Tell the Effect itself, also as ``Annotated`` or as ``Effect | None``, which lets a unit test leave it out."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    alternatives = [each for each in typing.get_args(hint) if each is not type(None)] or [hint]
    only = alternatives[0] if len(alternatives) == 1 else None
    return isinstance(only, type) and getattr(only, "__agentgate_effect__", None) is True


def _resolved(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """Resolve one annotation alone: another one, or the result's, may name what exists only for type checkers."""
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    names = getattr(_underlying(function), "__globals__", {})
    return typing.get_type_hints(holder, globalns=names, include_extras=True)[parameter.name]


def _underlying(function: object) -> object:
    """Return the function whose module the annotations were written in."""
    function = getattr(function, "func", function)  # functools.partial
    function = inspect.unwrap(function) if callable(function) else function
    function = getattr(function, "__func__", function)
    return function if hasattr(function, "__globals__") else type(function).__call__
