"""What is used of a budget is what the rows add up to, after any history; and it moves only from where it was read."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from agentgate.core.budgets import MEASURES, TENANT, Book, Budget, Place, account, tool
from agentgate.core.records import TAKEN
from agentgate.states import State
from agentgate.store import budgets, committing
from agentgate.store.engine import Database
from support.rows import commit, raising, write
from support.walking import Walk

PLACES = (TENANT, tool("", "refund"), *map(account, ("refunds", "eu", "calls", "nobody")))
each_on_one_database = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Undone(Exception):
    """What is tried in an example leaves nothing for the next."""


def bound(connection: Connection, n: int = 1) -> None:
    """Bound everything, from what the rows add up to."""
    for place in PLACES:
        found = budgets.used(connection, tenant="acme", place=place)
        new = [
            Budget(place=place, measure=measure, most=5, used=found[measure], n=n) for measure in MEASURES[place.kind]
        ]
        budgets.replace(connection, "acme", place, new)


def spend(connection: Connection, walk: Walk) -> None:
    """Write what was drafted and what it does to budgets, as a ledger's transaction does."""
    book = walk.draft.book
    touched = book.unread(book.touched())
    book.enter(touched, budgets.read(connection, tenant="acme", places=touched))
    moves = book.moves()
    commit(connection, walk.commit())
    committing.spend(connection, "acme", moves)


def told(walk: Walk) -> dict[Place, dict[str, int]]:
    """Add up what the walk's own files say, another way than the code does."""
    run, files = walk.draft.run.counters, [walk.file(action).action for action in walk.models]
    taken = [file for file in files if file.state in TAKEN]
    found = {
        TENANT: {
            "actions": len(taken),
            "parallel": sum(file.state is State.EXECUTING for file in files),
            "pending": sum(file.state is State.HELD for file in files),
            "tokens": run.tokens,
            "money": run.money,
        },
        tool("", "refund"): {
            "actions": len(taken),
            "failures": 0,
            "parallel": sum(file.state is State.EXECUTING for file in files),
            "pending": sum(file.state is State.HELD for file in files),
        },
    }
    for place in PLACES[2:]:
        found[place] = {"amount": sum(dict(file.reserved).get(place.name, 0) for file in taken)}
    return found


@each_on_one_database
@given(
    choices=st.lists(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), min_size=2, max_size=14),
    again=st.integers(0, 14),
)
def test_what_is_used_equals_the_recount_after_any_history(
    database: Database, choices: list[list[int]], again: int
) -> None:
    """Bounded at the beginning, and once more somewhere on the way."""

    def work(connection: Connection) -> None:
        walk = Walk()
        spend(connection, walk)
        bound(connection)
        for number, transaction in enumerate(choices):
            for choice in transaction:
                possible = walk.possible()
                walk.take(*possible[choice % len(possible)])
            spend(connection, walk)
            if number == again:
                bound(connection, n=2)
            rows = budgets.read(connection, tenant="acme", places=PLACES)
            stored: dict[Place, dict[str, int]] = {place: {} for place in PLACES}
            for row in rows:
                stored[row.place][row.measure] = row.used
            assert stored == {place: budgets.used(connection, tenant="acme", place=place) for place in PLACES}
            assert stored == told(walk)

    with pytest.raises(Undone):
        write(database, work, raising(Undone))


def test_a_budget_moves_from_where_it_was_read_and_from_nowhere_else(database: Database) -> None:
    write(database, bound)
    with database.read() as connection:
        (read,) = budgets.read(connection, tenant="acme", places=[account("eu")])
    more = replace(read, used=3)
    for stale in (replace(read, used=1), replace(read, n=2), replace(read, place=account("us"))):
        with pytest.raises(committing.Moved):
            write(database, lambda connection, was=stale: committing.spend(connection, "acme", [(was, more)]))  # type: ignore[misc]
    with pytest.raises(committing.Moved):
        write(database, lambda connection: committing.spend(connection, "umbrella", [(read, more)]))
    write(database, lambda connection: committing.spend(connection, "acme", [(read, more)]))
    with database.read() as connection:
        assert budgets.read(connection, tenant="acme", places=[account("eu")]) == [more]


def test_budgets_are_read_by_place_in_the_order_of_places(database: Database) -> None:
    write(database, bound)
    with database.read() as connection:
        found = budgets.read(connection, tenant="acme", places=tuple(reversed(PLACES)))
        assert [(one.place, one.measure) for one in found] == sorted((one.place, one.measure) for one in found)
        assert {one.place for one in found} == set(PLACES)
        assert budgets.read(connection, tenant="acme", places=[tool("mail", "refund")]) == []
        assert budgets.read(connection, tenant="umbrella", places=PLACES) == []
        assert [one.place.name for one in budgets.accounts(connection, tenant="acme")] == [
            "calls", "eu", "nobody", "refunds",
        ]  # fmt: skip


def test_a_book_counts_what_all_drafts_of_a_transaction_do() -> None:
    """Two runs of one tenant change in one transaction: each row moves once, by the sum."""
    book = Book()
    held = Budget(place=TENANT, measure="pending", most=5, used=1, n=1)
    book.enter([TENANT], [held])
    for amount in (2, -1):
        book.counts(lambda amount=amount: {(TENANT, "pending"): amount, (TENANT, "money"): 7})  # type: ignore[misc]
    assert book.moves() == ((held, replace(held, used=2)),)
    assert book.left(TENANT) == (replace(held, used=2),)
    book.counts(lambda: {(TENANT, "pending"): -1})
    assert book.moves() == ()
    assert book.touched() == (TENANT,)  # money is, though nobody bounds it
