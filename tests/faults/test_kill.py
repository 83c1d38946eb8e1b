"""SIGKILL before and after every statement and every commit of every command, on both journals.

Each case is a process of its own, forked from this warm one, that dies at the n-th statement of a command. Then this
process looks at what is left, comes back with the same key, and counts what happened in the world.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentgate import Done, Unknown
from support import faulty, forking, killings
from support.crashes import KEY, Command
from support.killings import COMMANDS
from support.source import ROOT
from support.worlds import made, opened

# The long version, for a night: nox -s kill.
ROUNDS = int(os.environ.get("AGENTGATE_KILL_ROUNDS", "1"))


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a process is killed.

    Args:
        n: at which statement, from 0.
        when: ``before`` or ``after`` it.
        commits: how many of the command's commits had landed by then.
        reached: whether the effect had reached the world.
        statement: what it is, for a reader of a failure.
    """

    n: int
    when: str
    commits: int
    reached: bool
    statement: str


class Bench:
    """One ledger file that is put back as it was before each case, and a gate that is there all the time."""

    def __init__(self, folder: Path, command: Command, journal: str) -> None:
        self.command = command
        self.world = made(folder, journal=journal)
        self.gate = command.gate(self.world)
        self.run = opened(self.gate)
        # What a gate does once, such as storing its policy, is done, and is not done again in each case.
        self.gate.propose(self.run, "refund", {"account": "a0", "cents": 1}, key="earlier")
        command.prepare(self.world, self.gate, self.run)
        found = self.world.sql("SELECT id FROM agentgate_actions WHERE key_text = ?", KEY)
        self.action = str(found[0][0]) if found else ""
        self.gate.close()  # lets go of every connection; its next use opens them again
        self._kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".db"}

    def reset(self) -> None:
        """Put the files back, in place: a gate knows its file by the inode."""
        self.gate.close()
        for path in self.world.folder.iterdir():
            if path.name not in self._kept:
                path.unlink()
        for name, content in self._kept.items():
            (self.world.folder / name).write_bytes(content)

    def do(self) -> None:
        self.command.do(self.gate, self.run, self.action)

    @property
    def effects(self) -> int:
        return self.command.effects(self.world)

    def moments(self) -> Iterator[Moment]:
        """Do the command once unharmed, and name every moment that it has."""
        self.reset()
        count, before = faulty.Count(), self.effects
        reached_at: list[int] = []

        def notice(when: str, statement: str) -> None:
            # A row of the ledger's own database is in the world with its commit, and looking at it is a statement more.
            looked = when == "before" and not reached_at and not self.command.transactional
            if looked and self.effects > before:
                reached_at.append(len(count.statements))
            count(when, statement)

        with faulty.during(notice):
            self.do()
        commits = 0
        for n, statement in enumerate(count.statements):
            for when in ("before", "after"):
                commits += when == "after" and statement == "COMMIT" and _wrote(count.statements[:n])
                reached = bool(reached_at) and n >= reached_at[0]
                yield Moment(n=n, when=when, commits=commits, reached=reached, statement=statement[:60])

    def kill(self, moment: Moment) -> None:
        """Do the command in a child that dies at that moment."""
        self.reset()

        def work() -> None:
            with faulty.during(faulty.killed(moment.n, moment.when)):
                self.do()

        assert forking.run(work) == forking.KILLED, moment


def _wrote(statements: list[str]) -> bool:
    """Tell whether the transaction that these statements end with has written anything."""
    last = max(n for n, statement in enumerate(statements) if statement.startswith("BEGIN"))
    return any(statement.startswith(("INSERT", "UPDATE", "DELETE")) for statement in statements[last:])


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
    for moment in moments * ROUNDS:
        bench.kill(moment)
        _check(bench, moment)


def _check(bench: Bench, moment: Moment) -> None:
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
        expected = "Failed" if command.fails else "Done"
        assert type(command.again(bench.gate)).__name__ == expected, moment
        assert bench.effects == (0 if command.fails else 1), moment
    elif isinstance(outcome, Done):
        assert type(command.again(bench.gate)) is Done, moment
        assert bench.effects == 1, moment
    assert not world.damage(), moment


def test_the_table_in_the_docs_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs" / "crashes.md").read_text("utf-8")
    assert "\n".join(killings.table()) in page
