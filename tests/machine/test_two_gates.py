"""A machine of rules against a small model: two gates on one file, several keys, crashes, time, people.

The model is in `support.model`; here its answers are compared with the gate's after every step.
"""

import os
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import agentgate
from agentgate import Effect, Held, KeyConflict, Keyed, Limits, NoEffect, NotPossible, PolicyRequest
from agentgate.testing import Downstream, FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import forking
from support.model import ANSWERS, CRASHES, ENDS, KEYS, LIMIT, SPANS, TOOLS, WINDOW, Model, resource
from support.worlds import grant, made, named, opened

DECISIONS = {"allow": agentgate.allow(), "deny": agentgate.deny("no"), "hold": agentgate.require_approval("ask")}
TOOL, KEY = st.sampled_from(TOOLS), st.sampled_from(KEYS)
GATE, ANSWER, END = st.integers(0, 1), st.sampled_from(ANSWERS), st.sampled_from(ENDS)


class TwoGates(RuleBasedStateMachine):
    """Do the same to the gate and to the model, and compare."""

    @initialize()
    def open(self) -> None:
        self.folder = TemporaryDirectory()
        self.world = made(Path(self.folder.name))
        self.clock = FakeClock()
        self.model = Model()
        self.answer, self.end = "allow", "done"
        policy = ScriptedPolicy(otherwise=self.decide)
        tools = [self.tool("once"), self.tool("keyed", recovery=Keyed(window=WINDOW))]
        self.gates = [self.world.gate(*tools, policy=policy, clock=self.clock) for _ in range(2)]
        self.run = opened(self.gates[0], limits=Limits(actions=LIMIT))

    def teardown(self) -> None:
        if not hasattr(self, "gates"):
            return
        for gate in self.gates:
            gate.close()
        self.world.sql("DELETE FROM agentgate_switches")  # thrown behind the record's back: no event says so
        assert not self.world.damage()
        self.folder.cleanup()

    @property
    def downstream(self) -> Downstream:
        return Downstream(self.world.folder / "downstream.db", dedupes=True)

    def decide(self, _request: PolicyRequest) -> agentgate.Decision:
        return DECISIONS[self.answer]

    def tool(self, name: str, **declared: object) -> AnyTool:
        def act(key: str, resource: str, *, effect: Effect) -> str:
            if self.end == "crash_before":
                forking.die()
            if self.end == "clean":
                raise NoEffect("nothing was sent")
            if self.end != "lost_before":
                self.downstream.apply(effect, resource=f"{name} {key} {resource}")
            if self.end == "crash_after":
                forking.die()
            if self.end != "done":
                raise ConnectionResetError
            return "done"

        return named(name, act, resource="{resource}", **declared)

    # --- rules -----------------------------------------------------------------------------------

    def set(self, answer: str, end: str = "done") -> None:
        """Say what the policy and the effect do next."""
        self.answer, self.end = answer, end

    def arguments(self, tool: str, key: str) -> dict[str, str]:
        return {"key": key, "resource": resource(tool, key)}

    def id(self, tool: str, key: str) -> str:
        """Find the newest action of a key, where there is one."""
        sql = "SELECT id FROM agentgate_actions WHERE tool = ? AND key_text = ? ORDER BY revision DESC LIMIT 1"
        rows = self.world.sql(sql, tool, key)
        return str(rows[0][0]) if rows else ""

    @rule(gate=GATE, tool=TOOL, key=KEY, answer=ANSWER)
    def propose(self, gate: int, tool: str, key: str, answer: str) -> None:
        self.set(answer)
        new = self.model.propose(tool, key, answer)
        proposal = self.gates[gate].propose(self.run, tool, self.arguments(tool, key), key=key)
        assert proposal.repeated != new
        assert proposal.state == self.model.newest(tool, key).state

    @rule(gate=GATE, tool=TOOL, key=KEY, answer=ANSWER, end=END, retry=st.booleans())
    def call(self, *, gate: int, tool: str, key: str, answer: str, end: str, retry: bool) -> None:
        self.set(answer, end)
        told = self.model.call(tool, key, answer, end, retry=retry)
        outcome = self.gates[gate].call(self.run, tool, self.arguments(tool, key), key=key, retry=retry)
        assert said(outcome) == told, outcome

    @rule(gate=GATE, tool=TOOL, key=KEY, answer=ANSWER, end=END, retry=st.booleans())
    def execute(self, *, gate: int, tool: str, key: str, answer: str, end: str, retry: bool) -> None:
        action, found = self.model.newest(tool, key), self.id(tool, key)
        if not found:
            return
        self.set(answer, end)
        self.model.execute(action, answer, end, retry=retry)
        outcome = self.gates[gate].execute(found, tenant="acme", retry=retry)
        assert said(outcome) == self.model.told(action), outcome

    call_again = call  # rules are drawn evenly, and this is what loops do
    call_once_more = call

    @rule(gate=GATE, tool=TOOL, key=KEY, answer=ANSWER, end=st.sampled_from(CRASHES))
    def call_in_a_process_that_dies(self, gate: int, tool: str, key: str, answer: str, end: str) -> None:
        """The effect kills its process; where none is entered, the process ends by itself."""
        self.set(answer, end)
        self.model.call(tool, key, answer, end, retry=False)
        dies = self.model.newest(tool, key).state == "EXECUTING"
        call = partial(self.gates[gate].call, self.run, tool, self.arguments(tool, key), key=key)
        assert forking.run(call) == (forking.KILLED if dies else 0)

    @rule(gate=GATE, tool=TOOL, key=KEY)
    def cancel(self, gate: int, tool: str, key: str) -> None:
        found = self.id(tool, key)
        if not found:
            return
        if self.model.cancel(self.model.newest(tool, key)):
            assert self.gates[gate].cancel(found, by="ada", tenant="acme").state == "REFUSED"
        else:
            with pytest.raises(NotPossible):
                self.gates[gate].cancel(found, by="ada", tenant="acme")

    @rule(gate=GATE, tool=TOOL, key=KEY)
    def reconcile(self, gate: int, tool: str, key: str) -> None:
        action, found = self.model.newest(tool, key), self.id(tool, key)
        if not found:
            return
        say = partial(self.gates[gate].reconcile, found, by="ada", evidence="looked", tenant="acme")
        if self.model.reconcile(action):
            assert say(applied=action.happened).state == action.state
        else:
            with pytest.raises(NotPossible):
                say(applied=action.happened)

    @rule(gate=GATE, tool=TOOL, key=KEY)
    def people_agree(self, gate: int, tool: str, key: str) -> None:
        action = self.model.newest(tool, key)
        if action.state != "HELD":
            return
        self.model.expire(action)
        held = self.gates[gate].execute(self.id(tool, key), tenant="acme")
        assert said(held) == self.model.told(action)
        if isinstance(held, Held):
            self.model.agree(action)
            grant(self.gates[gate], held)

    people_agree_again = people_agree

    @rule(gate=GATE, tool=TOOL, key=KEY)
    def other_arguments_conflict(self, gate: int, tool: str, key: str) -> None:
        if self.id(tool, key):
            with pytest.raises(KeyConflict):
                self.gates[gate].propose(self.run, tool, {"key": key, "resource": "another"}, key=key)

    @rule(gate=GATE, tool=TOOL, key=KEY)
    def an_invalid_input_binds_nothing(self, gate: int, tool: str, key: str) -> None:
        outcome = self.gates[gate].call(self.run, tool, {"key": 7}, key=key)
        assert said(outcome) == "Refused"

    @rule(paused=st.sampled_from((False, False, True)))
    def throw_the_switch(self, *, paused: bool) -> None:
        self.model.paused = paused
        self.world.pause(paused=paused)

    @rule(span=st.sampled_from(SPANS))
    def time_passes(self, span: timedelta) -> None:
        self.model.now += span
        self.clock.advance(span)

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def every_action_stands_where_the_model_has_it(self) -> None:
        for (tool, key), action in self.model.actions.items():
            found = self.id(tool, key)
            assert (self.world.state(found) if found else "NONE") == action.state, (tool, key)

    @invariant()
    def every_effect_happened_as_often_as_it_may(self) -> None:
        arrivals = self.downstream.arrivals
        assert sorted(one.resource for one in arrivals if one.verdict == "applied") == sorted(self.model.effects)
        repeated = {one.resource.split()[0] for one in arrivals if one.verdict != "applied"}
        assert repeated <= {"keyed"}  # what is not declared to be repeatable never asks twice

    @invariant()
    def the_counters_are_those_of_the_actions(self) -> None:
        row = self.world.sql("SELECT taken, pending, unknown, executing FROM agentgate_runs WHERE name = 'ticket-1'")
        states = [action.state for action in self.model.actions.values()]
        taken = sum(state in {"EXECUTING", "UNKNOWN", "SUCCEEDED"} for state in states)
        assert row == [(taken, *(states.count(state) for state in ("HELD", "UNKNOWN", "EXECUTING")))]
        assert taken <= LIMIT


def said(outcome: agentgate.Outcome) -> str:
    """Name an outcome as the model does."""
    name = type(outcome).__name__
    return f"{name}, retryable" if name == "Refused" and outcome.retryable else name  # type: ignore[union-attr]


TestTwoGates = TwoGates.TestCase
TestTwoGates.settings = settings(
    max_examples=int(os.environ.get("AGENTGATE_MACHINES", "60")), stateful_step_count=60, deadline=None
)
