"""What may be called what: the names that a spec declares, and when two of them look alike.

A name is an identity, compared character by character and never normalised; folding is only for refusing a
name that a person would take for another one. Real names hold ``/``, ``.``, spaces and braces: those are fine.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from agentgate.errors import SpecRefused

MAX_NAME = 256

# Control, format (bidi, zero-width), surrogate, line and paragraph separator: nobody sees them where a name is shown.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Unicode's Default_Ignorable_Code_Point outside those categories: fillers, joiners, variation selectors, tags.
_IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")


def is_unseen(character: str) -> bool:
    """Tell whether a character leaves no mark of its own where it is shown."""
    return unicodedata.category(character) in _UNSEEN or _IGNORABLE.match(character) is not None


def folded(name: str) -> str:
    """Fold a name so that look-alikes meet: unseen characters dropped, NFKC, case folded, NFKC again.

    Source: Unicode 15 §3.13, toNFKC_Casefold, of which this is the part that Python's tables carry.
    """
    seen = "".join(character for character in name if not is_unseen(character))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())


def same_name(name: str) -> str:
    """Return what two spellings of a person's or principal's name have in common that look the same to everybody.

    Letters that merely resemble each other are other names, as is another case.
    """
    seen = "".join(character for character in name if not is_unseen(character))
    return unicodedata.normalize("NFC", seen).strip()


def check_name(value: object, *, tool: str, path: str) -> str:
    """Return a name that can stand in a digest and before a person's eyes, or refuse it.

    Args:
        value: the name as declared.
        tool: whose spec it stands in, for the refusal.
        path: JSON Pointer of the field.

    Raises:
        SpecRefused: no text, empty, over 256 characters, with unseen characters or blank ends, or beginning with
            ``$`` (what begins with it is agentgate's own).
    """
    if type(value) is not str or not value:
        raise SpecRefused(tool, path, "no text, or an empty one", "name it")
    if len(value) > MAX_NAME:
        raise SpecRefused(tool, path, f"longer than {MAX_NAME} characters", "shorten it; the description has room")
    if any(map(is_unseen, value)):
        raise SpecRefused(tool, path, "control or invisible characters", "use only characters that can be seen")
    if value != value.strip():
        raise SpecRefused(tool, path, "blanks at its ends", "strip them")
    if value.startswith("$"):
        raise SpecRefused(tool, path, "begins with $, which marks agentgate's own", "begin with another character")
    return value


def check_names(values: object, *, tool: str, path: str) -> tuple[str, ...]:
    """Return a set of names sorted by code point without repeats, as digests hold sets."""
    return in_order(check_name(value, tool=tool, path=path) for value in as_listed(values, tool=tool, path=path))


def as_listed(values: object, *, tool: str, path: str) -> Sequence[object]:
    """Return the members of a collection of texts; a lone text is no collection, though Python could walk it."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise SpecRefused(tool, path, "no collection of texts", "put them in a list")
    return list(values)


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Sort texts by code point and drop repeats."""
    return tuple(sorted(set(texts)))
