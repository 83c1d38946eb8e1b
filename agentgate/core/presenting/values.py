"""Arguments as lines: every member of every object by its name, each value by its type, and nothing dropped silently.

A small value stands on its member's line as JSON. A larger one is opened below it, deeper by two spaces, so that no
name of a member is ever left out. Only texts and arrays without objects are cut, in the middle, and say so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from agentgate.canonical import Json, canonical
from agentgate.core.presenting import exact
from agentgate.core.presenting.letters import is_plain
from agentgate.core.presenting.shown import Path
from agentgate.core.presenting.texts import beside, cut, kept, named, texted
from agentgate.tools.sensitive import MARK

WIDEST = 120
"""Characters of a value of several parts that stands on one line."""

_MOST_ITEMS, _KEPT_ITEMS = 60, 24
_NOTHING: Mapping[Path, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A value that is to be shown: after what, how deep, where it lies, and what is said of its name."""

    head: str
    value: Json = field(repr=False)
    margin: str
    path: Path
    of_name: tuple[str, ...] = ()


_Entry: TypeAlias = _Place | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Values to be shown, with what is known of the places in them.

    Args:
        hidden: where a mark stands for a sensitive value.
        remarks: what the gate says of a place.
        opened: the places above all these, which are not shown on one line.
    """

    hidden: frozenset[Path]
    remarks: Mapping[Path, tuple[str, ...]] = field(repr=False)
    opened: frozenset[Path] = field(repr=False)

    def members(self, value: Mapping[str, Json], margin: str) -> Iterator[str]:
        """Show every member of the outermost object, in the order of their names."""
        for place in self._members(value, margin, ()):
            yield from self._lines(place)

    def value(self, head: str, value: Json, margin: str, path: Path = ()) -> Iterator[str]:
        """Show a value after what it is the value of, with the gate's remarks below it.

        Args:
            head: how that is written.
            value: any.
            margin: the spaces before it.
            path: where it lies.
        """
        yield from self._lines(_Place(head=head, value=value, margin=margin, path=path))

    def _lines(self, place: _Place) -> Iterator[str]:
        # Its own stack: what is nested as deep as a recorded value may be does not fit the interpreter's.
        waiting: list[_Entry] = [place]
        while waiting:
            entry = waiting.pop()
            if isinstance(entry, str):
                yield entry
            else:
                waiting += reversed(self._entries(entry))

    def _entries(self, place: _Place) -> list[_Entry]:
        head, value, margin = place.head, place.value, place.margin
        entries: list[_Entry] = []
        if place.path in self.hidden:
            entries.append(f"{margin}{head} = {MARK}")
        elif type(value) is str:
            entries += texted(head, value, margin)
        else:
            small = None if place.path in self.opened else compact(value, WIDEST)
            if small is not None:
                entries.append(f"{margin}{head} = {small}")
            elif type(value) is dict:
                entries.append(f"{margin}{head} = object of {len(value):,}:")
                entries += self._members(value, f"{margin}  ", place.path)
            elif type(value) is list:
                entries += self._items(value, place)
            else:
                entries.append(f"{margin}{head} = {_scalar(value)}")
        entries += [f"{margin}  ^ {remark}" for remark in self.remarks.get(place.path, ())]
        entries[1:1] = place.of_name
        return entries

    def _members(self, value: Mapping[str, Json], margin: str, path: Path) -> Iterator[_Place]:
        for name in sorted(value):
            said = () if is_plain(name) else tuple(beside(name, f"{margin}  ", what="name: "))
            yield _Place(head=named(name), value=value[name], margin=margin, path=(*path, name), of_name=said)

    def _items(self, value: list[Json], place: _Place) -> Iterator[_Entry]:
        whole = len(value) <= _MOST_ITEMS or _holds_object(value)
        yield f"{place.margin}{place.head} = list of {len(value):,}{'' if whole else cut(value)}:"
        margin = f"{place.margin}  "
        for at in kept(range(len(value)), len(value) if whole else _MOST_ITEMS, _KEPT_ITEMS):
            if at is None:
                yield f"{margin}... {len(value) - 2 * _KEPT_ITEMS:,} of {len(value):,} items left out ..."
            else:
                yield _Place(head=f"[{at}]", value=value[at], margin=margin, path=(*place.path, at))


def tree(*, hidden: frozenset[Path] = frozenset(), remarks: Mapping[Path, tuple[str, ...]] = _NOTHING) -> Tree:
    """Make a tree of what is known of the places in a value."""
    above = {path[:depth] for path in (*hidden, *remarks) for depth in range(len(path))}
    return Tree(hidden=hidden, remarks=remarks, opened=frozenset(above))


def compact(value: Json, room: int) -> str | None:
    """Write a value on one line of JSON; None where it takes more room, or holds text that needs lines of its own."""
    if type(value) is str:
        text = exact.quoted(value) if len(value) <= room and is_plain(value) and "\n" not in value else None
    elif type(value) is dict:
        parts = ((name, f"{exact.quoted(name)}: ", item) for name, item in sorted(value.items()))
        text = _joined("{}", parts, room)
    elif type(value) is list:
        text = _joined("[]", (("", "", item) for item in value), room)
    else:
        text = _scalar(value)
    return text if text is not None and len(text) <= room else None


def _joined(brackets: str, parts: Iterator[tuple[str, str, Json]], room: int) -> str | None:
    written: list[str] = []
    left = room - len(brackets)
    for name, head, item in parts:
        told = compact(item, left) if left > 0 and is_plain(name) else None
        if told is None:
            return None
        written.append(head + told)
        left -= len(written[-1]) + 2
    return f"{brackets[0]}{', '.join(written)}{brackets[1]}"


def _scalar(value: Json) -> str:
    return canonical(value).decode("ascii")


def _holds_object(value: Json) -> bool:
    if type(value) is dict:
        return True
    return type(value) is list and any(map(_holds_object, value))
