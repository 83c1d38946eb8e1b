"""The n-th statement fails, or its commit lands and says otherwise: no effect without its start, and none twice."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import agentgate
from agentgate import AgentgateError, Done, Effect, Outcome, Running, Unavailable, Unknown
from agentgate.testing import FakeClock
from support import faulty
from support.worlds import made, named, opened

WORDS = ["disk I/O error", "database is locked", "database or disk is full"]
LEASE = timedelta(seconds=61)


class Shop:
    """A gate on a file whose statements fail on demand, and a clock that ends leases."""

    def __init__(self, folder: Path, journal: str) -> None:
        self.world = made(folder, journal=journal)
        self.clock = FakeClock()
        self.gate = self.world.gate(self.tool(), clock=self.clock)
        self.run = opened(self.gate)
        self.call("warm")

    def tool(self) -> agentgate.Tool[..., object]:
        def pay(key: str, *, effect: Effect) -> str:
            self.world.downstream.apply(effect, resource=key)
            return key

        return named("pay", pay, resource="{key}")

    def call(self, key: str) -> Outcome:
        return self.gate.call(self.run, "pay", {"key": key}, key=key)

    def effects(self, key: str) -> int:
        return [arrival.resource for arrival in self.world.downstream.arrivals].count(key)

    def action(self, key: str) -> str:
        rows = self.world.sql("SELECT id FROM agentgate_actions WHERE key_text = ?", key)
        return str(rows[0][0]) if rows else ""

    def statements(self, do: Callable[[], object]) -> list[str]:
        count = faulty.Count()
        with faulty.during(count):
            do()
        return count.statements

    def finish(self, key: str) -> None:
        """Come back as a loop and an operator would, until the payment is made; it is made once."""
        outcome = self.call(key)
        if isinstance(outcome, Running):  # its worker is this very process: only its lease can end it
            self.clock.advance(LEASE)
            outcome = self.call(key)
        if isinstance(outcome, Unknown):
            applied = self.effects(key) == 1
            self.gate.reconcile(outcome.action, applied=applied, by="ada", evidence="looked", tenant="acme")
            outcome = self.call(key)
        assert isinstance(outcome, Done), outcome
        assert self.effects(key) == 1


@pytest.fixture(params=faulty.JOURNALS)
def shop(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    faulty.install(monkeypatch)
    made_ = Shop(tmp_path, request.param)
    yield made_
    made_.gate.close()


def attempt(do: Callable[[], object], fault: faulty.At) -> object:
    """Do it while a statement fails; return the answer, or the error of our own tree that it became."""
    with faulty.during(fault):
        try:
            return do()
        except AgentgateError as error:
            return error


@pytest.mark.parametrize("words", WORDS)
def test_no_effect_without_its_start_and_none_twice_wherever_a_call_fails(shop: Shop, words: str) -> None:
    statements = shop.statements(lambda: shop.call("rehearsal"))
    for n, statement in enumerate(statements):
        for when in ("before", "after"):
            key = f"{when} {n} {statement[:20]}"
            answer = attempt(lambda key=key: shop.call(key), faulty.failed(n, when, words))  # type: ignore[misc]
            assert isinstance(answer, Done | Unavailable), (key, answer)
            if shop.effects(key):
                assert "started" in shop.world.words(shop.action(key)), key
            if isinstance(answer, Done):
                assert shop.effects(key) == 1, key
            shop.finish(key)
    assert not shop.world.damage()


def commits(statements: list[str]) -> tuple[int, ...]:
    """Find the writing commits among statements: the claim's, then the record's."""
    begun = [n for n, statement in enumerate(statements) if statement == "BEGIN IMMEDIATE"]
    return tuple(statements.index("COMMIT", n) for n in begun)


@pytest.mark.parametrize("words", WORDS)
def test_a_commit_that_landed_and_said_that_it_did_not_is_read_back(shop: Shop, words: str) -> None:
    for n in commits(shop.statements(lambda: shop.call("rehearsal"))):
        answer = attempt(lambda n=n: shop.call(f"k{n}"), faulty.failed(n, "after", words))  # type: ignore[misc]
        assert isinstance(answer, Done), answer
        assert answer.source == "executed"
        assert shop.effects(f"k{n}") == 1
        assert shop.world.words(shop.action(f"k{n}")) == ["proposed", "started", "succeeded"]
    assert not shop.world.damage()


def test_a_claim_whose_commit_did_not_land_starts_nothing(shop: Shop) -> None:
    claim, _ = commits(shop.statements(lambda: shop.call("rehearsal")))
    answer = attempt(lambda: shop.call("k"), faulty.failed(claim, "before"))
    assert isinstance(answer, Unavailable)
    assert answer.reason == "commit"
    assert shop.effects("k") == 0
    assert not shop.action("k")
    assert isinstance(shop.call("k"), Done)


def test_a_record_whose_commit_did_not_land_is_written_again(shop: Shop) -> None:
    _, record = commits(shop.statements(lambda: shop.call("rehearsal")))
    answer = attempt(lambda: shop.call("k"), faulty.failed(record, "before"))
    assert isinstance(answer, Done)
    assert shop.effects("k") == 1
    assert shop.world.words(shop.action("k")) == ["proposed", "started", "succeeded"]


def test_a_record_that_landed_unnoticed_is_not_written_a_second_time_as_a_late_result(shop: Shop) -> None:
    """The commit lands and says it did not, and the reading back fails too: the second try finds its own end."""
    _, record = commits(shop.statements(lambda: shop.call("rehearsal")))
    state = SimpleNamespace(failing=0, seen=-1)

    def fault(when: str, _statement: str) -> None:
        state.seen += when == "before"
        if state.seen == record and when == "after":
            state.failing = 1
            raise faulty.REAL.OperationalError("disk I/O error")
        if state.failing == 1 and when == "before":
            state.failing = 2
            raise faulty.REAL.OperationalError("disk I/O error")

    with faulty.during(fault):
        answer = shop.call("k")
    assert state.failing == 2
    assert isinstance(answer, Done)
    assert shop.world.words(shop.action("k")) == ["proposed", "started", "succeeded"]
    assert shop.world.value("SELECT unresolved FROM agentgate_actions WHERE key_text = 'k'") == 0


def test_a_record_that_cannot_be_written_is_an_error_that_says_what_to_do_and_unknown_after_the_lease(
    shop: Shop,
) -> None:
    def fault(_when: str, _statement: str) -> None:
        if shop.effects("k"):
            raise faulty.REAL.OperationalError("disk I/O error")

    with faulty.during(fault), pytest.raises(Unavailable) as raised:
        shop.call("k")
    assert raised.value.reason == "record"
    assert "reconcile" in str(raised.value)
    assert isinstance(shop.call("k"), Running)
    shop.clock.advance(LEASE)
    unknown = shop.call("k")
    assert isinstance(unknown, Unknown)
    assert shop.effects("k") == 1
    shop.finish("k")
