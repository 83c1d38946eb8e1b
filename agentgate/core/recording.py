"""What came of an effect, as events: ended, in doubt, late, and what people say about it afterwards."""

from dataclasses import dataclass

from agentgate.canonical import Json, canonical
from agentgate.core.draft import Draft, Payload
from agentgate.core.records import ActionFile, AttemptRecord
from agentgate.observation import Observation
from agentgate.states import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an effect ended.

    Args:
        known: ``succeeded``, ``failed`` (it did not happen) or ``in_doubt``.
        observation: what the loop is told, uncut; None where nothing came back.
        code: why, for all but a success.
        retryable: whether trying again can help, for a failure.
        settled: what was spent in the end of which account, for a success; the others keep what was reserved.
        retry_after_us: how long the tool asks to be left alone, for a failure.
    """

    known: str
    observation: Observation | None
    code: str = ""
    retryable: bool = False
    settled: tuple[tuple[str, int], ...] = ()
    retry_after_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An observation as it is stored: its payload, its size, and its fingerprint where the tenant has a key."""

    payload: Payload
    outcome: bytes | None
    size: int


def end(draft: Draft, file: ActionFile, attempt: AttemptRecord, ended: Ended, kept: Kept | None, *, by: str) -> None:
    """Record the end of the running attempt."""
    body: dict[str, Json] = {"attempt": attempt.number, "fence": attempt.fence}
    payloads = () if kept is None else (kept.payload,)
    if kept is not None and kept.outcome is not None:
        body["outcome"] = kept.outcome.hex()
    if ended.known == "succeeded" and kept is not None:
        notes: list[Json] = list(ended.observation.notes) if ended.observation is not None else []
        settled: list[Json] = [{"account": account, "amount": amount} for account, amount in ended.settled]
        body |= {"result_bytes": kept.size, "notes": notes, "settled": settled}
    elif ended.known == "failed":
        body |= {"code": ended.code, "retryable": ended.retryable, "settled": []}
        if ended.retry_after_us is not None:
            body["retry_at_us"] = draft.at_us + ended.retry_after_us
    else:
        body |= {"code": ended.code, "by": by}
    draft.add(ended.known, body, action=file.action.id, payloads=payloads)


def take_over(draft: Draft, file: ActionFile, attempt: AttemptRecord, *, code: str, by: str) -> None:
    """Record that an attempt's worker is gone: whether it happened is unknown."""
    body: dict[str, Json] = {"attempt": attempt.number, "fence": attempt.fence, "code": code, "by": by}
    draft.add("in_doubt", body, action=file.action.id)


def keep_late(draft: Draft, file: ActionFile, attempt: AttemptRecord, ended: Ended, evidence: Payload) -> None:
    """Record a result that came after its worker had lost the action: evidence, kept with its fence."""
    body: dict[str, Json] = {
        "attempt": attempt.number,
        "fence": attempt.fence,
        "status": "ok" if ended.known == "succeeded" else "error",
        "clean": ended.known == "failed",
    }
    if ended.code:
        body["code"] = ended.code
    draft.add("late", body, action=file.action.id, payloads=(evidence,))


def reconcile(
    draft: Draft,
    file: ActionFile,
    *,
    applied: bool,
    by: str,
    worker_known_dead: bool,
    ready_us: int,
    result: Kept | None,
    payloads: tuple[Payload, ...],
    approval: str | None = None,
) -> None:
    """Record what somebody found out about every attempt that is in doubt.

    Outside an OPEN run nothing becomes READY: "not applied" is followed by `refused` (design §3).

    Args:
        draft: the transaction.
        file: the action.
        applied: whether it happened.
        by: who says so.
        worker_known_dead: whether no worker of the attempts in doubt can cause it any more.
        ready_us: how long the action may wait to be started, where it did not happen.
        result: what came of it, where that is known.
        payloads: what shows it.
        approval: id of the question that this answers.
    """
    doubted: list[Json] = [number for number, attempt in sorted(file.attempts.items()) if attempt.unresolved]
    body: dict[str, Json] = {
        "verdict": "applied" if applied else "not_applied",
        "attempts": doubted,
        "worker_known_dead": worker_known_dead,
        "settled": [],
        "by": by,
    }
    if approval is not None:
        body["approval"] = approval
    if result is not None:
        if result.outcome is not None:
            body["outcome"] = result.outcome.hex()
        payloads = (*payloads, result.payload)
    if not applied:
        body["until_us"] = draft.at_us + ready_us
    draft.add("reconciled", body, action=file.action.id, payloads=payloads)
    run = draft.run
    if not applied and run.state is not RunState.OPEN and draft.file(file.action.id).action.state == "READY":
        reason = "run_halted" if run.state is RunState.HALTED else "run_closed"
        draft.add("refused", {"reason": reason, "proposed": file.action.proposed_n}, action=file.action.id)


def observed(observation: Observation) -> bytes:
    """Return the bytes of an observation's payload."""
    return canonical(observation.to_json())
