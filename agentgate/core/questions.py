"""What events do to the questions that hang on an action: asked, answered, ended."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from agentgate.canonical import canonical
from agentgate.core.records import ActionFile, ApprovalRecord, ApprovalState, VoteRecord
from agentgate.errors import Damaged
from agentgate.event import Event

# An event's body was checked against its closed shape when it was built or read; its fields are read as they are.
Body = Mapping[str, Any]


def maybe_bytes(value: Any) -> bytes | None:
    """Read an optional digest of a body."""
    return None if value is None else bytes.fromhex(str(value))


def ask(
    file: ActionFile, event: Event, body: Body, *, kind: Literal["approval", "question"], attempt: int | None = None
) -> ActionFile:
    """Hang a new question on the action; the one before it is void from then on."""
    file = end(file, event, "void")
    asked = body["approval"]
    demands = body["requirement"] if event.type == "question_asked" else body["decision"].get("requirement")
    if demands is None:
        raise Damaged(f"action {event.action}", f"event {event.n} asks people, and says not who must agree")
    approval = ApprovalRecord(
        id=asked["id"],
        run=event.run,
        action=str(event.action),
        kind=kind,
        attempt=attempt,
        requirement=bytes.fromhex(asked["requirement"]),
        presentation=bytes.fromhex(asked["presentation"]),
        digest=bytes.fromhex(asked["digest"]),
        state="pending",
        asked_n=event.n,
        state_n=event.n,
        asked_at_us=event.at_us,
        expires_at_us=asked["expires_at_us"],
        until_us=None,
        demands=canonical(demands),
        grant_us=asked["grant_us"],
    )
    held = kind == "approval"
    action = replace(
        file.action,
        approval=approval.id,
        requirement=approval.requirement if held else file.action.requirement,
        asked=file.action.asked + held,
    )
    return replace(file, action=action, approvals=MappingProxyType({**file.approvals, approval.id: approval}))


def end(file: ActionFile, event: Event, state: ApprovalState) -> ActionFile:
    """End the question that hangs on the action, where one still does."""
    question = file.question
    if question is None or question.state not in {"pending", "granted"}:
        return file
    ended = replace(question, state=state, state_n=event.n)
    return replace(file, approvals=MappingProxyType({**file.approvals, ended.id: ended}))


def held(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Ask for the approval that a policy demands at a claim."""
    return ask(file, event, body, kind="approval")


def question_asked(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Ask an operator about an attempt whose outcome is unknown, or for what a policy wants before another one."""
    attempt = body.get("attempt")
    return ask(file, event, body, kind="approval" if attempt is None else "question", attempt=attempt)


def approved(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Turn the pending question into a grant."""
    question = hanging(file, event, body["approval"], "pending")
    granted = replace(question, state="granted", state_n=event.n, until_us=body["until_us"])
    return replace(file, approvals=MappingProxyType({**file.approvals, granted.id: granted}))


def ends(state: ApprovalState) -> Callable[[ActionFile, Event, Body], ActionFile]:
    """Make the change for an event that ends, by the way, whatever hangs on the action."""
    return lambda file, event, _body: end(file, event, state)


def answers(was: ApprovalState, state: ApprovalState) -> Callable[[ActionFile, Event, Body], ActionFile]:
    """Make the change for an event that is about the question it names, which must hang there and be ``was``."""

    def change(file: ActionFile, event: Event, body: Body) -> ActionFile:
        hanging(file, event, body["approval"], was)
        return end(file, event, state)

    return change


def hanging(file: ActionFile, event: Event, id: str, state: ApprovalState) -> ApprovalRecord:
    """Return the question that hangs on the action, which must be this one, in this state.

    Raises:
        Damaged: the event is about another, or about one that has been ended or used.
    """
    question = file.question
    if question is None or question.id != id or question.state != state:
        raise Damaged(f"action {event.action}", f"event {event.n} ({event.type}) names no approval that is {state}")
    return question


def voted(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Keep a person's answer, which names the approval as it was shown."""
    question = hanging(file, event, body["approval"], "pending")
    if question.digest.hex() != body["shown"]:
        raise Damaged(f"action {event.action}", f"event {event.n} is a vote on what was not asked")
    vote = VoteRecord(
        approval=body["approval"],
        n=event.n,
        run=event.run,
        digest=bytes.fromhex(body["vote"]),
        verdict=body["verdict"],
        approver=body["approver"],
        key=maybe_bytes(body.get("key")),
        nonce=bytes.fromhex(body["nonce"]),
        signature=maybe_bytes(body.get("signature")),
        counted=True,
        at_us=event.at_us,
        roles=tuple(body["roles"]),
    )
    return replace(file, votes=MappingProxyType({**file.votes, event.n: vote}))


def vote_revoked(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Stop counting an answer that was taken back."""
    revoked = bytes.fromhex(body["vote"])
    if not any(vote.digest == revoked and vote.counted for vote in file.votes.values()):
        raise Damaged(f"action {event.action}", f"event {event.n} takes back a vote that does not count")
    votes = {n: replace(vote, counted=False) if vote.digest == revoked else vote for n, vote in file.votes.items()}
    return replace(file, votes=MappingProxyType(votes))
