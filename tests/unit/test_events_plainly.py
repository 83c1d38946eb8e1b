"""The fast way to read an event accepts nothing that the strict reader does not, and reads it alike."""

import json
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
        value = parse(encoded, bounds=EVENT_BOUNDS)
    except NotCanonical:
        return None
    return value if canonical(value) == encoded else None


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


# "stored as JCS, hash = digest("event", it) beside it": other bytes of the same event have another hash.
@pytest.mark.parametrize("kind", TYPES)
def test_an_event_in_other_bytes_than_its_canonical_ones_is_none(kind: str) -> None:
    value = document(kind)
    encoded = canonical(value)
    spellings = [encoded + b" ", json.dumps(value).encode(), encoded.replace(b'"v":1', b'"v":1.0', 1)]
    spellings.append(encoded.replace(b'"type"', b'"\\u0074ype"'))
    for spelled in spellings:
        assert parse(spelled, bounds=EVENT_BOUNDS) == value
        with pytest.raises(Damaged, match="not canonical"):
            decode(spelled)


def test_names_are_in_the_order_of_the_canonical_form_and_in_no_other() -> None:
    value = document("proposed")
    body = value["body"]
    assert type(body) is dict
    assert type(body["view"]) is dict
    body["view"]["budgets"] = {"\uffee": 1, "\U0001f600": 2}
    encoded = canonical(value)
    assert decode(encoded).encode() == encoded
    swapped = encoded.replace('"\U0001f600":2,"\uffee":1'.encode(), '"\uffee":1,"\U0001f600":2'.encode())
    assert swapped != encoded
    with pytest.raises(Damaged, match="not canonical"):
        decode(swapped)
