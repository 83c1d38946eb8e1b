"""A rule that asks people may let a standing grant answer; no rule that demands a signature may."""

import pytest

from agentgate import Misuse, PolicyRefused, standing_reserve
from agentgate.policy.rules import parse_rules
from support.asking import request

RULE = "version: 1\nrules:\n  - {name: r, match: {}, outcome: %s}\n"


def test_only_a_file_that_says_so_declares_the_fact() -> None:
    assert parse_rules((RULE % "require_approval, standing: true").encode()).facts == ("standing_grants",)
    assert parse_rules((RULE % "require_approval, standing: false").encode()).facts == ()
    assert parse_rules((RULE % "allow").encode()).facts == ()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("allow, standing: true", "allow asks nobody"),
        ("deny, standing: true", "deny asks nobody"),
        ("require_approval, requirement: {signed: true}, standing: true", "a standing grant is not signed"),
        ("require_approval, standing: yes", "neither true nor false"),
    ],
)
def test_where_nobody_is_asked_or_somebody_must_sign_it_is_refused(said: str, problem: str) -> None:
    with pytest.raises(PolicyRefused, match=problem) as refused:
        parse_rules((RULE % said).encode())
    assert refused.value.path == "/rules/0/standing"


def test_it_answers_only_its_own_rule_and_the_strictest_still_wins() -> None:
    fact = [{"id": "g", "until_us": 1, "left": 2, "by": "ada"}]
    both = parse_rules(
        (RULE % "require_approval, standing: true" + "  - {name: s, match: {}, outcome: require_approval}\n").encode()
    )
    decision = both.decide(request(facts={"standing_grants": fact}))
    assert (decision.outcome, decision.rule) == ("require_approval", "s")
    alone = parse_rules((RULE % "require_approval, standing: true").encode())
    decision = alone.decide(request(facts={"standing_grants": fact}))
    assert (decision.outcome, decision.rule) == ("allow", "r")
    assert [(one.account, one.amount) for one in decision.reserves] == [("grant:g", 1)]
    assert alone.decide(request(facts={"standing_grants": []})).outcome == "require_approval"


def test_a_policy_that_did_not_declare_the_fact_is_told_so() -> None:
    with pytest.raises(Misuse, match="declare 'standing_grants'"):
        standing_reserve(request())
