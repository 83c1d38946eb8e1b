"""abort > deny > require_approval > allow, whatever the order, and all that is asked for holds."""

import random
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.approval import Requirement
from agentgate.policy.decision import OUTCOMES, Decision, Reason, Reserve, abort, allow, deny, require_approval
from agentgate.policy.precedence import strictest

ONE_EACH = (allow(rule="a"), require_approval("ask", rule="b"), deny("no", rule="c"), abort("stop", rule="d"))


def decision(outcome: str, rule: str, roles: tuple[str, ...], quorum: int, amount: int) -> Decision:
    reserves = (Reserve(account=f"account-{amount % 2}", amount=amount),)
    if outcome == "allow":
        return allow(rule=rule, reserves=reserves, obligations=(f"o{quorum}",))
    if outcome == "require_approval":
        requirement = Requirement(quorum=quorum, roles=roles, signed=quorum > 2, proposer=amount % 3 == 0)
        return require_approval("ask", rule=rule, requirement=requirement, reserves=reserves)
    return deny("no", rule=rule) if outcome == "deny" else abort("stop", rule=rule)


DECISIONS = st.lists(
    st.builds(
        decision,
        st.sampled_from(OUTCOMES),
        st.sampled_from(["r1", "r2", "r3"]),
        st.lists(st.sampled_from(["ops", "finance", "cfo"]), max_size=2, unique=True).map(tuple),
        st.integers(1, 3),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("order", list(permutations(ONE_EACH)))
def test_the_strictest_word_wins_whatever_the_order(order: tuple[Decision, ...]) -> None:
    assert strictest(order) == ONE_EACH[3]


@pytest.mark.parametrize(("left", "right"), list(product(range(4), repeat=2)))
def test_of_two_words_the_stricter_wins(left: int, right: int) -> None:
    assert strictest([ONE_EACH[left], ONE_EACH[right]]).outcome == OUTCOMES[max(left, right)]


def test_no_answer_at_all_is_a_denial() -> None:
    assert strictest([]) == deny("no_rule_matched", rule="default")


def test_one_answer_stands_as_it_is() -> None:
    answer = require_approval("ask", rule="r", requirement=Requirement(quorum=3))
    assert strictest([answer]) is answer


def test_the_first_of_equals_names_the_rule_and_every_equal_gives_its_reason() -> None:
    answer = strictest([allow("fine"), deny("no", "first", rule="x"), deny("never", rule="y"), deny("no", rule="z")])

    assert (answer.rule, answer.reasons) == ("x", (Reason(code="no", text="first"), Reason(code="never")))


def test_reserves_and_obligations_of_every_rule_hold_though_another_asks_for_approval() -> None:
    budget = allow(rule="budget", reserves=(Reserve(account="money", amount=5),), obligations=("log_it",))
    larger = allow(rule="larger", reserves=(Reserve(account="money", amount=7), Reserve(account="calls", amount=1)))

    answer = strictest([require_approval("ask", rule="ask"), budget, larger])

    assert answer.outcome == "require_approval"
    assert answer.obligations == ("log_it",)
    assert answer.reserves == (Reserve(account="money", amount=7), Reserve(account="calls", amount=1))


def test_a_refusal_spends_nothing_though_an_allowing_rule_would() -> None:
    assert strictest([allow(reserves=(Reserve(account="money", amount=5),)), deny("no")]).reserves == ()


def test_two_requirements_become_one_that_satisfies_both() -> None:
    first = Requirement(quorum=1, roles=("cfo", "finance"), proposer=True, obligations=("call",))
    second = Requirement(quorum=2, roles=("cfo", "ops"), signed=True, obligations=("note", "call"))

    answer = strictest([require_approval("a", requirement=first), require_approval("b", requirement=second)])

    assert answer.requirement == Requirement(
        quorum=2, roles=("cfo",), proposer=False, signed=True, obligations=("call", "note")
    )


def test_requirements_that_no_role_satisfies_together_deny() -> None:
    one, other = Requirement(roles=("ops",)), Requirement(roles=("finance",))

    answer = strictest([require_approval("a", rule="x", requirement=one), require_approval("b", requirement=other)])

    assert (answer.outcome, answer.rule) == ("deny", "x")
    assert [reason.code for reason in answer.reasons] == ["requirements_conflict"]


@given(DECISIONS, st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_order_and_repetition_change_nothing_that_is_asked_for(answers: list[Decision], chance: random.Random) -> None:
    shuffled = [*answers, chance.choice(answers)]
    chance.shuffle(shuffled)

    left, right = strictest(answers), strictest(shuffled)

    assert left.outcome == right.outcome
    assert set(left.reserves) == set(right.reserves)
    assert set(left.obligations) == set(right.obligations)
    assert (left.requirement is None) == (right.requirement is None)
    if left.requirement is not None and right.requirement is not None:
        assert left.requirement.to_json() == right.requirement.to_json()


@given(DECISIONS)
@settings(max_examples=100)
def test_another_answer_may_only_make_it_stricter(answers: list[Decision]) -> None:
    fewer, more = strictest(answers[1:]) if answers[1:] else allow(), strictest(answers)
    assert OUTCOMES.index(more.outcome) >= OUTCOMES.index(fewer.outcome)
