"""Time, ids and chance: read in one place, and readable again."""

import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.clock import Clock, SystemClock, new_id, to_datetime, to_us
from agentgate.errors import Damaged

MOMENTS = st.integers(0, 253_402_300_799_999_999)  # to the end of the year 9999


class Stopped:
    """A clock that stands, and whose chance is what it is told."""

    def __init__(self, at_us: int, chance: bytes = b"\xff") -> None:
        self.at_us = at_us
        self.chance = chance

    def now_us(self) -> int:
        return self.at_us

    def monotonic_us(self) -> int:
        return 0

    def random(self, size: int) -> bytes:
        return (self.chance * size)[:size]

    def sleep(self, span_us: int, *, wake: object = None) -> None:
        raise AssertionError(f"nobody sleeps by this clock: {span_us}, {wake}")


def _id(at_us: int, chance: bytes = b"\xff") -> str:
    return new_id(Stopped(at_us, chance))


@given(MOMENTS, st.binary(min_size=8, max_size=8))
def test_an_id_is_a_uuid_of_version_7_that_holds_its_time(at_us: int, chance: bytes) -> None:
    text = _id(at_us, chance)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == at_us // 1_000
    assert parsed.int >> 64 & 0xFFF == at_us % 1_000 * 4_096 // 1_000  # RFC 9562 §6.2, method 3: a fraction of 4096
    assert parsed.int & (2**62 - 1) == int.from_bytes(chance, "big") & (2**62 - 1)


@given(MOMENTS, MOMENTS)
def test_ids_sort_as_their_times_do_to_the_microsecond(one: int, other: int) -> None:
    # Whatever chance says: the earlier id has the largest, the later one the smallest.
    early, late = sorted((one, other))
    if early != late:
        assert _id(early, b"\xff") < _id(late, b"\x00")


def test_ids_made_at_once_differ() -> None:
    clock: Clock = SystemClock()
    assert len({new_id(clock) for _ in range(1_000)}) == 1_000


def test_the_systems_clock_is_utc_and_its_monotonic_one_does_not_step_back() -> None:
    clock = SystemClock()
    before, now, after = time.time_ns() // 1_000, clock.now_us(), time.time_ns() // 1_000
    assert before <= now <= after
    readings = [clock.monotonic_us() for _ in range(100)]
    assert readings == sorted(readings)


@pytest.mark.parametrize("size", [0, 1, 16, 32])
def test_chance_has_the_length_that_was_asked_for(size: int) -> None:
    drawn = SystemClock().random(size)
    assert len(drawn) == size
    assert size < 16 or drawn != SystemClock().random(size)


@given(MOMENTS)
def test_stored_microseconds_are_an_aware_time_and_come_back_exactly(at_us: int) -> None:
    moment = to_datetime(at_us)
    assert moment.tzinfo is UTC
    assert to_us(moment - datetime(1970, 1, 1, tzinfo=UTC)) == at_us


@pytest.mark.parametrize("at_us", [2**62, -(2**63), 2**63 - 1, 253_402_300_800_000_000])
def test_a_stored_time_beyond_the_calendar_is_damage(at_us: int) -> None:
    with pytest.raises(Damaged, match="are no date"):
        to_datetime(at_us)


@given(st.timedeltas())
def test_a_span_is_whole_microseconds_either_way(span: timedelta) -> None:
    assert timedelta(microseconds=to_us(span)) == span
