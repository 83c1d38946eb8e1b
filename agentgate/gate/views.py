"""What a person or a script is shown of a ledger: runs, actions and events as values, made by `gate.reading`.

Times are aware UTC, digests lower-case hex. Texts are as recorded: whoever prints them makes them printable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agentgate.action import Key
from agentgate.bodies import BODIES
from agentgate.canonical import Json
from agentgate.core.records import ApprovalState, AttemptState, Counters
from agentgate.observation import Observation
from agentgate.outcome import Late
from agentgate.policy.decision import Decision

_DIGEST = re.compile(r"[0-9a-f]{32,128}")
# Of use to a reader of the whole event, not to one who follows the story.
_DULL = frozenset({"v", "holder", "raw_bytes", "proposed", "result_bytes", "worker_known_dead", "format"})
_DULL_IN = {
    "proposed": frozenset({"principal", "approval"}),
    "replayed": frozenset({"principal"}),
    "in_doubt": frozenset({"by"}),  # the gate that took over; where people speak, ``by`` is who
}
_FIRST_REVISION = ("revision", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run as it stands.

    Args:
        id: the run's id.
        tenant: whose it is; ``$ledger`` for the ledger's own chain.
        name: the caller's name for it.
        principal: on whose behalf.
        goal: what it is for, in words; None where none was given or it was erased.
        state: OPEN, HALTED or CLOSED.
        reason: why it is not open.
        opened_at: when it was opened.
        last_at: when its last event was written.
        events: how many events its chain has.
        limits: what it may spend, by name.
        counters: what it adds up to.
    """

    id: str
    tenant: str
    name: str
    principal: str
    goal: str | None
    state: str
    reason: str | None
    opened_at: datetime
    last_at: datetime
    events: int
    limits: Mapping[str, int]
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """One link of a run's chain.

    Args:
        run: the run's id.
        n: its place in the chain, from 0.
        type: what happened.
        at: when.
        action: the id of the action it is about, where there is one.
        hash: of the event's bytes.
        document: the event as stored and hashed, body and all.
    """

    run: str
    n: int
    type: str
    at: datetime
    action: str | None
    hash: str
    document: Mapping[str, Json]

    @property
    def body(self) -> Mapping[str, Json]:
        """The fields of this type of event."""
        body = self.document["body"]
        assert type(body) is dict  # an event that was decoded has one
        return body

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return what tells the story, by name, in the order of the body's shape: no digests, no times."""
        dull = _DULL | _DULL_IN.get(self.type, frozenset())
        named = (name.removesuffix("?") for name in BODIES[self.type])
        told = ((name, _told(name, self.body[name])) for name in named if name in self.body and name not in dull)
        return tuple((name, text) for name, text in told if text and (name, text) != _FIRST_REVISION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An event that moved an action, with what was said beside it.

    Args:
        event: the event.
        decision: what the policy answered, where it was asked.
        texts: what people wrote (``note``), by field; the decision has its reasons' texts already.
        evidence: what shows it; None where there is none.
    """

    event: EventView
    decision: Decision | None
    texts: Mapping[str, str]
    evidence: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One try at the effect.

    Args:
        number: from 1.
        fence: the ledger-wide number that the downstream may refuse by.
        state: open, succeeded, failed or in_doubt.
        unresolved: whether it may have happened and nobody knows.
        holder: who had the lease.
        started_at: when it started.
        ended_at: when its end was recorded; None while it is open.
        lease_until: until when its lease lasts, where it is open.
        late: what it said after it had lost the action; None where it said nothing.
    """

    number: int
    fence: int
    state: AttemptState
    unresolved: bool
    holder: str
    started_at: datetime
    ended_at: datetime | None
    lease_until: datetime
    late: Late | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """A question to people and what became of it.

    Args:
        id: the approval's id.
        kind: ``approval`` of an action, or a ``question`` about an unknown outcome.
        state: pending, granted, used, rejected, expired, revoked or void.
        digest: what a vote must name.
        asked_at: when it was asked.
        expires_at: until when it can be answered.
        shown: the text that its digest binds; None where it was erased.
    """

    id: str
    kind: str
    state: ApprovalState
    digest: str
    asked_at: datetime
    expires_at: datetime
    shown: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSummary:
    """An action in a list."""

    id: str
    run: str
    namespace: str
    tool: str
    key: Key
    revision: int
    state: str
    reason: str | None
    attempts: int
    proposed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionView:
    """An action with everything that is recorded of it.

    Args:
        summary: what it is and where it stands.
        run: its run.
        principal: on whose behalf it was proposed.
        digest: the action digest.
        risk: what its spec declares; None where its tool is unknown.
        expires_at: until when it may be started, where it is READY.
        waited: why it could not start, while it stands where it stands.
        unresolved: how many attempts may have happened.
        proposed: what it was proposed with, by payload kind: ``arguments``, ``supplied``, ``raw``, ``provenance``,
            ``facts``; what was erased, never kept, or cannot be opened is not in it. Sensitive values are masked.
        sealed: the kinds of payloads, of this and the other events, that are sealed by a key that is not there.
        observation: what came of it; None where nothing has.
        attempts: in order.
        approvals: in the order they were asked.
        steps: the events that brought it where it stands, in order.
    """

    summary: ActionSummary
    run: RunSummary
    principal: str
    digest: str
    risk: str | None
    expires_at: datetime | None
    waited: tuple[str, ...]
    unresolved: int
    proposed: Mapping[str, Json]
    sealed: tuple[str, ...]
    observation: Observation | None
    attempts: tuple[AttemptView, ...]
    approvals: tuple[ApprovalView, ...]
    steps: tuple[Step, ...]


def _told(name: str, value: Json) -> str:
    """Put a field of a body into a few words; nothing where it is a digest or a time."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return "" if name.endswith("_us") else str(value)
    if isinstance(value, str):
        return "" if _DIGEST.fullmatch(value) else value
    return _told_of_many(value)


def _told_of_many(value: Json) -> str:
    match value:
        case list():
            return ",".join(filter(None, (_told("", item) for item in value if not isinstance(item, list))))
        case {"outcome": str() as outcome, "rule": str() as rule}:
            return f"{outcome} by {rule}"
        case {"source": str() as source, "text": str() as text}:
            return "" if source == "own" else text  # the action's own id says nothing
        case {"id": str() as id_, "digest": str()}:
            return id_
        case {"account": str() as account, "amount": int() as amount}:
            return f"{account} {amount}"
        case {"kind": "all" | "tenant" | "tool" | "account" as kind, **scope}:
            return " ".join([kind, *(part for part in scope.values() if isinstance(part, str))])
        case dict() if all(type(number) is int for number in value.values()):  # limits, by what they bound
            return ",".join(f"{name} {number}" for name, number in value.items())
    return ""
