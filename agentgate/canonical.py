"""The one form of a JSON value: strict reading, a private snapshot, and RFC 8785 bytes.

What comes in from outside passes `parse` (text) or `snapshot` (Python values); what either returns consists
of exact builtin types, is the caller's no longer, and is unchanged by a trip through `canonical` and back.
Not a validator: what a tool accepts is its schema's business. Every refusal is a `NotCanonical` with the JSON
Pointer of the offence; nothing else is raised, whatever the input. Errors are raised ``from None``: a cause
may quote the value.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Final, TypeAlias

from agentgate.encoding import Offence, describe, exact_key, pairs_of, plain, type_name
from agentgate.errors import Misuse, NotCanonical
from agentgate.jcs import DEEPEST, LARGEST_INTEGER, encodable, halved, not_finite, out_of_range, too_deep, write
from agentgate.jsontext import Fault, load

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

REASONS: Final = frozenset(
    {
        "changed",  # another thread changed the value while it was copied
        "cycle",  # the value contains itself
        "depth",  # more nested arrays and objects than the bounds allow
        "duplicate_key",  # one member name twice in an object
        "encoding",  # bytes that are not UTF-8, or begin with a byte order mark
        "float_range",  # an integral float whose canonical text could not be read back
        "integer_range",  # an integer that a double cannot hold
        "key",  # a member name that is no string
        "naive_datetime",  # a datetime without a time zone
        "nodes",  # more values than the bounds allow
        "not_encodable",  # a value whose own code failed to say what it holds
        "not_finite",  # NaN, an infinity, or a number that becomes one
        "size",  # more bytes than the bounds allow
        "surrogate",  # half of a UTF-16 pair
        "syntax",  # no JSON text, or more than one
        "type",  # a type without a JSON form
    },
)

_EXPONENT_FROM = 1e21  # from here on ECMAScript writes an exponent, which reads back as the same float
_LONGEST_PART = 128  # of a path in an error
_WHOLE = frozenset({"nodes", "size"})  # a value too large is lost whole: marking each part would grow it further
_LONGEST_MARKER = 1_300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one value may hold.

    Args:
        max_bytes: of its text as received, and of its canonical form.
        max_depth: arrays and objects inside one another, at most 256.
        max_nodes: values of any kind, itself included; member names are not counted.
    """

    max_bytes: int = 262_144
    max_depth: int = 64
    max_nodes: int = 10_000

    def __post_init__(self) -> None:
        for bound in fields(self):
            number = getattr(self, bound.name)
            if type(number) is not int or number < 1:
                raise Misuse(f"/{bound.name}: a bound is a positive int")
        if self.max_depth > DEEPEST:
            raise Misuse(f"/max_depth: at most {DEEPEST}, because the walks recurse")


DEFAULT_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What `keep` could not keep: where it was, why, and its type; never the value."""

    path: str
    reason: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A value that may have lost parts: each is marked in place and listed in ``lost``."""

    value: Json
    lost: tuple[Lost, ...] = ()


@dataclass(slots=True)
class _Walk:
    """What one copy has met so far; ``holes`` (only where tolerant) holds its markers by identity."""

    bounds: Bounds
    tolerant: bool = False
    nodes: int = 1
    chars: int = 0
    ancestors: set[int] = field(default_factory=set)
    holes: dict[int, tuple[object, Lost]] = field(default_factory=dict)


def parse(raw: bytes | str, *, bounds: Bounds = DEFAULT_BOUNDS) -> Json:
    """Read one strict I-JSON value.

    Args:
        raw: UTF-8 bytes, or text, without a byte order mark.
        bounds: refuse what is larger.

    Returns:
        Exactly what parsing its canonical bytes returns: ``1.0`` and ``-0.0`` are the ints 1 and 0.

    Raises:
        NotCanonical: for every text that is not I-JSON within the bounds.

    Source: RFC 8259, RFC 7493 (noncharacters excepted: RFC 8785 writes them, so they are accepted).
    """
    try:
        return _bounded(load(raw, max_bytes=bounds.max_bytes, max_depth=bounds.max_depth), _Walk(bounds))
    except (Offence, RecursionError) as error:
        raise _refusal(error) from None


