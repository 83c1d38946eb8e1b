"""Looking at an action: one snapshot of it, its run, and what it was proposed with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentgate.canonical import Json
from agentgate.core.draft import Payload
from agentgate.core.presenting.shown import Doubt
from agentgate.core.proposing import Edit, Thought
from agentgate.core.records import ActionFile, RunRecord
from agentgate.errors import Damaged, NotFound, Sealed
from agentgate.gate.answers import Reader
from agentgate.gate.before import doubts_of
from agentgate.gate.ledger import Ledger
from agentgate.gate.proposing import view_of
from agentgate.outcome import Outcome
from agentgate.policy.request import View
from agentgate.states import State
from agentgate.store import actions, runs
from agentgate.tools.declared import undeclared
from agentgate.tools.spec import ToolSpec

RUNNABLE = frozenset({State.READY, State.UNKNOWN, State.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """An action as it was seen in one snapshot, with what a claim needs to ask the policy.

    Args:
        file: the action.
        run: its run.
        view: what a policy is shown of the run.
        outcome: what the state says; None where it is READY.
        payloads: what was proposed, by kind, checked against the record; empty where it cannot run.
        sealed: why these cannot be read, where their sealing key is not there.
        doubts: its attempts that may have happened.
    """

    file: ActionFile
    run: RunRecord
    view: View
    outcome: Outcome | None
    payloads: Mapping[str, Payload]
    sealed: Sealed | None = None
    doubts: tuple[Doubt, ...] = ()

    def value(self, kind: str) -> Json:
        """Read what was proposed of a kind; None where there is none."""
        payload = self.payloads.get(kind)
        return None if payload is None else payload.value()


def look_at(ledger: Ledger, tenant: str, action: str, *, principal: str | None = None, asking: bool = False) -> Look:
    """Look at an action in one snapshot.

    Args:
        ledger: the record.
        tenant: whose it must be.
        action: its id.
        principal: whose it must be; None for anybody's.
        asking: whether its payloads are wanted where something of it is in doubt.

    Raises:
        NotFound: no such action in this tenant, or of this principal.
        Damaged: its run is missing.
    """
    with ledger.database.read() as connection:
        file = actions.file(connection, action)
        if file is None or file.action.tenant != tenant or principal not in (None, file.action.principal):
            raise NotFound("action", action)
        run = runs.read(connection, file.action.run)
        if run is None:
            raise Damaged(f"action {action}", "its run is missing")
        reader = Reader(connection=connection, sealing=ledger.sealing)
        runnable = file.action.state in RUNNABLE or (asking and file.action.unresolved > 0)
        look = Look(
            file=file,
            run=run,
            view=view_of(connection, run, namespace=file.action.namespace, tool=file.action.tool),
            outcome=reader.outcome(file),
            payloads={},
            doubts=doubts_of(reader, file) if file.action.unresolved > 0 else (),
        )
        if not runnable:
            return look
        try:
            return replace(look, payloads=reader.proposed(file.action, ledger=ledger.id))
        except Sealed as error:  # it can be looked at, taken over and reconciled; it cannot be claimed
            return replace(look, sealed=error)


def thought_of(look: Look, spec: ToolSpec) -> Thought:
    """Think of a recorded action as it was proposed, under this spec."""
    action = look.file.action
    arguments, supplied = look.value("arguments"), look.payloads.get("supplied")
    return Thought(
        id=action.id,
        namespace=action.namespace,
        tool=action.tool,
        spec=spec,
        principal=action.principal,
        key=action.key,
        arguments=arguments,
        completed=True,
        supplied=arguments if supplied is None else supplied.value(),
        provenance=look.value("provenance"),
        undeclared=undeclared(spec.checked_input, arguments),
        payloads=tuple(look.payloads.values()),
        doubts=look.doubts,
        edits=None if action.edits is None else Edit(action=action.edits, by=action.edited_by or ""),
    )
