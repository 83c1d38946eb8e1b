"""Hints without parts: JSON's own scalars, and the types that `agentgate.encoding` writes as texts.

Each text has a pattern in its schema, so that a policy and an approver see only what the type can be built from;
what a pattern cannot tell (a 31 February) is refused when it is built, before the effect.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType, NoneType
from uuid import UUID

from agentgate.canonical import Json
from agentgate.tools.forms import Form, unbuildable

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_HEX = "[0-9a-fA-F]"


def _text(pattern: str, read: Callable[[str], object], expected: str, **keywords: Json) -> Form:
    def build(value: Json, path: str) -> object:
        try:
            return read(str(value))
        except (ValueError, ArithmeticError):
            raise unbuildable(path, expected) from None  # the cause quotes the value

    return Form(schema={"type": "string", "pattern": f"^{pattern}$", **keywords}, build=build)


def _float(value: Json, path: str) -> float:
    # 1.0 and 1 are one JSON value here; the function is promised a float.
    if isinstance(value, int | float):
        return float(value)
    raise unbuildable(path, "a number")


def _int(value: Json, path: str) -> int:
    # From 1e21 on a whole number is a float in JSON's canonical form; the function is promised an int.
    if isinstance(value, int | float):
        return int(value)
    raise unbuildable(path, "a whole number")


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


SCALARS: Mapping[object, Form] = MappingProxyType(
    {
        str: Form(schema={"type": "string"}),
        int: Form(schema={"type": "integer"}, build=_int),
        float: Form(schema={"type": "number"}, build=_float),
        bool: Form(schema={"type": "boolean"}),
        None: Form(schema={"type": "null"}),
        NoneType: Form(schema={"type": "null"}),
        date: _text(_DATE, date.fromisoformat, "a date like 2026-01-31", format="date"),
        datetime: _text(
            f"{_DATE}T{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})",
            datetime.fromisoformat,
            "a time with its zone like 2026-01-31T12:00:00Z",
            format="date-time",
        ),
        UUID: _text(f"{_HEX}{{8}}-({_HEX}{{4}}-){{3}}{_HEX}{{12}}", UUID, "a UUID", format="uuid"),
        Decimal: _text(r"-?[0-9]+(\.[0-9]+)?([Ee][+-]?[0-9]{1,4})?", Decimal, "a decimal number as text, like 12.50"),
        bytes: _text("[A-Za-z0-9+/]*={0,2}", _base64, "bytes in base64", contentEncoding="base64"),
    }
)
