"""RFC 8785 bytes of a value that is JSON already, fast where the fast way is provably the same.

Not the way in for a caller's values (that is `agentgate.canonical`): only exact builtin types are written here.
`rfc8785` is right and slow, and it asks a subclass for its number; the C encoder of the standard library is fast
and wrong on floats with an exponent, on keys beyond U+D7FF and on NaN. So a guarding walk decides.
"""

import json
import math
from typing import Final

import rfc8785

from agentgate.encoding import Offence, type_name

LARGEST_INTEGER: Final = 2**53 - 1
DEEPEST: Final = 256  # every walk here recurses: its frames must fit the interpreter's stack

# Python writes an exponent below and from here; ECMAScript (below 1e-6, from 1e21) does not in between.
_EXPONENT_BELOW = 1e-4
_EXPONENT_FROM = 1e16

_ENCODE = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def write(value: object) -> bytes:
    """Serialize exact builtin types by RFC 8785.

    Raises:
        Offence: another type, a lone surrogate, a number without a canonical form, or more than 256 levels.
    """
    try:
        if _is_ordinary(value, 1):
            return _ENCODE(value).encode()
    except UnicodeEncodeError:
        pass  # a lone surrogate: the check below says where
    _check(value, 1)
    return rfc8785.dumps(value)  # type: ignore[arg-type]  # _check has just proved the type


def encodable(text: str) -> bool:
    """Tell whether text is whole Unicode characters, without half of a UTF-16 pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def too_deep(limit: int) -> Offence:
    """Refuse nesting beyond a limit."""
    return Offence("depth", f"nest at most {limit} arrays and objects")


def out_of_range(reason: str) -> Offence:
    """Refuse a number that a reader would round: ``integer_range`` or ``float_range``."""
    return Offence(reason, "send it as a string")


def not_finite() -> Offence:
    """Refuse NaN and the infinities."""
    return Offence("not_finite", "send null, or leave the field out")


def halved() -> Offence:
    """Refuse a lone surrogate."""
    return Offence("surrogate", "send whole Unicode characters")


def _is_ordinary(value: object, depth: int) -> bool:
    """Tell whether the C encoder writes this value as RFC 8785 does.

    It does for exact types when integers are in range, keys sort alike by code point and by UTF-16 unit, and
    floats are written alike by Python and ECMAScript: without an exponent on either side, and not integral.
    """
    if type(value) is str or value is None or value is True or value is False:
        return True
    if type(value) is int:
        return -LARGEST_INTEGER <= value <= LARGEST_INTEGER
    if type(value) is float:
        return _EXPONENT_BELOW <= abs(value) < _EXPONENT_FROM and not value.is_integer()
    if depth > DEEPEST:
        return False
    if type(value) is dict:
        return _is_ordinary_object(value, depth)
    return type(value) is list and all(type(item) is str or _is_ordinary(item, depth + 1) for item in value)


def _is_ordinary_object(members: dict[object, object], depth: int) -> bool:
    for key, item in members.items():
        if type(key) is not str or not (key.isascii() or max(key) <= "\ud7ff"):
            return False
        if type(item) is not str and not _is_ordinary(item, depth + 1):
            return False
    return True


def _check(value: object, depth: int) -> None:
    """Raise for what rfc8785 would refuse, or write as something else; the path grows on the way up."""
    if type(value) is not dict and type(value) is not list:
        _check_leaf(value)
        return
    if depth > DEEPEST:
        raise too_deep(DEEPEST)
    for part, item in value.items() if type(value) is dict else enumerate(value):
        if type(value) is dict and type(part) is not str:
            raise Offence("key", "name every member with an exact str")
        try:
            _check_leaf(part)
            _check(item, depth + 1)
        except Offence as offence:
            offence.parts.append(part)
            raise


def _check_leaf(value: object) -> None:
    if type(value) is str:
        if not encodable(value):
            raise halved()
    elif type(value) is int:
        if abs(value) > LARGEST_INTEGER:
            raise out_of_range("integer_range")
    elif type(value) is float:
        if not math.isfinite(value):
            raise not_finite()
    elif value is not None and type(value) is not bool:
        raise Offence("type", f"{type_name(value)} is not exact JSON; take a snapshot of it first")
