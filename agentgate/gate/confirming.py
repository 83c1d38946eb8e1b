"""Confirming: asking a tool's own check, after its write is on record, whether the world is as it should be.

It is asked outside any transaction, of what the record says: a crash in it loses nothing but the answer. An answer that
cannot be had, or cannot be recorded, leaves the action unchecked.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.core.records import ActionFile, AttemptRecord
from agentgate.effects import Effect
from agentgate.errors import NotFound, NotPossible, Unavailable
from agentgate.gate.answers import Reader
from agentgate.gate.asking import Said, ask_confirm
from agentgate.gate.ledger import Ledger, Transaction, log
from agentgate.gate.settings import Settings
from agentgate.outcome import Confirmation
from agentgate.states import State
from agentgate.store import actions
from agentgate.tools.decorator import AnyTool
from agentgate.tools.spec import ToolSpec

Handle = Callable[..., Effect]
"""As `agentgate.gate.performing.Performer.handle`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An action that has happened, as one snapshot shows it.

    Args:
        file: the action, SUCCEEDED.
        arguments: what it was called with.
        result: what came of it, whole.
    """

    file: ActionFile
    arguments: Json = field(repr=False)
    result: Json = field(repr=False)

    @property
    def attempt(self) -> AttemptRecord:
        """The attempt that is checked: the one that succeeded, or else the latest."""
        numbers = self.file.attempts.items()
        succeeded = [number for number, attempt in numbers if attempt.state == "succeeded"]
        return self.file.attempts[max(succeeded or [self.file.action.attempts])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Ask confirms, and record what they say.

    Args:
        ledger: the record.
        settings: how long they may take.
        handle: makes what a confirm knows of the attempt.
    """

    ledger: Ledger
    settings: Settings
    handle: Handle

    def after(self, tool: AnyTool, tenant: str, action: str) -> Confirmation:
        """Check what was just recorded.

        Returns:
            What the record then says; ``unchecked`` also where the answer could not be recorded.
        """
        try:
            return self.check(tool, tenant, action)
        except Unavailable as error:  # it has happened and is on record: that alone is what must not be lost
            log.warning("check not recorded", action=action, error=error.reason)
            return "unchecked"

    def check(self, tool: AnyTool | None, tenant: str, action: str) -> Confirmation:
        """Ask a tool whether the world is as an action should have left it, and record a yes or a no.

        Raises:
            NotFound: no such action in this tenant.
            NotPossible: it has not happened, or its tool has nothing to check it with.
            Unavailable: the database could not be had.
        """
        seen = self._see(tenant, action)
        if (
            tool is None
            or tool.spec.digest != seen.file.action.spec
            or tool.confirm is None
            or tool.spec.confirm is None
        ):
            remedy = "open the gate with the tool of that definition, and its confirm function"
            raise NotPossible(f"action {action}", "check it", "without a check", remedy)
        said = self._ask(tool.confirm, seen, tool.spec)
        if said.verdict is None:
            log.warning("not checked", action=action, because=said.why, error=said.error)
            return seen.file.action.confirmed or "unchecked"
        assert tool.spec.confirm is not None  # a tool that has the function names it
        name, version = tool.spec.confirm.name, tool.spec.confirm.version
        body: dict[str, Json] = {"attempt": seen.attempt.number, "name": name, "version": version}
        evidence = (said.payload(self.ledger),) if said.evidence else ()

        def checked(transaction: Transaction) -> Confirmation:
            now = transaction.file(action).action
            before = seen.file.action
            if (now.state_n, now.confirmed) == (before.state_n, before.confirmed):
                kind = "confirmed" if said.verdict else "contradicted"
                transaction.draft.add(kind, body, action=action, payloads=evidence)
            return transaction.draft.file(action).action.confirmed or "unchecked"

        return self.ledger.change(seen.file.action.run, checked)

    def _see(self, tenant: str, action: str) -> Seen:
        with self.ledger.database.read() as connection:
            file = actions.file(connection, action)
            if file is None or file.action.tenant != tenant:
                raise NotFound("action", action)
            if file.action.state is not State.SUCCEEDED:
                remedy = "only what has happened can be checked"
                raise NotPossible(f"action {action}", "check it", file.action.state, remedy)
            reader = Reader(connection=connection, sealing=self.ledger.sealing)
            arguments = reader.proposed(file.action, ledger=self.ledger.id)["arguments"].value()
            return Seen(file=file, arguments=arguments, result=reader.stored(file.action).value)

    def _ask(self, confirm: Callable[..., object], seen: Seen, spec: ToolSpec) -> Said:
        within, clock = self.settings.check_within, self.ledger.clock
        effect = self.handle(
            seen.file.action,
            seen.attempt,
            deadline_us=clock.now_us() + to_us(within),
            within_us=to_us(within),
            lease_until_us=clock.monotonic_us() + to_us(within),
        )
        return ask_confirm(confirm, effect, seen.arguments, seen.result, spec=spec, within=within)
