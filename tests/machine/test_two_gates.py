"""A machine of rules against a small model: two gates on one file, several keys, crashes, time, budgets, people.

The model is in `support.model`; here its answers are compared with the gate's after every step.
"""

import os
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import agentgate
from agentgate import Effect, Held, KeyConflict, Keyed, Limits, NoEffect, NotPossible, PolicyRequest
from agentgate.testing import Downstream, FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import forking
from support.model import (
    ANSWERS,
    BOUNDS,
    CRASHES,
    ENDS,
    KEYS,
    LATES,
    LIMIT,
    LOST,
    RETRIES,
    SCOPES,
    SPANS,
    TAKEN,
    TOOLS,
    WINDOW,
    Model,
    resource,
)  # fmt: skip
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
        self.downstream = Downstream(self.world.folder / "downstream.db", dedupes=True)
        self.clock = FakeClock()
        self.model = Model()
        self.answer, self.end = "allow", "done"
        policy = ScriptedPolicy(otherwise=self.decide)
        tools = [self.tool("once"), self.tool("keyed", recovery=Keyed(window=WINDOW))]
        self.gates = [self.world.gate(*tools, policy=policy, clock=self.clock) for _ in range(2)]
        self.run = opened(self.gates[0], limits=Limits(actions=LIMIT, retries=RETRIES))

    def teardown(self) -> None:
        if not hasattr(self, "gates"):
            return
        for gate in self.gates:
            gate.close()
        assert not self.world.damage()
        self.folder.cleanup()

    def decide(self, _request: PolicyRequest) -> agentgate.Decision:
        return DECISIONS[self.answer]

    def tool(self, name: str, **declared: object) -> AnyTool:
        def act(key: str, resource: str, *, effect: Effect) -> str:
            if self.end == "crash_before":
                forking.die()
            if self.end == "clean":
                raise NoEffect("nothing was sent")
            if self.end in LATES:
                self.overtake(effect)
            if self.end != "lost_before":
                self.downstream.apply(effect, resource=f"{name} {key} {resource}")
            if self.end == "crash_after":
                forking.die()
            if self.end != "done" and self.end not in LATES:
                raise ConnectionResetError
            return "done"

        return named(name, act, resource="{resource}", timeout=600, **declared)

    def overtake(self, effect: Effect) -> None:
        """While an effect is at work its lease ends, a sweep comes by, and people say what is true."""
        self.clock.advance(LOST)
        self.gates[0].sweep()
        if self.end == "late" or self.downstream.effects.get(effect.idempotency_key):
            return
        looked = partial(self.gates[1].reconcile, applied=False, attempt=effect.attempt, evidence="looked")
        looked(effect.action_id, by="ada", tenant="acme")
        if self.end == "late_cancelled":
            self.gates[1].cancel(effect.action_id, by="ada", tenant="acme")

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

    @rule(gate=GATE, calls=st.lists(st.tuples(TOOL, KEY), min_size=1, max_size=4), answer=ANSWER)
    def propose_many(self, gate: int, calls: list[tuple[str, str]], answer: str) -> None:
        self.set(answer)
        new = [self.model.propose(tool, key, answer) for tool, key in calls]
        batch = [agentgate.Call(tool, self.arguments(tool, key), key=key) for tool, key in calls]
        proposals = self.gates[gate].propose_many(self.run, batch)
        assert [not proposal.repeated for proposal in proposals] == new
        assert [proposal.state for proposal in proposals] == [self.model.newest(*call).state for call in calls]

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
    call_for_good = call

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

    @rule(gate=GATE, tool=TOOL, key=KEY, asked=st.booleans())
    def reconcile(self, *, gate: int, tool: str, key: str, asked: bool) -> None:
        action, found = self.model.newest(tool, key), self.id(tool, key)
        if not found:
            return
        say = partial(self.gates[gate].reconcile, found, by="ada", evidence="looked", tenant="acme")
        if self.model.reconcile(action):
            if not (asked and self.answer_question(gate, found, applied=action.happened)):
                say(applied=action.happened)
            assert self.world.state(found) == action.state
        else:
            with pytest.raises(NotPossible):
                say(applied=action.happened)

    def answer_question(self, gate: int, action: str, *, applied: bool) -> bool:
        """Say what happened as the answer to a question, where one waits; tell whether one did."""
        approvals = self.gates[gate].approvals
        found = [one for one in approvals.list(tenant="acme", kind="question") if one.action == action]
        if not found:
            return False
        verdict: Literal["applied", "not_applied"] = "applied" if applied else "not_applied"
        approvals.answer(
            found[0].id, digest=found[0].digest, verdict=verdict, by="ada", evidence="looked", tenant="acme"
        )
        return True

    @rule(gate=GATE, tool=TOOL, key=KEY)
    def abandon(self, gate: int, tool: str, key: str) -> None:
        found = self.id(tool, key)
        if not found:
            return
        if self.model.abandon(self.model.newest(tool, key)):
            assert self.gates[gate].abandon(found, by="ada", tenant="acme").state == "ABANDONED"
        else:
            with pytest.raises(NotPossible):
                self.gates[gate].abandon(found, by="ada", tenant="acme")

    def questions_over(self) -> int:
        """Count the questions to operators that nobody answered in time: they leave the action where it is."""
        sql = "SELECT count(*) FROM agentgate_approvals WHERE kind = 'question' AND state = 'expired'"
        return int(self.world.value(sql))

    @rule(gate=GATE)
    def sweep(self, gate: int) -> None:
        ended = self.questions_over()
        swept, told = self.gates[gate].sweep(), self.model.sweep()
        over = swept.changed - swept.crashed - swept.asked - (self.questions_over() - ended)
        assert (swept.crashed, over, swept.damaged) == (*told, ())

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

    @rule(gate=GATE, scope=st.sampled_from(SCOPES), pauses=st.sampled_from((False, False, True)))
    def throw_the_switch(self, *, gate: int, scope: dict[str, str], pauses: bool) -> None:
        if pauses:
            self.pause(gate, scope)
        else:
            self.resume(gate, self.model.paused[0] if self.model.paused else scope)

    def pause(self, gate: int, scope: dict[str, str]) -> None:
        if "tool" in scope and not any(self.id(scope["tool"], key) for key in KEYS):
            return  # no such tool as far as the ledger knows
        paused = self.gates[gate].pause(by="ada", reason="look first", **scope)
        executing = [one for one in self.model.actions.values() if one.state == "EXECUTING"]
        assert len(paused.executing) == sum(one.tool == scope.get("tool", one.tool) for one in executing)
        assert paused.changed == (scope not in self.model.paused)
        if paused.changed:
            self.model.paused.append(scope)

    def resume(self, gate: int, scope: dict[str, str]) -> None:
        resumed = self.gates[gate].resume(by="ada", **scope)
        assert resumed.changed == (scope in self.model.paused)
        if resumed.changed:
            self.model.paused.remove(scope)
        assert len(resumed.paused) == len(self.model.paused)

    @rule(gate=GATE, most=st.sampled_from(BOUNDS))
    def bound_the_tenant(self, gate: int, most: dict[str, int]) -> None:
        self.model.most = most
        allowance = self.gates[gate].limit(most, tenant="acme", by="ada")
        assert (allowance.most, allowance.used) == (most, {name: self.model.used()[name] for name in most})

    @rule(tokens=st.integers(1, 3))
    def charge(self, tokens: int) -> None:
        self.model.tokens += tokens
        self.run.charge(tokens=tokens)

    @rule(span=st.sampled_from(SPANS))
    def time_passes(self, span: timedelta) -> None:
        self.model.now += span
        self.clock.advance(span)

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def every_action_stands_where_the_model_has_it(self) -> None:
        rows = self.world.sql("SELECT tool, key_text, state FROM agentgate_actions ORDER BY revision")
        found = {(tool, key): state for tool, key, state in rows}  # the newest revision's
        for place, action in self.model.actions.items():
            assert found.get(place, "NONE") == action.state, place

    @invariant()
    def every_effect_happened_as_often_as_it_may(self) -> None:
        arrivals = self.downstream.arrivals
        assert sorted(one.resource for one in arrivals if one.verdict == "applied") == sorted(self.model.effects)
        repeated = {one.resource.split()[0] for one in arrivals if one.verdict != "applied"}
        assert repeated <= {"keyed"}  # what is not declared to be repeatable never asks twice

    @invariant()
    def the_counters_are_those_of_the_actions(self) -> None:
        columns = "taken, tokens, retried, pending, unknown, executing"
        row = self.world.sql(f"SELECT {columns} FROM agentgate_runs WHERE name = 'ticket-1'")
        states = [action.state for action in self.model.actions.values()]
        taken = sum(state in TAKEN for state in states)
        counted = (states.count(state) for state in ("HELD", "UNKNOWN", "EXECUTING"))
        assert row == [(taken, self.model.tokens, self.model.retried, *counted)]
        assert taken <= LIMIT

    @invariant()
    def what_the_tenant_has_used_is_what_its_runs_have(self) -> None:
        rows = self.world.sql("SELECT measure, most, used FROM agentgate_budgets ORDER BY measure")
        used = self.model.used()
        assert rows == [(measure, most, used[measure]) for measure, most in sorted(self.model.most.items())]


def said(outcome: agentgate.Outcome) -> str:
    """Name an outcome as the model does."""
    name = type(outcome).__name__
    return f"{name}, retryable" if name == "Refused" and outcome.retryable else name  # type: ignore[union-attr]


TestTwoGates = TwoGates.TestCase
TestTwoGates.settings = settings(
    max_examples=int(os.environ.get("AGENTGATE_MACHINES", "75")), stateful_step_count=60, deadline=None
)
