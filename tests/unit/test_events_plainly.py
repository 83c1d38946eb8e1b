"""The fast way to read an event accepts nothing that the strict reader does not, and reads it alike."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate import event
from agentgate.canonical import Json, canonical, parse
from agentgate.errors import Damaged, NotCanonical
from agentgate.event import EVENT_BOUNDS, Event, decode, offence
from support.bodies import TYPES, document

HOSTILE = [
    b'{"a":1.0}', b'{"a":-0.0}', b'{"a":1e2}', b'{"a":NaN}', b'{"a":9007199254740992}', b'{"a":1,"a":1}',
    b'{"a":"\\ud800"}', b"\xef\xbb\xbf{}", b'{"a": 1}', b'{"b":1,"a":2}', b"{} ", b"", b"\xff", b"[" * 5_000,
    b'{"a":' + b"9" * 5_000 + b"}", b'{"a":"\\u0041"}', "{}".encode("utf-16"), b'{"a":1e400}', b"{" * 30 + b"}" * 30,
]  # fmt: skip


def _strictly(encoded: bytes) -> Json:
    try:
        return parse(encoded, bounds=EVENT_BOUNDS)
    except NotCanonical:
        return None


@pytest.mark.parametrize("encoded", HOSTILE)
def test_what_is_not_plainly_canonical_is_left_to_the_strict_reader(encoded: bytes) -> None:
    assert event._plainly(encoded) in (None, _strictly(encoded))


@pytest.mark.parametrize("kind", TYPES)
def test_a_written_event_needs_no_other_reader(kind: str) -> None:
    encoded = canonical(document(kind))
    assert event._plainly(encoded) == document(kind)


@given(st.data())
def test_an_event_that_was_edited_anywhere_is_read_as_the_strict_reader_reads_it(data: st.DataObject) -> None:
    encoded = bytearray(canonical(document(data.draw(st.sampled_from(TYPES)))))
    for _ in range(data.draw(st.integers(1, 3))):
        edit: Callable[[bytearray, int], None] = data.draw(st.sampled_from([_put, _cut]))
        edit(encoded, data.draw(st.integers(0, len(encoded) - 1)))
    strict = _strictly(bytes(encoded))
    assert _read(bytes(encoded)) == (None if offence(strict) is not None else _event(strict))


def _put(encoded: bytearray, place: int) -> None:
    encoded[place : place + 1] = b'"' if place % 3 else b"1"


def _cut(encoded: bytearray, place: int) -> None:
    del encoded[place]
    encoded += b" " * (not encoded)


def _read(encoded: bytes) -> Event | None:
    try:
        return decode(encoded)
    except Damaged:
        return None


def _event(strict: Json) -> Event:
    assert type(strict) is dict
    return event._from_document(strict)
