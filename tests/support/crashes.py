"""What a SIGKILL leaves behind, as data: the table of docs/crashes.md, and the commands it is about.

A row is found by how many of a command's commits had landed and by whether the effect had reached the world.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import text

import agentgate
from agentgate import Effect, Function, Gate, Keyed, NoEffect, Probe, Retry, Run, Transactional
from agentgate.store import sqlite
from agentgate.testing import Downstream, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import forking
from support.crashrow import Row
from support.worlds import World, opened

ARGUMENTS = {"account": "a1", "cents": 1250}
KEY = "k"
BESIDE = "beside-"
FRESH = "fresh"

Prepare = Callable[[World, Gate, Run], object]
Do = Callable[[Gate, Run, str], object]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, how the ledger stands before it, and what its death leaves behind.

    Args:
        name: as the table calls it.
        do: the command, given the gate, the run and the action that was prepared.
        rows: its lines of the table.
        prepare: how the ledger comes to stand as it does before.
        declared: what its tool declares beside the usual.
        asks: whether the policy asks for a person.
        fails: whether the effect ends with a clean failure.
        dedupes: whether the downstream knows our key.
        transactional: whether the effect is a row in the ledger's own database.
        probed: whether the tool can be asked whether it has happened.
        checked: whether the tool checks what it has written.
    """

    name: str
    do: Do
    rows: tuple[Row, ...]
    prepare: Prepare = lambda _world, _gate, _run: None
    declared: dict[str, Any] = field(default_factory=dict)
    asks: bool = False
    fails: bool = False
    dedupes: bool = False
    transactional: bool = False
    probed: bool = False
    checked: bool = False

    def row(self, *, commits: int, reached: bool) -> Row:
        """Find the line for a moment."""
        (row,) = (row for row in self.rows if row.commits == commits and row.reached in {None, reached})
        return row

    def downstream(self, world: World) -> Downstream:
        return Downstream(world.folder / "downstream.db", dedupes=self.dedupes)

    def effects(self, world: World) -> int:
        """Count what there is in the world."""
        return int(world.value("SELECT count(*) FROM refunds")) if self.transactional else self.downstream(world).total

    def tool(self, world: World, *, dies: str = "never", fails: bool = False) -> AnyTool:
        """Make the tool that the command is about; ``dies`` says when its process does: never, before or after."""

        def refund(account: str, cents: int, *, effect: Effect) -> dict[str, int]:
            if dies == "before":
                forking.die()
            if self.fails or fails:
                raise NoEffect("nothing was sent")
            if self.transactional:
                effect.connection.execute(text("INSERT INTO refunds VALUES (:a, :c)"), {"a": account, "c": cents})
            else:
                self.downstream(world).apply(effect, resource=account)
            if dies == "after":
                forking.die()
            return {"cents": cents}

        usual: dict[str, Any] = {"risk": "external", "resource": "account:{account}"}
        if self.transactional:
            usual |= {"recovery": Transactional(), "timeout": 20}
        if self.probed:
            usual |= {"recovery": Probe(), "probe": Function(call=partial(_ask, self, world), name="ask", version="1")}
        if self.checked:
            usual["confirm"] = Function(call=partial(_ask, self, world), name="check", version="1")
        return agentgate.tool(**usual | self.declared)(refund)

    def gate(self, world: World, **options: Any) -> Gate:
        decision = agentgate.require_approval("big") if self.asks else agentgate.allow()
        return world.gate(self.tool(world, **options), policy=ScriptedPolicy(otherwise=decision))

    def left(self, world: World) -> str:
        """Say what the record says of what the command is about."""
        if self.name == "run":
            rows = world.sql("SELECT state FROM agentgate_runs WHERE name = ?", FRESH)
        else:
            rows = world.sql("SELECT state FROM agentgate_actions WHERE key_text = ? ORDER BY revision LIMIT 1", KEY)
        return str(rows[0][0]) if rows else "nothing"

    def beside(self, world: World) -> int:
        """Count what a batch left beside that action."""
        return int(world.value("SELECT count(*) FROM agentgate_actions WHERE key_text LIKE ?", f"{BESIDE}%"))

    def again(self, gate: Gate) -> agentgate.Outcome:
        """Come back with the same key."""
        return call(gate, fresh(gate) if self.name == "run" else opened(gate))


def _ask(command: Command, world: World, effect: Effect, *_: object) -> bool:
    return command.downstream(world).has_applied(effect)


