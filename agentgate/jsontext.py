"""JSON text to Python values, more strictly than the standard library reads it.

Not the whole of strictness: number ranges, NaN, surrogates and node counts need a path, which a decoder's
hooks do not know. What a hook finds is left in the tree as a `Fault`, and `agentgate.canonical`, walking the
tree anyway, names the place. What ends reading at once (encoding, size, depth, syntax) is raised as an `Offence`.
"""

import json
import re
from dataclasses import dataclass

from agentgate.encoding import Offence, type_name

_MOST_DIGITS = len(str(-(2**53)))  # longer integers are out of range; CPython refuses 4,301 digits by raising
# A string without its end runs to the end of the text: no bracket behind it is structure, and no start is tried twice.
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """An offence met while reading, held as a value until its path is known; ``parts`` are below its place."""

    reason: str
    remedy: str
    parts: tuple[str, ...] = ()


def load(raw: object, *, max_bytes: int, max_depth: int) -> object:
    """Read one JSON text from bytes or str.

    Args:
        raw: UTF-8 bytes, or text; subclasses are read by the base type's methods.
        max_bytes: of the text in UTF-8.
        max_depth: of nested arrays and objects, counted before the recursive decoder sees the text.

    Returns:
        dict, list, str, int, float, bool, None and `Fault`.

    Raises:
        Offence: no JSON text, or one beyond the bounds.
    """
    text = _text(raw, max_bytes)
    if _deeper_than(text, max_depth):
        raise Offence("depth", f"nest at most {max_depth} arrays and objects")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Offence("syntax", f"send one JSON value; this stops being one at character {error.pos}") from None


def _text(raw: object, max_bytes: int) -> str:
    if issubclass(type(raw), str):
        text = str.__str__(raw)
        _fits(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")), max_bytes)
    elif isinstance(raw, bytes) and issubclass(type(raw), bytes):
        _fits(bytes.__len__(raw), max_bytes)
        text = _decoded(bytes.__getitem__(raw, slice(None)))
    else:
        raise Offence("type", f"{type_name(raw)} is no JSON text; parse takes bytes or str")
    if text.startswith("\ufeff"):
        raise Offence("encoding", "send UTF-8 without a byte order mark")
    if "\0" in text[:4]:
        raise Offence("encoding", "send UTF-8, not UTF-16 or UTF-32")
    return text


def _fits(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise Offence("size", f"send at most {max_bytes} bytes")


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Offence("encoding", f"send UTF-8; byte {error.start} breaks it") from None


def _deeper_than(text: str, limit: int) -> bool:
    """Count nesting without recursion; on text that is no JSON it may count too much, never too little."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for token in _STRUCTURE.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth > limit:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def _object(pairs: list[tuple[str, object]]) -> dict[str, object] | Fault:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return Fault("duplicate_key", "name each member once", (twice,))


def _integer(digits: str) -> int | Fault:
    return int(digits) if len(digits) <= _MOST_DIGITS else Fault("integer_range", "send it as a string")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)
