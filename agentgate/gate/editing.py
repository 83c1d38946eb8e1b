"""Edits: an approver changes a call's arguments, and what comes of it is a new action, thought through from the start.

The edit takes the place of the question that it answers, under the same key, in the same run and for the same
principal; nothing that was decided or voted about the old arguments counts for the new ones (docs/decisions/0027).
"""

from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy.engine import Connection

from agentgate.canonical import Json, canonical
from agentgate.core.claiming import expire
from agentgate.core.judging import Judgement
from agentgate.core.proposing import Edit, Thought, Waiting, propose
from agentgate.core.records import ActionFile, ApprovalRecord, RunRecord
from agentgate.core.voting import REMEDIES
from agentgate.errors import Damaged, Misuse, NotFound, NotPossible, Unavailable, VoteRefused
from agentgate.gate.answers import Reader
from agentgate.gate.closing import refuse_waiting
from agentgate.gate.handles import check_digest, check_id
from agentgate.gate.ledger import TRIES, Ledger, Transaction
from agentgate.gate.names import check_person, check_tenant, check_text
from agentgate.gate.proposing import asked_before, chance, view_of
from agentgate.gate.settings import Settings
from agentgate.gate.standing import MOST_EDITS, newest, same_arguments_as
from agentgate.gate.thinking import Intent, Mind
from agentgate.gate.workshop import Workshop
from agentgate.outcome import Proposal
from agentgate.policy.request import View
from agentgate.states import RunState
from agentgate.store import actions, asked, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a person wants run instead of what they are asked about.

    Args:
        tenant: whose question it is.
        approval: its id.
        digest: the approval digest that they were shown.
        arguments: a value, or JSON as text or bytes.
        by: who they are.
        note: why, in words.
    """

    tenant: str
    approval: str
    digest: bytes
    arguments: object = field(repr=False)
    by: str
    note: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What an edit looked at before the policy was asked."""

    file: ActionFile
    run: RunRecord
    provenance: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """Record edits in one gate.

    Args:
        ledger: where they are recorded.
        settings: times to live.
    """

    ledger: Ledger
    settings: Settings

    def edit(self, mind: Mind, revision: Revision, *, fingerprint_key: bytes | None) -> str:
        """Propose what a person wants run instead; return the new action's id.

        Raises:
            NotFound: no such question in this tenant.
            VoteRefused: it is not the one that was shown, or it takes no answer any more.
            NotPossible: it asks about no call that has not started, or its tool is not the one that was asked about.
            Misuse: nothing was changed.
        """
        seen = self._look(revision)
        _check_tool(mind, seen.file)
        # What the loop said of where the call comes from is true of the edit as well: a policy may rest on it.
        intent = _intent(seen, revision)
        thought = replace(mind.think(intent, fingerprint_key), edits=Edit(action=seen.file.action.id, by=revision.by))
        for _ in range(TRIES):
            view = self._compare(seen, thought)
            judged = self._ask(mind, thought, seen, view, revision.note)
            write = partial(self._write, thought=judged, seen=seen, revision=revision)
            done = self.ledger.change(seen.run.id, write, tenant=revision.tenant, documents=mind.documents)
            if isinstance(done, str):
                return done
            seen = self._look(revision)  # which says what it is that has ended, where its time was over
        raise Unavailable("moved", f"the run changed {TRIES} times while the policy was asked; try again")

    def _look(self, revision: Revision) -> _Seen:
        with self.ledger.database.read() as connection:
            place = asked.place(connection, revision.approval)
            file = None if place is None else actions.file(connection, place[0])
            if file is None or file.action.tenant != revision.tenant:
                raise NotFound("approval", revision.approval)
            check_asked(file, revision)
            run = runs.read(connection, file.action.run)
            if run is None:
                raise Damaged(f"action {file.action.id}", "its run is missing")
            reader = Reader(connection=connection, sealing=self.ledger.sealing)
            stored = reader.kept(run.id, file.action.proposed_n, "provenance")
            _check_depth(connection, file)
            return _Seen(file=file, run=run, provenance=None if stored is None else stored.value())

    def _compare(self, seen: _Seen, thought: Thought) -> View:
        """Refuse an edit that changes nothing, and look at the run as its policy will be shown it."""
        with self.ledger.database.read() as connection:
            sealing = self.ledger.sealing
            if thought.completed and same_arguments_as(connection, seen.file.action, thought, sealing):
                raise Misuse("arguments: these are what is asked about; vote on them, or give other ones")
            run = runs.read(connection, seen.run.id)
            if run is None:
                raise Damaged(f"action {seen.file.action.id}", "its run is missing")
            return view_of(connection, run, namespace=thought.namespace, tool=thought.tool)

    def _ask(self, mind: Mind, thought: Thought, seen: _Seen, view: View, note: str) -> Thought:
        if thought.refusal is not None:
            texts = (self.ledger.payload("texts", canonical({"note": note})),) if note else ()
            return replace(thought, payloads=(*thought.payloads, *texts))
        judgement = mind.judge(thought, seen.run, view, revision=_next(seen.file, thought))
        return replace(thought, judgement=self._noted(judgement, note))

    def _noted(self, judgement: Judgement, note: str) -> Judgement:
        """Keep the editor's words beside the policy's: an event has one payload of texts."""
        if not note:
            return judgement
        texts = judgement.decision.texts() | {"note": note}
        return replace(judgement, texts=self.ledger.payload("texts", canonical({**texts})))

    def _write(self, transaction: Transaction, *, thought: Thought, seen: _Seen, revision: Revision) -> str | None:
        """Write what was decided; None where the question's time is over, or what the answer rests on has moved."""
        draft, before = transaction.draft, seen.file.action
        file = transaction.file(before.id)
        if expire(draft, file):
            return None
        check_asked(file, revision)
        if draft.run.state is not RunState.OPEN:
            raise NotPossible(f"run {draft.run.id}", "edit a call of it", draft.run.state, "nothing of it starts")
        _check_unstarted(transaction.connection, file, thought)
        waiting = Waiting(draft=draft, action=file.action)
        drawn = chance(self.ledger, self.settings)
        again = asked_before(transaction, thought)
        made = propose(draft, thought, drawn, revision=_next(file, thought), supersedes=waiting, rejected=again)
        refuse_waiting(transaction)
        return made.action.id


