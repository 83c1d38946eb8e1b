"""What the events of votes and decisions say, checked against each other: who could vote, and what that decided.

For verification, which follows a chain without the database's word for anything. The rules are those by which the gate
decides: `agentgate.core.voting`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from agentgate.approval import vote_digest
from agentgate.core.records import ActionFile, ApprovalRecord, VoteRecord
from agentgate.core.voting import VERDICTS, counted_on, demanded, fitting, may_vote, reached
from agentgate.event import Event
from agentgate.keyring import Keyring
from agentgate.signing import verify

Finding: TypeAlias = tuple[str, str]
Publics: TypeAlias = Mapping[bytes, bytes]
"""Public keys by their hash: whoever tells them, they are what the hash says."""


def check_polled(event: Event, before: ActionFile) -> Iterator[Finding]:
    """Check a vote, or what is said to have been decided by votes, against the action as it was before."""
    body: Mapping[str, Any] = event.body
    question = before.approvals.get(body["approval"]) if type(body.get("approval")) is str else None
    check = _CHECKS.get(event.type)
    if question is not None and check is not None:
        yield from check(event, body, before, question)


def _voted(event: Event, body: Mapping[str, Any], before: ActionFile, question: ApprovalRecord) -> Iterator[Finding]:
    requirement = demanded(question)
    if question.expires_at_us <= event.at_us:
        yield "time", "it came when the time to answer was over"
    if body["verdict"] not in VERDICTS[question.kind]:
        yield "vote", "it is no answer to this question"
    if any(vote.approver == body["approver"] for vote in counted_on(before, question)):
        yield "vote", "its approver has voted already"
    if requirement.signed and ("key" not in body or "signature" not in body):
        yield "vote", "it is not signed, and the requirement takes signed votes alone"
    if may_vote(requirement, before.action, body["approver"], body["roles"], body["verdict"]) is not None:
        yield "vote", "its approver may not vote, by role or as the proposer"


def _vote_revoked(_: Event, body: Mapping[str, Any], before: ActionFile, question: ApprovalRecord) -> Iterator[Finding]:
    votes = [vote for vote in counted_on(before, question) if vote.digest.hex() == body["vote"]]
    if [vote.approver for vote in votes] != [body["by"]]:
        yield "vote", "the vote that it takes back is not that person's own"


def _approved(event: Event, body: Mapping[str, Any], before: ActionFile, question: ApprovalRecord) -> Iterator[Finding]:
    named = set(body["votes"])
    votes = [vote for vote in counted_on(before, question) if vote.digest.hex() in named]
    if len(votes) != len(body["votes"]) or _decided(before, question, votes) not in {"approve", "again"}:
        yield "vote", "the votes that it names are not those that it needs"
    if body["until_us"] != event.at_us + question.grant_us:
        yield "time", "the grant lasts for another time than was asked"
    if question.expires_at_us <= event.at_us:
        yield "time", "it came when the time to answer was over"


def _rejected(_: Event, body: Mapping[str, Any], before: ActionFile, question: ApprovalRecord) -> Iterator[Finding]:
    votes = [vote for vote in counted_on(before, question) if vote.digest.hex() == body.get("vote")]
    if _decided(before, question, votes) != "reject":
        yield "vote", "nobody who may has voted so"


def _reconciled(_: Event, body: Mapping[str, Any], before: ActionFile, question: ApprovalRecord) -> Iterator[Finding]:
    # Votes that say otherwise may have lost their keys since; a chain does not tell which.
    votes = [vote for vote in counted_on(before, question) if vote.verdict == body["verdict"]]
    if _decided(before, question, votes) != body["verdict"]:
        yield "vote", "the question that it answers has no votes that say so"


def _decided(before: ActionFile, question: ApprovalRecord, votes: list[VoteRecord] | tuple[VoteRecord, ...]) -> object:
    requirement = demanded(question)
    return reached(requirement, fitting(requirement, before.action, votes))


_CHECKS: Mapping[str, Callable[[Event, Mapping[str, Any], ActionFile, ApprovalRecord], Iterator[Finding]]] = {
    "voted": _voted,
    "vote_revoked": _vote_revoked,
    "approved": _approved,
    "rejected": _rejected,
    "reconciled": _reconciled,
}


def check_signature(event: Event, keyring: Keyring | None, publics: Publics) -> Iterator[Finding] | None:
    """Check the signature of a vote; None where its public key is nowhere to be had.

    Args:
        event: a `voted` that has one.
        keyring: whose names are trusted, where one was given.
        publics: the keys that stand in the ledger, trusted or not: a signature that is none is found with these too.
    """
    body: Mapping[str, Any] = event.body
    key = bytes.fromhex(body["key"]) if "key" in body else b""
    known = None if keyring is None else keyring.get(key)
    public = publics.get(key) if known is None else known.public
    if public is None:
        return None
    return _check_signature(body, key, public, None if known is None else known.name)


def _check_signature(body: Mapping[str, Any], key: bytes, public: bytes, name: str | None) -> Iterator[Finding]:
    vote = vote_digest(
        approval=bytes.fromhex(body["shown"]),
        verdict=body["verdict"],
        approver=body["approver"],
        key=key,
        nonce=bytes.fromhex(body["nonce"]),
    )
    if not verify(public, bytes.fromhex(body["signature"]), vote):
        yield "signature", "its key did not sign it"
    if name is not None and name != body["approver"]:
        yield "signature", "the key is another's in the keyring"
