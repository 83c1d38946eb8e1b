"""What people do to an action from outside a loop: cancel it, say what they found out about it, or give up knowing."""

from collections.abc import Callable
from dataclasses import dataclass

from agentgate.canonical import canonical
from agentgate.core.draft import Payload
from agentgate.core.records import ActionFile
from agentgate.errors import Misuse, NotFound, NotPossible
from agentgate.gate.deciding import found_out
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.releasing import release
from agentgate.gate.settings import Settings
from agentgate.states import State, advance
from agentgate.store import actions

_WHY_NOT = {
    State.EXECUTING: "wait until it ends, or until its lease is over",
    State.UNKNOWN: "say what happened with: reconcile",
}
_WHY_NOT_ABANDON = {
    State.EXECUTING: "its worker may still tell; wait until it ends, or until its lease is over",
    State.READY: "it has not started; say: cancel",
    State.HELD: "it has not started; say: cancel",
    State.ABANDONED: "nothing is left to do",
}
_KNOWN = "nobody needs to give up: its outcome is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commander:
    """Carry out commands on one ledger.

    Args:
        ledger: the record.
        settings: times to live.
        fingerprint_key: the tenant's key, by tenant.
    """

    ledger: Ledger
    settings: Settings
    fingerprint_key: Callable[[str], bytes | None]

    def _run_of(self, tenant: str, action: str) -> str:
        with self.ledger.database.read() as connection:
            found = actions.read(connection, action)
        if found is None or found.tenant != tenant:
            raise NotFound("action", action)
        return found.run

    def cancel(self, tenant: str, action: str, *, by: str, note: str) -> None:
        """Cancel an action that has not started, or whose failure is known.

        Raises:
            NotPossible: it runs, may have happened, or has ended.
        """
        texts = note_payloads(self.ledger, note)

        def cancelled(transaction: Transaction) -> None:
            file = transaction.file(action)
            if advance(file.action.state, "cancelled") is None:
                why = _WHY_NOT.get(file.action.state, "it has ended; nothing is left to cancel")
                raise NotPossible(f"action {action}", "cancel it", file.action.state, why)
            transaction.draft.add("cancelled", {"by": by}, action=action, payloads=texts)

        self.ledger.change(self._run_of(tenant, action), cancelled)

    def abandon(self, tenant: str, action: str, *, by: str, note: str) -> None:
        """Record that a named person gives up knowing whether an action happened, and lift its block.

        Raises:
            NotPossible: its outcome is known, or its worker may still live.
        """
        texts = note_payloads(self.ledger, note)

        def abandoned(transaction: Transaction) -> None:
            file = transaction.file(action)
            if advance(file.action.state, "abandoned") is None:
                known = "say what happened with: reconcile" if file.action.unresolved else _KNOWN
                why = _WHY_NOT_ABANDON.get(file.action.state, known)
                raise NotPossible(f"action {action}", "abandon it", file.action.state, why)
            transaction.draft.add("abandoned", {"by": by}, action=action, payloads=texts)
            release(transaction, action, parallel=False)

        self.ledger.change(self._run_of(tenant, action), abandoned)

    def reconcile(
        self,
        tenant: str,
        action: str,
        *,
        applied: bool,
        by: str,
        evidence: object,
        result: object,
        worker_known_dead: bool,
        attempt: int | None,
    ) -> None:
        """Record what somebody found out about an action whose outcome is unknown.

        Raises:
            Misuse: a verdict that is neither True nor False, an attempt that is no number, or a result of nothing.
            NotPossible: nothing about it is in doubt, or its newest attempt is another one.
            NotCanonical: the evidence or the result is no JSON value.
        """
        if type(applied) is not bool:
            raise Misuse("applied: say True or False")
        if attempt is not None and (type(attempt) is not int or attempt < 1):
            raise Misuse("attempt: give the number of an attempt, from 1, or None for whichever is the newest")
        found = found_out(
            self.ledger,
            self.fingerprint_key(tenant),  # read before: a transaction waits for no other one of its own gate
            applied=applied,
            evidence=evidence,
            result=result,
            worker_known_dead=worker_known_dead,
            ready_us=self.settings.ready_us,
        )

        def reconciled(transaction: Transaction) -> None:
            file = transaction.file(action)
            _check_attempt(file, attempt)
            self._check_in_doubt(file, applied=applied)
            found.record(transaction, file, applied=applied, by=by)

        self.ledger.change(self._run_of(tenant, action), reconciled)

    def _check_in_doubt(self, file: ActionFile, *, applied: bool) -> None:
        state = file.action.state
        if state is State.EXECUTING and file.action.unresolved and applied:
            # Were the doubt lifted now, a clean failure of what runs would make the action ready to happen again.
            remedy = "an attempt of it is running; once that has ended, or its lease is over, say it again"
            raise NotPossible(f"action {file.action.id}", "say that it happened", state, remedy)
        if state is State.EXECUTING and not file.action.unresolved:
            remedy = "its worker may still live; once its lease is over, say it again"
            raise NotPossible(f"action {file.action.id}", "reconcile it", state, remedy)
        if state is not State.UNKNOWN and not file.action.unresolved:
            remedy = "nothing about it is in doubt"
            raise NotPossible(f"action {file.action.id}", "reconcile it", state, remedy)


def _check_attempt(file: ActionFile, attempt: int | None) -> None:
    """Refuse what was found out before another attempt started: of that one it says nothing."""
    made = file.action.attempts
    if attempt is not None and attempt != made:
        remedy = f"what was found out about attempt {attempt} says nothing of attempt {made}; look again"
        raise NotPossible(f"action {file.action.id}", "reconcile it", file.action.state, remedy)


def note_payloads(ledger: Ledger, note: str) -> tuple[Payload, ...]:
    """Make the payload of what a person wrote beside a command; none where nothing was."""
    return (ledger.payload("texts", canonical({"note": note})),) if note else ()
