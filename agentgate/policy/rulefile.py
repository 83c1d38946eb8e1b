"""Reading a YAML file into plain JSON that can mean only one thing, with the line of every value.

YAML 1.2, core schema: ``yes`` and ``2026-01-01`` are texts. Anchors, aliases, tags, merge keys, a second
document and a key given twice are refused, because a reader's eye and another parser may take them otherwise.
What the values mean is not known here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentgate.canonical import DEFAULT_BOUNDS, Json, pointer, snapshot
from agentgate.errors import NotCanonical, PolicyRefused

MAX_BYTES = DEFAULT_BOUNDS.max_bytes
LONGEST_INTEGER = 20  # digits; what these hold is compared with the range afterwards

# YAML 1.2.2 §10.3.2; a leading zero is read as octal by others, so it is refused rather than decided.
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """A file's content as JSON.

    Args:
        source: the file's name, for errors.
        value: what it holds.
        lines: the line of each value, from 1, by JSON Pointer.
    """

    source: str
    value: Json
    lines: Mapping[str, int]

    def refusal(self, path: str, problem: str, remedy: str) -> PolicyRefused:
        """Build the error for the value at ``path``, with its line."""
        line = self.lines.get(path)
        return PolicyRefused(self.source, path, problem if line is None else f"line {line}: {problem}", remedy)


def read(content: bytes, *, source: str) -> RuleFile:
    """Read one YAML document.

    Args:
        content: the file's bytes, UTF-8, at most 256 KiB.
        source: the file's name, for errors.

    Raises:
        PolicyRefused: it is too large, no UTF-8, no YAML, or uses what is refused here.
    """
    # Lazily: only who reads a rule file pays for the parser, and it is the one place that knows it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if len(content) > MAX_BYTES:
        raise PolicyRefused(source, "", f"larger than {MAX_BYTES} bytes", "split it, or shorten it")
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise PolicyRefused(source, "", f"byte {error.start} is no UTF-8", "save the file as UTF-8") from None
    try:
        return _Reading(source, YAML(typ="safe", pure=True).parse(text)).document()
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or "a character that YAML does not admit"
        raise PolicyRefused(source, "", f"{where}{problem}", "correct the YAML there") from error


@dataclass(slots=True)
class _Reading:
    """One pass over the parser's events."""

    source: str
    events: Iterator[Any]
    lines: dict[str, int] = field(default_factory=dict)

    def document(self) -> RuleFile:
        next(self.events)  # the stream's start
        start = next(self.events)
        if type(start).__name__ == "StreamEndEvent":
            raise PolicyRefused(self.source, "", "empty", "write version: 1 and rules:")
        if start.version not in (None, (1, 2)) or start.tags:
            raise PolicyRefused(self.source, "", "a %YAML or %TAG directive", "leave it out: the file is YAML 1.2")
        value = self._value(next(self.events), "", depth=1)
        next(self.events)  # the document's end
        if type(next(self.events)).__name__ != "StreamEndEvent":
            raise PolicyRefused(self.source, "", "a second document", "keep one document in a file")
        return self._canonical(value)

    def _canonical(self, value: Json) -> RuleFile:
        """Hold the file's numbers and texts to what arguments are held to, so that schemas mean the same."""
        try:
            return RuleFile(source=self.source, value=snapshot(value), lines=self.lines)
        except NotCanonical as error:
            raise self._refusal(error.path, error.reason, error.remedy) from error

    def _value(self, event: Any, path: str, *, depth: int) -> Json:
        self.lines[path] = event.start_mark.line + 1
        if depth > DEFAULT_BOUNDS.max_depth or len(self.lines) > DEFAULT_BOUNDS.max_nodes:
            raise self._refusal(path, "nested too deep, or too many values", "simplify it")
        kind = type(event).__name__
        if kind == "AliasEvent" or event.anchor is not None:
            raise self._refusal(path, "an anchor or alias", "write the value out where it is used")
        if event.tag is not None:
            raise self._refusal(
                path, f"the tag {str(event.tag)[:80]!r}", "leave the tag out; quote the value if it is a text"
            )
        if kind == "MappingStartEvent":
            return self._mapping(path, depth)
        if kind == "SequenceStartEvent":
            return self._sequence(path, depth)
        return self._plain(event.value, path) if event.implicit[0] else str(event.value)

    def _mapping(self, path: str, depth: int) -> Json:
        members: dict[str, Json] = {}
        while type(event := next(self.events)).__name__ != "MappingEndEvent":
            key = self._key(event, path)
            if key in members:
                raise self._refusal(path + pointer(key), "the key stands twice", "keep one of them")
            members[key] = self._value(next(self.events), path + pointer(key), depth=depth + 1)
        return members

    def _sequence(self, path: str, depth: int) -> Json:
        items: list[Json] = []
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            items.append(self._value(event, path + pointer(len(items)), depth=depth + 1))
        return items

    def _key(self, event: Any, path: str) -> str:
        if type(event).__name__ != "ScalarEvent" or event.anchor is not None or event.tag is not None:
            raise self._refusal(path, "a key that is no plain text", "write every key as a text")
        if event.implicit[0] and event.value == "<<":
            raise self._refusal(path, "a merge key", "write the values out where they are used")
        key = str(event.value)
        if event.implicit[0] and not isinstance(self._plain(key, path), str):
            raise self._refusal(path, f"the key {key!r} is no text", "put it in quotes")
        return key

    def _plain(self, text: str, path: str) -> Json:
        """Resolve a scalar without quotes. Source: YAML 1.2.2 §10.3.2."""
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _LEADING_ZERO.fullmatch(text):
            raise self._refusal(path, "a number with a leading zero", "drop the zero, or put it in quotes for a text")
        if _NO_NUMBER.fullmatch(text):
            raise self._refusal(path, "no finite number", "give a number, or put it in quotes for a text")
        if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
            return self._integer(text, path)
        if _FLOAT.fullmatch(text):
            return float(text)
        return text

    def _integer(self, text: str, path: str) -> int:
        digits = text.lstrip("+-")
        if len(digits) > LONGEST_INTEGER:
            raise self._refusal(path, "an integer beyond 2^53 - 1", "put it in quotes for a text")
        number = int(digits, {"0o": 8, "0x": 16}.get(digits[:2], 10))
        return -number if text.startswith("-") else number

    def _refusal(self, path: str, problem: str, remedy: str) -> PolicyRefused:
        return RuleFile(source=self.source, value=None, lines=self.lines).refusal(path, problem, remedy)
