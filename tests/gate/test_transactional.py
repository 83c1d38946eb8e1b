"""A transactional effect and its record are in the database together, or neither is, whatever ends the effect."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from agentgate import (
    Done,
    Effect,
    Failed,
    Function,
    Gate,
    Misuse,
    NoEffect,
    Outcome,
    Settings,
    SpecRefused,
    ToolError,
    Transactional,
)
from agentgate.testing import FakeClock, memory_gate
from support import faulty
from support.books import CREDIT, TIMEOUT, Books, opened_books, raising, saying
from support.worlds import named, opened


@pytest.fixture(params=faulty.JOURNALS)
def books(tmp_path: Path, request: pytest.FixtureRequest) -> Books:
    return opened_books(tmp_path, request.param)


def call(gate: Gate, id: str = "c1", **arguments: Any) -> Outcome:
    return gate.call(opened(gate), "credit", {"id": id, **arguments}, key=id)


def only(books: Books) -> str:
    return str(books.value("SELECT id FROM agentgate_actions"))


# --- together ----------------------------------------------------------------------------------


def test_the_effect_and_its_record_come_with_one_commit(books: Books) -> None:
    seen: list[Any] = []

    def looks(_effect: Effect) -> None:
        seen.append((books.credited(), books.sql("SELECT id FROM agentgate_actions")))

    with books.gate(books.credit(looks)) as gate:
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert (outcome.source, outcome.observation.value) == ("executed", {"credited": "c1"})
    assert seen == [([], [])]  # nobody saw anything of it before
    assert books.credited() == ["c1"]
    assert books.words(outcome.action) == ["proposed", "started", "succeeded"]
    assert not books.damage()


def test_proposed_apart_it_is_claimed_run_and_recorded_with_one_commit(books: Books) -> None:
    states: list[str] = []
    with books.gate(books.credit(lambda effect: states.append(books.state(effect.action_id)))) as gate:
        proposal = gate.propose(opened(gate), "credit", {"id": "c1"})
        assert isinstance(gate.execute(proposal), Done)
        assert isinstance(gate.execute(proposal), Done)
    assert states == ["READY"]
    assert books.credited() == ["c1"]


def test_it_runs_in_the_callers_thread_with_a_copy_of_its_context(books: Books) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[object] = []

    def looks(_effect: Effect) -> None:
        seen.extend([threading.current_thread(), variable.get()])
        variable.set("changed inside")

    with books.gate(books.credit(looks)) as gate:
        variable.set("set outside")
        call(gate)
    assert seen == [threading.current_thread(), "set outside"]
    assert variable.get() == "set outside"


def test_a_coroutine_effect_runs_too_and_not_where_a_loop_is_at_work(books: Books) -> None:
    async def credit(id: str, *, effect: Effect) -> str:
        await asyncio.sleep(0)
        effect.connection.execute(CREDIT, {"id": id, "account": "a1", "cents": 1})
        return id

    tool = named("credit", credit, recovery=Transactional(), timeout=TIMEOUT)
    with books.gate(tool) as gate:
        assert isinstance(call(gate), Done)

        async def inside() -> Outcome:
            return call(gate, "c2")

        outcome = asyncio.run(inside())
    assert isinstance(outcome, Failed)
    assert "plain function" in outcome.error.message
    assert books.credited() == ["c1"]


def test_a_result_that_cannot_be_encoded_or_is_too_large_is_a_success(books: Books) -> None:
    def credit(id: str, *, effect: Effect) -> object:
        effect.connection.execute(CREDIT, {"id": id, "account": "a1", "cents": 1})
        return object() if id == "c1" else "x" * 5_000

    tool = named("credit", credit, recovery=Transactional(), timeout=TIMEOUT, max_output_bytes=1_000)
    with books.gate(tool) as gate:
        first, second = call(gate), call(gate, "c2")
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert (first.observation.notes, second.observation.notes) == (("unencodable",), ("capped",))
    assert books.credited() == ["c1", "c2"]


# --- or neither --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("no"), "internal"),
        (ToolError("upstream", "no", effect="unknown"), "upstream"),
        (NoEffect("no"), "transient"),
        (TimeoutError(), "internal"),
    ],
)
def test_what_an_effect_that_raises_wrote_is_undone_and_the_failure_is_known(
    books: Books, error: Exception, code: str
) -> None:
    with books.gate(books.credit(raising(error))) as gate:
        outcome = call(gate)
    assert isinstance(outcome, Failed)
    assert outcome.reason == code
    assert books.credited() == []
    assert books.words(outcome.action) == ["proposed", "started", "failed"]
    assert not books.damage()


@pytest.mark.parametrize("arguments", [{"cents": -1}, {"account": "nobody"}])
def test_a_statement_that_the_database_refuses_is_a_known_failure(books: Books, arguments: dict[str, Any]) -> None:
    with books.gate(books.credit()) as gate:
        outcome = call(gate, **arguments)
        assert isinstance(outcome, Failed)
        assert "constraint failed" in outcome.error.message
        assert "'c1'" not in outcome.error.message  # the statement's values are not repeated to a model
        assert isinstance(call(gate, "c2"), Done)
    assert books.credited() == ["c2"]
    assert not books.damage()


def test_a_known_failure_is_tried_again_and_happens_once(books: Books) -> None:
    failing = [ValueError("at first")]

    def fails_once(_effect: Effect) -> None:
        if failing:
            raise failing.pop()

    with books.gate(books.credit(fails_once)) as gate:
        failed = call(gate)
        assert isinstance(failed, Failed)
        outcome = gate.execute(failed.action, tenant="acme", retry=True)
    assert isinstance(outcome, Done)
    assert books.credited() == ["c1"]
    assert books.words(outcome.action) == ["proposed", "started", "failed", "retried", "started", "succeeded"]
    assert not books.damage()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interruption_goes_on_and_leaves_the_action_as_it_was(books: Books, error: type[BaseException]) -> None:
    interrupting = [error()]

    def once(_effect: Effect) -> None:
        if interrupting:
            raise interrupting.pop()

    with books.gate(books.credit(once)) as gate:
        proposal = gate.propose(opened(gate), "credit", {"id": "c1"})
        with pytest.raises(error):
            gate.execute(proposal)
        assert books.state(proposal.action) == "READY"
        assert books.words(proposal.action) == ["proposed"]
        assert books.credited() == []
        assert isinstance(gate.execute(proposal), Done)
    assert books.credited() == ["c1"]
    assert not books.damage()


def test_over_its_time_it_is_undone_when_it_returns(books: Books) -> None:
    clock = FakeClock()
    slow = [TIMEOUT + timedelta(seconds=1)]

    def wastes_time(_effect: Effect) -> None:
        if slow:
            clock.advance(slow.pop())

    with books.gate(books.credit(wastes_time), clock=clock) as gate:
        outcome = call(gate)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retryable) == ("timeout", True)
        assert "undone" in outcome.error.message
        assert books.credited() == []
        assert isinstance(gate.execute(outcome.action, tenant="acme", retry=True), Done)
    assert books.credited() == ["c1"]


def test_a_deferred_foreign_key_that_is_broken_at_the_commit_is_the_tools_mistake(books: Books) -> None:
    with books.gate(books.credit(saying("INSERT INTO notes VALUES ('nobody')"))) as gate:
        proposal = gate.propose(opened(gate), "credit", {"id": "c1"})
        with pytest.raises(Misuse, match="FOREIGN KEY"):
            gate.execute(proposal)
    assert books.state(proposal.action) == "READY"
    assert books.credited() == []
    assert not books.damage()


# --- what is declared --------------------------------------------------------------------------


def test_a_time_out_over_a_third_of_the_lease_is_refused_by_name(books: Books) -> None:
    long = books.credit(timeout=timedelta(seconds=21))
    with pytest.raises(SpecRefused) as raised:
        books.gate(long)
    assert (raised.value.tool, raised.value.path) == ("credit", "/timeout_us")
    assert "0:00:21" in raised.value.problem
    assert "0:01:00" in raised.value.problem
    with books.gate(long, settings=Settings(lease=timedelta(seconds=63))) as gate:
        assert isinstance(call(gate), Done)


def test_only_a_transactional_effect_has_a_connection_and_only_while_it_runs(books: Books) -> None:
    kept: list[Effect] = []

    def plain(id: str, *, effect: Effect) -> object:
        return [id, effect.connection]

    with books.gate(books.credit(kept.append), named("plain", plain, errors="no_effect")) as gate:
        call(gate)
        outcome = gate.call(opened(gate), "plain", {"id": "x"})
    assert isinstance(outcome, Failed)
    assert "recovery=Transactional()" in outcome.error.message
    with pytest.raises(Misuse, match="only while"):
        _ = kept[0].connection


def test_a_check_after_the_write_sees_what_was_committed(books: Books) -> None:
    def ask(_effect: Effect, arguments: Any, _result: Any) -> bool:
        return arguments["id"] in books.credited()

    confirm = Function(call=ask, name="credited", version="1")
    with books.gate(books.credit(confirm=confirm)) as gate:
        outcome, run = call(gate), opened(gate)
        with gate.transaction() as connection:
            inside = gate.call(run, "credit", {"id": "c2"}, key="c2", connection=connection)
        later = gate.confirm(inside.action, tenant="acme").outcome
    assert isinstance(outcome, Done)
    assert isinstance(inside, Done)
    assert isinstance(later, Done)
    assert (outcome.confirmed, inside.confirmed, later.confirmed) == ("yes", "unchecked", "yes")


def test_a_waiting_lease_of_another_effect_is_renewed_around_it(books: Books) -> None:
    """A slow plain effect lives on while transactional ones hold the ledger."""
    released, begun = threading.Event(), threading.Event()

    def wait(id: str) -> str:
        begun.set()
        released.wait(60)
        return id

    settings = Settings(lease=timedelta(seconds=5))
    tools = books.credit(timeout=timedelta(seconds=1)), named("wait", wait)
    outcomes: list[Outcome] = []
    with books.gate(*tools, settings=settings) as gate:
        run = opened(gate)
        thread = threading.Thread(target=lambda: outcomes.append(gate.call(run, "wait", {"id": "w"})))
        thread.start()
        begun.wait(60)
        lease = "SELECT lease_until_us FROM agentgate_attempts WHERE state = 'open'"
        first = books.value(lease)
        numbers = iter(range(10_000))
        while books.value(lease) == first:  # ends with the first renewal, which comes among these
            assert isinstance(call(gate, f"c{next(numbers)}"), Done)
        released.set()
        thread.join()
    assert isinstance(outcomes[0], Done)
    assert not books.damage()


@pytest.fixture
def memory(books: Books) -> Iterator[Gate]:
    def note(word: str, *, effect: Effect) -> str:
        effect.connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": word})
        return word

    del books
    tool = named("note", note, recovery=Transactional(), timeout=TIMEOUT)
    with memory_gate(tools=[tool]) as gate:
        with gate.transaction() as connection:
            connection.exec_driver_sql("CREATE TABLE words (word TEXT)")
        yield gate


def test_a_ledger_in_memory_does_it_too(memory: Gate) -> None:
    run = opened(memory)
    assert isinstance(memory.call(run, "note", {"word": "a"}), Done)

    def work() -> None:
        with memory.transaction() as connection:
            assert isinstance(memory.call(run, "note", {"word": "b"}, key="b", connection=connection), Done)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        work()
    with memory.transaction() as connection:
        assert connection.exec_driver_sql("SELECT word FROM words").scalars().all() == ["a"]
