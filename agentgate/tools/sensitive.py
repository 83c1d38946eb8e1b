"""Sensitive arguments: where a spec says that they are, and what is shown in their place.

Where a tool has sensitive arguments, one that its schema does not name counts as one of them: it may be a misspelt one.
What is stored of them is sealed by `agentgate.gate.ledger`; here is what people, models and logs are shown.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from agentgate.canonical import Json, pointer
from agentgate.tools.declared import undeclared
from agentgate.tools.spec import ToolSpec

MARK: Final = "[sensitive]"

_LONGEST_POSITION = 3  # digits: a longer name of digits may be a number of somebody's


Leaf: TypeAlias = str | int | float


def sensitive_values(spec: ToolSpec, arguments: Json) -> tuple[Leaf, ...]:
    """Return what may not be repeated: the texts and numbers that the spec's pointers name, or lie in what they name.

    Names of members are among them where the schema does not know them, and so is all of an undeclared argument.
    """
    if not spec.sensitive:
        return ()
    known = _names(spec)
    named = (value for path in spec.sensitive for value in _at(arguments, _parts(path)))
    found = [leaf for value in named for leaf in _leaves(value, known)]
    if type(arguments) is dict:
        found += _leaves({name: arguments[name] for name in undeclared(spec.checked_input, arguments)}, known)
    return tuple(found)


def masked(spec: ToolSpec, arguments: Json) -> Json:
    """Return the arguments as they may be shown: each sensitive value is a mark, whatever it was."""
    if not spec.sensitive:
        return arguments
    shown = arguments
    for path in spec.sensitive:
        shown = _masked(shown, _parts(path))
    extra = unnamed(spec, arguments)
    if not extra or type(shown) is not dict:
        return shown
    told = {name: value for name, value in shown.items() if name not in extra}
    return told | {MARK: f"{len(extra)} that the tool does not declare"}


def unnamed(spec: ToolSpec, arguments: Json) -> frozenset[str]:
    """Return the names of root arguments that are not shown at all: undeclared ones, where any are sensitive."""
    return frozenset(undeclared(spec.checked_input, arguments)) if spec.sensitive else frozenset()


def hidden_places(spec: ToolSpec, arguments: Json) -> frozenset[tuple[str | int, ...]]:
    """Return where `masked` puts a mark: names of members and positions in arrays, as far as there is a value."""
    return frozenset(place for path in spec.sensitive for place in _places(arguments, _parts(path)))


def public_path(spec: ToolSpec, path: str) -> str:
    """Cut a path into the arguments where it enters a sensitive one, or bears a name that the schema does not know.

    A model writes the names of members as freely as their values.
    """
    if not spec.sensitive:
        return path
    known, pointers = _names(spec), {_parts(one) for one in spec.sensitive}
    told: tuple[str, ...] = ()
    for part in _parts(path):
        if told in pointers:
            break
        position = part.isascii() and part.isdigit() and len(part) <= _LONGEST_POSITION
        if not position and part not in known:
            return pointer(*told, MARK)
        told = (*told, part)
    return pointer(*told)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def _at(value: Json, parts: tuple[str, ...]) -> Iterator[Json]:
    if not parts:
        yield value
    elif type(value) is dict and parts[0] in value:
        yield from _at(value[parts[0]], parts[1:])
    elif type(value) is list and parts[0].isdecimal() and int(parts[0]) < len(value):
        yield from _at(value[int(parts[0])], parts[1:])


def _places(value: Json, parts: tuple[str, ...], place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if not parts:
        yield place
    elif type(value) is dict and parts[0] in value:
        yield from _places(value[parts[0]], parts[1:], (*place, parts[0]))
    elif type(value) is list and parts[0].isdecimal() and int(parts[0]) < len(value):
        at = int(parts[0])
        yield from _places(value[at], parts[1:], (*place, at))


def _leaves(value: Json, known: frozenset[str]) -> Iterator[Leaf]:
    if type(value) is dict:
        for name, item in value.items():
            yield from () if name in known else (name,)
            yield from _leaves(item, known)
    elif type(value) is list:
        for item in value:
            yield from _leaves(item, known)
    elif type(value) is str or type(value) is int or type(value) is float:
        yield value


def _masked(value: Json, parts: tuple[str, ...]) -> Json:
    if not parts:
        return MARK
    if type(value) is dict and parts[0] in value:
        return {name: _masked(item, parts[1:]) if name == parts[0] else item for name, item in value.items()}
    if type(value) is list and parts[0].isdecimal() and int(parts[0]) < len(value):
        place = int(parts[0])
        return [_masked(item, parts[1:]) if at == place else item for at, item in enumerate(value)]
    return value


@lru_cache(maxsize=256)
def _names(spec: ToolSpec) -> frozenset[str]:
    """Return every name that the schema gives to a member: these are the operator's words."""
    return frozenset(_named(spec.input_schema))


def _named(schema: Json) -> Iterator[str]:
    if type(schema) is dict:
        for keyword, value in schema.items():
            if keyword == "properties" and type(value) is dict:
                yield from value
            yield from _named(value)
    elif type(schema) is list:
        for item in schema:
            yield from _named(item)
