"""Performing a claimed effect: outside any transaction, then recorded in one, whatever comes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agentgate.canonical import parse
from agentgate.clock import to_datetime, to_us
from agentgate.core import classifying, recording
from agentgate.core.draft import RECORDED_BOUNDS
from agentgate.core.reasons import doubt
from agentgate.core.recording import Ended, Kept
from agentgate.core.records import ActionFile
from agentgate.core.sameness import outcome_fingerprint
from agentgate.digests import idempotency_key
from agentgate.effects import Effect, Overran, Raised, Returned, run
from agentgate.errors import Unavailable
from agentgate.gate.claiming import Claim
from agentgate.gate.ledger import Ledger, Transaction, log
from agentgate.heartbeat import Heartbeat
from agentgate.observation import Error, NoEffect, Observation
from agentgate.outcome import Done, Failed, Outcome, Unknown
from agentgate.states import State
from agentgate.store import locks

RECORD_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Performer:
    """Run claimed effects of one gate.

    Args:
        ledger: where their ends are recorded.
        heartbeat: keeps their leases.
        lease_us: how long a lease lasts.
        fingerprint_key: the tenant's key, by tenant.
    """

    ledger: Ledger
    heartbeat: Heartbeat
    lease_us: int
    fingerprint_key: Callable[[str], bytes | None]

    def perform(self, claim: Claim) -> Outcome:
        """Run a claimed effect and record its end.

        Raises:
            BaseException: an interruption (KeyboardInterrupt, SystemExit), once it is recorded.
            Unavailable: the end could not be recorded; the action is UNKNOWN once its lease is over.
        """
        effect = self._effect(claim)
        try:
            with self.heartbeat.keeping(effect):
                end = self._run(claim, effect)
        except BaseException:
            self._record(claim, classifying.interrupted())
            raise
        if isinstance(end, Ended):
            return self._record(claim, end)
        outcome = self._record(claim, self._read(claim, end))
        if isinstance(end, Raised) and not isinstance(end.error, Exception):
            raise end.error
        return outcome

    def _run(self, claim: Claim, effect: Effect) -> Ended | Returned | Raised | Overran:
        clock, spec = self.ledger.clock, claim.tool.spec
        if clock.monotonic_us() >= claim.asked_us + self.lease_us:
            late = NoEffect("the lease was over before the effect could begin", code="lease_lost")
            return classifying.raised(late, spec)
        try:
            args, named = claim.tool.bind(parse(claim.content, bounds=RECORDED_BOUNDS), effect)
        except NoEffect as error:
            return classifying.raised(error, spec)
        seconds = to_us(spec.timeout) / 1e6
        return run(partial(claim.tool.fn, *args, **named), seconds=seconds, on_late=partial(self._late, claim))

    def _effect(self, claim: Claim) -> Effect:
        action, attempt = claim.file.action, claim.attempt
        key = idempotency_key(
            ledger=self.ledger.id,
            tenant=claim.tenant,
            namespace=action.namespace,
            tool=action.tool,
            key={"source": action.key.source, "scope": action.key.scope, "text": action.key.text},
            revision=action.revision,
        )
        return Effect(
            action_id=action.id,
            idempotency_key=key,
            attempt=attempt.number,
            fence=attempt.fence,
            deadline=to_datetime(attempt.deadline_us),
            tenant=claim.tenant,
            principal=action.principal,
            clock=self.ledger.clock,
            until_us=self.ledger.clock.monotonic_us() + to_us(claim.tool.spec.timeout),
        )

    def _read(self, claim: Claim, end: Returned | Raised | Overran) -> Ended:
        if isinstance(end, Returned):
            return classifying.returned(end.value, claim.tool.spec)
        return classifying.overran() if isinstance(end, Overran) else classifying.raised(end.error, claim.tool.spec)

    def keep(self, claim: Claim, observation: Observation, *, kind: str = "result") -> Kept:
        """Make an observation's payload, with its fingerprint."""
        return kept(self.ledger, self.fingerprint_key(claim.tenant), claim.file, observation, kind=kind)

    def _record(self, claim: Claim, ended: Ended) -> Outcome:
        """Record the end, once more where the database could not be had (design §9: same transaction or none)."""
        result = None if ended.observation is None else self.keep(claim, ended.observation)
        write = partial(self._write, claim=claim, ended=ended, result=result)
        for remaining in reversed(range(RECORD_TRIES)):
            try:
                recorded = self.ledger.change(claim.file.action.run, write)
            except Unavailable as error:
                if remaining == 0:
                    raise Unavailable(
                        "record",
                        f"action {claim.file.action.id} ended ({ended.known}) but could not be recorded "
                        f"({error}); once its lease is over it is UNKNOWN: reconcile it, do not repeat it",
                    ) from error
            else:
                return self._answer(claim, ended, recorded=recorded)
        raise AssertionError("the loop above returns or raises")

    def _write(self, transaction: Transaction, *, claim: Claim, ended: Ended, result: Kept | None) -> bool:
        """Draft the end of our own attempt; where it is not ours any more, what came of it is evidence."""
        file = transaction.file(claim.file.action.id)
        attempt = file.attempts.get(claim.attempt.number)
        if attempt is None or attempt.fence != claim.attempt.fence:
            return False
        if attempt.state == "open" and file.action.state is State.EXECUTING:
            recording.end(transaction.draft, file, attempt, ended, result, by=attempt.holder)
            release(transaction, file.action.id, parallel=claim.tool.spec.parallel)
            return True
        if ended.observation is not None and attempt.late_n is None:
            evidence = self.keep(claim, ended.observation, kind="evidence").payload
            recording.keep_late(transaction.draft, file, attempt, ended, evidence)
        return False

    def _late(self, claim: Claim, end: Returned | Raised) -> None:
        """Record, from the effect's own thread, what came after its time-out; nobody is left to be told."""
        ended = self._read(claim, end)
        self.heartbeat.forget(claim.attempt.fence)
        try:
            self.ledger.change(claim.file.action.run, partial(self._write, claim=claim, ended=ended, result=None))
        except Exception as error:  # noqa: BLE001 - a thread without a caller: the action stays UNKNOWN
            log.warning("late result lost", action=claim.file.action.id, error=type(error).__name__)

    def _answer(self, claim: Claim, ended: Ended, *, recorded: bool) -> Outcome:
        action = claim.file.action
        digest = action.digest.hex()
        if not recorded:
            return Unknown(action=action.id, digest=digest, reason="lease_lost", error=doubt("lease_lost"))
        if ended.known == "succeeded" and ended.observation is not None:
            seen = classifying.shown(ended.observation, limit=claim.tool.spec.max_output_bytes)
            return Done(action=action.id, digest=digest, observation=seen, source="executed")
        error = ended.observation.error if ended.observation is not None else None
        if ended.known == "failed" and not claim.file.action.unresolved:
            told = error or Error(code=ended.code, message=ended.code)
            return Failed(action=action.id, digest=digest, reason=told.code, error=told, retryable=ended.retryable)
        return Unknown(action=action.id, digest=digest, reason=ended.code, error=doubt(ended.code))


def kept(
    ledger: Ledger, key: bytes | None, file: ActionFile, observation: Observation, *, kind: str = "result"
) -> Kept:
    """Make an observation's payload and its outcome fingerprint."""
    content = recording.observed(observation)
    request = file.action.request
    outcome = None
    if key is not None and request is not None:
        outcome = outcome_fingerprint(key, request=request, observation=observation)
    return Kept(payload=ledger.payload(kind, content), outcome=outcome, size=len(content))


def release(transaction: Transaction, action: str, *, parallel: bool) -> None:
    """Give the action's resource back, unless it may still be at work there."""
    file = transaction.draft.file(action)
    if file.action.resource is None or parallel or file.action.state in {State.UNKNOWN, State.EXECUTING}:
        return
    if not file.action.unresolved:
        locks.release(transaction.connection, tenant=file.action.tenant, resource=file.action.resource, action=action)
