"""The deciding transaction: a vote is compared with what is asked, recorded, and followed by what it decides.

Everything is looked at inside it, on the rows as it locks them, each of which must be what its event says. What does
not count is said and leaves nothing behind, but the end of a question whose time turned out to be over.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from agentgate.approval import Requirement, Verdict, vote_digest
from agentgate.canonical import Json
from agentgate.core.binding import check_action, check_said
from agentgate.core.claiming import expire
from agentgate.core.draft import Payload
from agentgate.core.records import ActionFile, ApprovalRecord, VoteRecord
from agentgate.core.voting import (
    VERDICTS,
    agreeing,
    counted,
    demanded,
    fitting,
    may_vote,
    reached,
    unanswerable,
    voted_before,
)
from agentgate.errors import Damaged, NotFound, NotPossible
from agentgate.gate.answers import Reader
from agentgate.gate.closing import end_where_rejected
from agentgate.gate.deciding import check_again
from agentgate.gate.editors import editors_before
from agentgate.gate.grounds import read_history
from agentgate.gate.keyring import trusted
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.keyring import Keyring
from agentgate.publickeys import ApproverKey
from agentgate.signing import SignedVote, verify

Settle: TypeAlias = Callable[[Transaction, ActionFile, Verdict, tuple[VoteRecord, ...]], None]
"""What follows when people have said of an unknown outcome what happened: drafted in the deciding transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """A vote as it came to the gate.

    Args:
        approval: the approval's id.
        digest: the approval digest that its sender was shown.
        verdict: what they say.
        by: who they are.
        roles: those that the surface vouches for; of a signed vote the keyring says them.
        signed: the vote as they signed it; None where they did not.
        nonce: of a vote that is not signed.
        payloads: what they wrote beside it.
    """

    approval: str
    digest: bytes
    verdict: Verdict
    by: str
    roles: tuple[str, ...] = ()
    signed: SignedVote | None = None
    nonce: bytes = b""
    payloads: tuple[Payload, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Where votes are given: one ledger, and whose signatures count there.

    Args:
        ledger: the record.
        keyring: from outside the database; None where the gate has none.
    """

    ledger: Ledger
    keyring: Keyring | None

    def cast(
        self, transaction: Transaction, *, action: str, ballot: Ballot, settle: Settle | None = None
    ) -> str | None:
        """Record a vote and what it decides; the same vote again is one.

        Args:
            transaction: on the action's run.
            action: the action that the question hangs on.
            ballot: the vote.
            settle: what follows where an operator's question is answered with what happened.

        Returns:
            Why it does not count; None where it does.
        """
        file, question = self._looked_at(transaction, action, ballot.approval, ballot.digest)
        if isinstance(question, str):
            return question
        requirement, before = demanded(question), voted_before(file, question, ballot.by)
        if ballot.verdict not in VERDICTS[question.kind]:
            return "wrong_verdict"
        lost = self._carrying_nothing(transaction, file, requirement) if question.state == "pending" else {}
        replaced = None if before is None else lost.get(before.n)
        why = unanswerable(question, None if replaced else before, ballot.verdict)
        if why is not None:
            return why
        judged = self._judged(transaction, ballot, requirement)
        if isinstance(judged, str):
            return judged
        if before is not None and replaced is None:
            return None
        editors = editors_before(transaction.connection, file.action)
        why = may_vote(requirement, file.action, ballot.by, judged.roles, ballot.verdict, editors=editors)
        if why is not None or _was_taken_back(file, judged.digest):
            return why or "revoked"
        if replaced is not None:
            about: dict[str, Json] = {"approval": question.id, "vote": replaced.digest.hex(), "by": ballot.by}
            transaction.draft.add("vote_revoked", about, action=action)
        transaction.draft.add("voted", judged.body(question), action=action, payloads=ballot.payloads)
        file = transaction.draft.file(action)
        carrying = (vote for vote in counted(file) if vote.n not in lost)
        votes = fitting(requirement, file.action, carrying, editors=editors)
        said = reached(requirement, votes)
        if said is not None:
            decide(transaction, file, said, votes=agreeing(votes, said), by=ballot.by, settle=settle)
        return None

    def revoke(
        self,
        transaction: Transaction,
        *,
        action: str,
        approval: str,
        digest: bytes,
        by: str,
        payloads: tuple[Payload, ...] = (),
    ) -> str | None:
        """Take a person's own vote back while it has decided nothing; once it has, end what was granted.

        Returns:
            Why it cannot be; None where it was, or had been.

        Raises:
            NotPossible: nothing was granted, and they have no vote to take back.
        """
        file, question = self._looked_at(transaction, action, approval, digest)
        if isinstance(question, str):
            return question
        draft, about = transaction.draft, {"approval": approval, "by": by}
        if question.state == "pending":
            vote = voted_before(file, question, by)
            if vote is None:
                why = f"{by!r} has no vote on it; to end it, reject it"
                raise NotPossible(f"approval {approval}", "take a vote back", "pending", why)
            draft.add("vote_revoked", {**about, "vote": vote.digest.hex()}, action=action, payloads=payloads)
            return None
        if question.state != "granted":
            return None if question.state == "revoked" else question.state
        if question.until_us is not None and question.until_us <= draft.at_us:
            return "expired"  # of a known failure, to which no event says so
        draft.add("grant_revoked", {**about}, action=action, payloads=payloads)
        return None

    def _looked_at(
        self, transaction: Transaction, action: str, approval: str, digest: bytes
    ) -> tuple[ActionFile, ApprovalRecord | str]:
        """Return an action with the question, its time looked at; or why what was shown is not what is asked."""
        file = transaction.file(action)
        question = file.approvals.get(approval)
        if question is None:
            raise NotFound("approval", approval)
        self._check_record(transaction, file, question)
        if question.digest != digest:
            return file, "other_digest"
        if file.action.approval == approval and question.state in {"pending", "granted"}:
            expire(transaction.draft, file)
            file = transaction.draft.file(action)
        return file, file.approvals[approval]

    def _check_record(self, transaction: Transaction, file: ActionFile, question: ApprovalRecord) -> None:
        """Compare the rows that a vote is decided on with their events, and these with what they bind.

        Raises:
            Damaged: somebody wrote into them.
        """
        history, action = read_history(transaction, file), file.action
        for event in history.events:
            for _, what in (
                *check_action(event, action, ledger=self.ledger.id),
                *check_said(event, ledger=self.ledger.id),
            ):
                raise Damaged(f"action {action.id}", f"event {event.n}: {what}")
        reader = Reader(connection=transaction.connection, sealing=self.ledger.sealing)
        for n, kind in ((question.asked_n, "presentation"), (action.proposed_n, "arguments")):
            reader.readable(action.run, n, kind)

    def _carrying_nothing(
        self, transaction: Transaction, file: ActionFile, requirement: Requirement
    ) -> Mapping[int, VoteRecord]:
        """Return the votes, by their events, whose keys carry them no more: they came in time, and are void now."""
        signed = [vote for vote in counted(file) if vote.key is not None]
        if self.keyring is None or not signed:
            return {}
        at_us = transaction.draft.at_us
        ring = trusted(transaction.connection, self.keyring, ledger=self.ledger.id, now_us=at_us)
        lost = {}
        for vote in signed:
            key = ring.judge(vote.key or b"", at_us=vote.at_us, now_us=at_us)
            if (
                not isinstance(key, ApproverKey)
                or key.name != vote.approver
                or may_vote(requirement, file.action, vote.approver, key.roles, vote.verdict) is not None
            ):
                lost[vote.n] = vote
        return lost

    def _judged(self, transaction: Transaction, ballot: Ballot, requirement: Requirement) -> "_Judged | str":
        """Return a vote that its sender may have given; or why it is none of theirs."""
        signed = ballot.signed
        if signed is None:
            return "unsigned" if requirement.signed else _Judged(ballot=ballot, nonce=ballot.nonce, roles=ballot.roles)
        if signed.approval != ballot.digest:
            return "other_digest"
        if signed.verdict != ballot.verdict:
            return "wrong_verdict"
        if self.keyring is None:
            return "no_keyring"
        at_us = transaction.draft.at_us
        ring = trusted(transaction.connection, self.keyring, ledger=self.ledger.id, now_us=at_us)
        key = ring.judge(signed.key, at_us=at_us, now_us=at_us)
        if not isinstance(key, ApproverKey):
            return key
        if ballot.by != key.name or signed.approver != key.name:
            return "wrong_approver"
        if not verify(key.public, signed.signature, signed.vote.digest):
            return "bad_signature"
        return _Judged(ballot=ballot, nonce=signed.nonce, roles=key.roles, key=signed.key, signature=signed.signature)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A vote that is its sender's own."""

    ballot: Ballot
    nonce: bytes
    roles: tuple[str, ...]
    key: bytes | None = None
    signature: bytes | None = None

    @property
    def digest(self) -> bytes:
        ballot = self.ballot
        return vote_digest(
            approval=ballot.digest, verdict=ballot.verdict, approver=ballot.by, key=self.key, nonce=self.nonce
        )

    def body(self, question: ApprovalRecord) -> dict[str, Json]:
        """Return what an event says of it."""
        body: dict[str, Json] = {
            "approval": question.id,
            "shown": question.digest.hex(),
            "vote": self.digest.hex(),
            "verdict": self.ballot.verdict,
            "approver": self.ballot.by,
            "roles": [*sorted(set(self.roles))],
            "nonce": self.nonce.hex(),
        }
        if self.key is not None and self.signature is not None:
            body |= {"key": self.key.hex(), "signature": self.signature.hex()}
        return body


def decide(
    transaction: Transaction,
    file: ActionFile,
    verdict: Verdict,
    *,
    votes: tuple[VoteRecord, ...],
    by: str,
    settle: Settle | None = None,
) -> None:
    """Record what people have decided, and what follows.

    Args:
        transaction: the deciding one.
        file: the action, with the question that hangs on it.
        verdict: what was decided.
        votes: one of each approver who said so.
        by: who said so last.
        settle: what follows where they said what became of an unknown outcome.
    """
    draft, question = transaction.draft, file.question
    assert question is not None  # they voted on it
    if verdict == "reject":
        about: dict[str, Json] = {"approval": question.id, "vote": votes[0].digest.hex(), "by": by}
        draft.add("rejected", about, action=file.action.id)
        end_where_rejected(transaction)
    elif verdict in {"approve", "again"}:
        if verdict == "again":
            check_again(transaction, file)
        granted: dict[str, Json] = {
            "approval": question.id,
            "votes": [vote.digest.hex() for vote in votes],
            "until_us": draft.at_us + question.grant_us,
        }
        draft.add("approved", granted, action=file.action.id)
    elif settle is None:
        raise Damaged(f"approval {question.id}", "its votes add up to an answer that nobody gave")
    else:
        settle(transaction, file, verdict, votes)


def _was_taken_back(file: ActionFile, digest: bytes) -> bool:
    """Tell whether exactly this vote was given before and taken back: somebody sends on what they have kept of it."""
    return any(vote.digest == digest for vote in file.votes.values())
