"""Whether the answer that a claim rests on was given: by enough people who may, to what was shown, and not used yet.

Everything is computed again, from the requirement that the *claiming* policy makes: a row says nothing here. Where the
record contradicts itself somebody wrote into it, and nothing is done; where only a key has lost what it could do, the
answer is void and people are asked again (design §7).
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from agentgate.approval import Requirement, Verdict, approval_digest, requirement_digest, vote_digest
from agentgate.core.history import History
from agentgate.core.proposing import span_us
from agentgate.core.records import ActionFile, ApprovalRecord, VoteRecord
from agentgate.core.voting import fitting, reached
from agentgate.errors import Damaged
from agentgate.event import Event
from agentgate.keyring import Keyring
from agentgate.signing import verify


def is_granted(file: ActionFile, requirement: Requirement) -> bool:
    """Tell whether what hangs on the action asks for exactly this, was granted, and is not used."""
    question = file.question
    if question is None or question.state != "granted" or question.kind != requirement.kind:
        return False
    digest = requirement_digest(requirement, action=file.action.digest, attempt=question.attempt)
    return question.requirement == digest


def prove(
    history: History,
    requirement: Requirement,
    *,
    verdict: Verdict = "approve",
    ledger: str,
    keyring: Keyring | None,
    at_us: int,
    grant_us: int,
    editors: Collection[str] = (),
) -> str | None:
    """Say why a granted answer carries nothing at this claim; None where it carries it.

    Args:
        history: the action's, which its rows agree with; what hangs on it asks for ``requirement``.
        requirement: of the policy that claims.
        verdict: what people must have said.
        ledger: the ledger's id.
        keyring: whose signatures count; None where the gate has none.
        at_us: ledger time.
        grant_us: how long an answer stands, where the requirement leaves it open.
        editors: who edited what the action is an edit of: none of them approves it.

    Returns:
        None; ``no_keyring`` where this gate cannot tell; else why the answer is void: a refusal of a key, its name or
        roles (``wrong_approver``, ``no_role``, ``own_request``), or ``outlasted``.

    Raises:
        Damaged: the record contradicts itself.
    """
    question, where = history.file.question, f"action {history.file.action.id}"
    if question is None or question.state != "granted":
        raise Damaged(where, "nothing was granted that it could run under")
    _check_question(history, question, ledger)
    votes = _named_votes(history, question, verdict)
    if keyring is None and requirement.signed:
        return "no_keyring"
    for vote in votes:
        _check_vote(question, vote, is_signed=requirement.signed)
    void, judged = None, []
    for vote in votes:
        found = vote if keyring is None or vote.key is None else _signed(vote, keyring, at_us=at_us)
        if isinstance(found, str):
            void = void or found
        else:
            judged.append(found)
    if reached(requirement, fitting(requirement, history.file.action, judged, editors=editors)) != verdict:
        if void is None and _is_enough(history, requirement, votes, verdict, editors):
            void = "no_role"  # when it was given; the keyring says otherwise now
        if void is None:
            raise Damaged(where, f"the votes on {question.id} are not those of enough people who may vote")
        return void
    # However long the record says that it stands: of its end, people saw the time to answer alone.
    if at_us >= question.expires_at_us + span_us(requirement.grant, grant_us):
        return "outlasted"
    return None


def _check_question(history: History, question: ApprovalRecord, ledger: str) -> None:
    """Compute again what people saw the digest of, from the event that asked them."""
    asked = history.event(question.asked_n)
    body: Any = None if asked is None else asked.body
    bound = approval_digest(
        ledger=ledger,
        id=question.id,
        requirement=question.requirement,
        presentation=question.presentation,
        expires_at_us=question.expires_at_us,
    )
    if body is None or body["payloads"].get("presentation") != question.presentation.hex() or bound != question.digest:
        raise Damaged(f"approval {question.id}", "it is not what its digest binds")


def _named_votes(history: History, question: ApprovalRecord, verdict: Verdict) -> tuple[VoteRecord, ...]:
    """Return the votes that the event that granted it names, each of which must be there and say so."""
    events = (event for event in history.events if event.type == "approved" and event.body["approval"] == question.id)
    granted: Event | None = next(events, None)
    body: Any = {"votes": []} if granted is None else granted.body
    given = {vote.digest.hex(): vote for vote in history.file.votes.values() if vote.approval == question.id}
    votes = tuple(given[named] for named in body["votes"] if named in given)
    true = granted is not None and len({vote.n for vote in votes}) == len(body["votes"])
    if not true or any(not vote.counted or vote.verdict != verdict for vote in votes):
        raise Damaged(f"approval {question.id}", "the votes it was granted by are not those on record")
    assert granted is not None  # or it would not be true
    if body["until_us"] > granted.at_us + question.grant_us or granted.at_us >= question.expires_at_us:
        raise Damaged(f"approval {question.id}", "it was granted too late, or for longer than was asked")
    return votes


def _check_vote(question: ApprovalRecord, vote: VoteRecord, *, is_signed: bool) -> None:
    digest = vote_digest(
        approval=question.digest,
        verdict=vote.verdict,  # type: ignore[arg-type]  # a word of the event's closed shape
        approver=vote.approver,
        key=vote.key,
        nonce=vote.nonce,
    )
    if digest != vote.digest or vote.at_us >= question.expires_at_us:
        raise Damaged(f"approval {question.id}", f"the vote of event {vote.n} is not one on what was asked, in time")
    if is_signed and (vote.key is None or vote.signature is None):
        raise Damaged(f"approval {question.id}", f"the vote of event {vote.n} is not signed")


def _signed(vote: VoteRecord, keyring: Keyring, *, at_us: int) -> VoteRecord | str:
    """Return a vote with the roles that its key has; or why its key carries it no more.

    Raises:
        Damaged: the key is one of the keyring, and did not sign it.
    """
    key = keyring.judge(vote.key or b"", at_us=vote.at_us, now_us=at_us)
    if isinstance(key, str):
        return key
    if not verify(key.public, vote.signature or b"", vote.digest):
        raise Damaged(f"approval {vote.approval}", f"the vote of event {vote.n} was not signed by the key it names")
    return replace(vote, roles=key.roles) if key.name == vote.approver else "wrong_approver"


def _is_enough(
    history: History,
    requirement: Requirement,
    votes: Iterable[VoteRecord],
    verdict: Verdict,
    editors: Collection[str],
) -> bool:
    """Tell whether the votes were enough by the roles that stand beside them."""
    return reached(requirement, fitting(requirement, history.file.action, votes, editors=editors)) == verdict
