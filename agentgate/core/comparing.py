"""What it means that a policy answers otherwise: stricter, looser, or another approval."""

from collections import Counter
from typing import Literal

from agentgate.policy.decision import OUTCOMES, Decision

Verdict = Literal["same", "tightened", "loosened", "approval_changed"]

REFUSALS = frozenset({"deny", "abort"})


def compare(was: Decision, now: Decision) -> Verdict:
    """Say what would be different.

    Of one outcome, another requirement is `approval_changed`; another obligation, or more to spend, is tightened,
    less of both is loosened. A rule's name and reason codes make no difference to what happens: still ``same``.

    Args:
        was: as recorded.
        now: as answered again.
    """
    before, after = OUTCOMES.index(was.outcome), OUTCOMES.index(now.outcome)
    if before != after:
        return "tightened" if after > before else "loosened"
    if was.requirement != now.requirement:
        return "approval_changed"
    if _demands_all_of(was, now):
        return "same" if _demands_all_of(now, was) else "loosened"
    return "tightened"


def _demands_all_of(one: Decision, other: Decision) -> bool:
    """Tell whether ``one`` obliges to all that ``other`` does, and spends no less."""
    spent = {reserve.account: reserve.amount for reserve in one.reserves}
    return Counter(other.obligations) <= Counter(one.obligations) and all(
        reserve.amount <= spent.get(reserve.account, 0) for reserve in other.reserves
    )
