"""Probing: asking a tool's own function whether an attempt in doubt has happened, and recording what it says.

It is asked outside any transaction, about what one snapshot showed, and its answer counts only while that stands. "It
has not happened" is true of the moment in which it was asked; it is believed once no worker of the attempts in doubt
can make it untrue: they have ended, their process is gone, or their lease is over, after which `Effect.sending` lets
nobody begin. A worker past its last check is beyond any gate: the fence lets the downstream refuse it (design §5).
"""

from collections.abc import Callable
from dataclasses import dataclass

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.core import recording
from agentgate.core.claiming import Wait, wait
from agentgate.core.records import ActionFile, AttemptRecord
from agentgate.event import decode
from agentgate.gate.asking import Said, ask_probe
from agentgate.gate.claiming import doubtful
from agentgate.gate.keeping import kept
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.performing import Performer
from agentgate.gate.releasing import release
from agentgate.gate.settings import Settings
from agentgate.lease import Holder
from agentgate.observation import Observation
from agentgate.outcome import Unknown
from agentgate.process import is_gone
from agentgate.states import State
from agentgate.store import events
from agentgate.tools.decorator import AnyTool
from agentgate.tools.recovery import Probe
from agentgate.work import is_at_work


def has_probe(tool: AnyTool | None, file: ActionFile) -> bool:
    """Tell whether a tool can be asked about an action's attempts in doubt."""
    in_doubt = file.action.unresolved > 0 and file.action.state is not State.EXECUTING
    return in_doubt and tool is not None and tool.probe is not None and isinstance(tool.spec.recovery, Probe)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a probe said, and the result that an action gets by it."""

    said: Said
    result: recording.Kept | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """Ask probes, and record what they say.

    Args:
        ledger: the record.
        settings: times to live and time-outs.
        performer: makes what a probe knows of the attempt.
        holder: names this gate.
    """

    ledger: Ledger
    settings: Settings
    performer: Performer
    holder: Callable[[], Holder]

    def ask(self, tool: AnyTool, file: ActionFile, arguments: Json) -> Answer:
        """Ask about the latest attempt in doubt; it has the same idempotency key as those before it.

        Args:
            tool: of exactly the spec that was proposed.
            file: the action, with an attempt in doubt.
            arguments: parsed for this question alone.
        """
        assert tool.probe is not None  # `has_probe` was asked before
        within, clock = self.settings.check_within, self.ledger.clock
        attempt = max((one for one in file.attempts.values() if one.unresolved), key=lambda one: one.number)
        effect = self.performer.handle(
            file.action,
            attempt,
            deadline_us=clock.now_us() + to_us(within),
            within_us=to_us(within),
            lease_until_us=clock.monotonic_us() + to_us(within),
        )
        said = ask_probe(tool.probe, effect, arguments, spec=tool.spec, within=within)
        result = None
        if said.verdict and file.action.state is State.UNKNOWN:
            seen = said.observation or Observation(status="ok", notes=("reconciled",))
            result = kept(self.ledger, self.performer.fingerprint_key(file.action.tenant), file, seen)
        return Answer(said=said, result=result)

    def record(self, transaction: Transaction, file: ActionFile, *, tool: AnyTool, answer: Answer) -> Unknown | None:
        """Record an answer about an action that stands as it stood when it was asked.

        What an answer would change of an end that is known already (it did not happen, of an action that succeeded) is
        for people, and is not recorded.

        Returns:
            That it is still unknown; None where the answer settles it, or is nothing new.
        """
        said, is_unknown = answer.said, file.action.state is State.UNKNOWN
        living = [one for one in file.attempts.values() if one.unresolved and self._may_live(transaction, one)]
        if said.verdict is None or (said.verdict is False and (living or not is_unknown)):
            reason = "probe_unsure" if said.verdict is None else "worker_alive"
            return self._still_unknown(transaction, file, reason, said) if is_unknown else None
        assert tool.spec.probe is not None  # a tool that has the function names it
        recording.reconcile(
            transaction.draft,
            file,
            applied=said.verdict,
            by=f"probe:{tool.spec.probe.name}/{tool.spec.probe.version}",
            worker_known_dead=not living,
            ready_us=self.settings.ready_us,
            result=answer.result,
            payloads=(said.payload(self.ledger),),
        )
        release(transaction, file.action.id, parallel=tool.spec.parallel)
        return None

    def _still_unknown(self, transaction: Transaction, file: ActionFile, reason: str, said: Said) -> Unknown:
        if reason not in file.action.waited:
            wait(transaction.draft, file, Wait(reason=reason), payloads=(said.payload(self.ledger),))
        return doubtful(transaction, file, None, None)

    def _may_live(self, transaction: Transaction, attempt: AttemptRecord) -> bool:
        """Tell whether an attempt's worker may still cause its effect."""
        if attempt.late_n is not None or _has_said(transaction, attempt):
            return False
        if is_at_work((self.ledger.id, attempt.fence)):
            return True
        holder, me = Holder.parse(attempt.holder), self.holder()
        if (
            holder is not None
            and me.host
            and (holder.host, holder.pid, holder.started) == (me.host, me.pid, me.started)
        ):
            return False  # this very process knows what is at work in it
        gone = holder is not None and is_gone(holder)
        return not gone and attempt.lease_until_us > transaction.draft.at_us


def _has_said(transaction: Transaction, attempt: AttemptRecord) -> bool:
    """Tell whether the attempt ended with an error of its own, so that nothing of it is left at work."""
    link = None if attempt.ended_n is None else events.link(transaction.connection, attempt.run, attempt.ended_n)
    return link is not None and bool(decode(link.encoded).body["payloads"])
