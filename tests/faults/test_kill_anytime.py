"""SIGKILL from outside at any moment, in the middle of a system call too, to two workers on one list of payments.

The tools are of all five recovery classes; where it is left to a person, an operator looks at the bank's list.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from support import faulty, forking, payments
from support.payments import CLASSES, Figures
from support.worlds import made

# Of each journal; 24 kills each. The long version, for a night: nox -s kill, whose three rounds make 1,008 kills.
LEDGERS = 7 * int(os.environ.get("AGENTGATE_KILL_ROUNDS", "0")) or 1
PAIRS = 12
LONGEST_S = 0.6


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_workers_killed_at_any_moment_pay_everything_exactly_once(tmp_path: Path, journal: str) -> None:
    chance, kills = random.Random(f"kill {journal}"), 0
    figures = {word: Figures() for word in CLASSES}
    for ledger in range(LEDGERS):
        kills += _pay(tmp_path / str(ledger), journal, chance, figures)
    assert kills == LEDGERS * PAIRS * 2
    print(f"\n{journal}: {kills} kills")
    for word, of in figures.items():
        print(f"  {word}: {of.effects} effects, {of.unknown} times unknown, {of.reconciled} times reconciled")


def _pay(folder: Path, journal: str, chance: random.Random, figures: dict[str, Figures]) -> int:
    """Let workers be killed over one ledger, let one finish, and count the kills."""
    folder.mkdir()
    world, kills = made(folder, journal=journal), 0
    payments.prepare(world)
    for _ in range(PAIRS):
        workers = [forking.start(lambda: payments.work(world)) for _ in range(2)]
        for worker in workers:
            time.sleep(chance.uniform(0, LONGEST_S))
            os.kill(worker, signal.SIGKILL)
        ends = [forking.end(worker) for worker in workers]
        assert ends == [forking.KILLED] * 2  # there is always another payment: nobody ends alone
        kills += len(ends)
        assert not payments.offences(world)
    every = range(payments.begun(world))
    assert forking.run(lambda: payments.work(world, every)) == 0
    assert not payments.offences(world)
    assert payments.acknowledged(world) == payments.succeeded(world) == set(payments.paid(world)) == set(every)
    assert world.sql("SELECT DISTINCT state FROM agentgate_actions") == [("SUCCEEDED",)]
    for word, of in figures.items():
        of.add(world, word)
    return kills
