"""A recheck's report as text for a terminal: the headline first, then counts, then the first findings one by one.

Pure. Whatever came from the record passes `agentgate.printable`, so that no name moves a cursor or hides.
"""

from collections.abc import Iterable, Sequence

from agentgate.core.findings import Difference, NotEvaluated, NowDenied, Recheck
from agentgate.policy.decision import Decision
from agentgate.printable import clipped, printable

SHOWN = 20
_WIDEST = 48
_VERDICTS = {
    "same": "the same would be decided",
    "different": "decisions would be different",
    "incomplete": "nothing is different, but not everything could be asked",
    "nothing": "there was no decision to ask about",
}


def tabulate(report: Recheck, *, shown: int = SHOWN) -> str:
    """Write a report for people.

    Args:
        report: what was found.
        shown: how many findings of each kind are listed.
    """
    found = report.rechecked + report.cannot_evaluate
    asked = f"{_many(found, 'decision')} in {_many(report.runs, 'run')}, asked of policy {report.policy[:16]}"
    blocks = [
        [f"{asked}: {_VERDICTS[report.verdict]}"],
        _counts(report),
        _listed("executed, would now be denied", _DENIED, map(_denied, report.now_denied), report, shown),
        _listed("decided otherwise", _DIFFERENCES, map(_difference, report.differences), report, shown),
        _listed("cannot be evaluated", _GAPS, map(_gap, report.not_evaluated), report, shown),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _counts(report: Recheck) -> list[str]:
    rows: list[tuple[str, int, str]] = [
        ("executed, would now be denied", report.executed_now_denied, f"of {_many(report.executed, 'action')}"),
        ("same", report.same, f"{report.reworded} by another rule or reason" if report.reworded else ""),
        ("tightened", report.tightened, ""),
        ("loosened", report.loosened, ""),
        ("approval changed", report.approval_changed, ""),
        ("cannot evaluate", report.cannot_evaluate, _each(report.reasons)),
    ]
    if report.executed_not_evaluated:
        rows.append(("executed, cannot be evaluated", report.executed_not_evaluated, ""))
    if report.nondeterministic:
        of = f"of {report.same_policy} that this very policy made: it is not deterministic"
        rows.append(("same policy, another answer", report.nondeterministic, of))
    if report.policy_failures:
        rows.append(("the policy failed", sum(report.policy_failures.values()), _each(report.policy_failures)))
    width = max(len(f"{number:,}") for _, number, _ in rows)
    return [f"  {name:<30} {number:>{width},}  {more}".rstrip() for name, number, more in rows]


_DENIED = ("run", "action", "event", "tool", "was", "now", "because")
_DIFFERENCES = ("run", "action", "event", "tool", "was", "now", "because")
_GAPS = ("run", "action", "event", "reason")


def _denied(one: NowDenied) -> tuple[str, ...]:
    if one.refusal is None:
        return one.run_name, one.action, f"{one.n} started", "", "", "", ""
    return (one.run_name, one.action, f"{one.n} started", *_difference(one.refusal)[3:])


def _difference(one: Difference) -> tuple[str, ...]:
    tool = f"{one.namespace} {one.tool}" if one.namespace else one.tool
    event = f"{one.n} {one.type}"
    return one.run_name, one.action, event, tool, one.was.outcome, one.now.outcome, _because(one.now)


def _because(decision: Decision) -> str:
    codes = ", ".join(reason.code for reason in decision.reasons)
    return f"{decision.rule}: {codes}" if codes else decision.rule


def _gap(one: NotEvaluated) -> tuple[str, ...]:
    reason = f"{one.reason} ({one.detail})" if one.detail else one.reason
    return one.run, one.action or "all", "" if one.n is None else str(one.n), reason


def _listed(title: str, head: Sequence[str], found: Iterable[Sequence[str]], report: Recheck, shown: int) -> list[str]:
    cells = [[clipped(printable(cell), _WIDEST) for cell in row] for row in found]
    if not cells:
        return []
    left = len(cells) - shown
    rows = [list(head), *cells[:shown]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    more = [f"… {left:,} more" + (" kept; others are only counted" if len(cells) == report.kept else "")]
    return [title, *(f"  {line}" for line in lines), *(f"  {line}" for line in more if left > 0)]


def _each(counted: object) -> str:
    assert hasattr(counted, "items")
    return ", ".join(f"{printable(name)} {number:,}" for name, number in counted.items())


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
