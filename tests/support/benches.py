"""One ledger file that is put back as it was before each case, and every moment of a command on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentgate.testing import FakeClock
from support import faulty, forking
from support.crashes import KEY, Command
from support.worlds import made, opened


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a process is killed, or its database fails.

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

    def __init__(self, folder: Path, command: Command, journal: str, *, clock: FakeClock | None = None) -> None:
        self.command = command
        self.clock = clock
        self.world = made(folder, journal=journal)
        self.gate = command.gate(self.world, clock=clock)
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

    def do(self) -> object:
        return self.command.do(self.gate, self.run, self.action)

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
