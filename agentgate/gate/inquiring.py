"""Asking operators what became of an action, in a transaction of its own, once it is on record that nobody knows.

Whoever meets an action that is UNKNOWN, and that nothing may run again without people, asks: a call, an `execute`, a
sweep. A crash before the question leaves it to the next of them. Inside a caller's transaction nobody is asked: what
they may still undo is no question to anybody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agentgate.clock import to_datetime
from agentgate.core.claiming import expire, over_event
from agentgate.core.inquiring import asked_of, inquire, is_for_operators
from agentgate.core.proposing import Chance, Thought
from agentgate.errors import Unavailable
from agentgate.gate.answers import Reader
from agentgate.gate.ledger import TRIES, Ledger, Transaction, log
from agentgate.gate.looks import Look, look_at, thought_of
from agentgate.gate.proposing import chance
from agentgate.gate.settings import Settings
from agentgate.gate.thinking import Mind
from agentgate.outcome import Outcome, Unknown
from agentgate.states import State
from agentgate.tools.decorator import AnyTool
from agentgate.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquirer:
    """Ask operators about the actions of one gate.

    Args:
        ledger: the record.
        settings: times to live, and who is asked.
        mind: the gate's tools, as they are now.
    """

    ledger: Ledger
    settings: Settings
    mind: Callable[[], Mind]

    def asked(self, tenant: str, outcome: Outcome) -> Outcome:
        """Answer with an outcome; where it is unknown, with the question that hangs on it, asked now if it must be.

        Where the database cannot be had for that, the outcome stands: who looks next asks.
        """
        if not isinstance(outcome, Unknown) or outcome.abandoned:
            return outcome
        if outcome.question is not None and outcome.question.expires_at > to_datetime(self.ledger.clock.now_us()):
            return outcome
        try:
            self.ask(tenant, outcome.action)
            return look_at(self.ledger, tenant, outcome.action).outcome or outcome
        except Unavailable as error:
            log.warning("question not asked", action=outcome.action, error=error.code)
            return outcome

    def ask(self, tenant: str, action: str) -> bool:
        """Ask what became of an action, if people must be asked and are not; return whether they were.

        A gate asks about tools that it knows, under whatever definition: it is their application that says who must
        agree. What would be shown and is sealed by a key that is not there is left to a gate that has it.

        Raises:
            NotFound: no such action in this tenant.
            Damaged: its row contradicts the record.
            Unavailable: the database could not be had.
        """
        for _ in range(TRIES):
            look = look_at(self.ledger, tenant, action, asking=True)
            tool = self.mind().tools.lookup(look.file.action.namespace, look.file.action.tool)
            if tool is None or look.sealed is not None or look.file.action.state is not State.UNKNOWN:
                return False
            spec, now_us = self._spec(look, tool), max(self.ledger.clock.now_us(), look.run.at_us)
            if spec is None:
                return False
            untold = spec is not tool.spec
            if not is_for_operators(spec, look.file, now_us, untold=untold) and not over_event(look.file, now_us):
                return False
            work = partial(
                self._ask,
                look=look,
                thought=thought_of(look, spec),
                untold=untold,
                chance=chance(self.ledger, self.settings),
            )
            done = self.ledger.change(look.file.action.run, work)
            if done is not None:
                return done
        return False  # others keep changing it: who looks next asks

    def _ask(
        self, transaction: Transaction, *, look: Look, thought: Thought, untold: bool, chance: Chance
    ) -> bool | None:
        """Ask, if the action stands where it was seen; None where it does not."""
        draft, file = transaction.draft, transaction.file(look.file.action.id)
        if file.action.last_n != look.file.action.last_n:
            return None
        expire(draft, file)
        file = draft.file(file.action.id)
        assert thought.spec is not None  # it was found
        if not is_for_operators(thought.spec, file, draft.at_us, untold=untold):
            return False
        inquire(draft, file, thought, chance, asked_of(file, self.settings.operators))
        return True

    def _spec(self, look: Look, tool: AnyTool) -> ToolSpec | None:
        """Return the spec that the action was proposed under: as the gate has it, or as the record does."""
        if tool.spec.digest == look.file.action.spec:
            return tool.spec
        with self.ledger.database.read() as connection:
            return Reader(connection=connection, sealing=self.ledger.sealing).spec(look.file.action)
