"""A decision that exists is valid, and its recorded form is read back exactly or not at all."""

from dataclasses import FrozenInstanceError
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.approval import Requirement
from agentgate.bodies import BODIES
from agentgate.canonical import Json, canonical, parse
from agentgate.errors import Damaged, PolicyRefused
from agentgate.policy.decision import (
    OUTCOMES,
    Decision,
    Reason,
    Reserve,
    abort,
    allow,
    deny,
    require_approval,
)

WORDS = st.from_regex(r"[a-z0-9_.:/-]{1,20}", fullmatch=True)
REASONS = st.builds(Reason, code=WORDS, text=st.text(st.characters(codec="utf-8"), max_size=20))
RESERVES = st.lists(
    st.builds(Reserve, account=WORDS, amount=st.integers(1, 2**53 - 1)),
    max_size=3,
    unique_by=lambda reserve: reserve.account,
).map(tuple)
REQUIREMENTS = st.builds(
    Requirement,
    quorum=st.integers(1, 5),
    roles=st.lists(WORDS, max_size=3).map(tuple),
    proposer=st.booleans(),
    signed=st.booleans(),
    obligations=st.lists(WORDS, max_size=2).map(tuple),
)


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    outcome = draw(st.sampled_from(OUTCOMES))
    refusal = outcome in ("deny", "abort")
    return Decision(
        outcome=outcome,
        rule=draw(WORDS),
        reasons=tuple(draw(st.lists(REASONS, max_size=3))),
        requirement=draw(REQUIREMENTS) if outcome == "require_approval" else None,
        obligations=tuple(draw(st.lists(WORDS, max_size=3))),
        reserves=() if refusal else draw(RESERVES),
    )


def recorded(decision: Decision) -> Any:
    return parse(canonical(decision.to_json()))


def test_a_decision_is_recorded_in_the_form_of_the_format_with_its_texts_apart() -> None:
    decision = require_approval(
        "large_refund",
        "Ada's refund is large",
        rule="refunds",
        requirement=Requirement(quorum=2, roles=("finance", "cfo")),
        obligations=("call_back",),
        reserves=(Reserve(account="refunds", amount=1250),),
    )

    assert decision.to_json() == {
        "outcome": "require_approval",
        "rule": "refunds",
        "reasons": [{"code": "large_refund"}],
        "requirement": {
            "kind": "approval",
            "quorum": 2,
            "roles": ["cfo", "finance"],
            "proposer": False,
            "signed": False,
            "obligations": [],
        },
        "obligations": ["call_back"],
        "reserves": [{"account": "refunds", "amount": 1250}],
    }
    assert decision.texts() == {"reasons.0": "Ada's refund is large"}


@given(decisions())
@settings(max_examples=100)
def test_every_decision_survives_its_record(decision: Decision) -> None:
    assert Decision.from_json(recorded(decision), decision.texts()) == decision


@given(decisions())
@settings(max_examples=50)
def test_every_recorded_decision_is_of_the_shape_that_events_accept(decision: Decision) -> None:
    assert BODIES["started"]["decision?"](recorded(decision), "") is None


def test_a_reasons_text_that_was_erased_is_read_as_none() -> None:
    assert Decision.from_json(recorded(deny("no", "because of Ada"))) == deny("no")


@pytest.mark.parametrize(
    ("change", "offence"),
    [
        ({"extra": 1}, "/extra"),
        ({"outcome": "maybe"}, "/outcome"),
        ({"rule": None}, "/rule"),
        ({"reasons": [{"code": "a", "text": "b"}]}, "/reasons/0/text"),
        ({"requirement": None}, "/requirement"),
        ({"obligations": "call"}, "/obligations"),
        ({"reserves": [{"account": "a"}]}, "/reserves/0/amount"),
        ({"reserves": [{"account": "a", "amount": True}]}, "/reserves/0/amount"),
    ],
)
def test_a_recorded_decision_with_an_unknown_or_wrong_field_is_damage(change: dict[str, Json], offence: str) -> None:
    with pytest.raises(Damaged) as caught:
        Decision.from_json(recorded(allow()) | change)
    assert offence in caught.value.detail


