"""Executing: look where an action stands, and do the one thing that its state allows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from agentgate.clock import to_datetime
from agentgate.core.claiming import (
    INACTIVE,
    Stop,
    Wait,
    expire,
    hindrance,
    may_retry,
    may_run_again,
    refuse,
    wait,
)
from agentgate.core.inquiring import is_told_again
from agentgate.core.proposing import Chance, Thought
from agentgate.core.records import ActionFile
from agentgate.core.retrying import Ending, comes_again, is_used_up
from agentgate.errors import Damaged, Misuse, Unavailable
from agentgate.gate import leases
from agentgate.gate.answers import Reader
from agentgate.gate.claiming import Claim, Claimant, claim_again, is_inactive, surroundings, waiting
from agentgate.gate.grounds import Grounds, read_history
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.looks import Look, look_at, thought_of
from agentgate.gate.performing import Performer, Ran
from agentgate.gate.probing import Prober, has_probe
from agentgate.gate.proposing import chance
from agentgate.gate.settings import Settings
from agentgate.gate.thinking import Mind
from agentgate.gate.transacting import is_transactional
from agentgate.keyring import Keyring
from agentgate.lease import Holder
from agentgate.outcome import Outcome, Refused, Running, Unknown
from agentgate.states import RunState, State
from agentgate.store import actions
from agentgate.tools.decorator import AnyTool
from agentgate.tools.spec import ToolSpec

# Each look moves the action at most one step; the longest road is: taken over, tried again, held.
LOOKS = 8
Asker = Literal["caller", "retry"]
_COME_TO_NOTHING = frozenset({State.FAILED, State.UNKNOWN})
REPLAYED = frozenset({State.SUCCEEDED, State.FAILED, State.REFUSED, State.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An action that its tool's own retry goes on with.

    Args:
        file: FAILED or UNKNOWN.
        spec: whose ``retry`` it follows.
        ended: how the latest attempt came to nothing.
        now_us: ledger time.
    """

    file: ActionFile
    spec: ToolSpec
    ended: Ending
    now_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Execute actions of one gate.

    Args:
        ledger: the record.
        settings: times to live.
        performer: runs what was claimed.
        prober: asks tools about what is unknown.
        holder: names this gate in its leases.
        keyring: whose signatures count, from outside the database; None where the gate has none.
    """

    ledger: Ledger
    settings: Settings
    performer: Performer
    prober: Prober
    holder: Callable[[], Holder]
    keyring: Keyring | None = None

    def execute(
        self, mind: Mind, tenant: str, action: str, *, principal: str | None = None, by: Asker | None
    ) -> Outcome:
        """Bring an action as far as it may go now.

        Args:
            mind: what to ask the policy with.
            tenant: an action of another tenant is not found.
            action: its id.
            principal: an action of another one is not found either; None asks for everybody.
            by: who wants what came to nothing tried again: its caller, or its tool's own retry; None for nobody.

        Raises:
            NotFound: no such action in this tenant, or of this principal.
            Damaged: the action's row contradicts the record.
            Sealed: its arguments are sealed by a key that is not there.
            Misuse: inside a caller's transaction, a tool whose effect cannot be part of it.
        """
        for looks in range(LOOKS):
            look = self._look(tenant, action, principal=principal)
            if self.performer.within:
                check_within(self._tool(mind, look))
            step = self._step(mind, look, by=by if looks == 0 else None, first=looks == 0)
            if isinstance(step, Claim | Ran):
                return self.performer.perform(step)
            if step is not None:
                return self.past(mind, tenant, step)
        raise Unavailable("moved", f"action {action} was changed by others {LOOKS} times; try again")

    def past(self, mind: Mind, tenant: str, outcome: Outcome) -> Outcome:
        """Answer with an outcome; where it waits for a worker that is gone, take over from that one and look again."""
        if not isinstance(outcome, Refused) or outcome.reason != "busy" or outcome.blocking is None:
            return outcome
        if not self.settle_lease(tenant, outcome.blocking):
            return outcome
        return self.execute(mind, tenant, outcome.action, by=None)

    def settle_lease(self, tenant: str, action: str) -> bool:
        """Take over from a worker that is gone, so that a command meets the action as it is; return whether it was."""
        look = self._look(tenant, action)
        if look.file.action.state is not State.EXECUTING:
            return False
        return self._watch(look, max(self.ledger.clock.now_us(), look.run.at_us)) is None

    def is_hindered(self, mind: Mind, tenant: str, outcome: Outcome) -> bool:
        """Tell whether an action still waits for what it waited for; nothing is written where it does."""
        blocking = getattr(outcome, "blocking", None)
        if blocking is not None and self.settle_lease(tenant, blocking):
            return False
        look = self._look(tenant, outcome.action)
        action, now_us = look.file.action, max(self.ledger.clock.now_us(), look.run.at_us)
        if action.state is State.EXECUTING:
            return self._watch(look, now_us) is not None
        tool = self._tool(mind, look)
        expired = action.expires_at_us is not None and action.expires_at_us <= now_us
        if action.state is not State.READY or tool is None or expired:
            return False
        with self.ledger.database.read() as connection:
            around = surroundings(
                connection,
                look.run,
                look.file,
                tool.spec,
                breaker=self.settings.breaker,
                pinned=mind.pinned,
                at_us=now_us,
            )
        return isinstance(hindrance(look.run, action, around, now_us), Wait)

    def _look(self, tenant: str, action: str, *, principal: str | None = None, asking: bool = False) -> Look:
        return look_at(self.ledger, tenant, action, principal=principal, asking=asking)

    def trial(self, mind: Mind, tenant: str, action: str) -> Trial | None:
        """Return an action that the tool's own retry goes on with, from where it stands now."""
        look = self._look(tenant, action)
        now_us = max(self.ledger.clock.now_us(), look.run.at_us)
        return self._trial(mind, look, now_us)

    def _trial(self, mind: Mind, look: Look, now_us: int) -> Trial | None:
        tool = self._tool(mind, look)
        if tool is None or tool.spec.retry.attempts == 1 or look.file.action.state not in _COME_TO_NOTHING:
            return None
        with self.ledger.database.read() as connection:
            ended = Reader(connection=connection, sealing=self.ledger.sealing).ending(look.file.action)
        again = comes_again(tool.spec, look.run, look.file, ended, at_us=now_us)
        return Trial(file=look.file, spec=tool.spec, ended=ended, now_us=now_us) if again and ended else None

    def _step(self, mind: Mind, look: Look, *, by: Asker | None, first: bool) -> Claim | Ran | Outcome | None:
        """Do what the state allows; None asks for another look."""
        action = look.file.action
        now_us = max(self.ledger.clock.now_us(), look.run.at_us)
        match action.state:
            case State.EXECUTING:
                return self._watch(look, now_us)
            case State.HELD if _answerable_until(look.file) <= now_us:
                return self._change(look, _expire)
            case State.READY | State.HELD if action.state is State.READY or self._is_outdated(mind, look):
                return self._claim(mind, look)
            case State.FAILED | State.UNKNOWN if by == "retry" and self._trial(mind, look, now_us) is None:
                pass  # others have tried it meanwhile, as often as its tool says
            case State.FAILED if by is not None:
                return self._claim(mind, look, by=by)
            case State.FAILED | State.UNKNOWN if by is None and self._trial(mind, look, now_us) is not None:
                pass  # its tool's own retry goes on from here, after a pause
            case State.UNKNOWN if self._runs_again(mind, look, now_us, by=by):
                return self._claim(mind, look, by=by)
            case State.UNKNOWN if has_probe(self._tool(mind, look), look.file):
                return self._probe(mind, look)
            case _ if first and action.state in REPLAYED:
                return self._change(look, partial(_replay, outcome=look.outcome))
        return look.outcome

    def _change(
        self,
        look: Look,
        work: Callable[[Transaction, ActionFile], Claim | Outcome | None],
        *,
        documents: tuple[tuple[bytes, str, bytes], ...] = (),
    ) -> Claim | Ran | Outcome | None:
        """Change the action, if it still stands where it was seen."""

        def changed(transaction: Transaction) -> Claim | Ran | Outcome | None:
            file = transaction.file(look.file.action.id)
            moved = file.action.last_n != look.file.action.last_n or transaction.draft.run.state is not look.run.state
            return None if moved else self.performer.settled(transaction, work(transaction, file))

        return self.ledger.change(look.file.action.run, changed, documents=documents)

    def _watch(self, look: Look, now_us: int) -> Claim | Ran | Outcome | None:
        """Leave a living worker alone; take over from one that is gone, or whose lease is over."""
        attempt = look.file.current
        if attempt is None:
            raise Damaged(f"action {look.file.action.id}", "it is executing without an attempt")
        crashed = leases.gone(attempt.holder)
        if not crashed and attempt.lease_until_us > now_us:
            return look.outcome
        return self._change(look, partial(_take_over, crashed=crashed, by=str(self.holder())))

    def probe(self, mind: Mind, tenant: str, action: str) -> bool | None:
        """Ask a tool about an action's attempts in doubt, where it can be asked, and start nothing.

        Returns:
            Whether what it says settles the doubt; None where it cannot be asked.

        Raises:
            NotFound: no such action in this tenant.
        """
        look = self._look(tenant, action, asking=True)
        if look.sealed is not None or not has_probe(self._tool(mind, look), look.file):
            return None
        self._probe(mind, look)
        with self.ledger.database.read() as connection:
            found = actions.read(connection, action)
        return found is not None and found.unresolved == 0

    def _probe(self, mind: Mind, look: Look) -> Claim | Ran | Outcome | None:
        """Ask whether it happened; an answer about what has moved meanwhile is dropped.

        Raises:
            Sealed: what it would be asked about cannot be read; the action stays as it is.
        """
        if look.sealed is not None:
            raise look.sealed
        tool = self._tool(mind, look)
        assert tool is not None  # it has a probe
        answer = self.prober.ask(tool, look.file, look.value("arguments"))
        return _as_seen(self._change(look, partial(self.prober.record, tool=tool, answer=answer)), look)

    def _runs_again(self, mind: Mind, look: Look, now_us: int, *, by: Asker | None) -> bool:
        tool, action = self._tool(mind, look), look.file.action
        if tool is not None and is_told_again(look.file):
            return True
        if tool is None or (by is None and is_used_up(tool.spec, action)):
            return False
        return may_run_again(tool.spec, action, now_us)

    def _is_outdated(self, mind: Mind, look: Look) -> bool:
        """Tell whether people are asked about a tool that this gate has no more, as it was defined then."""
        return look.sealed is None and self._tool(mind, look) is None

    def _tool(self, mind: Mind, look: Look) -> AnyTool | None:
        """Return the tool of exactly the spec that was proposed."""
        action = look.file.action
        tool = mind.tools.lookup(action.namespace, action.tool)
        return tool if tool is not None and tool.spec.digest == action.spec else None

    def _claim(self, mind: Mind, look: Look, *, by: Asker | None = None) -> Claim | Ran | Outcome | None:
        """Ask the policy again, and claim if it still agrees (design §6).

        Raises:
            Sealed: what would run cannot be read; the action stays as it is.
        """
        if look.sealed is not None:
            raise look.sealed
        tool, action = self._tool(mind, look), look.file.action
        if tool is None or look.run.state is not RunState.OPEN:
            reason = "spec_changed" if tool is None else f"run_{look.run.state.lower()}"
            ends = action.state in {State.READY, State.HELD}
            return self._change(look, partial(_refuse, reason=reason)) if ends else look.outcome
        thought = thought_of(look, tool.spec)
        judgement = mind.judge(thought, look.run, look.view, revision=action.revision)
        claimant = Claimant(
            holder=str(self.holder()),
            lease_us=self.settings.lease_us,
            tool=tool,
            content=look.payloads["arguments"].content,
            reserves=judgement.decision.reserves,
            salt=self.ledger.salt(),
            breaker=self.settings.breaker,
            pinned=mind.pinned,
            operators=self.settings.operators,
            keyring=self.keyring,
        )
        work = partial(
            _claimed,
            outcome=look.outcome,
            by=by,
            claimant=claimant,
            thought=replace(thought, judgement=judgement),
            chance=chance(self.ledger, self.settings),
        )
        step = self._change(look, work, documents=mind.documents)
        # Of what is unknown still, with what the policy wants asked by now.
        return self._look(action.tenant, action.id).outcome or step if isinstance(step, Unknown) else step


