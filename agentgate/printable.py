"""Text that somebody else wrote, made fit to be printed: nothing in it moves a cursor, turns a line or hides.

A terminal obeys control characters, and an eye cannot see bidi, zero-width or blank ones; they are written as the
escapes of a Python or JSON string, the backslash too, so that what is printed means one thing. Letters of every
script stay readable. What people approve is stricter: `agentgate.core.presenting`.
"""

import json
import unicodedata

from agentgate.canonical import Json

_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Unicode's Default_Ignorable_Code_Point where the category does not tell (DerivedCoreProperties.txt), and the
# two signs that are drawn as nothing.
_BLANK = (
    range(0x034F, 0x0350),
    range(0x115F, 0x1161),
    range(0x17B4, 0x17B6),
    range(0x180B, 0x1810),
    range(0x2800, 0x2801),
    range(0x3164, 0x3165),
    range(0xFE00, 0xFE10),
    range(0xFFA0, 0xFFA1),
    range(0xFFF0, 0xFFF9),
    range(0x1D159, 0x1D15A),
    range(0xE0000, 0xE1000),
)
# Control, format, surrogate, private, unassigned; separators but the space; marks that enclose what is before them.
_UNFIT = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "Me"})
_MARKS = frozenset({"Mn", "Mc"})
# Pointed Hebrew carries three marks on a letter; a tower of them runs over the lines around it.
MOST_MARKS = 3


def printable(text: str) -> str:
    r"""Escape whatever in ``text`` would not be seen as what it is; the result is one line.

    Args:
        text: of any length and origin, lone surrogates included.

    Returns:
        Text of visible characters and plain spaces; applied twice it escapes its own backslashes again.
    """
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    shown, marks = [], MOST_MARKS  # a mark at the very start would sit on what stands before the text
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        shown.append(character if _is_plain(character) and marks <= MOST_MARKS else _escaped(character))
    return "".join(shown)


def _is_plain(character: str) -> bool:
    if character.isascii():
        return " " <= character <= "~" and character != "\\"
    point = ord(character)
    return unicodedata.category(character) not in _UNFIT and not any(point in blank for blank in _BLANK)


def _escaped(character: str) -> str:
    point = ord(character)
    return _SHORT.get(character) or (f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}")  # noqa: PLR2004


def printable_json(value: Json) -> str:
    """Write a JSON value on one line of printable ASCII; any JSON parser reads it back."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")


def clipped(text: str, longest: int) -> str:
    """Cut a text in the middle, and say so, where it is longer than ``longest`` characters.

    The end is kept because it is where a dangerous one hides.
    """
    if len(text) <= longest:
        return text
    kept = longest // 2
    return f"{text[:kept]} [cut: {len(text)} characters] {text[len(text) - kept :]}"
