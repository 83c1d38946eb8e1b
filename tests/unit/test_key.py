"""An adapter's key: the same for the same place of a call, in every process, and another for every other place."""

from hypothesis import given
from hypothesis import strategies as st

from agentgate.action import LONGEST_KEY, Key
from agentgate.gate.names import LONGEST, check_key

# Whatever a framework may call things: control characters, lone surrogates, our own separators, any length.
PARTS = st.lists(
    st.none() | st.text(max_size=90) | st.sampled_from(["*", "/", "#", "%2F", "", "\x00", "\ud800"]), max_size=5
)


@given(PARTS, PARTS)
def test_other_parts_are_another_key(one: list[str | None], other: list[str | None]) -> None:
    assert (Key.adapter("f", *one) == Key.adapter("f", *other)) == (one == other)


@given(PARTS)
def test_any_parts_make_a_key_that_a_gate_takes(parts: list[str | None]) -> None:
    key = Key.adapter("\x00", *parts)
    assert key == check_key(key, principal="p")
    assert key.source == "adapter"
    assert key.text.isascii()


def test_a_key_is_as_long_as_any_name() -> None:
    assert LONGEST_KEY == LONGEST


def test_a_key_can_be_read_where_it_is_short() -> None:
    key = Key.adapter("langgraph", "ticket 4711/a", "8f", "call_0", "refund", 1)
    assert key.text == "langgraph/ticket%204711%2Fa/8f/call_0/refund/1"


def test_a_long_key_keeps_its_beginning_and_the_hash_of_all_of_it() -> None:
    # Pinned: a repeat is found by this text, also by the next version.
    assert Key.adapter("langgraph", "t" * 300, None, "call_0").text == (
        "langgraph/" + "t" * 120 + "#591345a658c87866f18d7d624e0c64e822bfac27c5830d10b701c9af8fd66b84"
    )