def _as_seen(step: Claim | Ran | Outcome | None, look: Look) -> Claim | Ran | Outcome | None:
    """Answer of what is unknown still with all that the look saw: what hangs on it, and what its attempts have said."""
    return look.outcome if isinstance(step, Unknown) and isinstance(look.outcome, Unknown) else step


def _claimed(
    transaction: Transaction,
    file: ActionFile,
    *,
    outcome: Outcome | None,
    by: Asker | None,
    claimant: Claimant,
    thought: Thought,
    chance: Chance,
) -> Claim | Outcome | None:
    grounds = Grounds(history=read_history(transaction, file), keyring=claimant.keyring, chance=chance)
    if file.action.state is State.FAILED:
        if not may_retry(transaction.draft.run):
            wait(transaction.draft, file, Wait(reason="limit_retries"))  # it stays the failure that it is
            return None
        why = _unretried(transaction, file, claimant, by=by)
        if why is not None:
            return waiting(file, why) if isinstance(why, Wait) else outcome
        until_us = transaction.draft.at_us + chance.ready_us
        question = file.question
        if question is not None and question.state == "granted" and question.until_us is not None:
            until_us = min(until_us, question.until_us)  # a grant that was given back ends when it always would have
        transaction.draft.add("retried", {"by": by or "caller", "until_us": until_us}, action=file.action.id)
        file = transaction.draft.file(file.action.id)
    return claim_again(transaction, file, claimant, thought, grounds)


