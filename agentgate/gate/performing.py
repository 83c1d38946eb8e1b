"""Performing a claimed effect: outside any transaction, then recorded in one, whatever comes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agentgate.canonical import parse
from agentgate.clock import to_datetime, to_us
from agentgate.core import classifying, recording
from agentgate.core.draft import RECORDED_BOUNDS
from agentgate.core.reasons import doubt
from agentgate.core.recording import Ended, Kept
from agentgate.core.records import ActionFile, ActionRecord, AttemptRecord
from agentgate.core.veiling import Veil, veil_of, veiled_exception
from agentgate.digests import idempotency_key
from agentgate.effects import Effect
from agentgate.errors import Unavailable
from agentgate.event import decode
from agentgate.gate import progress
from agentgate.gate.answers import Reader, as_edited
from agentgate.gate.claiming import Claim
from agentgate.gate.confirming import Checker
from agentgate.gate.keeping import kept
from agentgate.gate.ledger import Ledger, Transaction, log
from agentgate.gate.releasing import block_again, release
from agentgate.gate.settings import Settings
from agentgate.gate.transacting import attempt, is_transactional
from agentgate.heartbeat import Heartbeat
from agentgate.observation import Error, NoEffect, Observation
from agentgate.outcome import Done, Failed, Outcome, Unknown
from agentgate.secrets import Broker, Handed
from agentgate.states import State
from agentgate.store import actions, events, runs
from agentgate.tools.sensitive import sensitive_values
from agentgate.work import End, Interrupted, Overran, Raised, Returned, Unentered, Work

RECORD_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The end of an attempt as it is on record, and the action with it."""

    file: ActionFile
    ended: Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """An effect that ran in its claim's transaction, and what to answer once that is committed."""

    claim: Claim
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Performer:
    """Run claimed effects of one gate.

    Args:
        ledger: where their ends are recorded.
        heartbeat: keeps their leases.
        settings: how long a lease lasts, and a check.
        fingerprint_key: the tenant's key, by tenant.
        broker: fetches the secrets that tools ask for.
        within: whether all of it happens inside a transaction of the caller's.
    """

    ledger: Ledger
    heartbeat: Heartbeat
    settings: Settings
    fingerprint_key: Callable[[str], bytes | None]
    broker: Broker
    within: bool = False

    def perform(self, claim: Claim | Ran) -> Outcome:
        """Run a claimed effect, unless it ran in its claim; record its end, and have it checked where its tool can.

        Raises:
            BaseException: an interruption (KeyboardInterrupt, SystemExit), once the end is recorded.
            Unavailable: the end could not be recorded; the action is UNKNOWN once its lease is over.
        """
        if isinstance(claim, Ran):
            return self.confirmed(claim.claim, claim.outcome)
        handed: Handed = {}
        spent: dict[str, int] = {}
        work = Work(
            (self.ledger.id, claim.attempt.fence),
            record=partial(self._end, claim, handed, spent),
            on_late=partial(self._late, claim, handed, spent),
        )
        try:
            effect = self._effect(claim, handed, spent)
            with self.heartbeat.keeping(effect):  # also while its end is recorded, which may have to wait for its turn
                outcome = work.do(partial(self._begin, claim, effect), seconds=to_us(claim.tool.spec.timeout) / 1e6)
        except BaseException as error:
            work.leave(error)
            if work.failure is not None and work.failure is not error:
                log.warning("end not recorded", action=claim.file.action.id, error=type(work.failure).__name__)
            if isinstance(error, Exception):
                raise
            interruption = error
        else:
            return self.confirmed(claim, outcome)
        # Outside of the handler: what is raised in it has the tool's own exception as its context.
        raise veiled_exception(interruption, self.veil(claim, handed))

    def settled(self, transaction: Transaction, step: Claim | Outcome | None) -> Claim | Ran | Outcome | None:
        """Run a claimed effect where it belongs into the transaction of its claim, and record its end there.

        Returns:
            How it ran, true once the transaction is committed; what was given, for every other step.
        """
        if not isinstance(step, Claim) or not is_transactional(step.tool.spec):
            return step
        handed: Handed = {}
        spent: dict[str, int] = {}
        try:
            effect = self._effect(step, handed, spent)
            ended = attempt(transaction.connection, step, effect, veil=partial(self.veil, step, handed))
        except BaseException as error:
            if isinstance(error, Exception):
                raise
            interruption = error
        else:
            return self._ran(transaction, step, _settled(ended, spent))
        raise veiled_exception(interruption, self.veil(step, handed))  # and the transaction is undone

    def _ran(self, transaction: Transaction, claim: Claim, ended: Ended) -> Ran:
        # What is asked of the database is asked in here: another transaction would wait for this one.
        inside = replace(self, fingerprint_key=partial(runs.fingerprint_key, transaction.connection))
        result = None if ended.observation is None else inside.keep(claim, ended.observation)
        recorded = inside._write(transaction, claim=claim, ended=ended, result=result)  # noqa: SLF001 - its own
        assert recorded is not None  # nobody else has seen this attempt
        return Ran(claim=claim, outcome=self._answer(claim, recorded))

    def confirmed(self, claim: Claim, outcome: Outcome) -> Outcome:
        """Check an effect that has happened and is on record, where its tool can be asked."""
        if not isinstance(outcome, Done) or outcome.confirmed != "unchecked" or claim.tool.confirm is None:
            return outcome
        if self.within:  # the world is asked about what is committed, and the caller may still undo this
            return outcome
        checker = Checker(ledger=self.ledger, settings=self.settings, handle=self.handle)
        return replace(outcome, confirmed=checker.after(claim.tool, claim.tenant, outcome.action))

    def _begin(self, claim: Claim, effect: Effect) -> Any:
        """Make the call, in the effect's own thread.

        Raises:
            NoEffect: the lease is over already, or no call can be made of the arguments.
        """
        if self.ledger.clock.monotonic_us() >= claim.asked_us + self.settings.lease_us:
            raise NoEffect("the lease was over before the effect could begin", code="lease_lost")
        args, named = claim.tool.bind(parse(claim.content, bounds=RECORDED_BOUNDS), effect)
        return claim.tool.fn(*args, **named)

    def _end(self, claim: Claim, handed: Handed, spent: Mapping[str, int], end: End) -> Outcome:
        try:
            ended = self._read(claim, handed, end)
        except BaseException:  # reading runs code of what it reads: the end stands, whatever that code does
            self._record(
                claim, classifying.unread(end.value) if isinstance(end, Returned) else classifying.interrupted()
            )
            raise
        return self._record(claim, _settled(ended, spent))

    def _effect(self, claim: Claim, handed: Handed, spent: dict[str, int]) -> Effect:
        return self.handle(
            claim.file.action,
            claim.attempt,
            deadline_us=claim.attempt.deadline_us,
            within_us=to_us(claim.tool.spec.timeout),
            lease_until_us=claim.asked_us + self.settings.lease_us,
            handed=handed,
            spent=spent,
        )

    def handle(
        self,
        action: ActionRecord,
        attempt: AttemptRecord,
        *,
        deadline_us: int,
        within_us: int,
        lease_until_us: int,
        handed: Handed | None = None,
        spent: dict[str, int] | None = None,
    ) -> Effect:
        """Make what a tool's functions know of an attempt.

        Args:
            action: what they are about.
            attempt: whose number and fence they see.
            deadline_us: on the ledger clock, what they are told of their time.
            within_us: how long they have, from now.
            lease_until_us: on the monotonic clock.
            handed: takes the secrets that they are given.
            spent: takes what they say was spent in the end of what was reserved.
        """
        key = idempotency_key(
            ledger=self.ledger.id,
            tenant=action.tenant,
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
            deadline=to_datetime(deadline_us),
            tenant=action.tenant,
            principal=action.principal,
            clock=self.ledger.clock,
            until_us=self.ledger.clock.monotonic_us() + within_us,
            lease_until_us=lease_until_us,
            broker=self.broker,
            handed=handed,
            reserves=dict(action.reserved),
            spent=spent,
        )

    def veil(self, claim: Claim, handed: Handed) -> Veil:
        """Return what takes this attempt's secrets and sensitive arguments out of whatever its tool says."""
        spec = claim.tool.spec
        arguments = parse(claim.content, bounds=RECORDED_BOUNDS) if spec.sensitive else None
        return veil_of(dict(handed), sensitive_values(spec, arguments))

    def _read(self, claim: Claim, handed: Handed, end: End) -> Ended:
        spec = claim.tool.spec
        match end:
            case Returned(value):
                return classifying.returned(value, spec, self.veil(claim, handed))
            case Raised(error):
                return classifying.raised(error, spec, self.veil(claim, handed))
            case Unentered():
                return classifying.raised(NoEffect("it was not begun", code="transient"), spec)
            case Interrupted():
                return classifying.interrupted()
            case Overran():
                return classifying.overran()

    def keep(self, claim: Claim, observation: Observation, *, kind: str = "result") -> Kept:
        """Make an observation's payload, with its fingerprint."""
        return kept(self.ledger, self.fingerprint_key(claim.tenant), claim.file, observation, kind=kind)

    def _record(self, claim: Claim, ended: Ended) -> Outcome:
        """Record the end, once more where the database could not be had (design §9: same transaction or none)."""
        result: Kept | None = None
        for remaining in reversed(range(RECORD_TRIES)):
            try:
                if result is None and ended.observation is not None:
                    result = self.keep(claim, ended.observation)
                write = partial(self._write, claim=claim, ended=ended, result=result)
                found = self.ledger.change(claim.file.action.run, write)
            except Unavailable as error:
                if remaining == 0:
                    raise Unavailable(
                        "record",
                        f"action {claim.file.action.id} ended ({ended.known}) but could not be recorded "
                        f"({error}); once its lease is over it is UNKNOWN: reconcile it, do not repeat it",
                    ) from error
            else:
                return self._answer(claim, found)
        raise AssertionError("the loop above returns or raises")

    def _write(self, transaction: Transaction, *, claim: Claim, ended: Ended, result: Kept | None) -> Recorded | None:
        """Draft the end of our own attempt, and return the action with it.

        None where the attempt is not ours any more: what came of it is evidence.
        """
        file = transaction.file(claim.file.action.id)
        attempt = file.attempts.get(claim.attempt.number)
        if attempt is None or attempt.fence != claim.attempt.fence:
            return None
        if attempt.state == "open" and file.action.state is State.EXECUTING:
            turn = progress.turn(transaction, file.action, ended, result, keep=partial(self.keep, claim))
            recording.end(transaction.draft, file, attempt, turn.ended, turn.result, by=attempt.holder)
            release(transaction, file.action.id, parallel=claim.tool.spec.parallel)
            if turn.halts:
                progress.stop(transaction)
            return Recorded(file=transaction.draft.file(file.action.id), ended=turn.ended)
        if _stands(transaction, attempt, ended, result):
            return Recorded(file=file, ended=ended)
        if ended.observation is not None and attempt.late_n is None:
            evidence = self.keep(claim, ended.observation, kind="evidence").payload
            recording.keep_late(transaction.draft, file, attempt, ended, evidence)
            block_again(transaction, file.action.id, parallel=claim.tool.spec.parallel)
        return None

    def _late(self, claim: Claim, handed: Handed, spent: Mapping[str, int], end: Returned | Raised) -> None:
        """Record, from the effect's own thread, what came after its time-out; nobody is left to be told."""
        self.heartbeat.forget(claim.attempt.fence)
        try:
            ended = _settled(self._read(claim, handed, end), spent)
            # Kept in full: where it is faster than the record of its own time-out, it is simply how the attempt ended.
            result = None if ended.observation is None else self.keep(claim, ended.observation)
            self.ledger.change(claim.file.action.run, partial(self._write, claim=claim, ended=ended, result=result))
        except Exception as error:  # noqa: BLE001 - a thread without a caller: the action stays UNKNOWN
            log.warning("late result lost", action=claim.file.action.id, error=type(error).__name__)

    def _answer(self, claim: Claim, recorded: Recorded | None) -> Outcome:
        return as_edited(self._answered(claim, recorded), claim.file.action)

    def _answered(self, claim: Claim, recorded: Recorded | None) -> Outcome:
        action = claim.file.action
        digest = action.digest.hex()
        if recorded is None:
            attempt = claim.attempt.number
            return self._found(action.id) or Unknown(
                action=action.id, digest=digest, reason="lease_lost", attempt=attempt, error=doubt("lease_lost")
            )
        ended = recorded.ended
        if ended.known == "succeeded" and ended.observation is not None:
            seen = classifying.shown(ended.observation, limit=claim.tool.spec.max_output_bytes)
            return Done(action=action.id, digest=digest, observation=seen, source="executed")
        error = ended.observation.error if ended.observation is not None else None
        if ended.retry_after_us is not None and isinstance(found := self._found(action.id), Failed):
            return found  # from when on it may be tried again, the record alone knows
        if ended.known == "failed" and not recorded.file.action.unresolved:  # another may have answered meanwhile
            told = error or Error(code=ended.code, message=ended.code)
            return Failed(
                action=action.id,
                digest=digest,
                reason=told.code,
                error=told,
                retryable=ended.retryable,
                notes=() if ended.observation is None else ended.observation.notes,
            )
        return Unknown(
            action=action.id,
            digest=digest,
            reason=ended.code,
            attempt=recorded.file.action.attempts,
            error=doubt(ended.code, error),
        )

    def _found(self, action: str) -> Outcome | None:
        """Read what the record says of an action whose attempt was ended by somebody else; None where it is READY."""
        with self.ledger.database.read() as connection:
            file = actions.file(connection, action)
            return None if file is None else Reader(connection=connection, sealing=self.ledger.sealing).outcome(file)


def _settled(ended: Ended, spent: Mapping[str, int]) -> Ended:
    """Add what the effect says was spent in the end; nothing is of an effect that is not known to have happened."""
    return replace(ended, settled=tuple(spent.items())) if ended.known == "succeeded" else ended


def _stands(transaction: Transaction, attempt: AttemptRecord, ended: Ended, result: Kept | None) -> bool:
    """Tell whether this very end is in the record already: its commit had landed, and only that was not known."""
    if attempt.ended_n is None:
        return False
    link = events.link(transaction.connection, attempt.run, attempt.ended_n)
    event = None if link is None else decode(link.encoded)
    if event is None or event.type != ended.known:
        return False
    if ended.known != "in_doubt":  # nobody but its own worker says of an attempt how it ended, and it ends once
        return True
    said = (event.body["code"], event.body["by"], bool(event.body["payloads"]))
    return said == (ended.code, attempt.holder, result is not None)
