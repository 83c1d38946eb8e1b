r"""Regular expressions of schemas: ECMA-262 text, read once, matched in linear time by RE2.

A pattern means here what it means to a JSON Schema author: ``$`` is the end of the text and never before a last line
feed, ``\d`` and ``\w`` are ASCII, ``\s`` and ``.`` follow ECMA-262, ``[^]`` is any character. What RE2 cannot do in
linear time (lookaround, backreferences) and what ECMA-262 does not know (``\A``, ``\Z``) is refused. Inline flags like
``(?i)`` are no part of JSON Schema's dialect but mean one thing everywhere, so they pass.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import re2

from agentgate.tools.spending import KEYWORD, spend

MAX_MEMORY: Final = 8 << 20  # bytes for one pattern's program and its automaton
STEPS_PER_UNIT: Final = 80  # of RE2's slow path, which takes len(text) x len(program) steps: 3e8 a second

# ECMA-262 §22.2.2.9, CharacterClassEscape :: s, and its complement.
_SPACE = r"\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_NOT_SPACE = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
_DOT = r"[^\n\r\x{2028}\x{2029}]"
_ANY = r"[\x{0}-\x{10ffff}]"
_NONE = r"[^\x{0}-\x{10ffff}]"

_SURROGATES = range(0xD800, 0xE000)
_DOT_MATCHES_ALL = re.compile(r"\(\?[imU]*s")
_TOKEN = re.compile(
    r"""
      \\u\{(?P<braced>[0-9A-Fa-f]{1,6})\}
    | \\u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})
    | \\u(?P<unit>[0-9A-Fa-f]{4})
    | \\x(?P<byte>[0-9A-Fa-f]{2})
    | \\c(?P<control>[A-Za-z])
    | \\0(?![0-9])(?P<nul>)
    | \\(?P<property>[pP]\{[^}]*\})
    | \\(?P<escaped>.)
    | (?P<plain>[^\\])
    """,
    re.VERBOSE | re.DOTALL,
)


class Uncompilable(Exception):
    """A pattern cannot be used; ``problem`` says why, in words."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One compiled pattern.

    Args:
        text: as the schema has it.
        regexp: RE2's compiled form.
        size: instructions of its program.
    """

    text: str
    regexp: Any = field(repr=False, compare=False)
    size: int = field(repr=False, compare=False)

    def found_in(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in a text, at a cost that grows with both."""
        encoded = text.encode()
        spend(KEYWORD // 2 + len(encoded) * self.size // STEPS_PER_UNIT)
        return self.regexp.search(encoded) is not None


class Patterned(dict[str, Any]):
    """A schema's ``patternProperties`` with its patterns compiled; references still find their way through it."""

    __slots__ = ("patterns",)

    def __init__(self, schemas: dict[str, Any], patterns: Iterable[Pattern]) -> None:
        super().__init__(schemas)
        self.patterns = tuple(patterns)

    def matching(self, name: str) -> bool:
        """Tell whether a property's name matches one of the patterns."""
        return any(pattern.found_in(name) for pattern in self.patterns)


def compile_pattern(text: str) -> Pattern:
    """Compile a schema's pattern.

    Raises:
        Uncompilable: it is no ECMA-262 pattern, or RE2 has no linear-time form of it.
    """
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    try:
        regexp = re2.compile(translate(text), options)
    except re2.error as error:
        raise Uncompilable(_words(error)) from None
    return Pattern(text=text, regexp=regexp, size=regexp.programsize)


def translate(text: str) -> str:
    """Write an ECMA-262 pattern in RE2's syntax, as far as the two differ.

    Raises:
        Uncompilable: an escape that ECMA-262 does not know, or a backreference.
    """
    dot = "." if _DOT_MATCHES_ALL.search(text) else _DOT
    written: list[str] = []
    in_class = False
    position = 0
    while position < len(text):
        if not in_class and (empty := next((form for form in ("[^]", "[]") if text.startswith(form, position)), None)):
            written.append(_ANY if empty == "[^]" else _NONE)
            position += len(empty)
            continue
        token = _TOKEN.match(text, position)
        if token is None:
            raise Uncompilable("it ends in the middle of an escape")
        position = token.end()
        character = token["plain"]
        if character is None:
            written.append(_escape(token, in_class=in_class))
        else:
            written.append(_plain(character, dot, in_class=in_class))
        in_class = character != "]" if in_class else character == "["
    return "".join(written)


def _plain(character: str, dot: str, *, in_class: bool) -> str:
    if in_class:
        return r"\[" if character == "[" else character  # or RE2 would read a POSIX class
    return dot if character == "." else character


def _escape(token: re.Match[str], *, in_class: bool) -> str:
    match token.lastgroup:
        case "braced" | "unit" | "byte":
            return _code_point(int(token[token.lastgroup], 16))
        case "low":
            return _code_point(0x10000 + ((int(token["high"], 16) & 0x3FF) << 10) + (int(token["low"], 16) & 0x3FF))
        case "control":
            return _code_point(ord(token["control"]) % 32)
        case "nul":
            return r"\x{0}"
        case "property":
            return f"\\{token['property']}"
        case _:
            return _escaped(token["escaped"], in_class=in_class)


def _escaped(character: str, *, in_class: bool) -> str:
    if character in "sS":
        inside = _SPACE if character == "s" else _NOT_SPACE
        return inside if in_class else f"[{inside}]"
    if character in ("dDwWfnrtv" if in_class else "dDwWfnrtvbB"):
        return f"\\{character}"
    if character == "b":
        return r"\x{8}"  # in a class it is a backspace
    if character.isascii() and character.isalnum():
        raise Uncompilable(_unknown_escape(character))
    return character if character == "_" or not character.isascii() else f"\\{character}"


def _unknown_escape(character: str) -> str:
    if character.isdigit() or character == "k":
        return "it uses a backreference, which cannot be matched in linear time"
    if character in "AZz":
        return f"\\{character} is no anchor in JSON Schema; use ^ and $"
    return f"\\{character} is no escape that ECMA-262 knows"


def _code_point(number: int) -> str:
    if number in _SURROGATES or number > sys.maxunicode:
        raise Uncompilable("an escape that is no Unicode character")
    return f"\\x{{{number:x}}}"


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))[:200]
