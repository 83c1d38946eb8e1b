"""From an action as the record holds it to the outcome a caller is handed."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.engine import Connection

from agentgate.action import action_digest
from agentgate.approval import Requirement
from agentgate.clock import to_datetime
from agentgate.core.classifying import shown
from agentgate.core.draft import Payload
from agentgate.core.proposing import denial_words
from agentgate.core.reasons import doubt, error_for
from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord, AttemptRecord
from agentgate.core.retrying import Ending, ending
from agentgate.core.veiling import OPEN, Veil, veil_of
from agentgate.digests import SALT_BYTES
from agentgate.errors import Damaged, NotFound, Sealed, Unavailable
from agentgate.event import Event, decode, event_hash
from agentgate.observation import Error, Observation
from agentgate.outcome import Approval, Done, Failed, Held, Late, Outcome, Proposal, Refused, Running, Source, Unknown
from agentgate.policy.decision import Decision
from agentgate.sealing import SealingKeys
from agentgate.states import State
from agentgate.store import actions, events
from agentgate.tools.sensitive import sensitive_values
from agentgate.tools.spec import ToolSpec, from_document

EDITED = "edited"
"""A note of an observation: the arguments that ran are a person's, not those that the loop had proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Read outcomes out of one snapshot.

    Args:
        connection: the snapshot.
        sealing: the keys that open what is sealed, as far as they are there.
    """

    connection: Connection
    sealing: SealingKeys | None

    def outcome(self, file: ActionFile) -> Outcome | None:
        """Return what the action's state says; None where it is READY."""
        outcome = self._outcome(file)
        return outcome if outcome is None else as_edited(outcome, file.action)

    def _outcome(self, file: ActionFile) -> Outcome | None:
        action = file.action
        source: Source = "reconciled" if action.reason == "reconciled" else "replayed"
        digest = action.digest.hex()
        match action.state:
            case State.SUCCEEDED:
                return Done(
                    action=action.id,
                    digest=digest,
                    reason=action.reason or "succeeded",
                    observation=self.observation(action),
                    source=source,
                    confirmed=action.confirmed or "unchecked",
                )
            case State.FAILED:
                return self._failed(action)
            case State.HELD:
                return Held(action=action.id, digest=digest, approval=self.approval(file))
            case State.REFUSED:
                return self._refused(action)
            case State.EXECUTING:
                return self._running(file)
            case State.UNKNOWN | State.ABANDONED:
                return self.unknown(file)
            case _:
                return None

    def proposal(self, tenant: str, id: str, *, repeated: bool) -> Proposal:
        """Read an action as `Gate.propose` hands it out.

        Raises:
            NotFound: no such action in this tenant.
        """
        file = actions.file(self.connection, id)
        if file is None or file.action.tenant != tenant:
            raise NotFound("action", id)
        found = file.action
        return Proposal(
            action=found.id,
            run=found.run,
            tenant=found.tenant,
            digest=found.digest.hex(),
            key=found.key.text,
            revision=found.revision,
            state=found.state.value,
            repeated=repeated,
            outcome=self.outcome(file),
            edits=found.edits,
        )

    def observation(self, action: ActionRecord) -> Observation:
        """Read what a finished action's loop is shown, cut to the tool's limit."""
        whole = self.stored(action)
        spec = self.spec(action)
        return whole if spec is None else shown(whole, limit=spec.max_output_bytes)

    def spec(self, action: ActionRecord) -> ToolSpec | None:
        """Read the spec that the action was proposed under."""
        stored = None if action.spec is None else events.document(self.connection, action.spec)
        return None if stored is None else from_document(stored[1])

    def stored(self, action: ActionRecord) -> Observation:
        """Read what came of a finished action, whole; a note says so where that is not there, or cannot be opened."""
        try:
            payload = None if action.result_n is None else self.kept(action.run, action.result_n, "result")
        except Sealed:  # what happened is known all the same: the state says it
            return Observation(status="ok", notes=("sealed",))
        if payload is None:
            return Observation(status="ok", notes=("not_kept",))
        return self.veil(action, payload).observation(_observed(payload))

    def veil(self, action: ActionRecord, payload: Payload) -> Veil:
        """Return what takes an action's sensitive arguments out of what was sealed with them."""
        spec = None if payload.sealed_by is None else self.spec(action)
        if spec is None or not spec.sensitive:
            return OPEN
        try:
            arguments = self.kept(action.run, action.proposed_n, "arguments")
        except Sealed:
            return OPEN
        return OPEN if arguments is None else veil_of({}, sensitive_values(spec, arguments.value()))

    def _failed(self, action: ActionRecord) -> Failed:
        seen, ended = self.stored(action), self.ending(action)
        retry_at_us = None if ended is None else ended.retry_at_us
        error = seen.error or error_for(action.reason or "internal")
        return Failed(
            action=action.id,
            digest=action.digest.hex(),
            reason=error.code,
            error=error,
            retryable=error.retryable and "limit_retries" not in action.waited,
            retry_at=None if retry_at_us is None else to_datetime(retry_at_us),
            notes=() if seen.error is None else seen.notes,
        )

    def _refused(self, action: ActionRecord) -> Refused:
        reason = action.reason or "refused"
        return Refused(action=action.id, digest=action.digest.hex(), reason=reason, error=self._why(action, reason))

    def _why(self, action: ActionRecord, reason: str) -> Error:
        if action.state_n == action.proposed_n or reason == "duplicate":
            payload = self.readable(action.run, action.state_n, "result")
            if payload is not None:
                told = _observed(payload).error or error_for(reason)
                return self._earlier(action, told) if reason == "duplicate" else told
        event = self.event(action.run, action.state_n)
        if reason == "policy_denied" and "decision" in event.body:
            return denial_words(Decision.from_json(event.body["decision"], self._texts(event)))
        if reason == "superseded":  # of the same principal, as it has the same key
            return replace(error_for(reason), details={"action": event.body["successor"]})
        return error_for(reason)

    def _earlier(self, action: ActionRecord, told: Error) -> Error:
        """Tell what came of the action that this one repeats; another principal learns only that it is a repeat."""
        named = told.details.get("action") if type(told.details) is dict else None
        earlier = actions.file(self.connection, named) if type(named) is str else None
        if earlier is None or earlier.action.principal != action.principal or earlier.action.tenant != action.tenant:
            return replace(told, details=None)
        outcome = self.outcome(earlier)
        if outcome is None:  # found out meanwhile not to have happened
            return replace(told, details={"action": earlier.action.id})
        seen = outcome.observation.to_json()
        return replace(told, details={"action": earlier.action.id, "reason": outcome.reason, "observation": seen})

    def _texts(self, event: Event) -> dict[str, str]:
        payload = self.readable(event.run, event.n, "texts")
        body = {} if payload is None else payload.value()
        return {name: str(text) for name, text in body.items()} if type(body) is dict else {}

    def _running(self, file: ActionFile) -> Running:
        attempt = file.current
        if attempt is None:
            raise Damaged(f"action {file.action.id}", "it is executing without an attempt")
        until = to_datetime(attempt.lease_until_us)
        return Running(action=file.action.id, digest=file.action.digest.hex(), until=until)

    def unknown(self, file: ActionFile) -> Unknown:
        """Say what is known of an outcome that is not, and what its attempts said too late."""
        action, question = file.action, file.question
        asked = question is not None and question.state == "pending" and action.state is State.UNKNOWN
        return Unknown(
            action=action.id,
            digest=action.digest.hex(),
            reason=action.reason or "unknown_outcome",
            attempt=action.attempts,
            question=self.approval(file) if asked else None,
            error=doubt(action.reason, self.stored(action).error if action.result_n is not None else None),
            abandoned=action.state is State.ABANDONED,
            late=tuple(filter(None, (self.late(action, attempt) for _, attempt in sorted(file.attempts.items())))),
        )

    def late(self, action: ActionRecord, attempt: AttemptRecord) -> Late | None:
        """Read what an attempt said after it had lost its action; None where it said nothing."""
        if attempt.late_n is None:
            return None
        event, payload = self.event(attempt.run, attempt.late_n), self.readable(attempt.run, attempt.late_n, "evidence")
        if event.type != "late":
            raise Damaged(f"action {action.id}", f"event {event.n} is no late answer of attempt {attempt.number}")
        code = event.body.get("code")
        return Late(
            attempt=attempt.number,
            fence=attempt.fence,
            status="ok" if event.body["status"] == "ok" else "error",
            code=None if code is None else str(code),
            at=to_datetime(event.at_us),
            observation=None if payload is None else self.veil(action, payload).observation(_observed(payload)),
        )

    def ending(self, action: ActionRecord) -> Ending | None:
        """Read how the latest attempt of an action came to nothing."""
        event = self.event(action.run, action.state_n)
        payload = self.readable(action.run, action.state_n, "result") if event.type == "in_doubt" else None
        return ending(event, None if payload is None else _observed(payload).error)

    def approval(self, file: ActionFile) -> Approval:
        """Read the question that hangs on an action, with the text that its digest binds."""
        question = file.question
        if question is None:
            raise Damaged(f"action {file.action.id}", "it is held without a question")
        try:
            payload = self.kept(question.run, question.asked_n, "presentation")
            shown = "" if payload is None else payload.content.decode("utf-8", "backslashreplace")
        except Sealed:
            shown = "[sealed]"
        return Approval(
            id=question.id,
            digest=question.digest.hex(),
            requirement=self.requirement(question),
            shown=shown,
            expires_at=to_datetime(question.expires_at_us),
        )

    def requirement(self, question: ApprovalRecord) -> Requirement:
        """Read who must agree, from the event that asked."""
        body: Any = self.event(question.run, question.asked_n).body
        asked = body.get("requirement") or body["decision"].get("requirement")
        if asked is None:
            raise Damaged(f"approval {question.id}", "the event that asked it says not who must agree")
        return Requirement.from_json(asked)

    def event(self, run: str, n: int) -> Event:
        """Read one event of a run.

        Raises:
            Damaged: it is not there, or not what its hash says.
        """
        link = events.link(self.connection, run, n)
        if link is None:
            raise Damaged(f"run {run}", f"its event {n} is missing")
        if event_hash(link.encoded) != link.hash:
            raise Damaged(f"run {run}", f"its event {n} is not what its hash says")
        return decode(link.encoded)

    def kept(self, run: str, n: int, kind: str) -> Payload | None:
        """Read a payload of an event; None where it is gone.

        Raises:
            Sealed: it is sealed by a key that is not there.
            Damaged: it is not what its event names.
        """
        payload = events.payload(self.connection, run, n, kind)
        if payload is None:
            return None
        named = self.event(run, n).body["payloads"]
        found = self._opened(payload, named.get(kind) if type(named) is dict else None)
        if found is None:
            raise Damaged(f"run {run}", f"the {kind} of its event {n} is not what was recorded")
        return found

    def readable(self, run: str, n: int, kind: str) -> Payload | None:
        """Read a payload of an event; None also where its key is not there."""
        try:
            return self.kept(run, n, kind)
        except Sealed:
            return None

    def _opened(self, payload: Payload, expected: object) -> Payload | None:
        """Open a payload where it is sealed; None where it is not exactly what an event names."""
        if payload.sealed_by is None or type(expected) is not str:
            return payload if _is_named(payload, expected) else None
        try:
            return payload.opened(self.sealing, digest=bytes.fromhex(expected))
        except Damaged:
            return None

    def proposed(self, action: ActionRecord, *, ledger: str) -> dict[str, Payload]:
        """Read what an action was proposed with, by kind, each checked against the record.

        Raises:
            Sealed: a payload is sealed by a key that is not there.
            Damaged: a payload is gone or was changed, or the action's row is not the one that was proposed.
        """
        where = f"action {action.id}"
        body = self.event(action.run, action.proposed_n).body
        named = body["payloads"]
        assert type(named) is dict  # checked by the body's shape
        found: dict[str, Payload] = {}
        for kind, expected in named.items():
            stored = events.payload(self.connection, action.run, action.proposed_n, kind)
            payload = None if stored is None else self._opened(stored, expected)
            if payload is None:
                raise Damaged(where, f"its {kind} are missing or not what was proposed")
            found[kind] = payload
        if "arguments" not in found:
            raise Damaged(where, "it was proposed without arguments")
        if body["digest"] != action.digest.hex() or _bound(action, found, ledger) != action.digest:
            raise Damaged(where, "its row is not what was proposed")
        return found


