"""What a loop is told, whatever the outcome: one observation, one text for its model."""

import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from agentgate.approval import Requirement
from agentgate.observation import Error, Observation
from agentgate.outcome import Approval, Done, Failed, Held, Outcome, Refused, Running, Unknown

AT = datetime(2026, 1, 2, tzinfo=UTC)
NAMED: dict[str, Any] = {"action": "a", "digest": "00"}
ERROR = Error(code="conflict", message="the account is closed", suggested_action="ask for another one")
QUESTION = Approval(id="q", digest="00", requirement=Requirement(), shown="", expires_at=AT)

OUTCOMES: list[tuple[Outcome, str]] = [
    (Done(**NAMED, observation=Observation(status="ok", value={"paid": 5}), source="executed"), ""),
    (Failed(**NAMED, reason="conflict", error=ERROR, retryable=False), "conflict"),
    (Held(**NAMED, approval=QUESTION), "approval_required"),
    (Refused(**NAMED, reason="policy_denied", error=Error(code="policy_denied", message="no")), "policy_denied"),
    (Running(**NAMED, until=AT), "executing"),
    (
        Unknown(**NAMED, reason="crashed", attempt=1, error=Error(code="unknown_outcome", message="perhaps")),
        "unknown_outcome",
    ),
]


def test_every_outcome_is_here() -> None:
    assert {type(outcome) for outcome, _ in OUTCOMES} == set(get_args(Outcome))


@pytest.mark.parametrize(("outcome", "code"), OUTCOMES, ids=lambda value: type(value).__name__)
def test_every_outcome_says_what_the_loop_is_told(outcome: Outcome, code: str) -> None:
    told = outcome.observation
    assert (told.error.code if told.error else "") == code
    assert told.status == ("error" if code else "ok")
    assert json.loads(told.text()) == ({"paid": 5} if told.error is None else told.error.to_json())


def test_a_loop_that_cannot_wait_is_told_for_whom_and_until_when() -> None:
    held, running = (outcome.observation.error for outcome, _ in OUTCOMES if isinstance(outcome, Held | Running))
    assert held is not None
    assert held.details == {"approval": "q", "expires_at": AT.isoformat()}
    assert running is not None
    assert running.details == {"until": AT.isoformat()}


@pytest.mark.parametrize(
    ("value", "text"), [("as it is", "as it is"), ("", ""), (None, "null"), ([1, "ü"], '[1, "ü"]'), (True, "true")]
)
def test_a_text_is_told_as_it_is_and_any_other_value_as_json(value: Any, text: str) -> None:
    assert Observation(status="ok", value=value).text() == text


def test_an_error_is_told_in_the_order_in_which_it_is_read() -> None:
    assert Observation(status="error", error=ERROR).text() == (
        '{"code": "conflict", "message": "the account is closed", "retryable": false, '
        '"suggested_action": "ask for another one"}'
    )
