"""The forms that a rule file's fields take: a wrong one is refused with its place, its line and a remedy.

Nothing here knows what a field is for; that is `agentgate.policy.rules`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from agentgate.canonical import Json, pointer
from agentgate.errors import PolicyRefused
from agentgate.policy.decision import MAX_NAME, MAX_TEXT, check_word
from agentgate.policy.rulefile import RuleFile

_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One value of a file, with where it stands."""

    file: RuleFile
    path: str
    value: Json

    def refusal(self, problem: str, remedy: str) -> PolicyRefused:
        return self.file.refusal(self.path, problem, remedy)

    def below(self, part: str | int, value: Json) -> "Place":
        return Place(file=self.file, path=self.path + pointer(part), value=value)


def members(place: Place, *, known: Collection[str], needed: Iterable[str] = ()) -> dict[str, Place]:
    """Take a mapping that has the needed keys and none but the known ones."""
    if not isinstance(place.value, dict):
        raise place.refusal("no mapping", f"write the keys {', '.join(known)}")
    found = {name: place.below(name, value) for name, value in place.value.items()}
    for name, member in found.items():
        if name not in known:
            raise member.refusal(f"an unknown key {name[:80]!r}", closest(name, known))
    for name in needed:
        if name not in found:
            raise place.refusal(f"the key {name!r} is missing", f"add {name}:")
    return found


def items(place: Place, *, most: int) -> list[Place]:
    """Take a list of at most ``most``."""
    if not isinstance(place.value, list) or len(place.value) > most:
        raise place.refusal(f"no list of at most {most}", "write each item on a line of its own, after a dash")
    return [place.below(index, value) for index, value in enumerate(place.value)]


def some(place: Place, *, most: int) -> list[Place]:
    """Take one text, or a list that is not empty."""
    if isinstance(place.value, str):
        return [place]
    listed = items(place, most=most)
    if not listed:
        raise place.refusal("an empty list matches nothing", "name at least one, or leave the key out")
    return listed


def word(place: Place) -> str:
    """Take a stable word, as codes and rule names are."""
    try:
        check_word(place.value, place.path)
    except PolicyRefused as error:
        raise place.refusal(error.problem, error.remedy) from error
    return str(place.value)


def one_of(place: Place, words: Collection[_Word]) -> _Word:
    """Take a word of a closed list."""
    for known in words:
        if place.value == known:
            return known
    raise place.refusal("not a word of the list", closest(str(place.value), words))


def text(place: Place) -> str:
    """Take a text for people."""
    if not isinstance(place.value, str) or len(place.value) > MAX_TEXT:
        raise place.refusal(f"no text of at most {MAX_TEXT} characters", "write one, in quotes where YAML needs them")
    return place.value


def name(place: Place) -> str:
    """Take a name of somebody else's: a role, an account."""
    if not isinstance(place.value, str) or not 0 < len(place.value) <= MAX_NAME or not place.value.isprintable():
        raise place.refusal(f"no name of 1 to {MAX_NAME} printable characters", "write one, in quotes if need be")
    return place.value


def flag(place: Place) -> bool:
    """Take a yes or no, which YAML 1.2 writes true and false."""
    if not isinstance(place.value, bool):
        raise place.refusal("neither true nor false", "write one of them, without quotes")
    return place.value


def count(place: Place) -> int:
    """Take a whole number from 1."""
    if not isinstance(place.value, int) or isinstance(place.value, bool) or place.value < 1:
        raise place.refusal("no whole number from 1", "write one, without quotes")
    return place.value


def closest(meant: str, known: Collection[str]) -> str:
    """Say what was probably meant, else all that is known."""
    from difflib import get_close_matches  # only a refusal needs it

    near = get_close_matches(meant, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
