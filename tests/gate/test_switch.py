"""The kill switch: what is paused starts nothing, loses nothing, and goes on where it is resumed."""

import threading
from typing import Any

import pytest

import agentgate
from agentgate import Done, Gate, Misuse, NotFound, Outcome, Refused, Run, Scope, Unknown
from agentgate.testing import ScriptedPolicy
from support.worlds import World, grant, named, opened

ONE = {"account": "a1", "cents": 5}
WHO: dict[str, Any] = {"by": "ops:ada", "reason": "the bank is on fire"}


def look(account: str) -> str:
    return account


def _gate(world: World, **options: Any) -> Gate:
    return world.gate(world.refund(), named("look", look, risk="read_only"), **options)


def _called(gate: Gate, run: Run, tool: str) -> Outcome:
    return gate.call(run, tool, ONE if tool == "refund" else {"account": "a1"})


def _is_paused(outcome: Outcome) -> bool:
    return isinstance(outcome, Refused) and outcome.reason == "paused"


@pytest.mark.parametrize(
    ("scope", "stopped"),
    [
        ({}, {"acme refund", "acme look", "umbrella refund", "umbrella look"}),
        ({"tenant": "acme"}, {"acme refund", "acme look"}),
        ({"tool": "refund"}, {"acme refund", "umbrella refund"}),
        ({"tool": "refund", "tenant": "acme"}, {"acme refund"}),
        ({"tool": "look"}, {"acme look", "umbrella look"}),
    ],
)
def test_a_pause_stops_its_scope_and_nothing_else(world: World, scope: dict[str, str], stopped: set[str]) -> None:
    with _gate(world) as gate:
        runs = {tenant: opened(gate, tenant=tenant) for tenant in ("acme", "umbrella")}
        paused = gate.pause(**WHO, **scope)
        assert paused.scope == Scope(**scope)
        assert paused.changed
        met = {
            f"{tenant} {tool}"
            for tenant, run in runs.items()
            for tool in ("refund", "look")
            if _is_paused(_called(gate, run, tool))
        }
        assert met == stopped
        assert gate.resume(by="ops:ada", **scope).changed
        assert all(isinstance(_called(gate, run, "look"), Done) for run in runs.values())
    assert not world.damage()


def test_what_was_paused_runs_under_its_key_once_it_is_resumed_and_once_only(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        gate.pause(**WHO)
        first, *again = (gate.call(run, "refund", ONE, key="k1") for _ in range(3))
        for outcome in (first, *again):
            assert isinstance(outcome, Refused)
            assert (outcome.action, outcome.reason, outcome.retryable) == (first.action, "paused", True)
        assert world.words(first.action) == ["proposed", "waited"]
        assert world.downstream.total == 0
        gate.resume(by="ops:ada")
        assert isinstance(gate.call(run, "refund", ONE, key="k1"), Done)
        assert isinstance(gate.call(run, "refund", ONE, key="k1"), Done)
    assert world.downstream.total == 1
    assert not world.damage()


def test_a_loop_is_told_to_come_back_with_the_same_call(world: World) -> None:
    with _gate(world) as gate:
        gate.pause(**WHO)
        told = gate.call(opened(gate), "refund", ONE).observation
    assert told.error is not None
    assert told.error.message == "an operator has paused this; nothing was done, and nothing is lost"
    assert told.error.suggested_action == "do not repeat it now; make the same call again once it is resumed"


def test_an_approval_that_was_given_stands_while_it_is_paused(world: World) -> None:
    with _gate(world, policy=ScriptedPolicy(otherwise=agentgate.require_approval("big"))) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k1")
        assert isinstance(held, agentgate.Held)
        grant(gate, held)
        gate.pause(**WHO)
        assert _is_paused(gate.execute(held.action, tenant="acme"))
        gate.resume(by="ops:ada")
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)


def test_an_outcome_that_is_unknown_is_not_tried_again_while_it_is_paused(world: World) -> None:
    ways = ["lost", "lost"]

    def fetch() -> str:
        if ways:
            ways.pop()
            raise RuntimeError("the connection broke")
        return "found"

    with world.gate(named("fetch", fetch, recovery=agentgate.Repeat())) as gate:
        run = opened(gate)
        first = gate.call(run, "fetch", {}, key="k1")
        gate.pause(**WHO)
        unknown = gate.call(run, "fetch", {}, key="k1")
        assert isinstance(unknown, Unknown)
        assert len(ways) == 1
        assert world.words(first.action)[-1] == "waited"
        gate.resume(by="ops:ada")
        ways.clear()
        assert isinstance(gate.call(run, "fetch", {}, key="k1"), Done)