def edit(shop: Workshop, id: str, *, digest: str, arguments: object, by: str, note: str, tenant: str) -> Proposal:
    """Propose, as `Gate.approvals.edit` does, what somebody wants run instead of what they are asked about."""
    revision = Revision(
        tenant=check_tenant(tenant),
        approval=check_id(id, "approval"),
        digest=check_digest(digest),
        arguments=arguments,
        by=check_person(by, "by"),
        note=check_text(note, "note") or "",
    )
    editor = Editor(ledger=shop.ledger, settings=shop.settings)
    made = editor.edit(shop.mind, revision, fingerprint_key=shop.key(revision.tenant))
    return shop.proposal(revision.tenant, made, repeated=False)


def check_asked(file: ActionFile, revision: Revision) -> ApprovalRecord:
    """Return the question that is being answered with an edit, which must be what was shown, and open.

    Raises:
        VoteRefused: it is another, or has ended.
        NotPossible: it does not ask whether a call may start.
    """
    question = file.approvals[revision.approval]
    if question.digest != revision.digest:
        raise VoteRefused(question.id, "other_digest", REMEDIES["other_digest"])
    if question.state != "pending":
        raise VoteRefused(question.id, question.state, REMEDIES[question.state])
    if question.kind != "approval" or file.action.attempts:
        remedy = "it may have happened with the arguments it has; only what has never started can be edited"
        raise NotPossible(f"approval {question.id}", "edit the call", file.action.state, remedy)
    return question


def _check_tool(mind: Mind, file: ActionFile) -> None:
    action = file.action
    known = mind.tools.lookup(action.namespace, action.tool)
    if known is None:
        remedy = f"this gate has no tool {action.tool!r}; edit where it is registered"
        raise NotPossible(f"action {action.id}", "edit it", action.state, remedy)
    if known.spec.digest != action.spec:
        remedy = "its tool is declared otherwise by now; let the loop propose it again"
        raise NotPossible(f"action {action.id}", "edit it", action.state, remedy)


def _check_unstarted(connection: Connection, file: ActionFile, thought: Thought) -> None:
    """Ask of every revision of the key whether it ever started, and whether this one is the newest."""
    action = file.action
    found = newest(connection, action.tenant, thought)
    if found is not None and found.id != action.id:
        raise Damaged(f"action {action.id}", "it waits, and is not the newest of its key")
    if found is not None and actions.was_attempted(connection, action):
        remedy = "an earlier call under its key has started; reject it, and let the loop use a new key"
        raise NotPossible(f"action {action.id}", "edit it", action.state, remedy)


def _check_depth(connection: Connection, file: ActionFile) -> None:
    """Refuse one edit more than a repeat is compared with: the loop's first arguments would not be recognised.

    Raises:
        NotPossible: there are as many in a row as may be.
    """
    edited = file.action
    for _ in range(MOST_EDITS - 1):
        before = None if edited.edits is None else actions.read(connection, edited.edits)
        if before is None:
            return
        edited = before
    remedy = f"it was edited {MOST_EDITS - 1} times in a row; decide about it as it is"
    raise NotPossible(f"action {file.action.id}", "edit it", file.action.state, remedy)


def _intent(seen: _Seen, revision: Revision) -> Intent:
    action = seen.file.action
    return Intent(
        namespace=action.namespace,
        tool=action.tool,
        arguments=revision.arguments,
        principal=action.principal,
        key=None if action.key.source == "own" else action.key,  # a call without a key is its own, and so is its edit
        provenance=seen.provenance,
        supersede=True,
    )


def _next(file: ActionFile, thought: Thought) -> int:
    return 1 if thought.key.source == "own" else file.action.revision + 1
