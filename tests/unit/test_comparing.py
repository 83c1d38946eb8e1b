"""What another answer means, outcome by outcome and term by term."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agentgate.approval import Requirement
from agentgate.core.comparing import Verdict, compare
from agentgate.policy.decision import OUTCOMES, Decision, Reserve, abort, allow, deny, require_approval

HUNDRED, FIFTY = Reserve(account="money", amount=100), Reserve(account="money", amount=50)
OTHER = Reserve(account="calls", amount=1)


@pytest.mark.parametrize(
    ("was", "now", "verdict"),
    [
        (allow(), allow("because", rule="another"), "same"),
        (allow(), require_approval("ask"), "tightened"),
        (require_approval("ask"), deny("no"), "tightened"),
        (deny("no"), abort("stop"), "tightened"),
        (abort("stop"), allow(), "loosened"),
        (deny("no"), deny("never", rule="another"), "same"),
        (require_approval("ask"), require_approval("why", requirement=Requirement(quorum=2)), "approval_changed"),
        (require_approval("ask", requirement=Requirement(roles=("a", "b"))),
         require_approval("ask", requirement=Requirement(roles=("b", "a"))), "same"),
        (allow(), allow(obligations=["log"]), "tightened"),
        (allow(obligations=["log"]), allow(), "loosened"),
        (allow(obligations=["log"]), allow(obligations=["call"]), "tightened"),
        (allow(obligations=["log", "call"]), allow(obligations=["call", "log"]), "same"),
        (allow(reserves=[FIFTY]), allow(reserves=[HUNDRED]), "tightened"),
        (allow(reserves=[HUNDRED]), allow(reserves=[FIFTY]), "loosened"),
        (allow(reserves=[HUNDRED]), allow(reserves=[FIFTY, OTHER]), "tightened"),
        (require_approval("ask"), require_approval("ask", obligations=["log"]), "tightened"),
    ],
)  # fmt: skip
def test_another_answer_is_told_by_what_it_would_change(was: Decision, now: Decision, verdict: Verdict) -> None:
    assert compare(was, now) == verdict


decisions = some.builds(
    lambda outcome, obligations, amount: Decision(
        outcome=outcome,
        rule="rule",
        requirement=Requirement() if outcome == "require_approval" else None,
        obligations=tuple(obligations),
        reserves=() if outcome in {"deny", "abort"} or not amount else (Reserve(account="a", amount=amount),),
    ),
    some.sampled_from(OUTCOMES),
    some.lists(some.sampled_from(["a", "b"]), max_size=2),
    some.integers(0, 2),
)


@given(decisions, decisions)
def test_what_is_looser_one_way_is_tighter_the_other(was: Decision, now: Decision) -> None:
    """Law: compare(a, b) is "loosened" only where compare(b, a) is "tightened"; "same" is symmetric."""
    there, back = compare(was, now), compare(now, was)
    assert (there == "same") == (back == "same")
    assert there != "loosened" or back == "tightened"


@given(decisions)
def test_a_decision_is_the_same_as_itself(decision: Decision) -> None:
    """Law: compare(a, a) is "same"."""
    assert compare(decision, decision) == "same"
