"""SIGKILL from outside at any moment, in the middle of a system call too, to two workers on one list of payments."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from agentgate import Done, Effect, Gate, NotPossible, Unknown
from agentgate.tools.decorator import AnyTool
from support import faulty, forking
from support.worlds import World, made, named, opened

# The long version, for a night: nox -s kill.
ROUNDS = 12 * int(os.environ.get("AGENTGATE_KILL_ROUNDS", "1"))
PAYMENTS = 100
LONGEST_S = 0.25


def payment(world: World) -> AnyTool:
    def pay(n: int, *, effect: Effect) -> int:
        world.downstream.apply(effect, resource=f"payment-{n}")
        return n

    return named("pay", pay, resource="payment:{n}")


def paid(world: World) -> list[str]:
    """Read the bank's list: one line per payment that has happened."""
    return sorted(arrival.resource for arrival in world.downstream.arrivals if arrival.verdict == "applied")


def acknowledge(world: World, n: int) -> None:
    """Tell the world outside that a payment is done: from here on nobody may forget it."""
    descriptor = os.open(world.folder / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"payment-{n}\n".encode())
    os.close(descriptor)


def acknowledged(world: World) -> set[str]:
    path = world.folder / "acknowledged"
    return set(path.read_text().split()) if path.exists() else set()


def pay_all(world: World) -> None:
    """Work the list off: a worker that comes back with the same keys, and an operator who looks at the bank's list."""
    with world.gate(payment(world)) as gate:
        run, done = opened(gate), acknowledged(world)
        for n in range(PAYMENTS):
            if f"payment-{n}" in done:
                continue
            outcome = gate.call(run, "pay", {"n": n}, key=f"payment-{n}")
            if isinstance(outcome, Unknown):
                _reconcile(world, gate, outcome, n)
                outcome = gate.call(run, "pay", {"n": n}, key=f"payment-{n}")
            if isinstance(outcome, Done):
                acknowledge(world, n)


def _reconcile(world: World, gate: Gate, outcome: Unknown, n: int) -> None:
    applied = f"payment-{n}" in paid(world)
    with contextlib.suppress(NotPossible):  # the other worker's operator was faster
        gate.reconcile(outcome.action, applied=applied, by="ada", evidence="the bank's list", tenant="acme")


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_workers_killed_at_any_moment_pay_everything_exactly_once(tmp_path: Path, journal: str) -> None:
    world, chance = made(tmp_path, journal=journal), random.Random(f"kill {journal}")
    for _ in range(ROUNDS):
        workers = [forking.start(lambda: pay_all(world)) for _ in range(2)]
        for worker in workers:
            time.sleep(chance.uniform(0, LONGEST_S))
            os.kill(worker, signal.SIGKILL)
        assert {forking.end(worker) for worker in workers} <= {forking.KILLED, 0}
        assert not world.damage()
    assert forking.run(lambda: pay_all(world)) == 0
    every = sorted(f"payment-{n}" for n in range(PAYMENTS))
    assert paid(world) == every
    assert acknowledged(world) == set(every)
    states = world.sql("SELECT state, count(*) FROM agentgate_actions GROUP BY state")
    assert states == [("SUCCEEDED", PAYMENTS)]
    assert not world.damage()
