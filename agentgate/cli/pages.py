"""What people read of runs, actions and events: lines of text, with nothing of the record in them unescaped."""

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime

from agentgate.canonical import Json
from agentgate.core.presenting.letters import reshown
from agentgate.gate.inbox import Waiting
from agentgate.gate.names import DEFAULT_TENANT
from agentgate.gate.views import ActionSummary, ActionView, ApprovalView, AttemptView, EventView, RunSummary, Step
from agentgate.outcome import Late
from agentgate.policy.decision import Decision
from agentgate.printable import clipped, printable, printable_json

LONGEST = 400
_LABEL = 11
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_NEXT = {
    "READY": "its loop executes it, or: agentgate cancel {id} --by NAME",
    "HELD": "a person answers: agentgate approvals {asked}; or: agentgate cancel {id} --by NAME",
    "FAILED": "its loop tries again, or: agentgate cancel {id} --by NAME",
    "UNKNOWN": "find out whether it happened, then: agentgate reconcile {id} --applied|--not-applied --by NAME "
    "--evidence TEXT; where nobody will know: agentgate abandon {id} --by NAME",
}


def text(value: str) -> str:
    """Show a text of the record on one line, cut in the middle where it is long."""
    return printable(clipped(value, LONGEST))


def json(value: Json) -> str:
    """Show a JSON value of the record on one line, cut in the middle where it is long."""
    return clipped(printable_json(value), LONGEST)


def time(at: datetime) -> str:
    """Show a time to the millisecond, UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1_000:03d}Z"


def time_left(until: datetime, now: datetime) -> str:
    """Say how long it is until then, in its two largest units, rounded down."""
    left, told = int((until - now).total_seconds()), []
    if left <= 0:
        return "over"
    for unit, seconds in _UNITS:
        if left >= seconds:
            told.append(f"{left // seconds} {unit}")
            left %= seconds
    return " ".join(told[:2])


def _line(label: str, value: str) -> str:
    return f"{label:<{_LABEL}}{value}"


def _stands(state: str, reason: str | None) -> str:
    return state if reason is None else f"{state}: {text(reason)}"


def tool(namespace: str, name: str) -> str:
    """Name a tool, with its server where it has one."""
    return f"{text(name)} of {text(namespace)}" if namespace else text(name)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Lay rows out in columns as wide as their first thousand need, so that a long list still streams."""
    pending: list[tuple[str, ...]] = [head]
    widths: list[int] | None = None
    for row in rows:
        pending.append(row)
        if widths is None and len(pending) > _SETTLED:
            widths = _widths(pending)
        if widths is not None:
            yield from (_row(one, widths) for one in pending)
            pending = []
    yield from (_row(one, widths or _widths(pending)) for one in pending)


_SETTLED = 1_000


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def waiting_table(found: Iterable[Waiting]) -> Iterator[str]:
    """List what waits for a person, each with the command that goes on with it."""
    head = ("waits", "since", "until", "why", "tool", "run", "tenant", "then")
    rows = (
        (
            one.kind,
            time(one.since),
            "-" if one.until is None else time(one.until),
            text(one.reason) + (", answered late" if one.late else ""),
            "-" if one.tool is None else tool(one.namespace, one.tool),
            "-" if one.name is None else text(one.name),
            "every one" if one.tenant is None else text(one.tenant),
            _then(one),
        )
        for one in found
    )
    return table(head, rows)


def _then(one: Waiting) -> str:
    """Write the command that goes on with something, as a shell takes it."""
    if one.kind == "held":
        return f"agentgate approvals {one.approval}{_whose(one.tenant)}"
    if one.kind != "paused":
        return f"agentgate {_THEN[one.kind]} {one.action or one.run}{_whose(one.tenant)}"
    named = (("--tool", one.tool), ("--namespace", one.namespace or None), ("--tenant", one.tenant))
    options = "".join(f" {name} {_quoted(value)}" for name, value in named if value is not None)
    return f"agentgate resume{options or ' --all'}"


def _whose(tenant: str | None) -> str:
    """Write whose an action or a run is, where a command would not take it for that by itself."""
    return "" if tenant in (None, DEFAULT_TENANT) else f" --tenant {_quoted(str(tenant))}"


def _quoted(name: str) -> str:
    return printable(shlex.quote(name))


_THEN = {"unknown": "reconcile", "halted": "close"}


def run_table(runs: Iterable[RunSummary], *, tenants: bool) -> Iterator[str]:
    """List runs, with their tenants where they are of several."""
    head = ("run", "state", "last event", "actions", "done", "refused", "held", "unknown", "id")
    rows = (
        (
            text(run.name),
            _stands(run.state, run.reason),
            time(run.last_at),
            str(run.counters.proposed),
            str(run.counters.succeeded),
            str(run.counters.refused),
            str(run.counters.pending),
            str(run.counters.unknown),
            run.id,
        )
        + ((text(run.tenant),) if tenants else ())
        for run in runs
    )
    return table((*head, "tenant") if tenants else head, rows)


