"""Whom a gate would ask about an unknown outcome is checked when it is set up, not after an effect has begun."""

from typing import Any

import pytest

from agentgate import Misuse, Requirement, Settings


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"quorum": True}, "quorum"),
        ({"quorum": 1.5}, "quorum"),
        ({"quorum": 2**60}, "quorum"),
        ({"proposer": 1}, "proposer"),
        ({"signed": "no"}, "signed"),
        ({"roles": ("",)}, "operators.roles.0"),
        ({"roles": (1,)}, "roles"),
        ({"obligations": ("\ud800",)}, "obligations"),
        ({"obligations": ("x" * 10_000,)}, "operators.obligations.0"),
    ],
)
def test_a_requirement_of_operators_that_could_not_be_recorded_is_refused_at_once(
    given: dict[str, Any], field: str
) -> None:
    with pytest.raises(Misuse, match=f"{field}: "):
        Settings(operators=Requirement(kind="question", **given))


@pytest.mark.parametrize("field", ["roles", "obligations"])
def test_one_text_is_not_a_list_of_its_letters(field: str) -> None:
    given: dict[str, Any] = {field: "ops"}
    with pytest.raises(Misuse, match=f"{field}: .*tuple"):
        Requirement(**given)
