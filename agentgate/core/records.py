"""The rows of the state tables as values: what the events of a run add up to.

Every field is derived from events but those called *volatile*: a lease's renewed end. Ids are 36-character
text, digests 32 raw bytes, times microseconds UTC, ``…_n`` the position of an event in the run's chain.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Literal

from agentgate.action import Key
from agentgate.states import RunState, State

AttemptState = Literal["open", "succeeded", "failed", "in_doubt"]
ApprovalState = Literal["pending", "granted", "used", "rejected", "expired", "revoked", "void"]

# What may have happened counts against a run's ``actions`` (design §8).
TAKEN = frozenset({State.EXECUTING, State.UNKNOWN, State.SUCCEEDED, State.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a run adds up to; policies see these by name.

    Args:
        proposed: proposals recorded.
        refused: actions that came to REFUSED.
        pending: actions held now.
        executing: actions executing now.
        unknown: actions whose outcome is unknown now.
        taken: actions that happened or may have happened.
        succeeded: attempts that succeeded.
        failed: attempts known not to have happened.
        failures: failed attempts since the last success.
        rejected: questions that a person answered with no.
        retried: failed actions that were made ready again.
        active_us: microseconds between the starts and the ends of its attempts.
        tokens: charged by the loop.
        money: charged by the loop, in the operator's smallest unit.
    """

    proposed: int = 0
    refused: int = 0
    pending: int = 0
    executing: int = 0
    unknown: int = 0
    taken: int = 0
    succeeded: int = 0
    failed: int = 0
    failures: int = 0
    rejected: int = 0
    retried: int = 0
    active_us: int = 0
    tokens: int = 0
    money: int = 0


def counted(counters: Counters) -> dict[str, int]:
    """Return the counters by name."""
    return {name: getattr(counters, name) for name in _COUNTERS}


_COUNTERS = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run's row: its head, its counters, and what its first event fixed.

    ``budgeted`` is no column: whether anything of its tenant was bounded when the row was read.
    """

    id: str
    tenant: str
    name: str
    principal: str
    limits: Mapping[str, int]
    opened_at_us: int
    state: RunState
    reason: str | None
    n: int
    head: bytes
    at_us: int
    counters: Counters
    budgeted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRecord:
    """An action's row.

    ``reserved`` is what its latest start from READY took of which account; it counts while the state is in `TAKEN`.
    ``edits`` is the action whose arguments ``edited_by`` has changed.
    """

    id: str
    run: str
    tenant: str
    principal: str
    namespace: str
    tool: str
    key: Key
    revision: int
    spec: bytes | None
    digest: bytes
    request: bytes | None
    resource: bytes | None
    proposed_n: int
    proposed_at_us: int
    state: State
    reason: str | None
    state_n: int
    last_n: int
    attempts: int = 0
    unresolved: int = 0
    fence: int | None = None
    approval: str | None = None
    requirement: bytes | None = None
    asked: int = 0
    first_started_us: int | None = None
    expires_at_us: int | None = None
    result_n: int | None = None
    outcome: bytes | None = None
    waited: tuple[str, ...] = ()
    confirmed: Literal["yes", "no"] | None = None
    reserved: tuple[tuple[str, int], ...] = ()
    dedupe_until_us: int | None = None
    edits: str | None = None
    edited_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One try at an effect. ``lease_until_us`` is volatile: the heartbeat moves it without an event."""

    fence: int
    run: str
    action: str
    number: int
    state: AttemptState
    unresolved: bool
    holder: str
    started_at_us: int
    lease_until_us: int
    deadline_us: int
    approval: str | None
    started_n: int
    ended_n: int | None
    late_n: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """A question to people and what became of it.

    ``demands`` is its requirement, whole, as canonical JSON; ``grant_us`` how long an answer stands before it is used.
    """

    id: str
    run: str
    action: str
    kind: Literal["approval", "question"]
    attempt: int | None
    requirement: bytes
    presentation: bytes
    digest: bytes
    state: ApprovalState
    asked_n: int
    state_n: int
    asked_at_us: int
    expires_at_us: int
    until_us: int | None
    demands: bytes
    grant_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRecord:
    """One person's answer; ``counted`` is false once it was taken back.

    ``roles`` are those that its keyring gave the key, or, unsigned, that the surface vouched for.
    """

    approval: str
    n: int
    run: str
    digest: bytes
    verdict: str
    approver: str
    key: bytes | None
    nonce: bytes
    signature: bytes | None
    counted: bool
    at_us: int
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFile:
    """An action with the attempts, approvals and votes that a command needs to have before it."""

    action: ActionRecord
    attempts: Mapping[int, AttemptRecord] = field(default_factory=lambda: MappingProxyType({}))
    approvals: Mapping[str, ApprovalRecord] = field(default_factory=lambda: MappingProxyType({}))
    votes: Mapping[int, VoteRecord] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def current(self) -> AttemptRecord | None:
        """The latest attempt, where it was read."""
        return self.attempts.get(self.action.attempts)

    @property
    def question(self) -> ApprovalRecord | None:
        """The approval or question that hangs on the action now."""
        return self.approvals.get(self.action.approval or "")
