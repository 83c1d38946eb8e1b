"""What a text's letters are and could be taken for, and the text as its readers read it.

None of this is what an approval rests on: that is the exact form (`agentgate.core.presenting.exact`), which is ASCII.
Beside it stands the legible form for people who read other scripts than Latin, and marks that say what an eye misses.

Scripts and look-alikes are of the Unicode version that `unicode17` states. Which characters are graphic, what a normal
form is, and which marks combine are the interpreter's `unicodedata`: a character that it does not know yet is escaped.
A presentation is stored as it was made and never made again, so another interpreter changes no recorded one.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Final

from agentgate.core.presenting.unicode17 import LOOK_ALIKES, SCRIPTS
from agentgate.printable import printable

MOST_WORDS: Final = 3
"""How many words of a kind a mark names; of more it says how many."""

# A base takes three marks of no script (polytonic Greek, decomposed), and five of its own (Burmese, Tibetan).
_MOST_INHERITED, _MOST_MARKS = 3, 5
# A long text repeats its characters, and is looked at while others wait to write.
_REMEMBERED = 4_096
_WRITTEN_AS_ESCAPES = frozenset("\\\n\t")  # a printable text writes these as escapes too, and they hide nothing
# Scripts that are one writing system, each with or without Latin (UTS #39, Highly Restrictive).
_TOGETHER = (
    frozenset({"Latin", "Han", "Hiragana", "Katakana"}),
    frozenset({"Latin", "Han", "Hangul"}),
    frozenset({"Latin", "Han", "Bopomofo"}),
)


@lru_cache(maxsize=_REMEMBERED)
def script(character: str) -> str | None:
    """Return the script of a character; None of one that many scripts share, or that is of none."""
    starts, ranges = _scripts()
    at = bisect_right(starts, ord(character)) - 1
    if at < 0:
        return None
    end, name = ranges[at]
    return name if ord(character) <= end else None


def legible(text: str) -> str:
    """Write a text as its readers read it, on one line: its letters as they are, what is not seen as escapes.

    Marks that stand on nothing, are piled up, or repeat themselves are escaped: they would run over other lines.
    """
    return "".join(written for _, written in _written(text))


def reshown(line: str) -> str:
    """Escape what no presentation holds in a line that should be one of its own, and leave its escapes as they are.

    A stored text was safe when it was made; but a row can be rewritten by others. What was made here is not changed.
    """
    return "\\".join(map(legible, line.split("\\")))


def _written(text: str) -> Iterator[tuple[str, str]]:
    """Yield each character with what is written for it."""
    taken, inherited, last = -1, 0, ""
    for character in text:
        if _kind(character) != "M":
            written = _alone(character)
            # Only on a visible character of the text can a mark stand: not on an escape, and not on a space.
            taken, inherited = (0 if written == character != " " else -1), 0
        else:
            inherited += script(character) is None
            room = 0 <= taken < _MOST_MARKS and inherited <= _MOST_INHERITED and character != last
            written = printable(f"a{character}")[1:] if room else escape(character)
            taken += taken >= 0
        yield character, written
        last = character


def escape(character: str) -> str:
    r"""Write one character as the escape by which `printable` would write it, such as ``\u0301``."""
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"  # noqa: PLR2004


def notes(text: str) -> Iterator[str]:
    """Say what an eye would miss in a text, in words of ASCII; nothing where there is nothing to miss.

    Yields:
        What its letters are, which words mix scripts or pass for Latin ones, what is not in normal form, what is not
        seen. Every text that is not ASCII has at least one note.
    """
    if is_plain(text):
        return
    hidden = sum(one != written and one not in _WRITTEN_AS_ESCAPES for one, written in _written(text))
    if not text.isascii():
        scripts = sorted({found for character in set(text) if _is_letter(character) and (found := script(character))})
        yield f"not ASCII; letters: {', '.join(scripts) or 'none'}"
        words = list(dict.fromkeys(_words(text)))
        yield from _named("mixes scripts within a word", [word for word in words if _is_mixed(word)])
        yield from _named("looks like", [plain for word in words if (plain := latin(word)) is not None])
        if not unicodedata.is_normalized("NFC", text):
            yield "not in normal form (NFC): another sequence of characters looks the same"
        if any(map(_is_compatible, set(text))):
            yield "holds letters or digits in a compatibility form, which look like plain ones"
    if hidden:
        yield f"{hidden} of its characters are not seen, move what is, or run over it: they are written as escapes"


def is_plain(text: str) -> bool:
    """Tell whether a text is fully seen in its exact form: there is nothing to note about it."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def latin(word: str) -> str | None:
    """Return the word of ASCII that this one can be taken for; None where it is ASCII, or looks like no such word."""
    if word.isascii():
        return None
    plain = [_look_alikes().get(character, character) for character in unicodedata.normalize("NFKC", word)]
    read = "".join(plain)
    return read if read.isascii() and read.isalnum() else None


def _named(what: str, words: list[str]) -> Iterator[str]:
    told = list(dict.fromkeys(words))
    if told:
        more = f" and {len(told) - MOST_WORDS} more" if len(told) > MOST_WORDS else ""
        yield f"{what}: {', '.join(_cut(word) for word in told[:MOST_WORDS])}{more}"


def _cut(word: str, longest: int = 40) -> str:
    quoted = "".join(character if character.isascii() else escape(character) for character in word[:longest])
    return f'"{quoted}"' + ("..." if len(word) > longest else "")


def _words(text: str) -> Iterator[str]:
    """Yield the runs of letters, marks and digits."""
    word: list[str] = []
    for character in chain(text, " "):
        if _is_letter(character) or _kind(character) in "MN":
            word.append(character)
        elif word:
            yield "".join(word)
            word = []


@lru_cache(maxsize=_REMEMBERED)
def _kind(character: str) -> str:
    """Return the first letter of a character's general category."""
    return unicodedata.category(character)[0]


@lru_cache(maxsize=_REMEMBERED)
def _alone(character: str) -> str:
    return printable(character)


def _is_letter(character: str) -> bool:
    return _kind(character) == "L"


def _is_mixed(word: str) -> bool:
    scripts = {found for character in word if _is_letter(character) and (found := script(character)) is not None}
    return len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)


def _is_compatible(character: str) -> bool:
    if character.isascii() or _kind(character) not in "LN":
        return False
    return unicodedata.normalize("NFKC", character) != unicodedata.normalize("NFC", character)


@lru_cache(maxsize=1)
def _scripts() -> tuple[list[int], list[tuple[int, str]]]:
    found = []
    for name, ranges in _rows(SCRIPTS):
        for one in ranges:
            start, _, end = one.partition("-")
            found.append((int(start, 16), int(end or start, 16), name))
    found.sort()
    return [start for start, _, _ in found], [(end, name) for _, end, name in found]


@lru_cache(maxsize=1)
def _look_alikes() -> dict[str, str]:
    return {chr(int(one, 16)): name for name, points in _rows(LOOK_ALIKES) for one in points}


def _rows(table: str) -> Iterator[tuple[str, list[str]]]:
    """Read a table: each row a name, a colon and values; one that begins with a space goes on with the row before."""
    for row in table.strip("\n").replace("\n ", " ").split("\n"):
        name, _, values = row.partition(":")
        yield name, values.split()
