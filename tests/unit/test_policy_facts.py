"""A fact is fetched once, under a time-out, as a snapshot; a missing one denies and is named."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentgate.clock import SystemClock
from agentgate.errors import Unavailable
from agentgate.policy.deadline import Threads
from agentgate.policy.facts import FactProvider, Gathered, gather
from agentgate.policy.request import PolicyRequest
from support.asking import Watch, request

SECRET = "the-secret-argument"
LONG = timedelta(seconds=10)


def fetched(*names: str, within: timedelta = LONG, **providers: FactProvider) -> Gathered:
    return gather(names, providers, request(), within=within, clock=SystemClock(), threads=Threads())


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_facts_are_fetched_by_name_and_only_those_declared() -> None:
    gathered = fetched("freeze", "caller", freeze=lambda _: False, caller=lambda asked: asked.principal, spare=print)

    assert gathered == Gathered(values={"freeze": False, "caller": "agent:support"})


def test_a_fact_is_a_snapshot_in_canonical_form() -> None:
    live: dict[str, Any] = {"limit": 5.0, "since": datetime(2026, 1, 1, tzinfo=UTC)}
    values = fetched("live", live=lambda _: live).values
    live["limit"] = 6

    assert isinstance(values["live"], dict)
    assert values["live"]["limit"] == 5
    assert isinstance(values["live"]["since"], str)


def test_a_provider_sees_the_request_without_facts_and_cannot_change_it() -> None:
    given = request(facts={"earlier": 1})

    def provider(asked: PolicyRequest) -> object:
        assert isinstance(asked.arguments, dict)
        asked.arguments["cents"] = 0
        return dict(asked.facts)

    gathered = gather(("f",), {"f": provider}, given, within=LONG, clock=SystemClock(), threads=Threads())
    assert gathered.values == {"f": {}}
    assert given.arguments == {"cents": 1250}


async def coroutine(_request: PolicyRequest) -> bool:
    return True


def raising(_request: PolicyRequest) -> bool:
    raise SystemExit(SECRET)


def cyclic(_request: PolicyRequest) -> object:
    value: list[Any] = []
    value.append(value)
    return value


UNAVAILABLE: dict[str, Callable[..., Any]] = {
    "raises": raising,
    "answers an awaitable": coroutine,
    "answers what is no JSON": lambda _: object(),
    "answers a set": lambda _: {SECRET},
    "answers NaN": lambda _: float("nan"),
    "answers itself": cyclic,
    "answers too much": lambda _: "x" * 300_000,
}


@pytest.mark.parametrize("way", UNAVAILABLE)
def test_a_fact_that_cannot_be_had_denies_and_is_named(way: str) -> None:
    refusal = fetched("freeze", freeze=UNAVAILABLE[way]).refusal

    assert refusal is not None
    assert (refusal.outcome, refusal.rule, refusal.reasons[0].code) == ("deny", "gate", "fact_unavailable")
    assert "'freeze'" in refusal.reasons[0].text
    assert SECRET not in refusal.reasons[0].text


def test_a_fact_that_nobody_provides_denies() -> None:
    refusal = fetched("freeze").refusal
    assert refusal is not None
    assert refusal.reasons[0].text == "fact 'freeze': nobody provides it"


def test_a_provider_that_hangs_denies(hang: threading.Event) -> None:
    refusal = fetched("freeze", freeze=lambda _: hang.wait(), within=timedelta(milliseconds=30)).refusal
    assert refusal is not None
    assert "in time" in refusal.reasons[0].text


def test_a_provider_that_is_late_by_the_clock_denies() -> None:
    watch = Watch()

    def provider(_request: PolicyRequest) -> bool:
        watch.at_us += 10_000_001
        return True

    gathered = gather(("f",), {"f": provider}, request(), within=LONG, clock=watch, threads=Threads())
    assert gathered.refusal is not None


def test_what_was_fetched_before_the_failure_is_kept_and_nothing_after_it_is_asked() -> None:
    asked: list[str] = []

    def late(_request: PolicyRequest) -> None:
        asked.append("late")

    gathered = fetched("first", "broken", "late", first=lambda _: 1, broken=raising, late=late)
    assert gathered.values == {"first": 1}
    assert gathered.refusal is not None
    assert asked == []


def test_what_the_gates_own_fact_raises_is_raised_and_denies_nothing() -> None:
    def unreachable(_request: PolicyRequest) -> object:
        raise Unavailable("database", "locked")

    with pytest.raises(Unavailable, match="locked"):
        gather(
            ("f",),
            {},
            request(),
            within=LONG,
            clock=SystemClock(),
            threads=Threads(),
            own={"f": unreachable},
        )
