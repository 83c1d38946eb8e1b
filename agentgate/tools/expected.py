"""The state that a write should leave behind, said as data: a confirm function made of what to read and what to find.

Values are compared by canonical form: ``1`` and ``1.0`` are the same, ``1`` and ``true`` are not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from agentgate.canonical import Json, canonical, keep, snapshot
from agentgate.errors import NotCanonical, SpecRefused
from agentgate.tools.decorator import Function
from agentgate.tools.fields import check_pointer
from agentgate.tools.verdicts import Checked

Read: TypeAlias = Callable[[Any, Json, Json], Any]
"""``read(effect, arguments, result)``: what the world says now; None where that cannot be told."""


@dataclass(frozen=True, slots=True)
class Argument:
    """Stands for what the call itself was given at a place.

    Args:
        pointer: a JSON Pointer into the arguments, as ``/cents``.
    """

    pointer: str

    def __post_init__(self) -> None:
        check_pointer(self.pointer, tool="", path="/confirm")


def expected_state(read: Read, expected: Mapping[str, Any], /, *, name: str, version: str) -> Function:
    """Make a confirm function: the write is confirmed where what is read is as expected, at every place.

    Args:
        read: asked after the write, as a confirm function is; what it returns is compared. None is no answer: where
            the thing is not there, return ``{}``.
        expected: by JSON Pointer into what is read, the value that must stand there: a JSON value, or an `Argument`.
        name: what the function is called in the record.
        version: another one whenever ``read`` or ``expected`` changes.

    Returns:
        A `Function` for a tool's ``confirm``. Its evidence names, for each place, what was expected and what was found.

    Raises:
        SpecRefused: nothing is expected, or a place or a value is none.
    """
    if not expected:
        raise SpecRefused("", "/confirm", "nothing is expected", 'write {"/status": "refunded"}')
    places = tuple(_place(place, value) for place, value in expected.items())
    return Function(call=partial(_compare, read, places), name=name, version=version)


@dataclass(frozen=True, slots=True)
class _Place:
    """One place of what is read; ``value`` is what must stand there, unless ``argument`` says where to take it from."""

    pointer: str
    value: Json = field(repr=False)
    argument: str | None


def _place(place: object, value: object) -> _Place:
    pointed = check_pointer(place, tool="", path="/confirm")
    if isinstance(value, Argument):
        return _Place(pointed, None, value.pointer)
    try:
        return _Place(pointed, snapshot(value), None)
    except NotCanonical as error:
        raise SpecRefused(
            "", f"/confirm{pointed}{error.path}", f"no JSON value ({error.reason})", error.remedy
        ) from error


def _compare(read: Read, places: tuple[_Place, ...], effect: object, arguments: Json, result: Json) -> object:
    answer = read(effect, arguments, result)
    if answer is None or hasattr(type(answer), "__await__"):
        return answer  # the gate says of both that they tell nothing
    found = keep(answer).value
    compared: dict[str, Json] = {}
    verdicts = set[bool | None]()
    for place in places:
        wanted = [place.value] if place.argument is None else _at(arguments, place.argument)
        seen = _at(found, place.pointer)
        compared[place.pointer] = {**_named("expected", wanted), **_named("found", seen)}
        verdicts.add(_agrees(wanted, seen))
    return Checked(ok=next((verdict for verdict in (False, None) if verdict in verdicts), True), evidence=compared)


def _agrees(wanted: list[Json], seen: list[Json]) -> bool | None:
    if not wanted:  # an argument that the call left out: nothing says what should stand there
        return None
    return bool(seen) and canonical(seen[0]) == canonical(wanted[0])


def _named(name: str, value: list[Json]) -> dict[str, Json]:
    return {name: value[0]} if value else {}


def _at(value: Json, pointer: str) -> list[Json]:
    """Return what stands at a JSON Pointer (RFC 6901), in a list; an empty one where nothing does."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if type(value) is dict and name in value:
            value = value[name]
        elif type(value) is list and name in map(str, range(len(value))):
            value = value[int(name)]
        else:
            return []
    return [value]
