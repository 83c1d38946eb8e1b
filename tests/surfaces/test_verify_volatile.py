"""What no event determines: a flip contradicts nothing, and costs time, never a second effect."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import agentgate
from agentgate import Done, Running, Unknown
from agentgate.core.verification import VOLATILE
from agentgate.testing import FakeClock
from support.edits import Copy
from support.worlds import World, named, opened

ACCOUNT = {"account": "a"}


class Worker:
    """A tool that counts its effects and stays inside until it is let go."""

    def __init__(self) -> None:
        self.inside, self.go, self.effects = threading.Event(), threading.Event(), 0

    def pay(self, account: str) -> str:
        self.effects += 1
        self.inside.set()
        assert self.go.wait(30)
        return account


@contextmanager
def _working(gate: agentgate.Gate, worker: Worker) -> Iterator[str]:
    proposal = gate.propose(opened(gate), "pay", ACCOUNT)
    thread = threading.Thread(target=gate.execute, args=(proposal,))
    thread.start()
    assert worker.inside.wait(30)
    yield proposal.action
    worker.go.set()
    thread.join()


def test_the_leases_ends_and_the_marks_of_what_was_told_are_all_that_is_volatile(copy: Copy) -> None:
    marks = {f"notices.{column}" for column in ("channel", "approval", "tries", "again_at_us", "told")}
    assert {"attempts.lease_until_us", *marks} == VOLATILE
    for row in copy.rows("attempts"):
        for until_us in (0, row["lease_until_us"] + 1, 2**62):
            copy.set("attempts", "lease_until_us", row["rowid"], until_us)
    assert copy.verify().ok


def test_a_lease_that_was_set_to_end_earlier_is_taken_over_and_nothing_runs_twice(world: World) -> None:
    worker, clock = Worker(), FakeClock()
    with world.gate(named("pay", worker.pay, resource="account:{account}"), clock=clock) as gate:
        with _working(gate, worker) as action:
            world.sql("UPDATE agentgate_attempts SET lease_until_us = 0")
            for _ in range(3):
                assert isinstance(gate.execute(action, tenant="acme"), Unknown)
        # Each time something new is known of it, its operators are asked anew.
        assert world.words(action)[-4:] == ["in_doubt", "question_asked", "late", "question_asked"]
        gate.reconcile(action, applied=True, by="ada", evidence="its late result", tenant="acme")
        assert isinstance(gate.execute(action, tenant="acme"), Done)
    assert worker.effects == 1
    assert agentgate.verify(world.url).ok


def test_a_lease_that_was_set_to_end_later_is_waited_for_and_nothing_runs_twice(world: World) -> None:
    worker, clock = Worker(), FakeClock()
    with world.gate(named("pay", worker.pay, resource="account:{account}"), clock=clock) as gate:
        with _working(gate, worker) as action:
            world.sql("UPDATE agentgate_attempts SET lease_until_us = lease_until_us + ?", 3_600_000_000)
            clock.advance(timedelta(minutes=30))
            assert isinstance(gate.execute(action, tenant="acme"), Running)
        assert isinstance(gate.execute(action, tenant="acme"), Done)
    assert worker.effects == 1
    assert agentgate.verify(world.url).ok


def test_a_sequence_that_was_set_back_or_deleted_gives_no_fence_twice(world: World) -> None:
    with world.gate() as gate:
        for n, edit in enumerate(("SET seq = 0", "SET seq = 90", "SET name = 'elsewhere'")):
            gate.call(opened(gate), "refund", {"account": "a", "cents": n})
            highest = world.value("SELECT max(fence) FROM agentgate_attempts")
            world.sql(f"UPDATE sqlite_sequence {edit} WHERE name = 'agentgate_attempts'")
            gate.call(opened(gate), "refund", {"account": "a", "cents": 100 + n})
            assert world.value("SELECT max(fence) FROM agentgate_attempts") > highest
    assert agentgate.verify(world.url).ok
