"""Proposing: think, look, ask the policy, then write once, and all again if what the answer rests on moved."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from sqlalchemy.engine import Connection

from agentgate.canonical import canonical
from agentgate.clock import new_id
from agentgate.core.claiming import expire
from agentgate.core.proposing import Chance, Thought, propose
from agentgate.core.reasons import REVISABLE
from agentgate.core.records import ActionFile, ActionRecord, RunRecord, counted
from agentgate.core.sameness import Asked, same_arguments
from agentgate.errors import Damaged, KeyConflict, NotFound, Unavailable
from agentgate.event import decode
from agentgate.gate.closing import refuse_waiting
from agentgate.gate.ledger import TRIES, Ledger, Transaction
from agentgate.gate.settings import Settings
from agentgate.gate.thinking import Call, Mind
from agentgate.policy.request import Recent, View
from agentgate.states import RunState, State
from agentgate.store import actions, events, runs

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a proposal looked at before it asked the policy.

    Args:
        run: the run's row.
        view: what the policy is shown of it.
        standing: what the key stands for.
    """

    run: RunRecord
    view: View
    standing: "Standing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a key stands for when a call comes with it.

    Args:
        repeat: the action it repeats.
        supersedes: the waiting action whose place it takes.
        revision: the revision it would be, where it is a new action.
    """

    repeat: ActionRecord | None = None
    supersedes: ActionRecord | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A proposal's place in the record, inside the transaction that put or found it there."""

    file: ActionFile
    thought: Thought
    repeated: bool


def view_of(connection: Connection, run: RunRecord) -> View:
    """Build what a policy is shown of a run: its counters and its last actions, whatever its length."""
    rows = actions.recent(connection, run.id)
    recent = tuple(
        Recent(
            namespace=namespace,
            tool=tool,
            state=state,
            reason=reason,
            request=None if request is None else request.hex(),
            outcome=None if outcome is None else outcome.hex(),
        )
        for namespace, tool, state, reason, request, outcome in rows
    )
    # In the order in which the record has them: a policy that goes through them sees the same at a recheck.
    return View(n=run.n, counters=dict(sorted(counted(run.counters).items())), budgets={}, recent=recent)


def standing(connection: Connection, run: RunRecord, thought: Thought, *, supersede: bool) -> Standing:
    """Tell what the call's key stands for (design §8).

    Raises:
        KeyConflict: another intent, or another principal's.
    """
    if thought.key.source == "own":
        return Standing()
    found = actions.newest(
        connection, tenant=run.tenant, namespace=thought.namespace, tool=thought.tool, key=thought.key
    )
    if found is None:
        return Standing()
    if found.principal != thought.principal:
        raise KeyConflict(thought.tool, thought.key.text)
    if _same_arguments(connection, found, thought):
        again = found.state is State.REFUSED and found.reason in REVISABLE and not found.unresolved
        return Standing(revision=found.revision + 1) if again else Standing(repeat=found)
    if not supersede or found.attempts:
        raise KeyConflict(thought.tool, thought.key.text)
    waiting = found.state in {State.HELD, State.READY}
    if waiting and found.run != run.id:  # its end would stand in another chain than this call's transaction writes
        raise KeyConflict(thought.tool, thought.key.text)
    return Standing(supersedes=found if waiting else None, revision=found.revision + 1)


def _same_arguments(connection: Connection, found: ActionRecord, thought: Thought) -> bool:
    """Compare with what was recorded: as supplied, or as completed; where they are gone, by fingerprint."""
    new = Asked(supplied=canonical(thought.supplied), arguments=canonical(thought.arguments), request=thought.request)
    supplied, arguments = (_content(connection, found, kind) for kind in ("supplied", "arguments"))
    recorded = Asked(supplied=supplied, arguments=arguments, request=found.request)
    if same_arguments(new, recorded):
        return True
    # A payload that was never there is the next one (docs/format.md); one that was erased is not.
    return supplied is None and new.supplied == arguments and not _was_supplied(connection, found)


def _content(connection: Connection, found: ActionRecord, kind: str) -> bytes | None:
    payload = events.payload(connection, found.run, found.proposed_n, kind)
    return None if payload is None else payload.content


