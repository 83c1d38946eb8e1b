"""The n-th statement of a transactional call fails, or its commit lands and says otherwise: both, or neither."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentgate import AgentgateError, Done, Effect, Gate, Outcome, Unavailable
from support import faulty, forks
from support.books import Books, opened_books
from support.worlds import opened

WORDS = ["disk I/O error", "database is locked", "database or disk is full"]


class Desk:
    """A gate whose statements fail on demand, and the two ways to call it."""

    def __init__(self, folder: Path, journal: str) -> None:
        self.books: Books = opened_books(folder, journal)
        self.gate: Gate = self.books.gate(self.books.credit())
        self.run = opened(self.gate)
        assert isinstance(self.call("warm"), Done)

    def call(self, key: str) -> Outcome:
        return self.gate.call(self.run, "credit", {"id": key}, key=key)

    def inside(self, key: str) -> Outcome:
        with self.gate.transaction() as connection:
            return self.gate.call(self.run, "credit", {"id": key}, key=key, connection=connection)

    def recorded(self, key: str) -> list[str]:
        rows = self.books.sql("SELECT id FROM agentgate_actions WHERE key_text = ?", key)
        return self.books.words(rows[0][0]) if rows else []


@pytest.fixture(params=faulty.JOURNALS)
def desk(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    faulty.install(monkeypatch)
    made = Desk(tmp_path, request.param)
    yield made
    made.gate.close()


def statements(do: Callable[[str], object]) -> list[str]:
    count = faulty.Count()
    with faulty.during(count):
        do("rehearsal")
    return count.statements


def attempt(do: Callable[[str], object], key: str, fault: faulty.At) -> object:
    with faulty.during(fault):
        try:
            return do(key)
        except AgentgateError as error:
            return error


@pytest.mark.parametrize("way", ["call", "inside"])
@pytest.mark.parametrize("words", WORDS)
def test_wherever_a_statement_fails_the_rows_and_the_record_are_there_together(
    desk: Desk, way: str, words: str
) -> None:
    do: Callable[[str], Outcome] = getattr(desk, way)
    for n, statement in enumerate(statements(do)):
        for when in ("before", "after"):
            key = f"{when} {n} {statement[:20]}"
            answer = attempt(do, key, faulty.failed(n, when, words))
            happened = key in desk.books.credited()
            assert ("succeeded" in desk.recorded(key)) == happened, (key, answer)
            if isinstance(answer, Done):
                assert happened, key
            outcome = desk.call(key)
            if "failed" in desk.recorded(key):  # the effect's own statement: a known failure, which can be tried again
                outcome = desk.gate.execute(outcome.action, tenant="acme", retry=True)
            assert isinstance(outcome, Done), (key, answer, outcome)
            assert desk.books.credited().count(key) == 1
    assert not desk.books.damage()


@pytest.mark.parametrize("way", ["call", "inside"])
def test_a_commit_that_landed_and_said_that_it_did_not_is_read_back(desk: Desk, way: str) -> None:
    do: Callable[[str], Outcome] = getattr(desk, way)
    found = statements(do)
    commit = found.index("COMMIT", found.index("BEGIN IMMEDIATE"))
    answer = attempt(do, "landed", faulty.failed(commit, "after"))
    assert isinstance(answer, Done)
    assert desk.recorded("landed") == ["proposed", "started", "succeeded"]
    assert "landed" in desk.books.credited()
    lost = attempt(do, "lost", faulty.failed(commit, "before"))
    assert isinstance(lost, Unavailable)
    assert lost.reason == "commit"
    assert desk.recorded("lost") == []
    assert "lost" not in desk.books.credited()
    assert isinstance(desk.call("lost"), Done)
    assert not desk.books.damage()


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_processes_that_race_for_one_action_credit_it_once(tmp_path: Path, journal: str) -> None:
    books = opened_books(tmp_path, journal)
    with books.gate(books.credit()) as gate:
        proposals = [gate.propose(opened(gate), "credit", {"id": f"c{n}"}, key=f"c{n}").action for n in range(10)]

    def race(number: int) -> list[str]:
        kinds = []
        with books.gate(books.credit()) as gate:
            for n, action in enumerate(proposals):
                if (number + n) % 2:
                    kinds.append(type(gate.execute(action, tenant="acme")).__name__)
                else:
                    with gate.transaction() as connection:
                        kinds.append(type(gate.execute(action, tenant="acme", connection=connection)).__name__)
        return kinds

    assert forks.in_children(race, 4) == [["Done"] * 10] * 4
    assert books.credited() == sorted(f"c{n}" for n in range(10))
    assert not books.damage()


def test_an_effect_that_goes_on_after_the_database_ended_its_transaction_writes_nothing(tmp_path: Path) -> None:
    def goes_on(effect: Effect) -> None:
        for statement in ("INSERT OR ROLLBACK INTO credits VALUES ('c1', 'a1', 1)", "INSERT INTO notes VALUES (NULL)"):
            with contextlib.suppress(Exception):  # a careless tool
                effect.connection.exec_driver_sql(statement)

    books = opened_books(tmp_path)
    with books.gate(books.credit(goes_on)) as gate:
        proposal = gate.propose(opened(gate), "credit", {"id": "c1"})
        with pytest.raises(Unavailable, match="as it was before"):
            gate.execute(proposal)
    assert books.state(proposal.action) == "READY"
    assert (books.credited(), books.sql("SELECT * FROM notes")) == ([], [])
    assert not books.damage()
