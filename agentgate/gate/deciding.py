"""Saying what became of an unknown outcome: one person on their own, or operators with the last of their votes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from agentgate.approval import Verdict
from agentgate.canonical import canonical
from agentgate.core import recording
from agentgate.core.draft import Payload
from agentgate.core.recording import Kept
from agentgate.core.records import ActionFile, VoteRecord
from agentgate.errors import Damaged, Misuse, NotPossible
from agentgate.gate.given import plain
from agentgate.gate.keeping import kept
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.releasing import release
from agentgate.observation import Observation
from agentgate.states import RunState, State


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOut:
    """What somebody has found out about an unknown outcome, ready to be recorded.

    Args:
        ready_us: how long the action may wait to be started, where it did not happen.
        worker_known_dead: whether no worker of the attempts in doubt can cause it any more.
        evidence: what shows it.
        result: makes what came of it.
    """

    ready_us: int
    worker_known_dead: bool
    evidence: Payload = field(repr=False)
    result: Callable[[ActionFile], Kept]

    def record(
        self, transaction: Transaction, file: ActionFile, *, applied: bool, by: str, approval: str | None = None
    ) -> None:
        """Record that it happened, or that it did not; and let go of what it held."""
        recording.reconcile(
            transaction.draft,
            file,
            applied=applied,
            by=by,
            worker_known_dead=self.worker_known_dead,
            ready_us=self.ready_us,
            result=self.result(file) if applied and file.action.state is State.UNKNOWN else None,
            payloads=(self.evidence,),
            approval=approval,
        )
        release(transaction, file.action.id, parallel=False)

    def settle(
        self, transaction: Transaction, file: ActionFile, verdict: Verdict, votes: tuple[VoteRecord, ...]
    ) -> None:
        """Record what operators agree on, as `Gate.reconcile` does, under the question that they answered.

        Raises:
            Damaged: no operator's question is pending on the action.
        """
        question = file.question
        if question is None or question.kind != "question" or question.state != "pending":
            raise Damaged(f"action {file.action.id}", "no operator's question is pending on it")
        applied, last = verdict == "applied", votes[-1].approver
        self.record(transaction, file, applied=applied, by=last, approval=question.id)


def found_out(
    ledger: Ledger,
    key: bytes | None,
    *,
    applied: bool,
    evidence: object,
    result: object,
    worker_known_dead: object,
    ready_us: int,
) -> FoundOut:
    """Read what somebody gives who says what became of an unknown outcome.

    Args:
        ledger: the record.
        key: the tenant's fingerprint key.
        applied: whether they say that it happened.
        evidence: a JSON value that shows it.
        result: what the loop is told of what happened; None where that is not known.
        worker_known_dead: whether no worker can cause it any more.
        ready_us: how long the action may wait to be started, where it did not happen.

    Raises:
        Misuse: a flag that is none, or a result of nothing.
        NotCanonical: the evidence or the result is no JSON value.
    """
    if type(worker_known_dead) is not bool:  # an event that holds anything else is one that no reader accepts
        raise Misuse("worker_known_dead: say True or False")
    if result is not None and not applied:
        raise Misuse("result: there is none of what did not happen; leave it out, or say that it was applied")
    proof = ledger.payload("evidence", canonical(plain(evidence, "evidence")))
    told = Observation(status="ok", value=plain(result, "result"), notes=("reconciled",))
    return FoundOut(
        ready_us=ready_us,
        worker_known_dead=worker_known_dead,
        evidence=proof,
        result=partial(_kept, ledger, key, told),
    )


def _kept(ledger: Ledger, key: bytes | None, told: Observation, file: ActionFile) -> Kept:
    return kept(ledger, key, file, told)


def check_again(transaction: Transaction, file: ActionFile) -> None:
    """Refuse to order another attempt where none can begin any more.

    Raises:
        NotPossible: the run is halted or closed.
    """
    state = transaction.draft.run.state
    if state is not RunState.OPEN:
        remedy = f"its run is {state.value}, and nothing starts in it: say applied or not_applied, or abandon it"
        raise NotPossible(f"action {file.action.id}", "run it again", file.action.state, remedy)