def _unretried(
    transaction: Transaction, file: ActionFile, claimant: Claimant, *, by: Asker | None
) -> Wait | Stop | None:
    """Return what keeps a known failure from being made ready again; it then stays as it is."""
    draft = transaction.draft
    if is_inactive(transaction.connection, draft.run, claimant.pinned):
        wait(draft, file, INACTIVE)
        return INACTIVE
    if by != "retry":  # whoever asks for it wants to be told what ends it
        return None
    ready = replace(file, action=replace(file.action, state=State.READY))
    around = surroundings(
        transaction.connection, draft.run, ready, claimant.tool.spec, breaker=claimant.breaker, at_us=draft.at_us
    )
    return hindrance(draft.run, ready.action, around, draft.at_us)


def check_within(tool: AnyTool | None) -> None:
    """Refuse to run an effect inside a transaction that its record may vanish with, unless it vanishes with it too.

    Raises:
        Misuse: the tool is not transactional.
    """
    if tool is not None and not is_transactional(tool.spec):
        raise Misuse(
            f"connection: {tool.spec.name!r} does not declare recovery=Transactional(): your rollback would take back "
            "its record and not its effect; leave connection out"
        )


def _answerable_until(file: ActionFile) -> int:
    if file.question is None:
        raise Damaged(f"action {file.action.id}", "it is held without a question")
    return file.question.expires_at_us


def _expire(transaction: Transaction, file: ActionFile) -> None:
    expire(transaction.draft, file)


def _refuse(transaction: Transaction, file: ActionFile, *, reason: str) -> None:
    refuse(transaction.draft, file, reason)


def _take_over(transaction: Transaction, file: ActionFile, *, crashed: bool, by: str) -> Running | None:
    if leases.settle(transaction, file, crashed=crashed, by=by) or file.current is None:
        return None
    until_us = leases.over_at_us(transaction, file.current)
    return Running(action=file.action.id, digest=file.action.digest.hex(), until=to_datetime(until_us))


def _replay(transaction: Transaction, file: ActionFile, *, outcome: Outcome | None) -> Outcome | None:
    transaction.draft.add("replayed", {"principal": file.action.principal}, action=file.action.id)
    return outcome
