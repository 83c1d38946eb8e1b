"""Active policies: which policy holds for a tenant, and gates that are pinned to theirs."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import agentgate
from agentgate import Call, Done, Failed, Gate, NoEffect, Refused, Unknown, deny
from agentgate.clock import Clock
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, named, opened

ONE = {"account": "a1", "cents": 1}
BY = "ops:ada"


def pinned(world: World, name: str, *tools: AnyTool, clock: Clock | None = None, **said: object) -> Gate:
    return world.gate(*tools, policy=ScriptedPolicy(name=name, **said), clock=clock, pinned=True)  # type: ignore[arg-type]


def digest(name: str) -> str:
    return ScriptedPolicy(name=name).identity.digest.hex()


def activations(world: World) -> list[tuple[object, object]]:
    return [(e.body["tenant"], e.body["policy"]) for e in world.events() if e.type == "policy_activated"]


# --- activating -------------------------------------------------------------------------------------------


def test_an_activation_is_one_event_of_the_ledgers_own_chain_with_its_row_and_its_documents(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(name="v1")) as gate:
        opened(gate)
        first = gate.activate_policy(by=BY, note="the beginning")
        again = gate.activate_policy(by="ops:bob")
        own = gate.activate_policy(by=BY, tenant="acme")
        assert gate.active_policies() == (first.active, own.active)
    assert (first.changed, first.replaced, again.changed, own.changed) == (True, None, False, True)
    assert again.active == first.active  # whoever was first has activated it
    assert first.active.policy == digest("v1")
    assert (first.active.tenant, first.active.by, own.active.tenant) == (None, BY, "acme")
    assert activations(world) == [("", digest("v1")), ("acme", digest("v1"))]
    assert not world.damage()


def test_whoever_activates_for_everybody_is_told_which_tenants_go_on_with_their_own(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(name="v1")) as old, world.gate(policy=ScriptedPolicy(name="v2")) as new:
        opened(old)
        kept = old.activate_policy(by=BY, tenant="acme")
        activated = new.activate_policy(by=BY)
        assert (activated.own, activated.replaced) == ((kept.active,), None)
        assert old.activate_policy(by=BY).own == ()  # it is the same one
        assert new.activate_policy(by=BY).replaced == digest("v1")


def test_a_tenant_that_the_ledger_does_not_know_is_refused(world: World) -> None:
    with world.gate() as gate:
        with pytest.raises(agentgate.NotFound):
            gate.activate_policy(by=BY, tenant="amce")
        with pytest.raises(agentgate.Misuse, match=r"tenant: .*reserved"):
            gate.activate_policy(by=BY, tenant="$ledger")
        with pytest.raises(agentgate.Misuse, match="by"):
            gate.activate_policy(by="")
    assert activations(world) == []


def test_a_gate_is_pinned_or_it_is_not(world: World) -> None:
    with pytest.raises(agentgate.Misuse, match="pinned: say True or False"):
        world.gate(pinned="yes")


# --- pinned gates -------------------------------------------------------------------------------------------


def test_a_pinned_gate_starts_nothing_before_its_policy_is_active_and_waits_are_recorded_once(world: World) -> None:
    with pinned(world, "v1") as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "refund", ONE, key="k") for _ in range(3)]
        for outcome in outcomes:
            assert isinstance(outcome, Refused)
            assert (outcome.reason, outcome.retryable) == ("policy_inactive", True)
        assert world.words(outcomes[0].action) == ["proposed", "waited"]
        assert world.downstream.total == 0
        gate.activate_policy(by=BY)
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Done)
    assert world.downstream.total == 1
    assert not world.damage()


def test_a_tenants_own_entry_takes_precedence_over_everybodys(world: World) -> None:
    with pinned(world, "v1") as old, pinned(world, "v2") as new:
        acme, other = opened(old), opened(old, tenant="umbrella")
        old.activate_policy(by=BY)
        new.activate_policy(by=BY, tenant="acme")
        assert old.call(acme, "refund", ONE).reason == "policy_inactive"
        assert isinstance(new.call(acme, "refund", ONE), Done)
        assert isinstance(old.call(other, "refund", {**ONE, "account": "b"}), Done)
        assert new.call(other, "refund", {**ONE, "account": "c"}).reason == "policy_inactive"


@pytest.fixture
def inactive(world: World) -> Iterator[Gate]:
    """Hold a pinned gate whose policy another one has replaced."""
    with pinned(world, "old") as gate, world.gate(policy=ScriptedPolicy(name="new")) as new:
        gate.activate_policy(by=BY)
        new.activate_policy(by=BY)
        yield gate


def test_every_road_to_an_effect_asks_which_policy_is_active(world: World, inactive: Gate) -> None:
    run = opened(inactive)
    proposal = inactive.propose(run, "refund", ONE)
    batch = inactive.propose_many(run, [Call("refund", {**ONE, "account": name}) for name in ("b", "c")])
    for one in (proposal, *batch):
        assert inactive.execute(one).reason == "policy_inactive"
        assert world.state(one.action) == "READY"
    assert inactive.execute(proposal, wait=0.01).reason == "policy_inactive"
    assert world.downstream.total == 0


def test_whoever_waits_goes_on_once_the_policy_is_active(world: World, inactive: Gate) -> None:
    proposal = inactive.propose(opened(inactive), "refund", ONE)
    with ThreadPoolExecutor(1) as pool, world.gate(policy=ScriptedPolicy(name="old")) as old:
        waiting = pool.submit(inactive.execute, proposal, wait=30)
        while "waited" not in world.words(proposal.action):
            time.sleep(0.005)
        old.activate_policy(by=BY)
        assert isinstance(waiting.result(), Done)


def test_inside_a_transaction_of_the_callers_and_a_transactional_tool_wait_as_well(world: World) -> None:
    ran: list[str] = []
    tool = named("write", lambda: ran.append("it ran"), recovery=agentgate.Transactional(), timeout=5)
    with pinned(world, "old", tool) as old, pinned(world, "new", tool) as new:
        new.activate_policy(by=BY)
        run = opened(old)
        assert old.call(run, "write", {}).reason == "policy_inactive"
        with old.transaction() as connection:
            called = old.call(run, "write", {}, connection=connection)
            executed = old.execute(called.action, tenant="acme", connection=connection)
        assert (called.reason, executed.reason) == ("policy_inactive", "policy_inactive")
        assert ran == []
        with new.transaction() as connection:
            assert isinstance(new.call(run, "write", {}, connection=connection), Done)
    assert not world.damage()


def test_a_policy_that_is_not_active_refuses_and_holds_nothing_at_a_claim(world: World) -> None:
    """The old gate of a fleet does not end what the new one will go on with."""
    with world.gate(policy=ScriptedPolicy(name="new")) as new:
        new.activate_policy(by=BY)
        proposal = new.propose(opened(new), "refund", ONE)
        for said in (deny("no"), agentgate.abort("end"), agentgate.require_approval("ask")):
            with pinned(world, "old", otherwise=said) as old:
                assert old.execute(proposal).reason == "policy_inactive"
        assert isinstance(new.execute(proposal), Done)


def test_a_known_failure_is_not_tried_again_under_a_policy_that_is_not_active(world: World) -> None:
    mood = ["fail"]

    def act() -> str:
        if mood:
            raise NoEffect("not now")
        return "it ran"

    tool = named("act", act)
    with pinned(world, "old", tool) as old, world.gate(tool, policy=ScriptedPolicy(name="new")) as new:
        old.activate_policy(by=BY)
        failed = old.call(opened(old), "act", {}, key="k")
        assert isinstance(failed, Failed)
        new.activate_policy(by=BY)
        mood.clear()
        for _ in range(2):
            again = old.execute(failed.action, tenant="acme", retry=True)
            assert (type(again), again.reason) == (Refused, "policy_inactive")
        assert world.state(failed.action) == "FAILED"
        assert world.words(failed.action).count("waited") == 1
        old.activate_policy(by=BY)
        assert isinstance(old.execute(failed.action, tenant="acme", retry=True), Done)
    assert not world.damage()


def test_an_unknown_outcome_is_not_tried_again_under_a_policy_that_is_not_active(world: World) -> None:
    mood = ["doubt"]

    def act() -> str:
        if mood:
            raise RuntimeError(mood.pop())
        return "it ran"

    tool = named("act", act, recovery=agentgate.Repeat())
    with pinned(world, "old", tool) as old, world.gate(tool, policy=ScriptedPolicy(name="new")) as new:
        old.activate_policy(by=BY)
        doubted = old.call(opened(old), "act", {}, key="k")
        assert isinstance(doubted, Unknown)
        new.activate_policy(by=BY)
        assert isinstance(old.execute(doubted.action, tenant="acme"), Unknown)
        assert world.words(doubted.action)[-1] == "waited"
        assert world.events(doubted.action)[-1].body["reason"] == "policy_inactive"
        assert isinstance(new.execute(doubted.action, tenant="acme"), Done)


def test_what_waited_too_long_expires_all_the_same(world: World) -> None:
    clock = FakeClock()
    with pinned(world, "old", clock=clock) as gate:
        run = opened(gate)
        waiting = gate.call(run, "refund", ONE, key="k")
        clock.advance(timedelta(hours=2))
        again = gate.call(run, "refund", ONE, key="k")
    assert world.state(waiting.action) == "REFUSED"
    assert again.action != waiting.action  # the key was not burnt


def test_a_gate_that_is_not_pinned_goes_on_with_the_policy_it_holds(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(name="old")) as gate, world.gate(policy=ScriptedPolicy(name="new")) as new:
        new.activate_policy(by=BY)
        run = opened(gate)
        assert isinstance(gate.call(run, "refund", ONE), Done)
        assert isinstance(gate.execute(gate.propose(run, "refund", {**ONE, "account": "b"})), Done)


# --- the record ---------------------------------------------------------------------------------------------


def test_a_forged_row_lets_no_pinned_gate_start_and_verify_finds_it(world: World) -> None:
    forged = ScriptedPolicy(name="old").identity.digest
    with pinned(world, "old") as old, world.gate(policy=ScriptedPolicy(name="new")) as new:
        run = opened(old)
        new.activate_policy(by=BY)
        world.sql("UPDATE agentgate_policies SET policy = ?", forged)
        with pytest.raises(agentgate.Damaged, match="active policy"):
            old.call(run, "refund", ONE)
        with pytest.raises(agentgate.Damaged, match="active policy"):
            old.active_policies()
    assert [one.kind for one in agentgate.verify(world.url).breaks] == ["policy_row"]
    world.sql("DELETE FROM agentgate_policies")
    assert [one.kind for one in agentgate.verify(world.url).breaks] == ["policy_row"]
    assert world.downstream.total == 0


def test_back_and_forth_stands_in_the_record_in_order(world: World) -> None:
    with pinned(world, "a") as a, pinned(world, "b") as b:
        run = opened(a)
        for gate, other in ((a, b), (b, a), (a, b)):
            gate.activate_policy(by=BY)
            assert isinstance(gate.call(run, "refund", ONE), Done)
            assert other.call(run, "refund", ONE).reason == "policy_inactive"
    assert activations(world) == [("", digest(name)) for name in "aba"]
