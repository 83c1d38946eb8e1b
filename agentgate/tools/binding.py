"""The call that JSON arguments make: positional and keyword arguments for a callable, or a clean refusal.

All of it happens before the effect, so whatever fails here is a `NoEffect`: nothing was done. Arguments come
parsed anew from the canonical bytes, so what a callable does to them reaches nobody else.
"""

import inspect
from collections.abc import Callable
from typing import Literal, TypeAlias

from agentgate.canonical import Json, pointer
from agentgate.observation import NoEffect
from agentgate.tools.annotations import built_from, membered
from agentgate.tools.forms import unbuildable
from agentgate.tools.hints import Hints

Call: TypeAlias = tuple[tuple[object, ...], dict[str, object]]
Bind: TypeAlias = Callable[[Json, object], Call]
Passing = Literal["keywords", "one"]

_LONGEST_PROBLEM = 200


def bind_by_hints(hints: Hints) -> Bind:
    """Return how a decorated function is called: each argument built as its hint says, the effect filled in."""
    known = {parameter.name: parameter for parameter in hints.parameters}

    def bind(arguments: Json, effect: object) -> Call:
        given = membered(arguments, "")
        for name in given:
            if name not in known:
                raise unbuildable(pointer(name), "no such argument")
        positional: list[object] = []
        named: dict[str, object] = {} if hints.effect is None else {hints.effect: effect}
        for name, parameter in known.items():
            if name not in given:
                continue
            value = built_from(parameter.form, given[name], pointer(name))
            if parameter.positional:
                positional.append(value)
            else:
                named[name] = value
        return tuple(positional), named

    return bind


def bind_as_given(function: Callable[..., object], passing: Passing, effect_name: str | None) -> Bind:
    """Return how a callable with a spec of its own is called: its arguments are passed as the JSON they are.

    Args:
        function: asked for its signature once; one that has none is called as it comes.
        passing: ``keywords`` spreads an object over parameters, ``one`` hands it over whole. What is no object
            is always the one argument.
        effect_name: the parameter that takes the `Effect`.
    """
    signature = _signature(function)

    def bind(arguments: Json, effect: object) -> Call:
        named: dict[str, object] = {}
        positional: tuple[object, ...] = ()
        if passing == "keywords" and isinstance(arguments, dict):
            if effect_name in arguments:
                raise unbuildable(pointer(str(effect_name)), "no argument in the effect's place")
            named.update(arguments)
        else:
            positional = (arguments,)
        if effect_name is not None:
            named[effect_name] = effect
        _check_call(signature, positional, named)
        return positional, named

    return bind


def _signature(function: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _check_call(signature: inspect.Signature | None, positional: tuple[object, ...], named: dict[str, object]) -> None:
    """Refuse a call that Python would refuse, while it is still certain that nothing has happened."""
    if signature is None:
        return
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise NoEffect(
            "the tool's function takes other arguments than its schema accepts",
            code="invalid_arguments",
            retryable=False,
            details={"problem": str(error)[:_LONGEST_PROBLEM]},  # Python names the argument, not its value
            suggested_action="correct the tool's schema or its function",
        ) from error
