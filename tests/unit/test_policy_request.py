"""What a policy is asked: a view that is read back exactly, and JSON that is the policy's own."""

from typing import Any

import pytest

from agentgate.bodies import BODIES
from agentgate.canonical import Json, canonical, parse
from agentgate.errors import Damaged
from agentgate.policy.request import Recent, View
from support.asking import request

VIEW = View(
    n=7,
    counters={"actions": 3, "denied": 0},
    budgets={"money": -5},
    recent=(
        Recent(namespace="", tool="refund", state="SUCCEEDED", request="0" * 64, outcome="1" * 64),
        Recent(namespace="mail", tool="send", state="REFUSED", reason="policy_denied"),
    ),
)


def recorded(view: View) -> Any:
    return parse(canonical(view.to_json()))


def test_a_view_is_recorded_in_the_form_of_the_format() -> None:
    assert recorded(VIEW) == {
        "n": 7,
        "counters": {"actions": 3, "denied": 0},
        "budgets": {"money": -5},
        "recent": [
            {"namespace": "", "tool": "refund", "state": "SUCCEEDED", "request": "0" * 64, "outcome": "1" * 64},
            {"namespace": "mail", "tool": "send", "state": "REFUSED", "reason": "policy_denied"},
        ],
    }


@pytest.mark.parametrize("view", [VIEW, View(n=0)])
def test_a_view_survives_its_record(view: View) -> None:
    assert View.from_json(recorded(view)) == view
    assert BODIES["started"]["view?"](recorded(view), "") is None


@pytest.mark.parametrize(
    ("change", "offence"),
    [
        ({"extra": 0}, "/extra"),
        ({"n": -1}, "/n"),
        ({"n": True}, "/n"),
        ({"counters": {"actions": "3"}}, "/counters/actions"),
        ({"recent": [{"namespace": "", "tool": "t", "state": "READY", "why": "x"}]}, "/recent/0/why"),
        ({"recent": [{"namespace": "", "tool": "t", "state": "READY", "request": "0"}]}, "/recent/0/request"),
        ({"recent": [{"namespace": "", "tool": "t"}]}, "/recent/0/state"),
    ],
)
def test_a_recorded_view_with_an_unknown_or_wrong_field_is_damage(change: dict[str, Json], offence: str) -> None:
    with pytest.raises(Damaged) as caught:
        View.from_json(recorded(VIEW) | change)
    assert offence in caught.value.detail


def test_a_private_request_is_equal_and_shares_nothing_that_can_change() -> None:
    asked = request(arguments={"a": [1, {"b": 2}]}, provenance={"from": []}, facts={"freeze": {"on": True}}, view=VIEW)
    own: Any = asked.private()

    assert own == asked
    own.arguments["a"][1]["b"] = 3
    own.provenance["from"].append("x")
    own.facts["freeze"]["on"] = False
    own.view.counters["actions"] = 0
    own.view.budgets.clear()

    assert asked.arguments == {"a": [1, {"b": 2}]}
    assert asked.provenance == {"from": []}
    assert asked.facts == {"freeze": {"on": True}}
    assert asked.view.counters == {"actions": 3, "denied": 0}
    assert asked.view.budgets == {"money": -5}


def test_a_spec_hands_out_copies_of_its_schemas() -> None:
    asked: Any = request()
    asked.spec.input_schema["type"] = "string"
    assert asked.spec.input_schema == {"type": "object"}
