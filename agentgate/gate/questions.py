"""Questions to people as they are read: what was asked, of whom, what was said so far. Made from one snapshot."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agentgate.approval import Requirement
from agentgate.clock import to_datetime
from agentgate.core.records import ActionFile, ApprovalRecord, ApprovalState, VoteRecord
from agentgate.errors import Damaged, NotFound, Sealed
from agentgate.gate.answers import Reader
from agentgate.store import actions, runs

Staleness = Callable[[Reader, ActionFile, ApprovalRecord], tuple[str, ...]]
"""Says of a question why its answer would carry nothing as things stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteView:
    """What somebody said to a question.

    Args:
        approver: who.
        verdict: what they said.
        roles: those that their keyring gave their key, or, unsigned, that the surface vouched for.
        key: the hash of the key it was signed with, as 64 hex digits; None where it was not.
        counted: false once it was taken back.
        at: when the gate received it.
    """

    approver: str
    verdict: str
    roles: tuple[str, ...]
    key: str | None
    counted: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to people and what became of it.

    Args:
        id: the approval's id.
        digest: what a vote must name: the digest over exactly what is shown.
        kind: ``approval`` of an action, or an operator's ``question`` about an unknown outcome.
        state: pending, granted, used, rejected, expired, revoked or void.
        requirement: who must agree.
        shown: the text that the digest binds; ``[sealed]`` without its key, empty where it was erased.
        action: the id of the action it is about.
        run: that action's run.
        run_name: the caller's name for it.
        tenant: whose it is.
        principal: on whose behalf the action was proposed.
        namespace: the tool's server.
        tool: the tool's name.
        asked_at: when it was asked.
        expires_at: from when it can be answered no more.
        until: from when what was granted can be used no more; None where nothing was.
        votes: in the order in which they came.
        stale: why an answer may carry nothing as things stand: ``tool_removed`` or ``spec_changed`` (as this gate's
            tools say; without any, as was registered since), ``policy_changed`` (another policy is active than asked).
    """

    id: str
    digest: str
    kind: Literal["approval", "question"]
    state: ApprovalState
    requirement: Requirement
    shown: str
    action: str
    run: str
    run_name: str
    tenant: str
    principal: str
    namespace: str
    tool: str
    asked_at: datetime
    expires_at: datetime
    until: datetime | None
    votes: tuple[VoteView, ...]
    stale: tuple[str, ...] = ()

    __match_args__ = ("state",)


def read_question(reader: Reader, id: str, action: str, *, stale: Staleness | None = None) -> Question:
    """Read a question.

    Args:
        reader: of one snapshot.
        id: the approval's id.
        action: the id of the action it hangs on.
        stale: what to ask about a question that is open.

    Raises:
        NotFound: there is none.
        Damaged: it is not what its events say.
    """
    file = actions.file(reader.connection, action)
    question = None if file is None else file.approvals.get(id)
    if file is None or question is None:
        raise NotFound("approval", id)
    run = runs.read(reader.connection, question.run)
    if run is None:
        raise Damaged(f"approval {id}", "its run is missing")
    votes = (vote for _, vote in sorted(file.votes.items()) if vote.approval == id)
    return Question(
        id=id,
        digest=question.digest.hex(),
        kind=question.kind,
        state=question.state,
        requirement=reader.requirement(question),
        shown=_shown(reader, question),
        action=file.action.id,
        run=run.id,
        run_name=run.name,
        tenant=run.tenant,
        principal=file.action.principal,
        namespace=file.action.namespace,
        tool=file.action.tool,
        asked_at=to_datetime(question.asked_at_us),
        expires_at=to_datetime(question.expires_at_us),
        until=None if question.until_us is None else to_datetime(question.until_us),
        votes=tuple(map(_vote, votes)),
        stale=stale(reader, file, question) if stale is not None and question.state in _OPEN else (),
    )


_OPEN = frozenset({"pending", "granted"})


def _shown(reader: Reader, question: ApprovalRecord) -> str:
    try:
        payload = reader.kept(question.run, question.asked_n, "presentation")
    except Sealed:
        return "[sealed]"
    return "" if payload is None else payload.content.decode("utf-8", "backslashreplace")


def _vote(vote: VoteRecord) -> VoteView:
    return VoteView(
        approver=vote.approver,
        verdict=vote.verdict,
        roles=vote.roles,
        key=None if vote.key is None else vote.key.hex(),
        counted=vote.counted,
        at=to_datetime(vote.at_us),
    )
