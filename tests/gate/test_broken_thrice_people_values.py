"""What people's part is given and what is none of it: the field is named, and nothing raw comes out."""

from datetime import timedelta
from typing import Any

import pytest

from agentgate import Misuse, Requirement

NONE: dict[str, tuple[object, ...]] = {
    "kind": (None, "", "vote", 1, []),
    "quorum": (None, True, 1.0, float("nan"), 0, -1, "2", 1 << 70),
    "roles": ("lead", None, 5, b"lead", {"lead": 1}, (1,), ("\ud800",), ([],)),
    "obligations": ("call", None, 5, (None,), ("\ud800",)),
    "proposer": (None, 1, "no"),
    "signed": (None, 0, "no", ()),
    "question": (5, "1h", timedelta(0), timedelta.max),
    "grant": (5, 1.5, -timedelta(1), timedelta.max),
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in NONE.items() for value in values])
def test_a_requirement_names_the_field_that_is_none(field: str, value: Any) -> None:
    with pytest.raises(Misuse, match=rf"^{field}: "):
        Requirement(**{field: value})


def test_a_requirement_of_lists_is_one_of_tuples() -> None:
    given: Any = {"roles": ["b", "a", "a"], "obligations": ["z", "y"]}
    assert Requirement(**given) == Requirement(roles=("a", "b"), obligations=("z", "y"))
    assert hash(Requirement(**given))