def run_page(run: RunSummary, actions: Iterable[ActionSummary]) -> Iterator[str]:
    """Show a run and list its actions."""
    counted = ", ".join(f"{name} {value}" for name, value in run_counters(run) if value)
    yield _line("run", f"{text(run.name)} {run.id}")
    yield _line("state", _stands(run.state, run.reason))
    yield _line("for", f"{text(run.principal)}, tenant {text(run.tenant)}")
    if run.goal is not None:
        yield _line("goal", text(run.goal))
    yield _line("opened", time(run.opened_at))
    yield _line("last event", f"{time(run.last_at)}, {run.events} in all")
    if run.limits:
        yield _line("limits", ", ".join(f"{text(name)} {value}" for name, value in sorted(run.limits.items())))
    yield _line("counters", counted or "none")
    yield ""
    rows = (
        (action.id, tool(action.namespace, action.tool), _key(action), _stands(action.state, action.reason))
        for action in actions
    )
    yield from table(("action", "tool", "key", "state"), rows)


def run_counters(run: RunSummary) -> tuple[tuple[str, int], ...]:
    """Return a run's counters by name."""
    return tuple((name, getattr(run.counters, name)) for name in run.counters.__slots__)


def _key(action: ActionSummary) -> str:
    if action.key.source == "own":
        return "-"
    return text(action.key.text) + (f", revision {action.revision}" if action.revision > 1 else "")


def event_line(event: EventView, *, of_run: bool) -> str:
    """Show an event on one line: its place, time, type, what tells the story, and of a run's events whose it is."""
    facts = (*event.facts(), *((("action", event.action),) if of_run and event.action is not None else ()))
    told = " ".join(f"{name}={_word(value)}" for name, value in facts)
    return f"{event.n:>5}  {time(event.at)}  {event.type:<14} {told}".rstrip()


def _word(value: str) -> str:
    shown = text(value)
    return f'"{shown}"' if " " in shown else shown


def action_page(action: ActionView) -> Iterator[str]:
    """Show everything that is recorded of an action."""
    summary = action.summary
    yield _line("action", summary.id)
    yield _line("tool", tool(summary.namespace, summary.tool) + ("" if action.risk is None else f" ({action.risk})"))
    until = "" if action.expires_at is None else f", until {time(action.expires_at)}"
    yield _line("state", _stands(summary.state, summary.reason) + until)
    yield _line("run", f"{text(action.run.name)} {action.run.id}, {action.run.state}, tenant {text(action.run.tenant)}")
    yield _line("for", text(action.principal))
    yield _line("key", _key(summary))
    yield _line("digest", action.digest)
    for kind, value in action.proposed.items():
        yield _line(kind, json(value))
    if action.sealed:
        yield _line("sealed", f"{', '.join(map(text, action.sealed))}: give its key as --sealing-key to open them")
    if action.waited:
        yield _line("waited", ", ".join(map(text, action.waited)))
    if action.observation is not None:
        yield _line("outcome", json(action.observation.to_json()))
    for attempt in action.attempts:
        yield _line("attempt", _attempt(attempt))
        if attempt.late is not None:
            yield _line("", _late(attempt.late))
    for approval in action.approvals:
        yield from _approval(approval)
    yield "history"
    for step in action.steps:
        yield from _step(step)
    following = _NEXT.get(summary.state)
    if following is not None:
        whose = _whose(action.run.tenant)
        asked = next((one.id for one in reversed(action.approvals) if one.state == "pending"), "ID")
        yield _line("next", following.format(id=summary.id + whose, asked=asked + whose))


def _attempt(attempt: AttemptView) -> str:
    doubt = ", it may have happened" if attempt.unresolved else ""
    ended = (
        f"lease until {time(attempt.lease_until)}" if attempt.ended_at is None else f"ended {time(attempt.ended_at)}"
    )
    started = f"started {time(attempt.started_at)}"
    return f"{attempt.number}: {attempt.state}{doubt}; fence {attempt.fence}, {started}, {ended}"


def _late(late: Late) -> str:
    said = "that it happened" if late.status == "ok" else f"an error ({text(late.code or 'none')})"
    seen = "" if late.observation is None else f": {json(late.observation.to_json())}"
    return f"late, {time(late.at)}, it said {said}{seen}"


def _approval(approval: ApprovalView) -> Iterator[str]:
    yield _line(approval.kind, f"{approval.id} {approval.state}, until {time(approval.expires_at)}")
    yield _line("", f"digest {approval.digest}")
    # The text was made safe when it was made; but a row can be rewritten by others.
    for shown in ["(erased)"] if approval.shown is None else approval.shown.split("\n"):
        yield _line("", f"| {reshown(shown)}")


def _step(step: Step) -> Iterator[str]:
    yield event_line(step.event, of_run=False)
    margin = " " * 9
    if step.decision is not None:
        yield from (f"{margin}{line}" for line in _decision(step.decision))
    for name, said in sorted(step.texts.items()):
        yield f"{margin}{text(name)}: {text(said)}"
    if step.evidence is not None:
        yield f"{margin}evidence: {json(step.evidence)}"


def _decision(decision: Decision) -> Iterator[str]:
    for reason in decision.reasons:
        yield f"because {text(reason.code)}" + (f": {text(reason.text)}" if reason.text else "")
    if decision.requirement is not None:
        yield f"requires {json(decision.requirement.to_json())}"
    if decision.obligations:
        yield f"obliges to {', '.join(map(text, decision.obligations))}"
    for reserve in decision.reserves:
        yield f"reserves {reserve.amount} of {text(reserve.account)}"
