"""What a SIGKILL leaves behind, as data: how the commands of docs/crashes.md are given, and the tools they are about.

A row is found by how many of a command's commits had landed and by whether the effect had reached the world.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from sqlalchemy import text

import agentgate
from agentgate import Effect, Function, Gate, NoEffect, Probe, Run, Transactional
from agentgate.clock import Clock
from agentgate.gate.questions import Question
from agentgate.policy.loading import PolicySource
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
        policy: makes the policy of its gate, where that says more.
        also: what the record says beside a state, by a word and a query that counts it.
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
    policy: Callable[[World], PolicySource] | None = None
    also: tuple[str, str] | None = None
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

    def gate(self, world: World, *, clock: Clock | None = None, **options: Any) -> Gate:
        decision = agentgate.require_approval("big") if self.asks else agentgate.allow()
        policy = ScriptedPolicy(otherwise=decision) if self.policy is None else self.policy(world)
        return world.gate(self.tool(world, **options), policy=policy, clock=clock)

    @property
    def holds(self) -> bool:
        """Whether its policy asks people."""
        return self.asks or self.policy is not None

    def left(self, world: World) -> str:
        """Say what the record says of what the command is about."""
        if self.name == "run":
            rows = world.sql("SELECT state FROM agentgate_runs WHERE name = ?", FRESH)
        else:
            rows = world.sql("SELECT state FROM agentgate_actions WHERE key_text = ? ORDER BY revision LIMIT 1", KEY)
        state = str(rows[0][0]) if rows else "nothing"
        return state if self.also is None else f"{state}; {self.also[0]}: {world.value(self.also[1])}"

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


def execute(gate: Gate, _run: Run, action: str) -> agentgate.Outcome:
    return gate.execute(action, tenant="acme", retry=True)


def execute_in_transaction(gate: Gate, _run: Run, action: str) -> agentgate.Outcome:
    with gate.transaction() as connection:
        connection.execute(text("INSERT INTO orders VALUES (1)"))
        outcome = gate.execute(action, tenant="acme", connection=connection)
        connection.execute(text("INSERT INTO orders VALUES (2)"))
    return outcome


def call_in_own_transaction(gate: Gate, run: Run, _action: str) -> agentgate.Outcome:
    path = gate._shop.ledger.own.path
    with closing(sqlite.module().connect(str(path), isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders VALUES (1)")
        outcome = gate.call(run, "refund", ARGUMENTS, key=KEY, connection=connection)
        connection.commit()
    return outcome


def reconcile(gate: Gate, _run: Run, action: str, *, applied: bool) -> agentgate.Proposal:
    return gate.reconcile(action, applied=applied, by="ada", evidence="looked", tenant="acme")


def answer(gate: Gate, _run: Run, _action: str, *, verdict: Literal["again", "applied", "not_applied"]) -> Question:
    (question,) = gate.approvals.list(tenant="acme")
    return gate.approvals.answer(question.id, digest=question.digest, verdict=verdict, by="ada", tenant="acme")


def cancel(gate: Gate, _run: Run, action: str) -> agentgate.Proposal:
    return gate.cancel(action, by="ada", tenant="acme")


def edit(gate: Gate, _run: Run, action: str) -> agentgate.Proposal:
    (asked,) = (one for one in gate.approvals.list() if one.action == action)
    changed = {"account": ARGUMENTS["account"], "cents": 7}
    return gate.approvals.edit(asked.id, digest=asked.digest, arguments=changed, by="ada", tenant="acme")


def abandon(gate: Gate, _run: Run, action: str) -> agentgate.Proposal:
    return gate.abandon(action, by="ada", tenant="acme")


def pause(gate: Gate, _run: Run, _action: str = "") -> agentgate.Paused:
    return gate.pause(by="ada", reason="look first")


def resume(gate: Gate, _run: Run, _action: str) -> agentgate.Resumed:
    return gate.resume(by="ada")


def activate(gate: Gate, _run: Run, _action: str) -> agentgate.Activated:
    return gate.activate_policy(by="ada", note="from now on")


def sweep(gate: Gate, _run: Run, _action: str) -> agentgate.Swept:
    return gate.sweep()


def close(gate: Gate, run: Run, _action: str) -> None:
    gate.close_run(run, by="ada")


def proposed(_world: World, gate: Gate, run: Run) -> None:
    propose(gate, run)


def tables(world: World, _gate: Gate, _run: Run) -> None:
    world.sql("CREATE TABLE refunds (account TEXT, cents INTEGER)")
    world.sql("CREATE TABLE orders (id INTEGER)")


def proposed_with_tables(world: World, gate: Gate, run: Run) -> None:
    tables(world, gate, run)
    propose(gate, run)


def charge(_gate: Gate, run: Run, _action: str) -> None:
    run.charge(tokens=7)


def limit(gate: Gate, _run: Run, _action: str) -> agentgate.Allowance:
    return gate.limit({"actions": 100}, tenant="acme", by="ada")


def stopped(_world: World, gate: Gate, run: Run) -> None:
    propose(gate, run)
    pause(gate, run)
