"""Whatever a gate writes is whole, and whatever is then changed in it is found."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgate
from agentgate import Gate, KeyConflict, Limits, NoEffect, NotPossible, RunConflict, ToolError
from agentgate.testing import FakeClock, ScriptedPolicy
from support.edits import PROVED, TABLES, Copy, Refused, others
from support.worlds import World, grant, made, named

ACCOUNTS, KEYS, RUNS = ("a", "b"), (None, "k", "l"), ("one", "two")
ENDS: dict[str, Callable[[], Any]] = {
    "well": lambda: "done",
    "clean": lambda: _raise(NoEffect("nothing yet")),
    "refused": lambda: _raise(ToolError("not_found", "nobody of this name")),
    "doubt": lambda: _raise(RuntimeError("connection lost")),
}


def _raise(error: Exception) -> None:
    raise error


@dataclass
class Play:
    """A gate, and what a random hand does with it."""

    gate: Gate
    policy: ScriptedPolicy
    clock: FakeClock
    ends: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)

    def pay(self, account: str, cents: int = 1) -> dict[str, Any]:
        return {"account": account, "cents": cents, "end": self._end()}

    def look(self, account: str) -> dict[str, Any]:
        return {"account": account, "end": self._end()}

    def _end(self) -> str:
        return str(ENDS[self.ends.pop() if self.ends else "well"]())

    def step(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        deeds = (self.call, self.call, self.propose, self.execute, self.command, self.time, self.close)
        # What the rules of keys and states refuse leaves the record as it was.
        with suppress(KeyConflict, NotPossible, RunConflict):
            draw(st.sampled_from(deeds))(draw)

    def call(self, draw: Any) -> None:
        self.ends.append(draw(st.sampled_from(list(ENDS))))
        self.actions.append(self.gate.call(self._run(draw), *self._call(draw), **self._given(draw)).action)
        self.ends.clear()

    def propose(self, draw: Any) -> None:
        supersede = draw(st.booleans())
        proposed = self.gate.propose(self._run(draw), *self._call(draw), **self._given(draw), supersede=supersede)
        self.actions.append(proposed.action)

    def execute(self, draw: Any) -> None:
        if self.actions:
            self.ends.append(draw(st.sampled_from(list(ENDS))))
            held = self.gate.execute(self._action(draw), tenant="acme", retry=draw(st.booleans()))
            if isinstance(held, agentgate.Held) and draw(st.booleans()):
                grant(self.gate, held)
            self.ends.clear()

    def command(self, draw: Any) -> None:
        if not self.actions:
            return
        if draw(st.booleans()):
            self.gate.cancel(self._action(draw), by="ada", tenant="acme")
        else:
            applied = draw(st.booleans())
            result = {"seen": 1} if applied and draw(st.booleans()) else None
            self.gate.reconcile(
                self._action(draw), applied=applied, by="ada", evidence=[1], result=result, tenant="acme"
            )

    def time(self, draw: Any) -> None:
        self.clock.advance(draw(st.sampled_from([timedelta(minutes=2), timedelta(hours=2), timedelta(days=2)])))
        self.clock.jump(draw(st.sampled_from([timedelta(0), -timedelta(days=1)])))

    def close(self, draw: Any) -> None:
        if draw(st.integers(0, 5)) == 0:
            self.gate.close_run(self._run(draw), by="ada")

    def _run(self, draw: Any) -> Any:
        name = draw(st.sampled_from(RUNS))
        limits = Limits(actions=4, failures=2, pending=1, wall=timedelta(days=3)) if name == "two" else None
        return self.gate.run(name, tenant="acme", principal="agent:a", limits=limits)

    def _call(self, draw: Any) -> tuple[str, object]:
        answers = [agentgate.allow(), agentgate.deny("no", "no"), agentgate.require_approval("ask")]
        self.policy.say(*draw(st.lists(st.sampled_from([*answers, *answers, agentgate.abort("end")]), max_size=2)))
        account = draw(st.sampled_from(ACCOUNTS))
        values = [{"account": account}, {"account": account, "cents": 2}, {"cents": 1}, b'{ "account": "a"}', "{"]
        return draw(st.sampled_from(["pay", "pay", "look", "none"])), draw(st.sampled_from(values))

    def _given(self, draw: Any) -> dict[str, Any]:
        return {"key": draw(st.sampled_from(KEYS)), "provenance": draw(st.sampled_from([None, {"turn": 1}]))}

    def _action(self, draw: Any) -> str:
        return str(draw(st.sampled_from(self.actions)))


def _played(world: World, data: st.DataObject) -> None:
    policy, clock = ScriptedPolicy(facts=("freeze",)), FakeClock()
    play = Play(gate=None, policy=policy, clock=clock)  # type: ignore[arg-type]  # opened with the play's own tools
    tools = (
        named("pay", play.pay, resource="account:{account}", recovery=agentgate.Keyed(hours=1)),
        named("look", play.look, risk="read_only", resource="account:{account}"),
    )
    with world.gate(*tools, policy=policy, clock=clock, facts={"freeze": lambda _: False}) as gate:
        play.gate = gate
        for _ in range(data.draw(st.integers(1, 14))):
            play.step(data.draw)


@given(data=st.data())
@settings(max_examples=25)
def test_what_a_gate_writes_is_whole_and_an_edit_of_it_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("played")
    world = made(folder, journal="delete")
    _played(world, data)
    found = agentgate.verify(world.url)
    assert found.ok, found.breaks
    copy = Copy(original=world.path, path=folder / "copy.db")
    for _ in range(4):
        _edit(copy.fresh(), data)


def _edit(copy: Copy, data: st.DataObject) -> None:
    name, _, column = data.draw(st.sampled_from(PROVED)).partition(".")
    rows = copy.rows(name)
    if not rows:
        return
    row = data.draw(st.sampled_from(rows))
    value = data.draw(st.sampled_from(list(others(name, TABLES[name].columns[column], row[column]))))
    try:
        copy.set(name, column, row["rowid"], value)
    except Refused:
        return
    # A tenant's key is proved by what was made with it; before that nothing rests on it (docs/format.md).
    unproved = (
        name == "tenants" and column == "fingerprint_key" and not any(one["request"] for one in copy.rows("actions"))
    )
    assert not copy.verify().ok or (unproved and value is not None), f"{name}.{column}"
