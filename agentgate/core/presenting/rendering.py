"""The presentation: what people are shown before they decide, and what their answers are bound to.

It is text, UTF-8, made once from values and stored as it is; every surface prints it as it is. The gate's own lines
begin at column 0; whatever somebody else wrote stands behind a label on one line, in quotes where it is no plain word,
or on lines that begin with spaces and a mark. So no value makes a line of the gate, least of all the last.
"""

from collections.abc import Iterator
from typing import Final

from agentgate.approval import Requirement
from agentgate.clock import to_datetime
from agentgate.core.presenting.changes import changes
from agentgate.core.presenting.letters import is_plain
from agentgate.core.presenting.shown import Doubt, Masked, Path, Previous, Shown
from agentgate.core.presenting.texts import beside, block, cut, is_cut, named
from agentgate.core.presenting.values import compact, tree
from agentgate.tools.sensitive import MARK

GATE: Final = "agentgate: "
"""How the last line begins, and no other one."""

_WIDTH = 11
_NARROW = 60
_NOT_ASKED_FOR = "not declared by the tool"
_FILLED_IN = "filled in by default"
_CANNOT_BE_SHOWN = {
    "gone": "because its arguments are gone",
    "sealed": "because no key here opens it",
    "damaged": "because it is not what was recorded",
}
_SPANS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))


def present(shown: Shown) -> bytes:
    """Write the text that an approval is bound to.

    Args:
        shown: what it is made from.

    Returns:
        UTF-8, lines separated by newlines; each character of it is graphic, a space or a newline.
    """
    return "\n".join(_lines(shown)).encode()


def _lines(shown: Shown) -> Iterator[str]:
    yield from _asked(shown)
    yield from _said("tool", shown.tool)
    yield from _said("server", shown.namespace) if shown.namespace else ()
    yield from _said("risk", shown.risk)
    if shown.description:
        yield from _told("described", "by its server, in words that nobody has checked", shown.description)
    else:
        yield f"{'described':{_WIDTH}}not at all"
    yield from _said("for", shown.principal)
    yield from () if shown.edited_by is None else _said("edited by", shown.edited_by)
    yield from _said("run", shown.run)
    yield from _said("tenant", shown.tenant)
    yield from _said("key", shown.key.text)
    yield from _said("  from", shown.key.source)
    yield from _said("  within", shown.key.scope) if shown.key.scope else ()
    yield f"{'revision':{_WIDTH}}{shown.revision}"
    yield from _told("because", "the policy says", shown.reasons) if shown.reasons else ()
    yield from _approvers(shown.requirement)
    silence = "no answer is a no" if shown.asks_about is None else "no answer leaves it unknown"
    yield f"{'until':{_WIDTH}}{_time(shown.expires_at_us)}; {silence}"
    if shown.asks_about is None:
        yield f"{'stands for':{_WIDTH}}{_span(shown.grant_us)} after the last vote; used once"
    yield from _arguments(shown)
    yield from _doubts(shown.doubts)
    if (
        shown.asks_about is None
    ):  # whoever says what became of an attempt compares it with the world, not with another call
        yield from _since(shown.previous, shown.arguments)
    yield from _answers(shown.asks_about)
    yield _last(shown)


def _asked(shown: Shown) -> Iterator[str]:
    if shown.asks_about is None:
        again = ", once more, although an earlier attempt may have happened" if shown.doubts else ""
        yield f"{'asked':{_WIDTH}}whether this may run{again}"
    else:
        yield f"{'asked':{_WIDTH}}what became of attempt {shown.asks_about}, which nobody knows"


def _said(label: str, text: str) -> Iterator[str]:
    """Show what somebody named, after the gate's label."""
    yield f"{label:{_WIDTH}}{named(text)}"
    yield from beside(text, "  ")


def _told(label: str, intro: str, text: str) -> Iterator[str]:
    """Show a text of several sentences line by line below the gate's label."""
    whole = "" if not is_cut(text) else f", {len(text):,} characters{cut(text)}"
    yield f"{label:{_WIDTH}}{intro}{whole}:"
    yield from block(text, "  ")
    yield from beside(text, "  ")


def _approvers(requirement: Requirement) -> Iterator[str]:
    roles = " or ".join(map(named, requirement.roles)) or "anybody allowed to vote"
    proposer = ", the proposer too" if requirement.proposer else ", not the proposer"
    signed = ", signed" if requirement.signed else ""
    yield f"{'approvers':{_WIDTH}}{requirement.quorum} of {roles}{proposer}{signed}"
    yield from (f"{'obliged to':{_WIDTH}}{named(duty)}" for duty in requirement.obligations)
    for text in (*requirement.roles, *requirement.obligations):
        yield from beside(text, "  ") if not is_plain(text) else ()