def unreadable(error: Unavailable) -> Unavailable:
    """Say that what was asked for was done, and that only what to answer could not be read."""
    return Unavailable("answer", f"it was done and is on record; only what to answer could not be read ({error})")


def as_edited(outcome: Outcome, action: ActionRecord) -> Outcome:
    """Tell the loop, where a person changed its arguments, that others ran than it had proposed: a note says so."""
    if action.edits is None:
        return outcome
    if isinstance(outcome, Done) and EDITED not in outcome.observation.notes:
        seen = outcome.observation
        return replace(outcome, observation=replace(seen, notes=(*seen.notes, EDITED)))
    if isinstance(outcome, Failed | Unknown) and EDITED not in outcome.notes:
        return replace(outcome, notes=(*outcome.notes, EDITED))
    return outcome


def _is_named(payload: Payload, expected: object) -> bool:
    """Tell whether an event names exactly these bytes; a salt that is no salt makes no digest."""
    salted = type(payload.salt) is bytes and len(payload.salt) == SALT_BYTES
    return salted and type(payload.content) is bytes and payload.digest.hex() == expected


def _observed(payload: Payload) -> Observation:
    body = payload.value()
    assert type(body) is dict  # its event names these bytes, and `recording.observed` wrote them
    return Observation.from_json(body)


def _bound(action: ActionRecord, payloads: dict[str, Payload], ledger: str) -> bytes:
    """Recompute the action digest from the row: tool, spec, principal, key and all."""
    provenance = payloads.get("provenance")
    return action_digest(
        ledger=ledger,
        run=action.run,
        tenant=action.tenant,
        principal=action.principal,
        namespace=action.namespace,
        tool=action.tool,
        spec=action.spec,
        arguments=payloads["arguments"].digest,
        key=action.key,
        revision=action.revision,
        provenance=None if provenance is None else provenance.digest,
    )
