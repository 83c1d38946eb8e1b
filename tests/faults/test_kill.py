"""SIGKILL before and after every statement and every commit of every command, on both journals.

Each case is a process of its own, forked from this warm one, that dies at the n-th statement of a command. Then this
process looks at what is left, comes back with the same key, and counts what happened in the world. What people do about
questions changes nothing outside the database: those commands die before each statement, and after each commit.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentgate import Done, Held, Outcome, Unknown
from support import faulty, killings
from support.benches import Bench, Moment
from support.crashes import Command
from support.killings import COMMANDS
from support.source import ROOT
from support.verdicts import VERDICTS, decided

# The long version, for a night: nox -s kill.
ROUNDS = int(os.environ.get("AGENTGATE_KILL_ROUNDS", "1"))


@pytest.fixture
def bench(tmp_path: Path, command: Command, journal: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    faulty.install(monkeypatch)
    bench = Bench(tmp_path, command, journal)
    yield bench
    bench.gate.close()


@pytest.mark.parametrize("journal", faulty.JOURNALS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name.replace(" ", "_"))
def test_a_kill_loses_nothing_repeats_nothing_and_leaves_what_the_table_says(bench: Bench) -> None:
    moments = list(bench.moments())
    assert {(moment.commits, moment.reached) for moment in moments} >= {
        (row.commits, row.reached) for row in bench.command.rows if row.reached is not None
    }
    decided_once: set[tuple[int, bool]] = set()
    for moment in moments * ROUNDS:
        if bench.command in VERDICTS and moment.when == "after" and moment.statement != "COMMIT":
            continue
        bench.kill(moment)
        _check(bench, moment, decides=(moment.commits, moment.reached) not in decided_once)
        decided_once.add((moment.commits, moment.reached))


def _check(bench: Bench, moment: Moment, *, decides: bool = True) -> None:
    """Look at what is left, and go on from there; to where people have decided once for each line of the table."""
    command, world = bench.command, bench.world
    row = command.row(commits=moment.commits, reached=moment.reached)
    assert command.left(world) == row.left, moment
    assert command.beside(world) == (2 if command.name == "propose_many" and moment.commits else 0), moment
    if command.transactional:
        assert bench.effects == moment.commits, moment  # its rows and its record are there together
    assert not world.broken(), moment
    outcome = command.again(bench.gate)
    assert type(outcome).__name__ == row.next, (moment, outcome)
    assert bench.effects == row.effects, moment
    if isinstance(outcome, Unknown) and not outcome.abandoned:
        happened = bench.effects == 1
        bench.gate.reconcile(outcome.action, applied=happened, by="ada", evidence="looked", tenant="acme")
        outcome = command.again(bench.gate)
        if isinstance(outcome, Held):  # a grant is used once, whatever came of it
            assert command.holds, moment
            outcome = _decided(bench, outcome)
        assert type(outcome).__name__ == ("Failed" if command.fails else "Done"), moment
        assert bench.effects == (0 if command.fails else 1), moment
    elif isinstance(outcome, Held) and decides:
        assert isinstance(_decided(bench, outcome), Done), moment
        assert bench.effects == 1, moment
    elif isinstance(outcome, Done):
        assert type(command.again(bench.gate)) is Done, moment
        assert bench.effects == 1, moment
    assert not world.damage(), moment


def _decided(bench: Bench, outcome: Held) -> Outcome:
    """Have people agree to what waits, and come back once more."""
    decided(bench.gate, outcome)
    return bench.command.again(bench.gate)


def test_the_table_in_the_docs_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs" / "crashes.md").read_text("utf-8")
    assert "\n".join(killings.table()) in page
