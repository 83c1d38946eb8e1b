"""What differs between two JSON values: filled in, changed, added, removed; never by Python's idea that 1 is True."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from agentgate.canonical import Json, canonical
from agentgate.core.presenting.shown import Path

Kind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference: what was there and what is, each None where there was or is nothing."""

    kind: Kind
    path: Path
    was: Json = field(default=None, repr=False)
    now: Json = field(default=None, repr=False)


def changes(was: Json, now: Json, *, but: frozenset[Path] = frozenset(), path: Path = ()) -> Iterator[Change]:
    """Compare two values, members by name and arrays of one length by position.

    Args:
        was: the earlier one.
        now: the later one.
        but: places where what is there is not compared; that something is there or not, is.
        path: where both lie.
    """
    if path in but:
        return
    if type(was) is dict and type(now) is dict:
        for name in sorted(was.keys() | now.keys()):
            place = (*path, name)
            if name not in was:
                yield Change(kind="added", path=place, now=now[name])
            elif name not in now:
                yield Change(kind="removed", path=place, was=was[name])
            else:
                yield from changes(was[name], now[name], but=but, path=place)
    elif type(was) is list and type(now) is list and len(was) == len(now):
        for at, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from changes(one, other, but=but, path=(*path, at))
    elif canonical(was) != canonical(now):
        yield Change(kind="changed", path=path, was=was, now=now)
