"""What a gate answers: one of six outcomes, closed, to be matched. What the rules say is one of these, never an error.

Every outcome names its action, the action's digest and a stable ``reason`` code; digests are 64 hex digits. Each has an
``observation``: what the loop, and so the model, is told of it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from agentgate.approval import Requirement
from agentgate.observation import Error, Observation

Source = Literal["executed", "replayed", "reconciled"]
Confirmation = Literal["yes", "no", "unchecked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question to people, as a gate hands it out.

    Args:
        id: the approval's id.
        digest: what a vote must name: the digest over exactly what is shown.
        requirement: who must agree.
        shown: the text made from the action's canonical bytes.
        expires_at: until when it can be answered.
    """

    id: str
    digest: str
    requirement: Requirement
    shown: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """It happened.

    Args:
        observation: what came of it.
        source: ``executed`` now, ``replayed`` from the record, or ``reconciled`` by somebody who looked.
        confirmed: what the tool's own check after the write said.
    """

    action: str
    digest: str
    reason: str = "succeeded"
    observation: Observation
    source: Source
    confirmed: Confirmation = "unchecked"

    __match_args__ = ("observation",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It is known not to have happened; ``retryable`` tells whether ``execute(retry=True)`` can help.

    Args:
        error: why, in words that a model can act on.
        retryable: whether trying again can help.
        retry_at: before when the tool asked to be left alone.
        notes: as of an observation: ``no_progress`` where it has failed so too often, ``edited`` where a person had
            changed its arguments.
    """

    action: str
    digest: str
    reason: str
    error: Error
    retryable: bool
    notes: tuple[str, ...] = ()
    retry_at: datetime | None = None

    __match_args__ = ("error",)

    @property
    def observation(self) -> Observation:
        """What the loop is told: why it did not happen."""
        return Observation(status="error", error=self.error, notes=self.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A person must decide; come back with the same key, in any process."""

    action: str
    digest: str
    reason: str = "approval_required"
    approval: Approval

    __match_args__ = ("approval",)

    @property
    def observation(self) -> Observation:
        """What a loop that cannot wait is told: nothing was done, and whom it waits for."""
        error = Error(
            code="approval_required",
            message="nothing was done yet: a person must decide first",
            details={"approval": self.approval.id, "expires_at": self.approval.expires_at.isoformat()},
            suggested_action="do not call it again: it is taken up once it is answered",
        )
        return Observation(status="error", error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It will not run, or, where ``retryable``, not now: the action then stays as it was.

    Args:
        error: the reason in words that a model can act on.
        retryable: it waits for something to pass: a pause, a lock, a limit that frees up.
        blocking: id of the action it waits for, where there is one.
    """

    action: str
    digest: str
    reason: str
    error: Error
    retryable: bool = False
    blocking: str | None = None

    __match_args__ = ("reason",)

    @property
    def observation(self) -> Observation:
        """What the loop is told: why it will not run, or not now."""
        return Observation(status="error", error=self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Somebody else holds the lease."""

    action: str
    digest: str
    reason: str = "executing"
    until: datetime

    __match_args__ = ("until",)

    @property
    def observation(self) -> Observation:
        """What a loop that cannot wait is told: another worker is at it."""
        error = Error(
            code="executing",
            message="another worker is executing this call; it has not ended",
            details={"until": self.until.isoformat()},
            suggested_action="do not repeat it: ask for its outcome later",
        )
        return Observation(status="error", error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """What an attempt said after it had lost its action: evidence for whoever reconciles it.

    Args:
        attempt: its number, from 1.
        fence: the number that the downstream may know it by.
        status: ``ok``: it says that it happened; ``error``: see ``code``.
        code: of the error; None where there is none.
        at: when it was recorded.
        observation: what it said; None where that was erased, or cannot be opened.
    """

    attempt: int
    fence: int
    status: Literal["ok", "error"]
    code: str | None
    at: datetime
    observation: Observation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It may have happened; it will not be run again blindly.

    Args:
        attempt: the newest there was; whoever reconciles it says of which they have found something out.
        question: the operator's question that hangs on it, where one was asked.
        error: what is known, in words that a model can act on.
        abandoned: whether a named person gave up knowing.
        late: what its attempts said too late, first attempt first; whoever reconciles it looks here.
        notes: as of an observation: ``edited`` where a person had changed its arguments.
    """

    action: str
    digest: str
    reason: str
    attempt: int
    question: Approval | None = None
    error: Error
    abandoned: bool = False
    late: tuple[Late, ...] = ()
    notes: tuple[str, ...] = ()

    __match_args__ = ("question",)

    @property
    def observation(self) -> Observation:
        """What the loop is told: that nobody knows whether it happened."""
        return Observation(status="error", error=self.error, notes=self.notes)


Outcome: TypeAlias = Done | Failed | Held | Refused | Running | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An action as it stands once it was proposed; hand it, or its ``action`` id, to `execute`.

    Args:
        action: the action's id.
        run: its run's id.
        tenant: the run's tenant.
        digest: the action digest: ledger, run, tenant, principal, tool, spec, arguments, key and revision.
        key: the key's text; the action's own id where none was given.
        revision: of that key, from 1.
        state: where it stands: READY may be executed.
        repeated: whether the same intent had been proposed before.
        outcome: what executing it would say now; None where it is READY.
        edits: id of the action whose arguments a person changed into these; None where a loop sent them.
    """

    action: str
    run: str
    tenant: str
    digest: str
    key: str
    revision: int
    state: str
    repeated: bool
    outcome: Outcome | None
    edits: str | None = None

    __match_args__ = ("state",)