def call(gate: Gate, run: Run, _action: str = "") -> agentgate.Outcome:
    return gate.call(run, "refund", ARGUMENTS, key=KEY)


def propose(gate: Gate, run: Run, _action: str = "") -> agentgate.Proposal:
    return gate.propose(run, "refund", ARGUMENTS, key=KEY)


def propose_many(gate: Gate, run: Run, _action: str = "") -> list[agentgate.Proposal]:
    calls = [agentgate.Call("refund", ARGUMENTS, key=KEY)]
    calls += [agentgate.Call("refund", {"account": "a2", "cents": n}, key=f"{BESIDE}{n}") for n in range(2)]
    return gate.propose_many(run, calls)


def fresh(gate: Gate, _run: Run | None = None, _action: str = "") -> Run:
    return gate.run(FRESH, principal="agent:support", tenant="acme")


def _execute(gate: Gate, _run: Run, action: str) -> agentgate.Outcome:
    return gate.execute(action, tenant="acme", retry=True)


def _execute_in_transaction(gate: Gate, _run: Run, action: str) -> agentgate.Outcome:
    with gate.transaction() as connection:
        connection.execute(text("INSERT INTO orders VALUES (1)"))
        outcome = gate.execute(action, tenant="acme", connection=connection)
        connection.execute(text("INSERT INTO orders VALUES (2)"))
    return outcome