def _was_supplied(connection: Connection, found: ActionRecord) -> bool:
    """Tell whether the proposal named what was supplied apart from what was completed."""
    link = events.link(connection, found.run, found.proposed_n)
    if link is None:
        raise Damaged(f"run {found.run}", f"its event {found.proposed_n} is missing")
    named = decode(link.encoded).body["payloads"]
    return type(named) is dict and "supplied" in named


class Proposer:
    """Propose calls of one gate.

    Args:
        ledger: where they are recorded.
        settings: times to live.
    """

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self._ledger = ledger
        self._settings = settings

    def propose(
        self,
        mind: Mind,
        run: str,
        call: Call,
        *,
        tenant: str,
        fingerprint_key: bytes | None,
        supersede: bool,
        then: Callable[[Transaction, Proposed], T],
    ) -> T:
        """Record a call, or find the action that it repeats.

        Args:
            mind: what to think with.
            run: the run's id.
            call: what was asked for.
            tenant: whose run it must be.
            fingerprint_key: the tenant's.
            supersede: whether other arguments may take a waiting action's place.
            then: what else to do in the same transaction; its answer is returned.
        """
        thought = mind.think(call, fingerprint_key)
        for _ in range(TRIES):
            seen = self._look(run, tenant, thought, supersede=supersede)
            asked = self._ask(mind, thought, seen)
            repeat = seen.standing.repeat
            work = self._write if repeat is None else self._repeat
            write = partial(work, thought=asked, seen=seen, supersede=supersede, then=then)
            # A repeat is of any run of the tenant: what happens to the action stands in its own run's chain.
            done = self._ledger.change(run if repeat is None else repeat.run, write, documents=mind.documents)
            if done is not None:
                return done
        raise Unavailable("moved", f"the run or its key changed {TRIES} times while the policy was asked; try again")

    def _look(self, run: str, tenant: str, thought: Thought, *, supersede: bool) -> Seen:
        with self._ledger.database.read() as connection:
            record = runs.read(connection, run)
            if record is None or record.tenant != tenant:
                raise NotFound("run", run)
            found = standing(connection, record, thought, supersede=supersede)
            return Seen(run=record, view=view_of(connection, record), standing=found)

    def _ask(self, mind: Mind, thought: Thought, seen: Seen) -> Thought:
        if thought.refusal is not None or seen.standing.repeat is not None or seen.run.state is not RunState.OPEN:
            return thought
        judgement = mind.judge(thought, seen.run, seen.view, revision=seen.standing.revision)
        return replace(thought, judgement=judgement)

    def _write(
        self,
        transaction: Transaction,
        *,
        thought: Thought,
        seen: Seen,
        supersede: bool,
        then: Callable[[Transaction, Proposed], T],
    ) -> T | None:
        """Write what was decided, or return None where what it rests on has moved."""
        draft = transaction.draft
        if draft.run.state is not seen.run.state:
            return None
        now = standing(transaction.connection, draft.run, thought, supersede=supersede)
        if now.repeat is not None or now.revision != seen.standing.revision:
            return None
        if now.supersedes is not None:
            transaction.file(now.supersedes.id)
            draft.add("superseded", {"successor": thought.id}, action=now.supersedes.id)
        file = propose(draft, thought, chance(self._ledger, self._settings), revision=now.revision)
        refuse_waiting(transaction)
        return then(transaction, Proposed(file=file, thought=thought, repeated=False))

    def _repeat(
        self,
        transaction: Transaction,
        *,
        thought: Thought,
        seen: Seen,
        supersede: bool,
        then: Callable[[Transaction, Proposed], T],
    ) -> T | None:
        """Find the action that the call repeats, or return None where the key stands for another by now."""
        now = standing(transaction.connection, transaction.draft.run, thought, supersede=supersede)
        assert seen.standing.repeat is not None  # the caller looked
        if now.repeat is None or now.repeat.id != seen.standing.repeat.id:
            return None
        file = transaction.file(now.repeat.id)
        if expire(transaction.draft, file):
            return None
        return then(transaction, Proposed(file=file, thought=thought, repeated=True))


def chance(ledger: Ledger, settings: Settings) -> Chance:
    """Draw the ids and salts that a question or a refusal may need."""
    return Chance(
        ledger=ledger.id,
        approval=new_id(ledger.clock),
        salts=(ledger.salt(), ledger.salt()),
        ready_us=settings.ready_us,
        question_us=settings.question_us,
    )
