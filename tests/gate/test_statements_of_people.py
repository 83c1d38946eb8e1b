"""What people's part of a call costs is a fixed number of statements and commits, however much was asked before."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentgate import Done, Gate, Held, Requirement, Run, require_approval
from agentgate.store import sqlite
from agentgate.testing import CollectingChannel, ScriptedPolicy
from support import faulty
from support.worlds import World, made, named, opened, vote

OLD = 1_000
TENANT: Any = {"tenant": "acme"}
# (statements, commits that wrote something) of each step.
COSTS = {
    "hold": (31, 1),
    "vote": (32, 1),
    "vote again": (28, 0),
    "last vote": (33, 1),
    "claim": (44, 2),  # as every execution: the claim's and the record's
    "reject": (31, 1),
    "first of the list": (12, 0),
    "tell a channel": (28, 3),  # the third takes the marks of ended questions away, once for all that are told
}


def asking(**required: Any) -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement(quorum=2, **required)))


@dataclass(slots=True)
class Cost:
    """What was asked of the database: its statements, and how many tens of steps of its own machine they took."""

    statements: list[str] = field(default_factory=list)
    steps: int = 0

    def count(self) -> int:
        self.steps += 1
        return 0

    @property
    def commits(self) -> int:
        """How many transactions wrote something and were committed."""
        text = "\n".join(self.statements)
        return sum(
            any(word in one for word in ("\nINSERT", "\nUPDATE", "\nDELETE"))
            for one in text.split("BEGIN IMMEDIATE")[1:]
        )


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> Cost:
    """What every connection of a gate is asked for from now on."""
    cost, usual = Cost(), sqlite.module()

    class Module:
        def __getattr__(self, name: str) -> Any:
            return getattr(usual, name)

        def connect(self, *args: Any, **given: Any) -> Any:
            connection = usual.connect(*args, **given)
            connection.set_trace_callback(cost.statements.append)
            connection.set_progress_handler(cost.count, 10)
            return connection

    monkeypatch.setattr(sqlite, "module", Module)
    return cost


@contextmanager
def counted(cost: Cost) -> Iterator[Cost]:
    """Count from here to the end of the block."""
    cost.statements.clear()
    cost.steps, found = 0, Cost()
    yield found
    found.statements, found.steps = list(cost.statements), cost.steps


def held(gate: Gate, key: str, *, run: Run | None = None) -> Held:
    outcome = gate.call(run or opened(gate, key), "act", {"n": key}, key=key)
    assert isinstance(outcome, Held)
    return outcome


def costs(gate: Gate, cost: Cost) -> dict[str, Cost]:
    """Do what people have a part in, once everything that is remembered is, and say what each step cost."""
    channel = CollectingChannel()
    gate.deliver(channel)
    for n in range(3):
        asked = held(gate, f"warm {n}")
        vote(gate, asked, "ada")
        vote(gate, asked, "bob")
        assert isinstance(gate.execute(asked.action, **TENANT), Done)
    found: dict[str, Cost] = {}

    def step(name: str, work: Callable[[], Any]) -> Any:
        with counted(cost) as found[name]:
            return work()

    run = opened(gate, "counted")
    asked = step("hold", lambda: held(gate, "counted", run=run))
    step("vote", lambda: vote(gate, asked, "ada"))
    step("vote again", lambda: vote(gate, asked, "ada"))
    step("last vote", lambda: vote(gate, asked, "bob"))
    assert isinstance(step("claim", lambda: gate.execute(asked.action, **TENANT)), Done)
    other = held(gate, "other")
    step("reject", lambda: vote(gate, other, "eve", "reject"))
    held(gate, "told")
    assert step("first of the list", lambda: next(gate.approvals.list(**TENANT))).tool == "act"
    assert step("tell a channel", lambda: gate.deliver(channel)) == 1
    return found


IDS = {"runs": ("id",), "actions": ("id", "run", "approval"), "attempts": ("action", "run", "approval"),
       "approvals": ("id", "action", "run"), "votes": ("approval", "run")}  # fmt: skip
OTHERS = {"runs": "name", "actions": "key_text", "attempts": "fence"}


def grow(world: World, times: int) -> None:
    """Let each run that there is have been there so often, with all that people were asked in it."""
    with closing(faulty.REAL.connect(str(world.path), isolation_level=None)) as connection:
        for table, ids in IDS.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info(agentgate_{table})")]
            rows = [
                dict(zip(columns, row, strict=True)) for row in connection.execute(f"SELECT * FROM agentgate_{table}")
            ]
            more = [_copy(row, ids, OTHERS.get(table), n) for row in rows for n in range(1, times)]
            marks = ", ".join("?" * len(columns))
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(f"INSERT INTO agentgate_{table} VALUES ({marks})", [[*row.values()] for row in more])
            connection.execute("COMMIT")


def _copy(row: dict[str, Any], ids: tuple[str, ...], other: str | None, n: int) -> dict[str, Any]:
    changed = row | {name: f"{n:08x}{row[name][8:]}" for name in ids if row[name] is not None}
    if other is None:
        return changed
    was = row[other]
    return changed | {other: was + n * 1_000 if type(was) is int else f"{was}/{n}"}


def old(gate: Gate) -> None:
    """Leave a grant that was used and a question that was rejected, each in a run of its own."""
    used, rejected = held(gate, "used"), held(gate, "rejected")
    vote(gate, rejected, "eve", "reject")
    vote(gate, used, "ada")
    vote(gate, used, "bob")
    assert isinstance(gate.execute(used.action, **TENANT), Done)


def tool() -> Any:
    def act(n: str) -> int:
        return len(n)

    return named("act", act)


def measured(folder: Path, cost: Cost, *, times: int) -> dict[str, Cost]:
    """Say what each step costs in a ledger where so much was asked and answered before."""
    folder.mkdir()
    world = made(folder)
    with world.gate(tool(), policy=asking()) as gate:
        old(gate)
        grow(world, times)
        assert world.value("SELECT count(*) FROM agentgate_approvals") == 2 * times
        return costs(gate, cost)


def test_what_people_do_costs_what_is_written_down_however_much_they_were_asked_before(
    tmp_path: Path, cost: Cost
) -> None:
    few, many = (measured(tmp_path / str(times), cost, times=times) for times in (1, OLD // 2))
    assert {name: (len(one.statements), one.commits) for name, one in few.items()} == COSTS
    for name, one in many.items():
        assert len(one.statements) == len(few[name].statements), name
        assert one.steps <= few[name].steps + 1, (name, few[name].steps, one.steps)  # tens: no table is gone through