def test_a_recorded_decision_that_contradicts_itself_is_damage() -> None:
    for change in ({"outcome": "require_approval"}, {"reserves": [{"account": "a", "amount": 0}]}, {"rule": "A B"}):
        with pytest.raises(Damaged):
            Decision.from_json(recorded(allow()) | change)


class Code(StrEnum):
    NO = "no"


def _made_up(**fields: object) -> Requirement:
    """Make what `Requirement` itself refuses, as code that goes around it can."""
    made = Requirement()
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("/outcome", {"outcome": "maybe"}),
    ("/outcome", {"outcome": None}),
    ("/rule", {"rule": "Two Words"}),
    ("/rule", {"rule": "a\n"}),
    ("/rule", {"rule": ""}),
    ("/rule", {"rule": "a" * 121}),
    ("/rule", {"rule": Code.NO}),
    ("/reasons", {"reasons": [Reason(code="a")]}),
    ("/reasons", {"reasons": ("a",)}),
    ("/obligations", {"obligations": "call"}),
    ("/obligations/0", {"obligations": ("Call Me",)}),
    ("/requirement", {"requirement": Requirement()}),
    ("/requirement", {"outcome": "require_approval"}),
    ("/requirement/kind", {"outcome": "require_approval", "requirement": Requirement(kind="question")}),
    ("/requirement/kind", {"outcome": "require_approval", "requirement": {"quorum": 2}}),
    ("/requirement/quorum", {"outcome": "require_approval", "requirement": _made_up(quorum=True)}),
    ("/requirement/signed", {"outcome": "require_approval", "requirement": _made_up(signed=1)}),
    ("/requirement/roles/0", {"outcome": "require_approval", "requirement": Requirement(roles=("",))}),
    ("/requirement/obligations/0", {"outcome": "require_approval", "requirement": Requirement(obligations=("A b",))}),
    ("/reserves", {"outcome": "deny", "reserves": (Reserve(account="a", amount=1),)}),
    ("/reserves", {"reserves": (Reserve(account="a", amount=1), Reserve(account="a", amount=2))}),
]


@pytest.mark.parametrize(("path", "fields"), REFUSED)
def test_a_field_that_no_record_could_hold_is_refused_by_its_name(path: str, fields: dict[str, Any]) -> None:
    with pytest.raises(PolicyRefused) as caught:
        Decision(**{"outcome": "allow", "rule": "r"} | fields)
    assert caught.value.path == path


@pytest.mark.parametrize("amount", [0, -1, True, 1.0, 2**53, "1"])
def test_a_reserve_is_a_positive_whole_number(amount: Any) -> None:
    with pytest.raises(PolicyRefused) as caught:
        Reserve(account="a", amount=amount)
    assert caught.value.path == "/amount"


@pytest.mark.parametrize("account", ["", "a" * 121, "a\n", "a\u202eb", None])
def test_an_account_is_a_printable_name(account: Any) -> None:
    with pytest.raises(PolicyRefused) as caught:
        Reserve(account=account, amount=1)
    assert caught.value.path == "/account"


@pytest.mark.parametrize("text", ["a" * 2001, "\ud800", None, b"a"])
def test_a_reasons_text_is_text_that_can_be_kept(text: Any) -> None:
    with pytest.raises(PolicyRefused) as caught:
        Reason(code="a", text=text)
    assert caught.value.path == "/text"


def test_the_constructors_say_their_word() -> None:
    assert [allow().outcome, deny("no").outcome, abort("stop").outcome, require_approval("ask").outcome] == [
        "allow",
        "deny",
        "abort",
        "require_approval",
    ]
    assert require_approval("ask").requirement == Requirement()
    assert allow().reasons == ()


def test_a_decision_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        deny("no").outcome = "allow"  # type: ignore[misc]
