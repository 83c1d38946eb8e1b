"""Closed shapes of JSON documents: what a reader of one version accepts, field by field.

A shape maps field names to checks; a name that ends in ``?`` may be left out, and no other field may stand
beside them. Not a schema language: it knows the handful of forms that events are made of, in microseconds.
"""

import re
from collections.abc import Callable, Mapping

from agentgate.canonical import Json, pointer

Check = Callable[[Json, str], str | None]
Shape = Mapping[str, Check]

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_CODE = 200


def misfit(shape: Shape, value: Json, path: str = "") -> str | None:
    """Return the JSON Pointer of the first field that does not fit, or None when all of it fits."""
    if type(value) is not dict:
        return path
    fields = _fields(shape)
    # A name that ends in "?" is never a field, but it is how the shape writes one.
    if not fields.keys() >= value.keys():
        return path + pointer(next(name for name in value if name not in fields))
    for name, (check, needed) in fields.items():
        if name in value:
            found = check(value[name], "")  # where it stands is written out only where something is wrong
            if found is not None:
                return path + pointer(name) + found
        elif needed:
            return path + pointer(name)
    return None


def _fields(shape: Shape) -> Mapping[str, tuple[Check, bool]]:
    """Return a shape's fields by their bare names: what checks each, and whether it must be there."""
    found = _READ.get(id(shape))
    if found is None or found[0] is not shape:
        fields = {name.removesuffix("?"): (check, not name.endswith("?")) for name, check in shape.items()}
        found = _READ[id(shape)] = (shape, fields)
    return found[1]


# Shapes are made once and never changed, and one that is asked about for every event is read once.
_READ: dict[int, tuple[Shape, Mapping[str, tuple[Check, bool]]]] = {}


def _when(good: Callable[[Json], bool]) -> Check:
    return lambda value, path: None if good(value) else path


def _is_hex(value: Json, digits: int) -> bool:
    return type(value) is str and len(value) == digits and not value.strip("0123456789abcdef")


def _is_id(value: Json) -> bool:
    return type(value) is str and _ID.fullmatch(value) is not None


text = _when(lambda value: type(value) is str)
code = _when(lambda value: type(value) is str and 0 < len(value) <= _LONGEST_CODE and value.isprintable())
count = _when(lambda value: type(value) is int and value >= 0)
ordinal = _when(lambda value: type(value) is int and value >= 1)
integer = _when(lambda value: type(value) is int)
flag = _when(lambda value: type(value) is bool)
hash32 = _when(lambda value: _is_hex(value, 64))
nonce16 = _when(lambda value: _is_hex(value, 32))
signature64 = _when(lambda value: _is_hex(value, 128))
identifier = _when(_is_id)


def one_of(*words: str) -> Check:
    """Accept exactly these words."""
    known = frozenset(words)
    return _when(lambda value: type(value) is str and value in known)


def exactly(expected: int) -> Check:
    """Accept this version number alone."""
    return _when(lambda value: type(value) is int and value == expected)


def record(shape: Shape) -> Check:
    """Accept an object of a closed shape."""
    return lambda value, path: misfit(shape, value, path)


def listing(check: Check) -> Check:
    """Accept an array whose every item passes."""

    def passes(value: Json, path: str) -> str | None:
        if type(value) is not list:
            return path
        for index, item in enumerate(value):
            found = check(item, "")
            if found is not None:
                return path + pointer(index) + found
        return None

    return passes


def listing_by(field: str, check: Check) -> Check:
    """Accept an array of objects that pass, each with another value of one field."""
    each = listing(check)

    def passes(value: Json, path: str) -> str | None:
        found = each(value, path)
        if found is not None or type(value) is not list:
            return found
        seen: set[Json] = set()
        for index, item in enumerate(value):
            assert type(item) is dict  # `check` is a record's
            if item[field] in seen:
                return path + pointer(index) + pointer(field)
            seen.add(item[field])
        return None

    return passes


def mapping(check: Check, *, names: frozenset[str] | None = None) -> Check:
    """Accept an object whose every value passes, with any names or only these."""

    def passes(value: Json, path: str) -> str | None:
        if type(value) is not dict:
            return path
        for name, item in value.items():
            if names is not None and name not in names:
                return path + pointer(name)
            found = check(item, "")
            if found is not None:
                return path + pointer(name) + found
        return None

    return passes
