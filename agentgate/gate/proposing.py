"""Proposing: think, look, ask the policy, then write once, and all again if what the answer rests on moved."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from agentgate.clock import new_id, to_us
from agentgate.core.budgets import TENANT, Budget, Place, left
from agentgate.core.budgets import tool as tool_place
from agentgate.core.claiming import expire, outdate
from agentgate.core.proposing import Chance, Thought, Waiting, propose
from agentgate.core.records import ActionFile, ActionRecord, RunRecord, counted
from agentgate.errors import NotFound, Unavailable
from agentgate.gate.closing import refuse_waiting
from agentgate.gate.ledger import TRIES, Ledger, Transaction
from agentgate.gate.settings import Settings
from agentgate.gate.standing import Standing, known, stand
from agentgate.gate.thinking import Intent, Mind
from agentgate.policy.request import Recent, View
from agentgate.sealing import SealingKeys
from agentgate.states import RunState
from agentgate.store import actions, runs
from agentgate.store import budgets as budget_rows
from agentgate.store.rejections import was_rejected

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
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A proposal's place in the record, inside the transaction that put or found it there."""

    file: ActionFile
    thought: Thought
    repeated: bool


def view_of(connection: Connection, run: RunRecord, *, namespace: str, tool: str) -> View:
    """Build what a policy is shown of a run: its counters and its last actions, whatever its length.

    Args:
        connection: the snapshot.
        run: as it was read there.
        namespace: the server of the tool that is asked about.
        tool: its name.
    """
    budgets = left(run, bounds_of(connection, run, (tool_place(namespace, tool),)))
    # In the order in which the record has them: a policy that goes through them sees the same at a recheck.
    counters = dict(sorted(counted(run.counters).items()))
    return View(n=run.n, counters=counters, budgets=budgets, recent=tuple(recent_of(connection, run).values()))


def bounds_of(connection: Connection, run: RunRecord, tools: Sequence[Place]) -> list[Budget]:
    """Read the budgets that a policy is shown: the tenant's, its first accounts', and these tools'."""
    if not run.budgeted:
        return []
    shared = budget_rows.read(connection, tenant=run.tenant, places=(TENANT, *tools))
    return shared + budget_rows.accounts(connection, tenant=run.tenant)


def recent_of(connection: Connection, run: RunRecord) -> dict[str, Recent]:
    """Read a run's last actions as a policy sees them, by id, newest first."""
    return {row[0]: _recent(row[1:]) for row in actions.recent(connection, run.id)}


def seen_as(action: ActionRecord) -> Recent:
    """Return an action as a policy sees it among a run's last ones."""
    found = (action.namespace, action.tool, action.state.value, action.reason, action.request, action.outcome)
    return _recent(found)


def _recent(row: tuple[Any, ...]) -> Recent:
    namespace, tool, state, reason, request, outcome = row
    return Recent(
        namespace=namespace,
        tool=tool,
        state=state,
        reason=reason,
        request=None if request is None else request.hex(),
        outcome=None if outcome is None else outcome.hex(),
    )


def standing(
    connection: Connection, run: RunRecord, thought: Thought, *, supersede: bool, sealing: SealingKeys | None
) -> Standing:
    """Tell what the call's key stands for.

    Raises:
        KeyConflict: another intent, or another principal's.
    """
    found = known(connection, run.tenant, thought, supersede=supersede, sealing=sealing)
    if found is None:
        return Standing()
    return stand(found.action, thought, same=found.same, attempted=found.attempted, supersede=supersede)


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
        call: Intent,
        *,
        tenant: str,
        fingerprint_key: bytes | None,
        then: Callable[[Transaction, Proposed], T],
    ) -> T:
        """Record a call, or find the action that it repeats.

        Args:
            mind: what to think with.
            run: the run's id.
            call: what was asked for.
            tenant: whose run it must be.
            fingerprint_key: the tenant's.
            then: what else to do in the same transaction; its answer is returned.
        """
        thought = mind.think(call, fingerprint_key)
        for _ in range(TRIES):
            seen = self._look(run, tenant, thought, supersede=call.supersede)
            asked = self._ask(mind, thought, seen)
            repeat = seen.standing.repeat
            work = self._write if repeat is None else self._repeat
            write = partial(work, thought=asked, seen=seen, supersede=call.supersede, then=then)
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
            found = standing(connection, record, thought, supersede=supersede, sealing=self._ledger.sealing)
            view = view_of(connection, record, namespace=thought.namespace, tool=thought.tool)
            return Seen(run=record, view=view, standing=found)

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
        now = standing(transaction.connection, draft.run, thought, supersede=supersede, sealing=self._ledger.sealing)
        if now.repeat is not None or now.revision != seen.standing.revision:
            return None
        waiting = None if now.supersedes is None else _waiting(transaction, now.supersedes)
        drawn = chance(self._ledger, self._settings)
        rejected = asked_before(transaction, thought)
        file = propose(draft, thought, drawn, revision=now.revision, supersedes=waiting, rejected=rejected)
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
        now = standing(
            transaction.connection,
            transaction.draft.run,
            thought,
            supersede=supersede,
            sealing=self._ledger.sealing,
        )
        assert seen.standing.repeat is not None  # the caller looked
        if now.repeat is None or now.repeat.id != seen.standing.repeat.id:
            return None
        file = transaction.file(now.repeat.id)
        if expire(transaction.draft, file) or outdate(transaction.draft, file, thought.spec):
            return None
        return then(transaction, Proposed(file=file, thought=thought, repeated=True))


def asks(thought: Thought) -> bool:
    """Tell whether the policy wants people to be asked."""
    return thought.judgement is not None and thought.judgement.decision.requirement is not None


def _waiting(transaction: Transaction, action: ActionRecord) -> Waiting:
    """Bring in the action whose place a proposal takes; its end stands in its own run's chain, whichever that is."""
    its_run = transaction.beside(action.run)
    return Waiting(draft=its_run.draft, action=its_run.file(action.id).action)


def asked_before(transaction: Transaction, thought: Thought) -> bool:
    """Tell whether people of the run have refused what a policy wants to ask them.

    What bounds how much may be asked of them is taken into the transaction, where anything is.
    """
    if not asks(thought):
        return False
    transaction.bind(TENANT, tool_place(thought.namespace, thought.tool))
    return was_rejected(transaction.connection, transaction.draft.run.id, thought.request)


def chance(ledger: Ledger, settings: Settings) -> Chance:
    """Draw the ids and salts that a question or a refusal may need."""
    return Chance(
        ledger=ledger.id,
        approval=new_id(ledger.clock),
        salts=(ledger.salt(), ledger.salt()),
        ready_us=settings.ready_us,
        question_us=settings.question_us,
        grant_us=to_us(settings.grant),
    )
