"""The words that stories of a run are told in: events, and what they are said to add up to."""

from typing import Any

from cases.bodies import ALLOWED, ASKED, DECIDED, HELD, REQUIREMENT
from cases.case import ACTION, AT_US, LEDGER, RUN, Case, a_hash, accepted, an_id
from cases.chains import said
from independent import chained

Told = list[dict[str, Any]]

OTHER = an_id(0xC2)
FIRST, SECOND = an_id(0xD1), an_id(0xD2)
UNTIL = AT_US + 3_600_000_000
OPENED = said("run_opened")


def does(kind: str, *, action: str = ACTION, later: int = 0, **body: Any) -> dict[str, Any]:
    """Say an event about an action."""
    return said(kind, later=later, action=action, **body)


def allowed(action: str = ACTION) -> dict[str, Any]:
    """Say that a proposal may run."""
    return _bare("proposed", action, {**ALLOWED, "expires_at_us": UNTIL})


def _bare(kind: str, action: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "action": action, "at_us": AT_US, "body": {"v": 1, **body}}


def asked(id: str) -> dict[str, Any]:
    """Return a question's fields."""
    return {**ASKED, "id": id, "digest": a_hash(id)}


def questioned(id: str, **body: Any) -> dict[str, Any]:
    """Say that an operator is asked about an unknown outcome, or what a policy wants before another attempt."""
    requirement = {**REQUIREMENT, "kind": "question" if "attempt" in body else "approval"}
    return does("question_asked", approval=asked(id), requirement=requirement, **body)


def held(id: str = FIRST) -> dict[str, Any]:
    """Say that a proposal waits for people."""
    return _bare("proposed", ACTION, {**HELD, "approval": asked(id)})


def started(attempt: int = 1, **body: Any) -> dict[str, Any]:
    """Say that an attempt began; its fence is ten times its number."""
    asked_again = DECIDED if attempt > 1 or body else {}  # else in its proposal's transaction
    return does("started", attempt=attempt, fence=10 * attempt, **{**asked_again, **body})


def ended(kind: str, attempt: int = 1, **body: Any) -> dict[str, Any]:
    """Say how an attempt ended."""
    return does(kind, **{"attempt": attempt, "fence": 10 * attempt, **body})


def approved(id: str = FIRST) -> dict[str, Any]:
    """Say that enough people agreed."""
    return does("approved", approval=id, until_us=UNTIL + 5)


def voted(id: str, verdict: str, name: str) -> dict[str, Any]:
    """Say what a person answered."""
    return does("voted", approval=id, shown=a_hash(id), vote=a_hash(name), verdict=verdict)


RETRIED = does("retried", until_us=UNTIL)
NOT_APPLIED = does("reconciled", verdict="not_applied", attempts=[1], until_us=UNTIL)
PAUSED, BUSY = does("waited", reason="paused"), does("waited", reason="busy")
UNKNOWN_NOW = [OPENED, allowed(), started(), ended("in_doubt")]
UNDER_GRANT = [OPENED, held(), approved(), started(approval=FIRST)]


def folding(run: str, events: Told) -> dict[str, Any]:
    """Chain events and ask what they add up to."""
    return {"ledger": LEDGER, "run": run, "links": chained(LEDGER, run, events)}


def told(name: str, events: Told, *, action: dict[str, Any] | None = None, **end: Any) -> Case:
    """Tell a story of one action at most, and what it ends in."""
    actions = {} if action is None else {ACTION: row(**action)}
    return adds_up(name, RUN, events, actions=actions, **end)


def adds_up(name: str, run_id: str, events: Told, **end: Any) -> Case:
    """Say what a chain adds up to; attempts are given as (state, unresolved) by fence."""
    tried = {fence: {"state": state, "unresolved": open_} for fence, (state, open_) in end.get("attempts", {}).items()}
    out = {
        "run": {**end.get("run", {"state": "OPEN"}), "counters": end.get("counters", {})},
        "actions": end.get("actions", {}),
        "attempts": tried,
        "approvals": end.get("approvals", {}),
        "votes": end.get("votes", {}),
    }
    return accepted(name, "fold", folding(run_id, events), **out)


def row(**stands: Any) -> dict[str, Any]:
    """Say where an action stands, with what is nothing written out."""
    return {"attempts": 0, "unresolved": 0, "waited": [], **stands}
