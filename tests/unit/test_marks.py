"""A bit for each position: a set of small numbers, as far as anyone can tell."""

from hypothesis import given
from hypothesis import strategies as some

from agentgate.core.marks import Marks

positions = some.sets(some.integers(0, 200))


def marks(among: set[int]) -> Marks:
    made = Marks()
    for n in among:
        made.add(n)
        made.add(n)
    return made


@given(positions)
def test_marks_hold_what_was_put_in_and_nothing_else(among: set[int]) -> None:
    """Law: marks are the set of what was added."""
    made = marks(among)
    assert len(made) == len(among)
    assert {n for n in range(300) if n in made} == among


@given(positions, positions, positions)
def test_marks_count_together_as_sets_do(one: set[int], other: set[int], left_out: set[int]) -> None:
    """Law: count_in is the size of (one and other) without the third."""
    assert marks(one).count_in(marks(other), without=marks(left_out)) == len((one & other) - left_out)
