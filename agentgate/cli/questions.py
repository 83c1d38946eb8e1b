"""What people read of a question, and what ``--json`` writes of it; the text they decide by stands there as made."""

from collections.abc import Iterable, Iterator

from agentgate.canonical import Json
from agentgate.cli import pages
from agentgate.cli.documents import at_us
from agentgate.clock import Clock, to_datetime
from agentgate.core.presenting.letters import reshown
from agentgate.gate.questions import Question, VoteView

_LABEL = 11
UNREADABLE = {"": "erased", "[sealed]": "sealed"}
"""What stands in the place of a text that nobody can read here, and why."""


def table(questions: Iterable[Question], clock: Clock) -> Iterator[str]:
    """List questions, each with the time that is left of it, and how many have said what."""
    head = ("left", "asks", "votes", "tool", "for", "run", "tenant", "stale", "approval")
    rows = (
        (
            left(question, clock),
            question.kind,
            quorum(question),
            pages.tool(question.namespace, question.tool),
            pages.text(question.principal),
            pages.text(question.run_name),
            pages.text(question.tenant),
            ", ".join(map(pages.text, question.stale)) or "-",
            question.id,
        )
        for question in questions
    )
    return pages.table(head, rows)


def left(question: Question, clock: Clock) -> str:
    """Say how much time is left to answer a question, or to use what was granted."""
    end = question.until if question.state == "granted" and question.until is not None else question.expires_at
    return pages.time_left(end, to_datetime(clock.now_us()))


def quorum(question: Question) -> str:
    """Say how many of how many have said yes; to an operator's question, what they have said."""
    said: dict[str, set[str]] = {}
    for vote in question.votes:
        if vote.counted:
            said.setdefault(vote.verdict, set()).add(vote.approver)
    of = question.requirement.quorum
    if question.kind == "approval":
        return f"{len(said.get('approve', ()))} of {of}"
    return (", ".join(f"{verdict} {len(who)}" for verdict, who in sorted(said.items())) or "0") + f" of {of}"


def page(question: Question, clock: Clock) -> Iterator[str]:
    """Show a question: how it stands, who said what, and what is asked, as it was made and from the left edge on."""
    yield _line("approval", question.id)
    yield _line("state", f"{question.state}{_until(question, clock)}")
    yield _line("tenant", pages.text(question.tenant))
    yield _line("votes", quorum(question))
    yield from (_line("", _vote(vote)) for vote in question.votes)
    if question.stale:
        yield _line("stale", ", ".join(map(pages.text, question.stale)) + ": an answer may carry nothing")
    yield _line("digest", question.digest)
    yield ""
    if question.shown in UNREADABLE:
        yield f"(what was shown is {UNREADABLE[question.shown]})"
        return
    # It was made safe when it was made; but a row can be rewritten by others.
    yield from map(reshown, question.shown.split("\n"))


def _until(question: Question, clock: Clock) -> str:
    if question.state not in {"pending", "granted"}:
        return ""
    end = question.until if question.state == "granted" and question.until is not None else question.expires_at
    return f", until {pages.time(end)} (left: {left(question, clock)})"


def _line(label: str, value: str) -> str:
    return f"{label:<{_LABEL}}{value}"


def _vote(vote: VoteView) -> str:
    roles = f" as {', '.join(map(pages.text, vote.roles))}" if vote.roles else ""
    signed = "not signed" if vote.key is None else f"signed by key {vote.key}"
    back = "" if vote.counted else "; taken back"
    return f"{pages.time(vote.at)}  {vote.verdict}  {pages.text(vote.approver)}{roles}, {signed}{back}"


def document(question: Question) -> dict[str, Json]:
    """Write a question."""
    return {
        "id": question.id,
        "digest": question.digest,
        "kind": question.kind,
        "state": question.state,
        "requirement": question.requirement.to_json(),
        "shown": question.shown,
        "action": question.action,
        "run": question.run,
        "name": question.run_name,
        "tenant": question.tenant,
        "principal": question.principal,
        "namespace": question.namespace,
        "tool": question.tool,
        "asked_at_us": at_us(question.asked_at),
        "expires_at_us": at_us(question.expires_at),
        "until_us": None if question.until is None else at_us(question.until),
        "votes": [
            {
                "approver": vote.approver,
                "verdict": vote.verdict,
                "roles": list(vote.roles),
                "key": vote.key,
                "counted": vote.counted,
                "at_us": at_us(vote.at),
            }
            for vote in question.votes
        ],
        "stale": list(question.stale),
    }
