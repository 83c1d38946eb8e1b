"""What broke transactions and repeats once more: a block that ends in another thread, and what happened after all."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from agentgate import Done, Effect, Refused, Transactional, Unavailable
from agentgate.testing import FakeClock
from support import faulty
from support.worlds import World, made, named, opened

ROW = text("INSERT INTO notes VALUES ('one')")


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in a thread of its own."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_a_transaction_that_is_left_in_another_thread_locks_nobody_out(
    tmp_path: Path, journal: str, *, raises: bool
) -> None:
    world = made(tmp_path, journal=journal)
    world.sql("CREATE TABLE notes (word)")

    def note(*, effect: Effect) -> None:
        effect.connection.execute(ROW)

    with world.gate(named("note", note, recovery=Transactional(), timeout=5)) as gate:
        run, stack, told = opened(gate), ExitStack(), []
        connection = stack.enter_context(gate.transaction())
        connection.execute(ROW)

        def leave() -> None:
            error = ValueError("the request failed")
            if raises:
                stack.__exit__(ValueError, error, None)
            else:
                stack.close()

        elsewhere(leave)
        assert world.value("SELECT count(*) FROM notes") == (0 if raises else 1)
        assert isinstance(gate.call(run, "note", {}), Done)
        elsewhere(lambda: told.append(gate.call(run, "note", {})))
        assert isinstance(told[0], Done)
        with gate.transaction() as again:
            again.execute(ROW)
    assert not world.damage()


def test_what_was_cancelled_and_is_known_to_have_happened_after_all_is_not_repeated_within_its_window(
    world: World, clock: FakeClock
) -> None:
    effects: list[str] = []
    entered, answer = threading.Event(), threading.Event()

    def pay(account: str) -> str:
        effects.append(account)
        if len(effects) == 1:
            entered.set()
            assert answer.wait(30)
        return "paid"

    tool = named("pay", pay, dedupe_window=timedelta(hours=1))
    with world.gate(tool, clock=clock) as gate:
        run = opened(gate)
        first: list[object] = []
        worker = threading.Thread(target=lambda: first.append(gate.call(run, "pay", {"account": "a1"}, key="first")))
        worker.start()
        assert entered.wait(30)
        action = world.value("SELECT id FROM agentgate_actions")
        clock.advance(timedelta(minutes=2))
        gate.reconcile(action, applied=False, by="ada", evidence="nothing in the log", tenant="acme")
        gate.cancel(action, by="ada", tenant="acme")
        answer.set()
        worker.join()
        gate.reconcile(action, applied=True, by="ada", evidence="it is in the log", tenant="acme")
        again = gate.call(run, "pay", {"account": "a1"}, key="second")
    assert effects == ["a1"]
    assert isinstance(again, Refused), again
    assert again.reason == "duplicate"
    assert again.error.details["action"] == action  # type: ignore[index, call-overload]
    assert not world.damage()


def test_an_effect_that_closes_the_callers_own_connection_is_a_clear_error_and_leaves_nothing(world: World) -> None:
    connection = world.connect()
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")

    def close() -> None:
        connection.close()

    with world.gate(named("close", close, recovery=Transactional(), timeout=5)) as gate:
        run = opened(gate)
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match=r"closed database.*undone your whole transaction"):
            gate.call(run, "close", {}, key="k", connection=connection)
        assert isinstance(gate.call(run, "close", {}, key="k"), Done)
    assert not world.damage()
