"""Counting what a recheck finds in one run, in memory that does not grow with it, and adding runs up."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agentgate.core.comparing import REFUSALS, compare
from agentgate.core.findings import Difference, NotEvaluated, NowDenied, Recheck
from agentgate.core.marks import Marks
from agentgate.core.rechecking import Case, Gap, Opened, proposal_n, recorded
from agentgate.event import Event
from agentgate.policy.decision import Decision
from agentgate.policy.evaluation import FACT_UNAVAILABLE, GATE_RULE, TIMEOUT

_UNHEARD = frozenset({TIMEOUT, FACT_UNAVAILABLE})  # says nothing about what the policy would answer


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was counted so far; ``kept`` findings of each kind are held one by one.

    Args:
        kept: how many.
        counts: by the names of `Recheck`'s fields.
        reasons: why decisions cannot be evaluated.
        failures: how the policy failed.
    """

    kept: int
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    now_denied: list[NowDenied] = field(default_factory=list)
    not_evaluated: list[NotEvaluated] = field(default_factory=list)

    @property
    def decisions(self) -> int:
        """How many decisions were found."""
        return self.counts["rechecked"] + self.counts["cannot_evaluate"]

    def cannot(self, found: NotEvaluated, *, decisions: int = 1) -> None:
        """Count decisions that cannot be evaluated."""
        self.counts["cannot_evaluate"] += decisions
        self.reasons[found.reason] += decisions
        keep(self.not_evaluated, found, self.kept)

    def add(self, other: "Tally") -> None:
        """Add another run's."""
        self.counts += other.counts
        self.reasons += other.reasons
        self.failures += other.failures
        self.differences += other.differences[: self.kept - len(self.differences)]
        self.now_denied += other.now_denied[: self.kept - len(self.now_denied)]
        self.not_evaluated += other.not_evaluated[: self.kept - len(self.not_evaluated)]

    def report(self, *, policy: bytes) -> Recheck:
        """Return what was found."""
        return Recheck(
            policy=policy.hex(),
            **{name: self.counts[name] for name in _COUNTED},
            reasons=_most_first(self.reasons),
            policy_failures=_most_first(self.failures),
            differences=tuple(self.differences),
            now_denied=tuple(self.now_denied),
            not_evaluated=tuple(self.not_evaluated),
            kept=self.kept,
        )


_COUNTED = (
    "runs", "rechecked", "same", "reworded", "tightened", "loosened", "approval_changed", "cannot_evaluate",
    "same_policy", "nondeterministic", "executed", "executed_now_denied", "executed_not_evaluated",
)  # fmt: skip


def keep(found: list[Any], one: object, most: int) -> None:
    """Hold a finding while there is room."""
    if len(found) < most:
        found.append(one)


def _most_first(counted: Counter[str]) -> Mapping[str, int]:
    return MappingProxyType(dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What stands behind a break, as far as it can be read.

    Args:
        decisions: events with a policy's answer.
        started: first starts of an action.
    """

    decisions: int
    started: int


class RunTally:
    """The tally of one run while it is read, event by event; nothing of it stands before the chain has held.

    Args:
        opened: the run, as far as its first event could be read.
        policy: identity of the policy that is asked.
        kept: how many findings of each kind to hold.
    """

    def __init__(self, opened: Opened, *, policy: bytes, kept: int) -> None:
        self._opened = opened
        self._policy = policy.hex()
        self._tally = Tally(kept=kept)
        self._started, self._denied, self._unjudged, self._reported = Marks(), Marks(), Marks(), Marks()
        self._refusals: dict[int, Difference] = {}

    @property
    def decisions(self) -> int:
        """How many decisions were found so far."""
        return self._tally.decisions

    def answered(self, case: Case, now: Decision) -> None:
        """Take what the policy answers to a recorded decision.

        Raises:
            Gap: the answer, or the recorded decision, is none.
        """
        if now.rule == GATE_RULE:
            code = now.reasons[0].code
            if code in _UNHEARD:
                raise Gap(code)
            self._tally.failures[code] += 1
        found = self._difference(case, recorded(case), now)
        self._count(found)
        n = proposal_n(case.event)
        assert n is not None  # it was rebuilt from its proposal
        if now.outcome in REFUSALS and found.was.outcome not in REFUSALS:
            self._denied.add(n)
            self._remember(n, found)

    def _difference(self, case: Case, was: Decision, now: Decision) -> Difference:
        event, proposed = case.event, case.proposed
        assert proposed is not None  # as above
        return Difference(
            run=event.run,
            run_name=self._opened.name,
            tenant=self._opened.tenant,
            action=str(event.action),
            n=event.n,
            type=event.type,
            namespace=str(proposed.body["namespace"]),
            tool=str(proposed.body["tool"]),
            verdict=compare(was, now),
            was=was,
            now=now,
            same_policy=event.body["policy"] == self._policy,
        )

    def _count(self, found: Difference) -> None:
        counts, told_otherwise = self._tally.counts, found.was.to_json() != found.now.to_json()
        counts["rechecked"] += 1
        counts[found.verdict] += 1
        counts["same_policy"] += found.same_policy
        counts["reworded"] += told_otherwise and found.verdict == "same"
        counts["nondeterministic"] += told_otherwise and found.same_policy
        if found.verdict != "same" or (told_otherwise and found.same_policy):
            keep(self._tally.differences, found, self._tally.kept)

    def _remember(self, n: int, refusal: Difference) -> None:
        """Keep the refusals that a `started` may still name; of very many the oldest are let go of."""
        self._refusals[n] = refusal
        if len(self._refusals) > self._tally.kept:
            del self._refusals[next(iter(self._refusals))]

    def unanswered(self, event: Event, reason: str) -> None:
        """Take a decision that cannot be evaluated."""
        self._tally.cannot(NotEvaluated(run=event.run, action=event.action, n=event.n, reason=reason))
        n = proposal_n(event)
        if n is not None:
            self._unjudged.add(n)

    def started(self, event: Event) -> None:
        """Take the start of an effect: the action was executed."""
        n = proposal_n(event)
        if n is None:
            return
        self._started.add(n)
        if n not in self._denied or n in self._reported:
            return
        self._reported.add(n)
        attempt = event.body["attempt"]
        assert type(attempt) is int  # checked by the body's shape
        executed = NowDenied(
            run=event.run,
            run_name=self._opened.name,
            tenant=self._opened.tenant,
            action=str(event.action),
            attempt=attempt,
            n=event.n,
            refusal=self._refusals.pop(n, None),
        )
        keep(self._tally.now_denied, executed, self._tally.kept)

    def end(self) -> Tally:
        """Return the tally of a run whose chain holds to its head."""
        counts = self._tally.counts
        counts["runs"] = 1
        counts["executed"] = len(self._started)
        counts["executed_now_denied"] = len(self._reported)
        counts["executed_not_evaluated"] = self._started.count_in(self._unjudged, without=self._reported)
        return self._tally

    def broken(self, *, n: int, detail: str, rest: Rest) -> Tally:
        """Return the tally of a run whose chain is broken: which of its events were rewritten cannot be told.

        Args:
            n: where it is broken.
            detail: how.
            rest: what stands behind the break.
        """
        tally = Tally(kept=self._tally.kept)
        whole = NotEvaluated(run=self._opened.run, action=None, n=n, reason="chain_broken", detail=detail)
        tally.cannot(whole, decisions=max(1, self.decisions + rest.decisions))
        tally.counts["runs"] = 1
        tally.counts["executed"] = tally.counts["executed_not_evaluated"] = len(self._started) + rest.started
        return tally