def _call_in_own_transaction(gate: Gate, run: Run, _action: str) -> agentgate.Outcome:
    path = gate._shop.ledger.own.path
    with closing(sqlite.module().connect(str(path), isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders VALUES (1)")
        outcome = gate.call(run, "refund", ARGUMENTS, key=KEY, connection=connection)
        connection.commit()
    return outcome


def _reconcile(gate: Gate, _run: Run, action: str, *, applied: bool) -> agentgate.Proposal:
    return gate.reconcile(action, applied=applied, by="ada", evidence="looked", tenant="acme")


def _cancel(gate: Gate, _run: Run, action: str) -> agentgate.Proposal:
    return gate.cancel(action, by="ada", tenant="acme")


def _abandon(gate: Gate, _run: Run, action: str) -> agentgate.Proposal:
    return gate.abandon(action, by="ada", tenant="acme")


def _pause(gate: Gate, _run: Run, _action: str = "") -> agentgate.Paused:
    return gate.pause(by="ada", reason="look first")


def _resume(gate: Gate, _run: Run, _action: str) -> agentgate.Resumed:
    return gate.resume(by="ada")


def _sweep(gate: Gate, _run: Run, _action: str) -> agentgate.Swept:
    return gate.sweep()


def _close(gate: Gate, run: Run, _action: str) -> None:
    gate.close_run(run, by="ada")


def proposed(_world: World, gate: Gate, run: Run) -> None:
    propose(gate, run)


def tables(world: World, _gate: Gate, _run: Run) -> None:
    world.sql("CREATE TABLE refunds (account TEXT, cents INTEGER)")
    world.sql("CREATE TABLE orders (id INTEGER)")


def proposed_with_tables(world: World, gate: Gate, run: Run) -> None:
    tables(world, gate, run)
    propose(gate, run)


def _stopped(_world: World, gate: Gate, run: Run) -> None:
    propose(gate, run)
    _pause(gate, run)


def prepared(name: str, *, dies: str = "never", fails: bool = False, looked: bool = False) -> Prepare:
    """Call the tool of a command once before it, so that it fails, or its process dies."""

    def prepare(world: World, gate: Gate, run: Run) -> None:
        def work() -> None:
            with BY_NAME[name].gate(world, dies=dies, fails=fails) as other:
                call(other, run)

        assert forking.run(work) == (0 if dies == "never" else forking.KILLED)
        if looked:
            assert isinstance(call(gate, run), agentgate.Unknown)

    return prepare


NONE = "before its commit"
AT_ONCE = Retry(attempts=2, wait=timedelta(0))
BEFORE_START = "before `started` is committed"
BEFORE_AGAIN = "after that, before `started` is committed again"
BETWEEN = "after that, before the effect"
EFFECTED = "after the effect, before its record is committed"
UNRECORDED = "after that, before its record is committed"
UNTOLD = "after that, before its probe's answer is committed"
UNSTARTED = "after that, before `started` is committed"
UNCHECKED = "after that, before its check is committed"
RECORDED = "after its last commit"

# fmt: off
COMMANDS = (
    Command(name="run", do=fresh, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="OPEN",      next="Done",    effects=1),
    )),
    Command(name="propose", do=propose, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="propose, held", do=propose, asks=True, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1,                left="HELD",      next="Held",    effects=0),
    )),
    Command(name="propose_many", do=propose_many, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="call", do=call, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool says that nothing happened", do=call, fails=True, rows=(
        Row(killed=BEFORE_START, commits=0,                left="nothing",   next="Failed",  effects=0),
        Row(killed=UNRECORDED,   commits=1,                left="EXECUTING", next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=2,                left="FAILED",    next="Failed",  effects=0),
    )),
    Command(name="call, the tool tries a failure again", do=call, fails=True, declared={"retry": AT_ONCE}, rows=(
        Row(killed=BEFORE_START, commits=0,                left="nothing",   next="Failed",  effects=0),
        Row(killed=UNRECORDED,   commits=1,                left="EXECUTING", next="Unknown", effects=0),
        Row(killed=BEFORE_AGAIN, commits=2,                left="FAILED",    next="Failed",  effects=0),
        Row(killed=UNRECORDED,   commits=3,                left="EXECUTING", next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=4,                left="FAILED",    next="Failed",  effects=0),
    )),
    Command(name="execute", do=_execute, prepare=proposed, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="READY",     next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute(retry=True)", do=_execute, prepare=prepared("execute(retry=True)", fails=True), rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="FAILED",    next="Failed",  effects=0),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool is transactional", do=call, transactional=True, prepare=tables, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute, the tool is transactional", do=_execute, transactional=True,
            prepare=proposed_with_tables, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute, in the transaction of gate.transaction()", do=_execute_in_transaction, transactional=True,
            prepare=proposed_with_tables, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, in a transaction of the caller's own connection", do=_call_in_own_transaction,
            transactional=True, prepare=tables, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over a dead worker's action", do=call,
            prepare=prepared("take over a dead worker's action", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="UNKNOWN",   next="Unknown", effects=1),
    )),
    Command(name="take over, the tool is keyed", do=call, declared={"recovery": Keyed(hours=1)}, dedupes=True,
            prepare=prepared("take over, the tool is keyed", dies="before"), rows=(
        Row(killed=NONE,         commits=0, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=BEFORE_START, commits=1, reached=False, left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=2, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=2, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=3, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over, the tool can tell that it happened", do=call, probed=True,
            prepare=prepared("take over, the tool can tell that it happened", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Done",    effects=1),
        Row(killed=UNTOLD,       commits=1,                left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=2,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over, the tool can tell that it did not", do=call, probed=True,
            prepare=prepared("take over, the tool can tell that it did not", dies="before"), rows=(
        Row(killed=NONE,         commits=0, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=UNTOLD,       commits=1, reached=False, left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=UNSTARTED,    commits=2, reached=False, left="READY",     next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=3, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=3, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=4, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool checks its write", do=call, checked=True, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=UNCHECKED,    commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=3, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="reconcile, applied", do=partial(_reconcile, applied=True),
            prepare=prepared("reconcile, applied", dies="after", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="reconcile, not applied", do=partial(_reconcile, applied=False),
            prepare=prepared("reconcile, not applied", dies="before", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="abandon", do=_abandon, prepare=prepared("abandon", dies="after", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="ABANDONED", next="Unknown", effects=1),
    )),
    Command(name="sweep", do=_sweep, prepare=prepared("sweep", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="UNKNOWN",   next="Unknown", effects=1),
    )),
    Command(name="pause", do=_pause, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Refused", effects=0),
    )),
    Command(name="resume", do=_resume, prepare=_stopped, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Refused", effects=0),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="cancel", do=_cancel, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="REFUSED",   next="Done",    effects=1),
    )),
    Command(name="close_run", do=_close, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="REFUSED",   next="Refused", effects=0),
    )),
)
# fmt: on

BY_NAME = {command.name: command for command in COMMANDS}


def table() -> list[str]:
    """Write the table as docs/crashes.md has it."""
    lines = ["| command | killed | the record says | the next call says | effects in all |", "|---|---|---|---|---|"]
    for command in COMMANDS:
        for n, row in enumerate(command.rows):
            name = f"`{command.name.split(',')[0]}`" + "".join(f",{part}" for part in command.name.split(",")[1:])
            name = name if " " not in command.name.split(",")[0] else command.name
            lines.append(f"| {name if n == 0 else ''} | {row.killed} | {row.left} | {row.next} | {row.effects} |")
    return lines