def snapshot(value: object, *, bounds: Bounds = DEFAULT_BOUNDS) -> Json:
    """Copy a Python value into JSON that nobody else holds.

    Exact builtin types are read directly. Subclasses of them are read by the builtin's own methods: an
    overridden method is never called, so a dict that lies about its items is taken for what it stores.
    Tuples are arrays; the types of `agentgate.encoding` become what that module says.

    Args:
        value: the caller's object; it may be changed afterwards without effect.
        bounds: refuse what is larger.

    Returns:
        Exact dict, list, str, int, float, bool and None; integral floats as ints.

    Raises:
        NotCanonical: a type, number, string, cycle or size that has no canonical form.
    """
    try:
        return _bounded(value, _Walk(bounds))
    except (Offence, RecursionError) as error:
        raise _refusal(error) from None


def keep(value: object, *, bounds: Bounds = DEFAULT_BOUNDS) -> Kept:
    """Copy what can be kept of an effect's result: it has happened, so this never refuses.

    Args:
        value: what the tool returned.
        bounds: beyond ``max_depth`` a part is lost, beyond ``max_bytes`` or ``max_nodes`` the whole.

    Returns:
        The value, each lost part replaced by ``{"$unencodable": "module.Type"}``, and the list of them.
    """
    walk = _Walk(bounds, tolerant=True)
    try:
        kept = _bounded(value, walk)
    except (Offence, RecursionError) as error:
        lost = Lost(path="", reason=_refusal(error).reason, type=type_name(value))
        return Kept(value=_marker(value), lost=(lost,))
    return Kept(value=kept, lost=tuple(_located(kept, walk, ())) if walk.holes else ())


def canonical(value: Json) -> bytes:
    """Write a value's RFC 8785 bytes.

    Args:
        value: made by `parse` or `snapshot`. Of other values only exact builtin types are written, an integral
            float of any size as its digits.

    Returns:
        UTF-8, members ordered by UTF-16 code units, no white space.

    Raises:
        NotCanonical: a subclass or a tuple, a lone surrogate, a number that is not finite or out of range.
    """
    try:
        return write(value)
    except (Offence, RecursionError) as error:
        raise _refusal(error) from None


def pointer(*parts: str | int) -> str:
    """Join member names and positions to a JSON Pointer; no part is the whole value.

    Source: RFC 6901 §3. A lone surrogate is shown escaped, so that every path can be printed.
    """
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join(f"/{part}" for part in escaped).encode("utf-8", "backslashreplace").decode()


def _refusal(error: Offence | RecursionError) -> NotCanonical:
    if not isinstance(error, Offence):
        return NotCanonical("", "depth", "nest less, or call from a stack with more room")
    shown = (_cut(part) if isinstance(part, str) else part for part in reversed(error.parts))
    return NotCanonical(pointer(*shown), error.reason, error.remedy)


def _cut(part: str) -> str:
    return part if len(part) <= _LONGEST_PART else f"{part[:_LONGEST_PART]}…"


# The copying walk. Hot: leaves are tried in the order in which real arguments hold them.


def _bounded(value: object, walk: _Walk) -> Json:
    copied = _copy(value, walk, 1)
    # No character takes more than 6 bytes, no number with its punctuation more than 32: most values need no count.
    most = 6 * walk.chars + 32 * walk.nodes + _LONGEST_MARKER * len(walk.holes)
    if most > walk.bounds.max_bytes and len(write(copied)) > walk.bounds.max_bytes:
        raise _too_large(walk.bounds)
    return copied


def _too_large(bounds: Bounds) -> Offence:
    return Offence("size", f"send at most {bounds.max_bytes} bytes")


def _copy(value: object, walk: _Walk, depth: int) -> Json:
    if type(value) is str:
        return _string(value, walk)
    if type(value) is int:
        if -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
            return value
        raise out_of_range("integer_range")
    if value is None or value is True or value is False:
        return value
    if type(value) is float:
        return _number(value)
    return _container(value, walk, depth)


