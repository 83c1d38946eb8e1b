"""What people do about questions: see them, answer them, take an answer back; `Gate.approvals`.

Every answer names the approval and the digest that its sender was shown. There is no vote by position, by a provider's
call id, or without a digest.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from sqlalchemy.engine import Connection

from agentgate.clock import to_us
from agentgate.core.voting import REMEDIES
from agentgate.errors import Misuse, NotFound, VoteRefused
from agentgate.gate import editing
from agentgate.gate.answers import Reader
from agentgate.gate.commands import note_payloads
from agentgate.gate.deciding import found_out
from agentgate.gate.handles import check_digest, check_id
from agentgate.gate.ledger import Transaction, log
from agentgate.gate.names import DEFAULT_TENANT, check_name, check_person, check_tenant, check_text
from agentgate.gate.questions import Question, read_question
from agentgate.gate.voting import Ballot, Poll, Settle
from agentgate.gate.workshop import Workshop
from agentgate.jcs import LARGEST_INTEGER
from agentgate.outcome import Proposal
from agentgate.signing import NONCE_BYTES, SignedVote
from agentgate.store import asked
from agentgate.store.statements import Row

_ANSWERS = ("again", "applied", "not_applied")
_KINDS = ("approval", "question")


class Approvals:
    """See, answer and take back the questions of one ledger.

    Args:
        shop: the gate's parts.
    """

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def list(
        self,
        *,
        tenant: str | None = None,
        kind: Literal["approval", "question"] | None = None,
        expiring: timedelta | None = None,
    ) -> Iterator[Question]:
        """Read the questions that wait for an answer, soonest over first, page by page as you go through them.

        Args:
            tenant: whose; everybody's where it is left out.
            kind: ``approval`` of actions, or operators' ``question``; both where it is left out.
            expiring: only those whose time is over within this span.
        """
        if kind is not None and kind not in _KINDS:
            raise Misuse(f"kind: give one of {', '.join(_KINDS)}, or leave it out")
        if expiring is not None and (type(expiring) is not timedelta or expiring < timedelta(0)):
            raise Misuse("expiring: give a timedelta from 0, or leave it out")
        until_us = LARGEST_INTEGER
        if expiring is not None:
            until_us = min(until_us, self._shop.ledger.clock.now_us() + to_us(expiring))
        of = None if tenant is None else check_tenant(tenant)
        return self._pages(
            lambda connection, after: asked.pending(connection, of, kind, until_us=until_us, after=after)
        )

    def unused(self, *, tenant: str | None = None) -> Iterator[Question]:
        """Read what was granted and is not executed, soonest over first, page by page as you go through it.

        Args:
            tenant: whose; everybody's where it is left out.
        """
        of = None if tenant is None else check_tenant(tenant)
        return self._pages(lambda connection, after: asked.granted(connection, of, after=after))

    def show(self, id: str, *, tenant: str = DEFAULT_TENANT) -> Question:
        """Read a question, whatever became of it.

        Raises:
            NotFound: this tenant has none of that id.
            Damaged: it is not what was asked.
        """
        id_ = check_id(id, "approval")
        action, _ = self._place(id_, check_tenant(tenant))
        return self._shop.question(id_, action)

    def approve(
        self,
        id: str,
        *,
        digest: str,
        by: str,
        roles: Sequence[str] = (),
        signed: SignedVote | None = None,
        note: str = "",
        tenant: str = DEFAULT_TENANT,
    ) -> Question:
        """Say yes to an action.

        The same vote again is one, also a signed one that somebody sends on.

        Args:
            id: the approval's id.
            digest: the approval digest as it was shown: `Question.digest`.
            by: who votes; of a signed vote the name that the keyring gives the key.
            roles: those that you vouch for; of a signed vote the keyring says them.
            signed: the vote as it was signed, from `sign_vote`.
            note: why, in words; kept beside the record.
            tenant: whose question it is.

        Returns:
            The question as it stands then: granted once enough people have said so.

        Raises:
            VoteRefused: it does not count; nothing was recorded, and what was signed is not used up.
            NotFound: this tenant has no such question.
            Damaged: the record contradicts itself; nothing was recorded.
            Unavailable: the database could not be had. With the reason ``commit`` the vote may be on record: send it
                again. With ``answer`` it is.
        """
        ballot = self._ballot(id, digest=digest, by=by, roles=roles, signed=signed, note=note)
        return self._voted(Ballot(verdict="approve", **ballot), tenant)

    def reject(
        self,
        id: str,
        *,
        digest: str,
        by: str,
        roles: Sequence[str] = (),
        signed: SignedVote | None = None,
        note: str = "",
        tenant: str = DEFAULT_TENANT,
    ) -> Question:
        """Say no, which ends the question at once and, for an approval, the action for good.

        Whoever proposed an action may reject it, whatever roles it asks for. Arguments as of `approve`.

        Raises:
            VoteRefused: it does not count; nothing was recorded.
        """
        ballot = self._ballot(id, digest=digest, by=by, roles=roles, signed=signed, note=note)
        return self._voted(Ballot(verdict="reject", **ballot), tenant)

    def answer(
        self,
        id: str,
        *,
        digest: str,
        verdict: Literal["again", "applied", "not_applied"],
        by: str,
        roles: Sequence[str] = (),
        signed: SignedVote | None = None,
        evidence: object = None,
        result: object = None,
        worker_known_dead: bool = False,
        note: str = "",
        tenant: str = DEFAULT_TENANT,
    ) -> Question:
        """Say what became of an action that nobody knows about, or that it is to run once more.

        What a quorum says is done: ``applied`` makes it succeeded, ``not_applied`` ready to run, as `Gate.reconcile`
        does; under ``again`` the next `execute` or `call` starts one more attempt, if the policy agrees.

        Args:
            id: the question's id.
            digest: the approval digest as it was shown.
            verdict: it happened, it did not, or run it again, although it may have happened.
            by: who answers.
            roles: those that you vouch for; of a signed vote the keyring says them.
            signed: the vote as it was signed, from `sign_vote`.
            evidence: a JSON value that shows it; kept beside the record, of whoever fills the quorum.
            result: what the loop is told of what happened; only with ``applied``, of whoever fills the quorum.
            worker_known_dead: whether no worker of the attempts in doubt can cause it any more.
            note: why, in words; kept beside the record.
            tenant: whose question it is.

        Returns:
            The question as it stands then: used once enough people have said what happened, granted after ``again``.

        Raises:
            VoteRefused: it does not count; nothing was recorded.
            NotPossible: ``again`` in a run where nothing starts any more.
            Misuse: a result of what did not happen.
        """
        if verdict not in _ANSWERS:
            raise Misuse(f"verdict: give one of {', '.join(_ANSWERS)}")
        ballot = Ballot(
            verdict=verdict, **self._ballot(id, digest=digest, by=by, roles=roles, signed=signed, note=note)
        )
        found = found_out(
            self._shop.ledger,
            self._shop.key(check_tenant(tenant)),
            applied=verdict == "applied",
            evidence=evidence,
            result=result,
            worker_known_dead=worker_known_dead,
            ready_us=self._shop.settings.ready_us,
        )
        return self._voted(ballot, tenant, found.settle)

    def revoke(self, id: str, *, digest: str, by: str, note: str = "", tenant: str = DEFAULT_TENANT) -> Question:
        """Take your own vote back while nothing is decided; once it is granted, end the grant.

        A grant that was revoked before its action started stops it for good. One that was used cannot be: the effect
        has begun.

        Args:
            id: the approval's id.
            digest: the approval digest as it was shown.
            by: who takes it back.
            note: why, in words; kept beside the record.
            tenant: whose question it is.

        Raises:
            VoteRefused: it was used, or has ended.
            NotPossible: nothing was granted, and you have no vote on it.
        """
        id_, shown, who = check_id(id, "approval"), check_digest(digest), check_person(by, "by")
        texts = note_payloads(self._shop.ledger, check_text(note, "note") or "")
        poll = self._poll
        return self._decided(
            id_,
            check_tenant(tenant),
            lambda action: partial(poll.revoke, action=action, approval=id_, digest=shown, by=who, payloads=texts),
            verdict="revoke",
            by=who,
        )

    def edit(
        self, id: str, *, digest: str, arguments: object, by: str, note: str = "", tenant: str = DEFAULT_TENANT
    ) -> Proposal:
        """Propose what you want run instead of what you are asked about: a new action, in the old one's place.

        It is checked, asked of the policy and, where that says so, of people anew; whoever edits is a proposer of what
        they changed. The loop that comes back with its own arguments is handed what became of the edit.

        Args:
            id: the approval's id.
            digest: the approval digest as it was shown.
            arguments: a JSON value; text or bytes are JSON to be parsed.
            by: who edits.
            note: why, in words; kept beside the record.
            tenant: whose question it is.

        Returns:
            The new action. Where it was refused, the old question stands as it was.

        Raises:
            VoteRefused: it is another question than the one that was shown, or has ended.
            NotPossible: a call under its key has started, or its tool is not here as it was when this was asked.
            NotFound: this tenant has no such question.
            Misuse: these are the arguments that are asked about.
        """
        return editing.edit(
            self._shop, id, digest=digest, arguments=arguments, by=by, note=note, tenant=check_tenant(tenant)
        )

    @property
    def _poll(self) -> Poll:
        return Poll(ledger=self._shop.ledger, keyring=self._shop.keyring)

    def _ballot(
        self, id: str, *, digest: str, by: str, roles: Sequence[str], signed: SignedVote | None, note: str
    ) -> dict[str, Any]:
        if type(signed) not in {SignedVote, type(None)}:
            raise Misuse("signed: give what agentgate.sign_vote returned, or leave it out")
        return {
            "approval": check_id(id, "approval"),
            "digest": check_digest(digest),
            "by": check_person(by, "by"),
            "roles": _roles(roles),
            "signed": signed,
            "nonce": self._shop.ledger.clock.random(NONCE_BYTES),
            "payloads": note_payloads(self._shop.ledger, check_text(note, "note") or ""),
        }

    def _voted(self, ballot: Ballot, tenant: str, settle: Settle | None = None) -> Question:
        poll = self._poll
        return self._decided(
            ballot.approval,
            check_tenant(tenant),
            lambda action: partial(poll.cast, action=action, ballot=ballot, settle=settle),
            verdict=ballot.verdict,
            by=ballot.by,
        )

    def _decided(
        self,
        id: str,
        tenant: str,
        work: Callable[[str], Callable[[Transaction], str | None]],
        *,
        verdict: str,
        by: str,
    ) -> Question:
        """Do ``work`` in the deciding transaction, and read the question as that leaves it."""
        action, run = self._place(id, tenant)
        why = self._shop.ledger.change(run, work(action), tenant=tenant)
        if why is not None:
            log.warning("vote refused", approval=id, action=action, verdict=verdict, by=by, reason=why)
            raise VoteRefused(id, why, REMEDIES[why])
        return self._shop.question(id, action)

    def _place(self, id: str, tenant: str) -> tuple[str, str]:
        with self._shop.ledger.database.read() as connection:
            found = asked.place(connection, id)
        if found is None or found[2] != tenant:
            raise NotFound("approval", id)
        return found[0], found[1]

    def _pages(self, read: Callable[[Connection, tuple[int, str]], Sequence[Row]]) -> Iterator[Question]:
        ledger, after, stale = self._shop.ledger, (0, ""), self._shop.stale()
        while True:
            with ledger.database.read() as connection:
                page = read(connection, after)
                reader = Reader(connection=connection, sealing=ledger.sealing)
                found = [read_question(reader, id_, action, stale=stale) for _, id_, action in page]
            yield from found
            if not page:
                return
            after = (page[-1][0], page[-1][1])


def _roles(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise Misuse("roles: give a list of the roles that you vouch for")
    return tuple(check_name(role, "roles") for role in value)
