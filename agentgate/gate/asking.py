"""Asking a tool's own functions, the probe and the confirm: outside any transaction, under a time-out, in a thread.

Whatever such a function does but answer is no answer: a raise, a time-out, None, an awaitable, a value of another kind.
What it shows is copied in its thread, so that nothing of it is looked at again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from agentgate.canonical import Bounds, Json, canonical, keep
from agentgate.core import classifying
from agentgate.core.draft import Payload
from agentgate.core.veiling import Veil, veil_of
from agentgate.effects import Effect
from agentgate.gate.ledger import Ledger
from agentgate.observation import Observation
from agentgate.policy.deadline import Late, Raised, Threads
from agentgate.policy.evaluation import is_awaitable
from agentgate.tools.sensitive import sensitive_values
from agentgate.tools.spec import ToolSpec
from agentgate.tools.verdicts import Applied, Checked, NotApplied

EVIDENCE_BOUNDS = Bounds(max_bytes=262_144)

# Not those of policies: a probe that hangs must not keep a policy from answering.
_threads = Threads()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a function answered.

    Args:
        verdict: yes or no; None where it cannot tell.
        why: a stable word: ``yes``, ``no``, ``none``, ``raised``, ``late``, ``awaitable`` or ``rubbish``.
        evidence: what it shows, in a list; an empty one where it shows nothing.
        error: the type of what it raised; its text may hold what it was asked about.
        observation: what the loop is told, where it knows that.
    """

    verdict: bool | None
    why: str
    evidence: list[Json] = field(default_factory=list, repr=False)
    error: str | None = None
    observation: Observation | None = None

    def payload(self, ledger: Ledger) -> Payload:
        """Put it down as evidence."""
        said: dict[str, Json] = {"said": self.why}
        if self.evidence:
            said["evidence"] = self.evidence[0]
        if self.error is not None:
            said["error"] = self.error
        return ledger.payload("evidence", canonical(said))


def ask_probe(probe: Callable[..., Any], effect: Effect, arguments: Json, *, spec: ToolSpec, within: timedelta) -> Said:
    """Ask whether it happened.

    Args:
        probe: the tool's function.
        effect: a handle of the attempt in doubt.
        arguments: parsed for this question alone.
        spec: what results are read by.
        within: how long to wait.
    """
    return _ask(partial(_probed, probe, effect, arguments, spec), within=within)


def ask_confirm(
    confirm: Callable[..., Any], effect: Effect, arguments: Json, result: Json, *, spec: ToolSpec, within: timedelta
) -> Said:
    """Ask whether the world is as it should be; the rest as `ask_probe`."""
    return _ask(partial(_confirmed, confirm, effect, arguments, result, spec), within=within)


def _ask(job: Callable[[], Said], *, within: timedelta) -> Said:
    answer = _threads.run(job, within=within)
    if isinstance(answer, Late):
        return Said(verdict=None, why="late")
    if isinstance(answer, Raised):
        return Said(verdict=None, why="raised", error=answer.name)
    assert isinstance(answer.value, Said)
    return answer.value


def _probed(probe: Callable[..., Any], effect: Effect, arguments: Json, spec: ToolSpec) -> Said:
    sensitive = sensitive_values(spec, arguments)
    answer = probe(effect, arguments)
    veil = veil_of(effect.handed, sensitive)
    if isinstance(answer, Applied):
        return Said(
            verdict=True,
            why="yes",
            evidence=_shown(answer.evidence, veil),
            observation=_reconciled(answer.result, spec, veil),
        )
    if isinstance(answer, NotApplied):
        return Said(verdict=False, why="no", evidence=_shown(answer.evidence, veil))
    return _plain(answer)


def _reconciled(result: object, spec: ToolSpec, veil: Veil) -> Observation:
    """Read what the probe says came of it, as a tool's own result is read; None is no result."""
    if result is None:
        return Observation(status="ok", notes=("reconciled",))
    read = classifying.returned(result, spec, veil).observation
    assert read is not None  # a result always has one
    return replace(read, notes=("reconciled", *read.notes))


def _confirmed(confirm: Callable[..., Any], effect: Effect, arguments: Json, result: Json, spec: ToolSpec) -> Said:
    sensitive = sensitive_values(spec, arguments)
    answer = confirm(effect, arguments, result)
    if isinstance(answer, Checked):
        return replace(_plain(answer.ok), evidence=_shown(answer.evidence, veil_of(effect.handed, sensitive)))
    return _plain(answer)


def _plain(answer: object) -> Said:
    if type(answer) is bool:
        return Said(verdict=answer, why="yes" if answer else "no")
    if answer is None:
        return Said(verdict=None, why="none")
    return Said(verdict=None, why="awaitable" if is_awaitable(answer) else "rubbish")


def _shown(evidence: object, veil: Veil) -> list[Json]:
    return [] if evidence is None else [veil.json(keep(evidence, bounds=EVIDENCE_BOUNDS).value)]