def _string(text: str, walk: _Walk) -> str:
    walk.chars += len(text)
    if text.isascii():
        return text
    if walk.chars > walk.bounds.max_bytes:  # before the work of encoding it
        raise _too_large(walk.bounds)
    if not encodable(text):
        raise halved()
    return text


def _number(number: float) -> int | float:
    if number.is_integer():
        if abs(number) <= LARGEST_INTEGER:
            return int(number)
        if abs(number) < _EXPONENT_FROM:
            raise out_of_range("float_range")
        return number
    if math.isfinite(number):
        return number
    raise not_finite()


def _container(value: object, walk: _Walk, depth: int) -> Json:
    if type(value) is Fault:
        raise Offence(value.reason, value.remedy, *reversed(value.parts))
    identity = id(value)
    if identity in walk.ancestors:
        raise Offence("cycle", "send a value that does not contain itself")
    walk.ancestors.add(identity)
    try:
        if type(value) is dict:
            return _members(value, walk, depth)
        if type(value) is list or type(value) is tuple:
            return _elements(value, walk, depth)
        return _copy(plain(value), walk, depth)
    finally:
        walk.ancestors.discard(identity)


def _enter(count: int, walk: _Walk, depth: int) -> None:
    if depth > walk.bounds.max_depth:
        raise too_deep(walk.bounds.max_depth)
    walk.nodes += count
    if walk.nodes > walk.bounds.max_nodes:
        raise Offence("nodes", f"send at most {walk.bounds.max_nodes} values")


def _members(value: dict[object, object], walk: _Walk, depth: int) -> dict[str, Json]:
    _enter(len(value), walk, depth)
    pairs = pairs_of(value)
    copied: dict[str, Json] = {}
    for key, item in pairs:
        name = _name(key, walk)
        try:
            copied[name] = _copy(item, walk, depth + 1)
        except Offence as offence:
            copied[name] = _hole(offence, name, item, walk, depth)
    if len(copied) != len(pairs):  # subclasses of str may differ in hash and agree in text
        raise Offence("duplicate_key", "name each member once")
    return copied


def _elements(value: list[object] | tuple[object, ...], walk: _Walk, depth: int) -> list[Json]:
    _enter(len(value), walk, depth)
    copied: list[Json] = []
    for position, item in enumerate(tuple(value)):
        try:
            copied.append(_copy(item, walk, depth + 1))
        except Offence as offence:
            copied.append(_hole(offence, position, item, walk, depth))
    return copied


def _name(key: object, walk: _Walk) -> str:
    name = key if type(key) is str else exact_key(key)
    try:
        return _string(name, walk)
    except Offence as offence:
        offence.parts.append(name)
        raise


def _hole(offence: Offence, part: str | int, item: object, walk: _Walk, depth: int) -> dict[str, Json]:
    """Let the offence pass on its way up, or mark its place where the copy is tolerant and a marker fits."""
    if not walk.tolerant or offence.reason in _WHOLE or depth == walk.bounds.max_depth:
        offence.parts.append(part)
        raise offence
    _enter(1, walk, depth + 1)  # a marker is two values in the place of one
    marker = _marker(item)
    walk.holes[id(marker)] = (marker, Lost(path="", reason=offence.reason, type=type_name(item)))
    return marker


def _marker(value: object) -> dict[str, Json]:
    return dict(describe(value))


def _located(value: Json, walk: _Walk, parts: tuple[str | int, ...]) -> Iterator[Lost]:
    """Find the markers in a copy; by identity, because a value may hold a dict that only looks like one."""
    if id(value) in walk.holes:
        yield replace(walk.holes[id(value)][1], path=pointer(*parts))
    elif type(value) is dict:
        for name, item in value.items():
            yield from _located(item, walk, (*parts, name))
    elif type(value) is list:
        for position, item in enumerate(value):
            yield from _located(item, walk, (*parts, position))
