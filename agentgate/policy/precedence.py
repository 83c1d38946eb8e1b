"""How several answers become one: abort > deny > require_approval > allow, whatever their order.

A join: putting the same answers together in another order, twice, or in groups changes neither the outcome
nor what is asked for. It may only make things stricter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from agentgate.approval import Requirement
from agentgate.policy.decision import MAX_ITEMS, OUTCOMES, Decision, Reason, Reserve, deny

DEFAULT_RULE = "default"
"""The rule of a decision that no rule made: what nothing allows is denied."""

NO_RULE = deny("no_rule_matched", rule=DEFAULT_RULE)


def strictest(decisions: Iterable[Decision]) -> Decision:
    """Make one answer of several; of none, a denial.

    The strictest outcome wins; its rule is the first of that outcome, its reasons are those of all of that
    outcome. Unless it is a refusal, all that any answer asks for holds: every obligation, the largest amount
    per account, and a requirement that satisfies each one asked for (the larger quorum, a signature if one
    wants it, the roles they share). Where no role satisfies all of them it is denied (``requirements_conflict``).
    """
    answers = tuple(decisions)
    if not answers:
        return NO_RULE
    if len(answers) == 1:
        return answers[0]
    outcome = max((answer.outcome for answer in answers), key=OUTCOMES.index)
    equals = [answer for answer in answers if answer.outcome == outcome]
    if outcome in ("deny", "abort"):
        return replace(equals[0], reasons=_reasons(equals), obligations=_obligations(equals))
    requirement = reduce(_both, (answer.requirement for answer in equals))
    if outcome == "require_approval" and requirement is None:
        text = "no role satisfies every rule that asks for approval"
        return deny("requirements_conflict", text, rule=equals[0].rule)
    return replace(
        equals[0],
        reasons=_reasons(equals),
        requirement=requirement,
        obligations=_obligations(answers),
        reserves=_reserves(answers),
    )


def _both(left: Requirement | None, right: Requirement | None) -> Requirement | None:
    """Return what satisfies two requirements at once, None where no role can."""
    if left is None or right is None:
        return None
    shared = tuple(role for role in left.roles if role in right.roles)
    if left.roles and right.roles and not shared:
        return None
    return Requirement(
        quorum=max(left.quorum, right.quorum),
        roles=shared or left.roles or right.roles,
        proposer=left.proposer and right.proposer,
        signed=left.signed or right.signed,
        obligations=tuple(dict.fromkeys((*left.obligations, *right.obligations))),
    )


def _reasons(answers: Sequence[Decision]) -> tuple[Reason, ...]:
    first: dict[str, Reason] = {}
    for reason in (reason for answer in answers for reason in answer.reasons):
        first.setdefault(reason.code, reason)
    return tuple(first.values())[:MAX_ITEMS]


def _obligations(answers: Sequence[Decision]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for answer in answers for word in answer.obligations))


def _reserves(answers: Sequence[Decision]) -> tuple[Reserve, ...]:
    largest: dict[str, int] = {}
    for reserve in (reserve for answer in answers for reserve in answer.reserves):
        largest[reserve.account] = max(reserve.amount, largest.get(reserve.account, 0))
    return tuple(Reserve(account=account, amount=amount) for account, amount in largest.items())
