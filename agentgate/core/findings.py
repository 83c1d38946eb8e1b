"""What a recheck found, as values: counts of everything, and the first findings of each kind one by one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from agentgate.canonical import Json
from agentgate.core.comparing import Verdict
from agentgate.policy.decision import Decision

KEPT = 1_000
"""How many findings of a kind a report holds one by one, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckProgress:
    """How far a recheck has come.

    Args:
        runs: that were read to their end.
        decisions: that were found in them and in the one being read.
    """

    runs: int
    decisions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A decision that the policy would not make as it was made.

    Args:
        run: the run's id.
        run_name: the caller's name for it.
        tenant: whose it is.
        action: the action's id.
        n: position of the event that records the decision.
        type: that event's type.
        namespace: the tool's.
        tool: its name.
        verdict: what is different; ``same`` where only the rule or the reasons of the very same policy are.
        was: the decision as recorded, without its reasons' texts.
        now: the decision as answered again.
        same_policy: whether it was the same policy that answered both times: then it is not deterministic.
    """

    run: str
    run_name: str
    tenant: str
    action: str
    n: int
    type: str
    namespace: str
    tool: str
    verdict: Verdict
    was: Decision
    now: Decision
    same_policy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NowDenied:
    """An action that was executed and that the policy would now refuse.

    Args:
        run: the run's id.
        run_name: the caller's name for it.
        tenant: whose it is.
        action: the action's id.
        attempt: the attempt that would not have started.
        n: position of its ``started``.
        refusal: the decision on the way there that would be a refusal; None where a run holds so many that it was
            let go of.
    """

    run: str
    run_name: str
    tenant: str
    action: str
    attempt: int
    n: int
    refusal: Difference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEvaluated:
    """A decision that cannot be asked again, or a run whose chain is broken.

    Args:
        run: the run's id.
        action: the action's id; None for a whole run.
        n: position of the decision, or of the break.
        reason: a stable word: ``chain_broken``, ``payload_missing:arguments``, ``fact_not_recorded:on_call``.
        detail: what is broken, for a chain.
    """

    run: str
    action: str | None
    n: int | None
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """What another policy says of the decisions on record.

    ``same``, ``tightened``, ``loosened`` and ``approval_changed`` add up to ``rechecked``; with ``cannot_evaluate``
    they are all decisions found. Nothing rechecked is not the same: see ``verdict``.

    Args:
        policy: identity of the policy that was asked, in hex.
        runs: read to their end.
        rechecked: decisions that were asked again.
        same: the same would happen.
        reworded: of those, by another rule or for other reasons.
        tightened: stricter now.
        loosened: looser now.
        approval_changed: held both times, for another approval.
        cannot_evaluate: decisions that could not be asked again.
        reasons: why not, and how often.
        same_policy: of the rechecked, made by this very policy.
        nondeterministic: of those, answered otherwise now, be it by rule or reason alone.
        policy_failures: answers that the gate gave because the policy failed (raised, answered nothing), by code.
        executed: actions that were started.
        executed_now_denied: of those, some decision on the way would now be a refusal.
        executed_not_evaluated: of the others, some decision of theirs cannot be evaluated.
        differences: the first of them.
        now_denied: the first of the executed that would now be denied.
        not_evaluated: the first that could not be asked again; a broken chain once for its whole run.
        kept: how many of each were kept.
    """

    policy: str
    runs: int
    rechecked: int
    same: int
    reworded: int
    tightened: int
    loosened: int
    approval_changed: int
    cannot_evaluate: int
    reasons: Mapping[str, int]
    same_policy: int
    nondeterministic: int
    policy_failures: Mapping[str, int]
    executed: int
    executed_now_denied: int
    executed_not_evaluated: int
    differences: tuple[Difference, ...]
    now_denied: tuple[NowDenied, ...]
    not_evaluated: tuple[NotEvaluated, ...]
    kept: int

    @property
    def verdict(self) -> Literal["same", "different", "incomplete", "nothing"]:
        """Say in a word what was found; of several the first of different, incomplete, nothing, same."""
        if self.rechecked > self.same or self.nondeterministic:
            return "different"
        if self.cannot_evaluate:
            return "incomplete"
        return "same" if self.rechecked else "nothing"

    def to_json(self) -> dict[str, Json]:
        """Return all of it as JSON; decisions as events record them."""
        counts = {name: getattr(self, name) for name in self.__slots__ if type(getattr(self, name)) in {int, str}}
        return {
            **counts,
            "verdict": self.verdict,
            "reasons": dict(self.reasons),
            "policy_failures": dict(self.policy_failures),
            "differences": [_difference(one) for one in self.differences],
            "now_denied": [_now_denied(one) for one in self.now_denied],
            "not_evaluated": [asdict(one) for one in self.not_evaluated],
        }


def _difference(one: Difference) -> dict[str, Json]:
    told: dict[str, Json] = {name: getattr(one, name) for name in one.__slots__}
    return told | {"was": one.was.to_json(), "now": one.now.to_json()}


def _now_denied(one: NowDenied) -> dict[str, Json]:
    told: dict[str, Json] = {name: getattr(one, name) for name in one.__slots__}
    return told | {"refusal": None if one.refusal is None else _difference(one.refusal)}