def test_pausing_what_is_paused_is_recorded_once(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
        first = gate.pause(**WHO)
        again = gate.pause(by="ops:bob", reason="me too")
        assert (again.changed, again.since) == (False, first.since)
        assert gate.resume(by="ops:bob").changed
        assert not gate.resume(by="ops:bob").changed
        assert not gate.resume(by="ops:bob", tenant="acme").changed
        assert gate.pause(**WHO).since > first.since
    assert [event.body["paused"] for event in world.events() if event.type == "switched"] == [True, False, True]
    assert not world.damage()


def test_the_record_says_who_paused_what_and_why(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
        gate.pause(**WHO, tool="refund", tenant="acme")
        ledger = gate.ledger
    (event,) = (event for event in world.events() if event.type == "switched")
    assert event.run == ledger
    assert event.body["scope"] == {"kind": "tool", "tenant": "acme", "namespace": "", "tool": "refund"}
    assert (event.body["by"], event.body["paused"]) == ("ops:ada", True)
    content = world.value(
        "SELECT content FROM agentgate_payloads WHERE run = ? AND n = ? AND kind = 'texts'", ledger, event.n
    )
    assert bytes(content) == b'{"reason":"the bank is on fire"}'


def test_a_resume_says_what_is_paused_still(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
        gate.pause(**WHO, tool="refund")
        gate.pause(**WHO)
        resumed = gate.resume(by="ops:ada")
        assert resumed.paused == (Scope(tool="refund"),)
        assert _is_paused(gate.call(opened(gate), "refund", ONE))
        assert gate.resume(by="ops:ada", tool="refund").paused == ()


@pytest.mark.parametrize(
    ("scope", "kind"), [({"tenant": "acmee"}, "tenant"), ({"tool": "refnud"}, "tool"), ({"tool": "x" * 99}, "tool")]
)
def test_a_misspelt_scope_is_no_pause_and_says_so(world: World, scope: dict[str, str], kind: str) -> None:
    with _gate(world) as gate:
        opened(gate)
        with pytest.raises(NotFound) as caught:
            gate.pause(**WHO, **scope)
    assert caught.value.kind == kind
    assert not world.sql("SELECT * FROM agentgate_switches")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"reason": " \n"}, "reason"),
        ({"by": ""}, "by"),
        ({"tenant": "$ledger"}, "tenant"),
        ({"tool": ""}, "tool"),
        ({"namespace": "bank"}, "namespace"),
        ({"tool": 7}, "tool"),
    ],
)
def test_a_pause_that_cannot_be_recorded_names_the_field(world: World, given: dict[str, Any], field: str) -> None:
    with _gate(world) as gate, pytest.raises(Misuse, match=f"^{field}: "):
        gate.pause(**WHO | given)


def test_a_tool_that_another_gate_registered_can_be_paused(world: World) -> None:
    with _gate(world):
        pass
    with world.gate(named("other", look)) as gate:
        run = opened(gate)
        gate.pause(**WHO, tool="refund")
        assert isinstance(gate.call(run, "other", {"account": "a1"}), Done)


def test_a_pause_reports_what_executes_within_its_scope(world: World) -> None:
    entered, leave = threading.Semaphore(0), threading.Event()

    def stay(account: str) -> str:
        entered.release()
        assert leave.wait(30)
        return account

    with world.gate(named("stay", stay), named("other", stay)) as gate:
        runs = {tenant: opened(gate, tenant=tenant) for tenant in ("acme", "umbrella")}
        begun = [(tenant, tool) for tenant in runs for tool in ("stay", "other")]
        threads = [threading.Thread(target=gate.call, args=(runs[of], tool, {"account": "a"})) for of, tool in begun]
        for thread in threads:
            thread.start()
            assert entered.acquire(timeout=30)
        everything = gate.pause(**WHO)
        assert [(one.tenant, one.tool) for one in everything.executing] == begun
        assert {one.action for one in everything.executing} == {
            id_ for (id_,) in world.sql("SELECT id FROM agentgate_actions WHERE state = 'EXECUTING'")
        }
        (narrow,) = gate.pause(**WHO, tool="stay", tenant="umbrella").executing
        assert (narrow.tenant, narrow.tool, narrow.namespace) == ("umbrella", "stay", "")
        assert narrow.run == runs["umbrella"].id
        assert len(gate.pause(**WHO, tenant="acme").executing) == 2
        leave.set()
        for thread in threads:
            thread.join()
        assert gate.pause(**WHO).executing == ()
    assert world.sql("SELECT DISTINCT state FROM agentgate_actions") == [("SUCCEEDED",)]


def test_a_switch_that_was_flipped_behind_the_record_is_found(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
        gate.pause(**WHO)
        world.sql("UPDATE agentgate_switches SET paused = 0")
    assert [one.kind for one in agentgate.verify(world.url).breaks] == ["switch_row"]
