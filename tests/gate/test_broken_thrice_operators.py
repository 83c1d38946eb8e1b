"""Whom a gate would ask about an unknown outcome is checked when it is set up, not after an effect has begun."""

from typing import Any

import pytest

from agentgate import Misuse, Requirement, Settings


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"quorum": True}, "quorum"),
        ({"quorum": 2**60}, "quorum"),
        ({"proposer": 1}, "proposer"),
        ({"signed": "no"}, "signed"),
        ({"roles": ("",)}, "roles.0"),
        ({"obligations": ("\ud800",)}, "obligations.0"),
        ({"obligations": ("x" * 10_000,)}, "obligations.0"),
    ],
)
def test_a_requirement_of_operators_that_could_not_be_recorded_is_refused_at_once(
    given: dict[str, Any], field: str
) -> None:
    with pytest.raises(Misuse, match=rf"operators\.{field}: "):
        Settings(operators=Requirement(kind="question", **given))


@pytest.mark.parametrize(("given", "field"), [({"quorum": 1.5}, "quorum"), ({"roles": (1,)}, "roles")])
def test_a_requirement_of_nobody_that_could_be_counted_or_named_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        Requirement(**given)


@pytest.mark.parametrize("field", ["roles", "obligations"])
def test_one_text_is_not_a_list_of_its_letters(field: str) -> None:
    given: dict[str, Any] = {field: "ops"}
    with pytest.raises(ValueError, match=f"{field}: .*tuple"):
        Requirement(**given)
