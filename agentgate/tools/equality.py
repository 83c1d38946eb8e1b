"""When two JSON values are the same: by their canonical bytes, so that one comparison is one look-up.

``1`` and ``1.0`` are the same number, ``1`` and ``true`` are not, members have no order. Comparing element by element
would make ``uniqueItems`` quadratic, and an ``enum`` of large values as slow as all of them together.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from agentgate.canonical import Json, canonical
from agentgate.tools.spending import remembered, spend

BYTES_PER_UNIT: Final = 8
UNITS_PER_SCALAR: Final = 4
UNITS_PER_FLOAT: Final = 32

codecs.lookup("utf-16be")  # RFC 8785 sorts members by it: read from disk now, not while something is checked

_LARGEST_INTEGER = 2**53 - 1  # beyond it a number has no canonical form


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that a schema holds as data: of ``const`` and ``default``. No reference leads into it."""

    value: Json
    key: str | bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.value))


@dataclass(frozen=True, slots=True)
class Members:
    """The values of an ``enum``. No reference leads into them."""

    values: tuple[Json, ...]
    keys: frozenset[str | bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", frozenset(_key(value) for value in self.values))


def same(value: Json, constant: Constant) -> bool:
    """Tell whether a value is the constant."""
    return _known_key(value) == constant.key


def among(value: Json, members: Members) -> bool:
    """Tell whether a value is one of the members."""
    return _known_key(value) in members.keys


def all_differ(values: Iterable[Json]) -> bool:
    """Tell whether no two of the values are the same."""
    seen: set[str | bytes] = set()
    for value in values:
        key = _known_key(value)
        if key in seen:
            return False
        seen.add(key)
    return True


def _known_key(value: Json) -> str | bytes:
    """Return a value's key; an array's or object's is made once in a check, however often it is asked for."""
    if not isinstance(value, dict | list):
        spend(UNITS_PER_FLOAT if isinstance(value, float) else UNITS_PER_SCALAR)
        return _key(value)
    memory = remembered()
    known = memory.get(id(value))
    if known is None:
        known = memory[id(value)] = _key(value)
        spend(len(known) // BYTES_PER_UNIT)
    return known


def _key(value: Json) -> str | bytes:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_INTEGER:
        return b"%d" % value  # its canonical form, without the way there
    return canonical(value)
