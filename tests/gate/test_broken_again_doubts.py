"""What was told of a doubt, or asked about one, and was not so: each once, by a test that failed."""

import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import agentgate
from agentgate import Done, Effect, Function, NotApplied, SealingKey, ToolError, Unknown
from agentgate.errors import Misuse, NotCanonical, NotPossible, Sealed
from agentgate.testing import FakeClock
from agentgate.tools.decorator import AnyTool
from support import forking
from support.single import until
from support.worlds import World, named, opened

CALL = {"card": "4000-0012-3456-7899"}


def test_a_probe_is_not_asked_about_arguments_whose_key_is_not_there(world: World) -> None:
    asked: list[Any] = []
    tries: list[int] = []

    def pay(card: str, *, effect: Effect) -> None:  # noqa: ARG001 - the tool's form
        tries.append(effect.attempt)
        raise ConnectionResetError

    def find(_effect: Effect, arguments: Any) -> NotApplied:
        asked.append(arguments)
        return NotApplied(evidence="no such payment")

    def tool() -> AnyTool:
        probe = Function(call=find, name="find", version="1")
        return named("pay", pay, sensitive=["/card"], recovery=agentgate.Probe(), probe=probe)

    first, second = SealingKey.new(), SealingKey.new()
    with world.gate(tool(), sealing=first) as gate:
        unknown = gate.call(opened(gate), "pay", CALL, key="k")
    with world.gate(tool(), sealing=second) as gate:
        assert gate.sweep().probed == 0
        with pytest.raises(Sealed):
            gate.execute(unknown.action, tenant="acme")
    assert asked == []
    assert world.words(unknown.action) == ["proposed", "started", "in_doubt"]
    with world.gate(tool(), sealing=agentgate.SealingKeys(second, (first,))) as gate:
        assert gate.sweep().probed == 1
    assert asked == [CALL]
    assert tries == [1]
    assert not agentgate.verify(world.url, sealing=agentgate.SealingKeys(second, (first,))).breaks


def test_asked_again_an_unknown_outcome_tells_all_that_it_told_before(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def pay(account: str) -> str:
        entered.set()
        leave.wait(60)
        raise ToolError("conflict", f"the bank has {account} twice", effect="unknown")

    def cannot_tell(_effect: Effect, _arguments: Any) -> None:
        return None

    probe = Function(call=cannot_tell, name="look", version="1")
    with world.gate(named("pay", pay, recovery=agentgate.Probe(), probe=probe, timeout=0.05)) as gate:
        action = gate.call(opened(gate), "pay", {"account": "a1"}, key="slow").action
        leave.set()
        until(lambda: "late" in world.words(action))
        late = [gate.execute(action, tenant="acme") for _ in range(2)]
    with world.gate(named("pay", pay, recovery=agentgate.Probe(), probe=probe)) as gate:
        gate.call(
            opened(gate, "ticket-2"), "pay", {"account": "a2"}, key="quick"
        )  # then it is probed, and people asked
        told = [gate.call(opened(gate, "ticket-2"), "pay", {"account": "a2"}, key="quick") for _ in range(3)]
    for outcome in late:
        assert isinstance(outcome, Unknown)
        assert [(one.attempt, one.status, one.code) for one in outcome.late] == [(1, "error", "conflict")]
    for outcome in told:
        assert isinstance(outcome, Unknown)
        assert outcome == told[0]
        assert "the bank has a2 twice" in repr(outcome.error.details)


def test_a_child_of_a_process_does_not_take_its_parents_threads_for_its_own(world: World, clock: FakeClock) -> None:
    leave = threading.Event()

    def pay(account: str, *, effect: Effect) -> str:
        if effect.attempt == 1:
            leave.wait(60)
        return account

    probe = Function(call=lambda *_: False, name="look", version="1")
    tool = named("pay", pay, recovery=agentgate.Probe(), probe=probe, timeout=0.05)
    with world.gate(tool, clock=clock) as gate:
        unknown = gate.call(opened(gate), "pay", {"account": "a1"}, key="k")

        def go_on() -> None:
            clock.advance(timedelta(minutes=2))
            with world.gate(tool, clock=clock) as own:
                assert isinstance(own.execute(unknown.action, tenant="acme"), Done)

        ended = forking.run(go_on)
        leave.set()
    assert ended == 0


def test_what_is_refused_and_in_doubt_is_not_said_to_be_known(world: World) -> None:
    leave = threading.Event()

    def pay(account: str) -> str:
        leave.wait(60)
        return account

    with world.gate(named("pay", pay, timeout=0.05)) as gate:
        action = gate.call(opened(gate), "pay", {"account": "a1"}, key="k").action
        gate.reconcile(action, applied=False, by="ops:ada", evidence="the bank has nothing", tenant="acme")
        gate.cancel(action, by="ops:ada", tenant="acme")
        leave.set()
        until(lambda: world.words(action)[-1] == "late")
        with pytest.raises(NotPossible, match="say what happened with: reconcile"):
            gate.abandon(action, by="ops:ada", tenant="acme")
        gate.reconcile(action, applied=True, by="ops:ada", evidence="it is there now", tenant="acme")
        with pytest.raises(NotPossible, match="its outcome is known"):
            gate.abandon(action, by="ops:ada", tenant="acme")


def test_what_is_wrong_with_a_finding_is_said_by_its_name_and_nothing_of_it_is_dropped(world: World) -> None:
    def lost() -> None:
        raise ConnectionResetError

    with world.gate(named("lost", lost)) as gate:
        action = gate.call(opened(gate), "lost", {}).action
        say = partial(gate.reconcile, action, by="ops:ada", tenant="acme")
        with pytest.raises(NotCanonical, match=r"^/evidence/seen: not_finite; "):
            say(applied=True, evidence={"seen": float("nan")})
        with pytest.raises(NotCanonical, match=r"^/result: type; "):
            say(applied=True, evidence="the bank", result=object())
        with pytest.raises(Misuse, match=r"^result: there is none of what did not happen; "):
            say(applied=False, evidence="the bank", result={"cents": 5})
    assert world.words(action) == ["proposed", "started", "in_doubt", "question_asked"]
