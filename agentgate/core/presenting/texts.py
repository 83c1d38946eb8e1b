"""A text or a name as lines of a presentation: its exact form, how it reads, what to note, and what was cut."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

from agentgate.canonical import Json, canonical
from agentgate.core.presenting import exact
from agentgate.core.presenting.letters import notes

T = TypeVar("T")


def texted(head: str, text: str, margin: str) -> Iterator[str]:
    """Show a text as the value of something: on the line of its head, or below it line by line.

    Args:
        head: what it is the value of, as it is written.
        text: any.
        margin: the spaces before the head.
    """
    if "\n" not in text and exact.ends(text) is None:
        yield f"{margin}{head} = {exact.quoted(text)}"
    else:
        count = text.count("\n") + 1
        lines = "1 line" if count == 1 else f"{count:,} lines"
        yield f"{margin}{head} = text of {lines}, {len(text):,} characters{cut(text) if is_cut(text) else ''}:"
        yield from block(text, f"{margin}  ")
    yield from beside(text, f"{margin}  ")


def beside(text: str, margin: str, *, what: str = "") -> Iterator[str]:
    """Say how a text reads where it is not ASCII, and what an eye would miss in it."""
    if not text.isascii():
        if "\n" not in text and exact.ends(text) is None:
            yield f"{margin}{what}reads: {exact.read_as(text)}"
        else:
            yield f"{margin}{what}reads:"
            yield from block(text, margin, mark="~", write=exact.read_as)
    yield from (f"{margin}^ {what}{note}" for note in notes(text))


def block(text: str, margin: str, *, mark: str = "|", write: Callable[[str], str] = exact.unquoted) -> Iterator[str]:
    """Show a text line by line, each with a mark before it; what is left out is said on lines that have another."""
    lines = text.split("\n")
    for line in kept(lines, exact.MOST_LINES, exact.KEPT_LINES):
        if line is None:
            yield f"{margin}... {len(lines) - 2 * exact.KEPT_LINES:,} of {len(lines):,} lines left out ..."
            continue
        found = exact.ends(line)
        if found is None:
            yield f"{margin}{mark} {write(line)}" if line else f"{margin}{mark}"
            continue
        yield f"{margin}{mark} {write(found[0])}"
        yield f"{margin}... {len(line) - sum(map(len, found)):,} of {len(line):,} characters left out ..."
        yield f"{margin}+ {write(found[1])}"


def is_cut(text: str) -> bool:
    """Tell whether `block` leaves anything of a text out."""
    lines = text.split("\n")
    return len(lines) > exact.MOST_LINES or any(exact.ends(line) is not None for line in lines)


def cut(value: Json) -> str:
    """Say that a value is not shown whole, and bind what is not."""
    whole = canonical(value)
    return f", cut, sha256 {sha256(whole).hexdigest()} of its {len(whole):,} bytes"


def kept(items: Sequence[T], most: int, each: int) -> Iterator[T | None]:
    """Yield the items, or so many of each end where there are too many, with None for those between."""
    if len(items) <= most:
        yield from items
        return
    yield from items[:each]
    yield None
    yield from items[-each:]


def named(text: str) -> str:
    """Write a name on one line; a long one by both its ends."""
    found = exact.ends(text, longest=exact.LONGEST_NAME, kept=exact.LONGEST_NAME // 2)
    if found is None:
        return exact.name(text)
    left_out = len(text) - sum(map(len, found))
    return (
        f"{exact.quoted(found[0])} ... {left_out:,} of {len(text):,} characters left out{cut(text)}"
        f" ... {exact.quoted(found[1])}"
    )
