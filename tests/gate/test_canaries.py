"""Twenty canaries, each planted in another place: none of them is found anywhere, in any form."""

import pytest

import agentgate
from support.canaries import COUNT, KEY, NAMES, Perch, Traces, forms
from support.worlds import World

# The control shows each of these to be a place where a canary can be seen.
PLACES = {
    "exception",
    "file database",
    "output of show",
    "output of show --json",
    "repr of a proposal",
    "repr of an outcome",
}


def test_a_planted_canary_is_in_no_table_log_error_repr_or_output(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    perch = Perch(world, open_=False)
    perch.tell()
    told = capfd.readouterr()
    perch.traces.add("the process's own output", told.out + told.err)
    assert len(perch.planted) >= COUNT
    # Who has the key is shown what is sealed and no argument.
    readable = ("goal in opened output", "provenance in opened output")
    assert [hit for hit in perch.traces.hits(perch.planted) if not hit.startswith(readable)] == []
    assert agentgate.verify(world.url, sealing=KEY).ok


def test_the_same_story_without_keys_and_secrets_finds_them(world: World) -> None:
    """The test above can fail: what it looks for is there where nothing was declared sensitive."""
    perch = Perch(world, open_=True)
    perch.tell()
    hits = perch.traces.hits(perch.planted)
    found = {hit.partition(" in ")[2] for hit in hits}
    assert found >= PLACES
    seen = {hit.partition(" in ")[0] for hit in hits}
    assert set(perch.planted) - seen <= {"misspelt tool", "unknown tool", "wrong type"}  # never kept, key or none


def test_a_canary_is_found_in_each_form() -> None:
    for canary in NAMES:
        for form in forms(canary):
            traces = Traces()
            traces.add("x", b"before" + form + b"after")
            assert traces.hits({"p": canary}) == ["p in x"]
