"""One JSON form for each Python type that has one, and a marked description for those that have none.

Not a serializer: each encoder takes a single step (a dataclass to a dict of its fields) and
`agentgate.canonical` walks on from there. A subclass of a builtin type is read with the builtin's own
methods, so a method that lies is never asked. What a model or a dataclass computes about itself
(pydantic's serializers, a time zone) is the caller's code: it runs here, once, and whatever it raises
becomes an `Offence`. Causes are dropped on purpose (``from None``): their texts may quote the value.
"""

import base64
import dataclasses
import enum
import sys
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

UNENCODABLE: Final = "$unencodable"

_LONGEST_NAME = 200
_DATE_FIELDS = tuple(vars(date)[name] for name in ("year", "month", "day"))
_TIME_FIELDS = tuple(vars(datetime)[name] for name in ("hour", "minute", "second", "microsecond"))
_TIME_ZONE = vars(datetime)["tzinfo"]
_FOLD = vars(datetime)["fold"]
_UUID_NUMBER = vars(uuid.UUID)["int"]
_TYPE_MODULE = vars(type)["__module__"]
_TYPE_NAME = vars(type)["__qualname__"]


class Offence(Exception):
    """What is wrong with a value, and where: ``parts`` grows from the inside out while the walk unwinds."""

    def __init__(self, reason: str, remedy: str, *parts: str | int) -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy
        self.parts: list[str | int] = list(parts)


def type_name(value: object) -> str:
    """Name a value's type as ``module.Type`` without asking the value anything."""
    kind = type(value)
    try:
        module = _TYPE_MODULE.__get__(kind)
    except AttributeError:  # a class may delete its __module__
        module = None
    name = f"{module if type(module) is str else '?'}.{_TYPE_NAME.__get__(kind)}"
    return name.encode("utf-8", "backslashreplace").decode()[:_LONGEST_NAME]


def describe(value: object) -> dict[str, str]:
    """Mark a value that could not be kept: its type, never its repr, which could hold a secret."""
    return {UNENCODABLE: type_name(value)}


def exact_key(key: object) -> str:
    """Read a member name, from a subclass of ``str`` by the base type's own method.

    Raises:
        Offence: the key is no string; its path is the object's, since the key itself cannot be named.
    """
    if not issubclass(type(key), str):
        raise Offence("key", "name every member with a str")
    return str.__str__(key)


def pairs_of(members: dict[object, object]) -> tuple[tuple[object, object], ...]:
    """Take a dict's items in one step of the interpreter, so that what follows runs over nobody else's dict.

    Raises:
        Offence: another thread, or a finalizer, changed the dict in that step.
    """
    try:
        return tuple(dict.items(members))  # dict.copy would ask a subclass's keys()
    except RuntimeError:
        raise Offence("changed", "do not change a value while it is proposed") from None


def plain(value: object) -> object:
    """Take one step from a Python value towards JSON.

    Args:
        value: anything but an exact ``str``, ``int``, ``float``, ``bool``, ``None``, ``dict``, ``list`` or ``tuple``.

    Returns:
        A value nearer to JSON, whose members may need further steps.

    Raises:
        Offence: the type has no JSON form, or this value of it has none.
    """
    try:
        encoder = _encoder(type(value))
        if encoder is not None:
            return encoder(value)
    except Offence:
        raise
    except Exception:  # noqa: BLE001 - the caller's own code: serializers, properties, time zones
        raise Offence("not_encodable", f"{type_name(value)} could not say what it holds; pass plain JSON") from None
    raise Offence("type", f"{type_name(value)} has no JSON form; {_advice(value)}")


def _encoder(kind: type) -> Callable[[Any], object] | None:
    found = _EXACT.get(kind)
    if found is not None:
        return found
    if issubclass(kind, enum.Enum):
        return _member
    model = _model_class()
    if model is not None and issubclass(kind, model):
        return _model
    if dataclasses.is_dataclass(kind):
        return _fields
    return next((encoder for base, encoder in _BY_BASE if issubclass(kind, base)), None)


def _advice(value: object) -> str:
    if issubclass(type(value), set | frozenset):
        return "a set has no order: send a sorted list"
    return "convert it to dict, list, str, int, float, bool or None"


def _datetime(value: datetime) -> str:
    # Copied field by field into an exact datetime: arithmetic on a subclass would call its constructor.
    year, month, day = (field.__get__(value) for field in _DATE_FIELDS)
    hour, minute, second, micro = (field.__get__(value) for field in _TIME_FIELDS)
    zone, fold = _TIME_ZONE.__get__(value), _FOLD.__get__(value)
    exact = datetime(year, month, day, hour, minute, second, micro, zone, fold=fold)
    offset = exact.utcoffset()
    if offset is None:
        raise Offence("naive_datetime", "give it a time zone")
    return (exact.replace(tzinfo=None) - offset).isoformat(timespec="microseconds") + "Z"


def _decimal(value: Decimal) -> str:
    if not Decimal.is_finite(value):
        raise Offence("not_finite", "send null, or leave the field out")
    return Decimal.__str__(value).upper()  # the thread's decimal context would choose between 1E+3 and 1e+3


def _uuid(value: uuid.UUID) -> str:
    return str(uuid.UUID(int=_UUID_NUMBER.__get__(value)))


def _bytes(value: bytes) -> str:
    return base64.b64encode(bytes.__getitem__(value, slice(None))).decode("ascii")


def _member(value: enum.Enum) -> object:
    return object.__getattribute__(value, "_value_")


def _fields(value: object) -> dict[str, object]:
    declared: Any = type(value)
    return {field.name: object.__getattribute__(value, field.name) for field in dataclasses.fields(declared)}


def _model_class() -> Any:
    """Find pydantic's BaseModel if the caller has loaded it; otherwise no instance can exist."""
    model = getattr(sys.modules.get("pydantic.main"), "BaseModel", None)
    return model if hasattr(model, "model_dump") else None


def _model(value: object) -> object:
    # By alias, because that is what the model's JSON Schema and its own validation speak;
    # without warnings, because their texts quote the value.
    dumped: object = _model_class().model_dump(value, mode="json", by_alias=True, warnings=False)
    return dumped


def _object(value: dict[object, object]) -> dict[str, object]:
    pairs = pairs_of(value)
    members = {exact_key(key): item for key, item in pairs}
    if len(members) != len(pairs):
        raise Offence("duplicate_key", "name each member once")
    return members


def _array(value: tuple[object, ...]) -> list[object]:
    return list(tuple.__iter__(value))


_EXACT: Mapping[type, Callable[[Any], object]] = MappingProxyType(
    {datetime: _datetime, date: date.isoformat, uuid.UUID: _uuid, Decimal: _decimal, bytes: _bytes},
)
# A datetime is a date: the order matters. A named tuple is a tuple, hence an array.
_BY_BASE: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (datetime, _datetime),
    (date, date.isoformat),
    (uuid.UUID, _uuid),
    (Decimal, _decimal),
    (bytes, _bytes),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (list, list.copy),
    (tuple, _array),
    (dict, _object),
)