def _arguments(shown: Shown) -> Iterator[str]:
    masked = shown.arguments
    yield "arguments"
    seen = tree(hidden=masked.hidden, remarks=_remarks(shown))
    if type(masked.value) is not dict or () in masked.hidden:
        yield from seen.value("(the one argument)", masked.value, "  ")
    elif masked.value:
        yield from seen.members(masked.value, "  ")
        yield from (f"  ^ {remark}" for remark in seen.remarks.get((), ()))
    elif not masked.unnamed:
        yield "  (none)"
    if masked.unnamed:  # they may be sensitive ones, misspelt: their names are hidden too
        yield f"  {MARK}: {masked.unnamed:,} more, {_NOT_ASKED_FOR}"


def _remarks(shown: Shown) -> dict[Path, tuple[str, ...]]:
    """Say of each place what is not as it was sent, and which arguments the tool does not know."""
    remarks: dict[Path, tuple[str, ...]] = {(name,): (_NOT_ASKED_FOR,) for name in shown.undeclared}
    for change in changes(shown.supplied.value, shown.arguments.value, but=shown.supplied.hidden):
        if change.kind == "added":
            told = _FILLED_IN
        elif change.kind == "changed":
            was = compact(change.was, _NARROW) or f"another value{cut(change.was)}"
            told = f"changed: it was sent as {was}"
        else:
            told = f"{named(str(change.path[-1]))} was sent, and is not among them"
        path = change.path[:-1] if change.kind == "removed" else change.path
        remarks[path] = (*remarks.get(path, ()), told)
    return remarks


def _doubts(doubts: tuple[Doubt, ...]) -> Iterator[str]:
    if doubts:
        yield "earlier attempts that may have happened"
    for doubt in doubts:
        yield f"  attempt {doubt.attempt} began {_time(doubt.started_at_us)}, and its outcome is unknown"
        yield f"    because {named(doubt.code)}"
        yield from beside(doubt.code, "    ")
        for late in doubt.late:
            told = "that it happened" if late.ok else f"an error, {named(late.code or 'unknown')}"
            yield f"    late, {_time(late.at_us)}, it said {told}"
            yield from beside(late.code or "", "    ")


def _since(previous: Previous | None, masked: Masked) -> Iterator[str]:
    if previous is None:
        yield "no approved call of this tool has run for this principal before"
    elif previous.arguments is None:
        why = _CANNOT_BE_SHOWN[previous.why or "damaged"]
        yield f"the last approved call of this tool cannot be shown, {why}: action {previous.action}"
    else:
        yield f"since the last approved call of this tool, action {previous.action}"
        yield from _differences(previous.arguments, masked)


def _differences(was: Masked, now: Masked) -> Iterator[str]:
    hidden = was.hidden | now.hidden
    before, after = tree(hidden=was.hidden), tree(hidden=now.hidden)
    found = list(changes(was.value, now.value, but=hidden))
    for change in found:
        yield f"  {change.kind} {' / '.join(map(_part, change.path)) or '(the one argument)'}"
        if change.kind != "added":
            yield from before.value("was", change.was, "    ", change.path)
        if change.kind == "changed":  # what was added stands whole among the arguments
            yield from after.value("now", change.now, "    ", change.path)
        for part in change.path:
            yield from beside(part, "    ", what="name: ") if type(part) is str and not is_plain(part) else ()
    if not found:
        yield "  nothing else differs" if hidden or was.unnamed or now.unnamed else "  nothing differs"
    if hidden or was.unnamed or now.unnamed:
        yield f"  {MARK}: not compared"


def _part(part: str | int) -> str:
    return f"[{part}]" if type(part) is int else named(str(part))


def _answers(asks_about: int | None) -> Iterator[str]:
    if asks_about is None:
        return
    yield "answers"
    yield "  again        it runs once more; if it has happened already, it happens twice"
    yield "  applied      it has happened: that is recorded, and it never runs again"
    yield "  not_applied  it has not happened: that is recorded, and it may run again, when the policy allows it"


def _last(shown: Shown) -> str:
    if shown.asks_about is None:
        told = "approving runs exactly this, once"
    else:
        told = f"an answer is about attempt {shown.asks_about} of exactly this, and nothing else"
    return f"{GATE}{told}. action {shown.action.hex()}"


def _time(at_us: int) -> str:
    at = to_datetime(at_us)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond:06d} UTC"


def _span(us: int) -> str:
    """Write a span of time in its largest units, exactly."""
    told = []
    for unit, length in _SPANS:
        count, us = divmod(us, length)
        told += [f"{count} {unit}{'' if count == 1 else 's'}"] if count else []
    return ", ".join([*told, *([f"{us} microseconds"] if us or not told else [])])
