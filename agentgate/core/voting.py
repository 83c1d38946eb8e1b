"""Whose votes count, and what they add up to. Pure: what is on record is handed in, a word comes out.

A vote names the approval that its sender saw; that it is this one was compared before anything here is asked.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from agentgate.approval import Requirement, Verdict
from agentgate.canonical import parse
from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord, VoteRecord
from agentgate.errors import Damaged, NotCanonical
from agentgate.tools.names import same_name

VERDICTS: Mapping[str, frozenset[Verdict]] = MappingProxyType(
    {
        "approval": frozenset({"approve", "reject"}),
        "question": frozenset({"again", "applied", "not_applied", "reject"}),
    }
)
"""What can be said to each kind of question."""

REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "other_digest": "the digest is not that of what is asked; look at the question again, and send what it shows",
        "contrary": "you have said something else; take that back first with: revoke",
        "expired": "its time is over; the loop may propose again",
        "rejected": "it was rejected, which is final; the loop must propose something else",
        "granted": "it is granted already; to stop it, revoke the grant",
        "used": "what was granted has been used; nothing can be taken back any more",
        "revoked": "that was taken back; vote anew where the question is still open, with a nonce of its own",
        "void": "another question, or another call, has taken its place; look at what waits now",
        "own_request": "who proposed a call does not approve it; ask somebody else",
        "no_role": "you hold none of the roles it asks for; ask somebody who does",
        "unsigned": "it takes signed votes alone; sign yours with sign_vote and send it as signed=",
        "bad_signature": "the signature is not that key's over this vote; sign it again",
        "wrong_approver": "the key belongs to another name than the one that votes; vote under the key's own name",
        "no_keyring": "this gate has no keyring to judge a signature by; open it with keyring=",
        "unknown_key": "the key stands in no keyring of this gate; have it added",
        "key_not_yet_valid": "the key is not valid yet; wait, or use another",
        "key_expired": "the key is not valid any more; use another",
        "key_revoked": "the key is revoked; use another",
        "wrong_verdict": "that is no answer to this question, or not the one that was signed; say one that it takes",
    }
)
"""Why a vote does not count, and what to do instead."""

# What a vote that came before must have said for the question to have come to stand so, in part, by it.
_LED_TO: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "granted": frozenset({"approve", "again"}),
        "rejected": frozenset({"reject"}),
        "used": frozenset({"applied", "not_applied"}),
    }
)


def demanded(question: ApprovalRecord) -> Requirement:
    """Read who must agree out of a question's row.

    Raises:
        Damaged: the row holds no requirement.
    """
    try:
        return Requirement.from_json(parse(question.demands))
    except (NotCanonical, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"approval {question.id}", "its row does not say who must agree") from error


def counted(file: ActionFile) -> tuple[VoteRecord, ...]:
    """Return the votes on the question that hangs on an action, without those taken back, in their order."""
    return () if file.question is None else counted_on(file, file.question)


def counted_on(file: ActionFile, question: ApprovalRecord) -> tuple[VoteRecord, ...]:
    """Return the votes on one of an action's questions, without those taken back, in their order."""
    return tuple(vote for n, vote in sorted(file.votes.items()) if vote.approval == question.id and vote.counted)


def is_proposer(action: ActionRecord, approver: str, editors: Collection[str] = ()) -> bool:
    """Tell whether somebody would vote on what is their own: its principal, or who wrote its arguments."""
    own = {action.principal, action.edited_by or action.principal, *editors}
    return same_name(approver) in set(map(same_name, own))


def may_vote(
    requirement: Requirement,
    action: ActionRecord,
    approver: str,
    roles: Collection[str],
    verdict: str,
    *,
    editors: Collection[str] = (),
) -> str | None:
    """Say why a vote does not count; None where it does.

    Args:
        requirement: who must agree.
        action: what is asked about.
        approver: who votes.
        roles: what they hold, as their keyring or the surface says.
        verdict: what they say.
        editors: who edited what the action is an edit of: what they changed may stand in it still.
    """
    proposer = is_proposer(action, approver, editors)
    if proposer and verdict == "reject":  # denying one's own needs no role
        return None
    if proposer and not requirement.proposer:
        return "own_request"
    if requirement.roles and not set(requirement.roles) & set(roles):
        return "no_role"
    return None


def fitting(
    requirement: Requirement, action: ActionRecord, votes: Iterable[VoteRecord], *, editors: Collection[str] = ()
) -> tuple[VoteRecord, ...]:
    """Return the votes that count under a requirement, as far as the record says: whether a signature is true, not.

    Each was judged when it came; judged again, a row that somebody wrote beside the gate fills no quorum.
    """
    return tuple(
        vote
        for vote in votes
        if vote.counted
        and (not requirement.signed or (vote.key is not None and vote.signature is not None))
        and may_vote(requirement, action, vote.approver, vote.roles, vote.verdict, editors=editors) is None
    )


def agreeing(votes: Iterable[VoteRecord], verdict: str) -> tuple[VoteRecord, ...]:
    """Return one vote of each approver who says so, the first of each."""
    first: dict[str, VoteRecord] = {}
    for vote in votes:
        if vote.counted and vote.verdict == verdict:
            first.setdefault(same_name(vote.approver), vote)
    return tuple(first.values())


def reached(requirement: Requirement, votes: Iterable[VoteRecord]) -> Verdict | None:
    """Return what the votes have decided; None while they have not.

    One no ends a question. Every other verdict needs the quorum of approvers who say that same one; of two that have
    it, which no gate lets come about, none is decided.

    Args:
        requirement: who must agree.
        votes: those that count: see `fitting`.
    """
    given = tuple(votes)
    if agreeing(given, "reject"):
        return "reject"
    asked = VERDICTS[requirement.kind] - {"reject"}
    filled = [verdict for verdict in sorted(asked) if len(agreeing(given, verdict)) >= requirement.quorum]
    return filled[0] if len(filled) == 1 else None


def voted_before(file: ActionFile, question: ApprovalRecord, approver: str) -> VoteRecord | None:
    """Return the vote that somebody has given on a question and not taken back."""
    return next((vote for vote in counted_on(file, question) if vote.approver == approver), None)


def unanswerable(question: ApprovalRecord, before: VoteRecord | None, verdict: str) -> str | None:
    """Say why a question takes no such vote any more; None where it takes it, or has it already.

    Args:
        question: as it stands, its time looked at.
        before: what the same person has said to it.
        verdict: what they say.
    """
    same = before is not None and before.verdict == verdict
    if question.state == "pending":
        return "contrary" if before is not None and not same else None
    return None if same and verdict in _LED_TO.get(question.state, ()) else question.state
