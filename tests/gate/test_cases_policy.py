"""Cases of other people's loops, "policy moved". One test per line that this version can meet."""

import threading
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Held, PolicyRequest, Refused, abort, allow, deny, require_approval
from agentgate.testing import ScriptedPolicy
from support.worlds import World, grant, named, opened

ONE = {"account": "a1", "cents": 1}


def test_approved_under_one_policy_and_denied_by_the_next_is_not_executed_though_the_label_is_the_same(
    world: World,
) -> None:
    rules = world.folder / "policy.yaml"
    ask = "version: 1\nrules:\n  - {name: refunds, match: {tool: refund}, outcome: require_approval}\n"
    rules.write_text(ask)
    with world.gate(policy=rules) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
    rules.write_text(ask.replace("require_approval", "deny"))
    with world.gate(policy=rules) as gate:
        outcome = gate.execute(held.action, tenant="acme")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "policy_denied"
    first, last = world.events(held.action)[0], world.events(held.action)[-1]
    assert first.body["policy"] != last.body["policy"]
    assert world.downstream.total == 0


def test_a_version_bump_with_the_same_answer_goes_on_and_with_another_asks_again_on_the_same_key(world: World) -> None:
    ask, more = require_approval("big"), require_approval("big", requirement=agentgate.Requirement(quorum=2))
    with world.gate(policy=ScriptedPolicy(otherwise=ask, name="v1")) as gate:
        run = opened(gate)
        held = [gate.call(run, "refund", ONE, key=key) for key in ("same", "other")]
        for one in held:
            assert isinstance(one, Held)
            grant(gate, one)
    with world.gate(policy=ScriptedPolicy(ask, more, name="v2")) as gate:
        assert isinstance(gate.call(run, "refund", ONE, key="same"), Done)
        again = gate.call(run, "refund", ONE, key="other")
    assert isinstance(again, Held)
    assert again.action == held[1].action
    assert world.downstream.total == 1


async def _later(_request: PolicyRequest) -> agentgate.Decision:
    return allow()


@pytest.mark.parametrize(
    "answer", [RuntimeError("x"), lambda _: None, lambda _: "allow", _later, lambda _: {"outcome": "allow"}]
)
def test_a_policy_that_raises_or_answers_nonsense_or_an_awaitable_denies_on_the_record(
    world: World, answer: object
) -> None:
    with world.gate(policy=ScriptedPolicy(answer)) as gate:  # type: ignore[arg-type]
        outcome = gate.call(opened(gate), "refund", ONE)
    assert isinstance(outcome, Refused)
    assert world.events(outcome.action)[0].body["decision"]["rule"] == "gate"  # type: ignore[index,call-overload]
    assert world.downstream.total == 0


def test_the_policy_is_complete_before_the_claim(world: World) -> None:
    """A guardrail that runs beside the tool finds the tool done when it says no."""
    order: list[str] = []
    leave = threading.Timer(0.05, lambda: order.append("policy done"))

    def decide(_request: PolicyRequest) -> agentgate.Decision:
        leave.start()
        leave.join()
        return allow()

    with world.gate(named("act", lambda: order.append("effect")), policy=ScriptedPolicy(otherwise=decide)) as gate:
        gate.call(opened(gate), "act", {})
    assert order == ["policy done", "effect"]


def test_the_kill_switch_before_the_claim_always_blocks_and_after_it_never_pretends_to(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()
    ends: list[agentgate.Outcome] = []

    def act() -> str:
        entered.set()
        leave.wait(30)
        return "it ran"

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        thread = threading.Thread(target=lambda: ends.append(gate.call(run, "act", {}, key="claimed")))
        thread.start()
        assert entered.wait(30)
        paused = gate.pause(by="ada", reason="stop it")
        assert len(paused.executing) == 1
        assert isinstance(gate.call(run, "act", {}, key="claimed"), agentgate.Running)
        assert world.value("SELECT executing FROM agentgate_runs WHERE name = 'ticket-1'") == 1
        blocked = gate.call(run, "act", {}, key="later")
        leave.set()
        thread.join()
    assert isinstance(blocked, Refused)
    assert blocked.reason == "paused"
    assert isinstance(ends[0], Done)
    assert [one.action for one in paused.executing] == [ends[0].action]


def test_the_full_input_of_a_decision_is_recorded(world: World) -> None:
    policy = ScriptedPolicy(facts=["freeze"])
    with world.gate(policy=policy, facts={"freeze": lambda _: {"until": "noon"}}) as gate:
        outcome = gate.call(opened(gate), "refund", b'{"cents":1, "account":"a1"}', provenance={"turn": 3}, key="k")
    (event, *_) = world.events(outcome.action)
    kinds = dict(world.sql("SELECT kind, content FROM agentgate_payloads WHERE run = ? AND n = ?", event.run, event.n))
    assert {kind: bytes(content) for kind, content in kinds.items() if kind != "texts"} == {
        "raw": b'{"cents":1, "account":"a1"}',
        "arguments": b'{"account":"a1","cents":1}',
        "provenance": b'{"turn":3}',
        "facts": b'{"freeze":{"until":"noon"}}',
    }
    assert {"view", "policy", "engine", "asked_at_us", "spec", "validator"} <= event.body.keys()


def test_counters_are_recorded_as_the_policy_saw_them(world: World) -> None:
    policy = ScriptedPolicy()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "refund", ONE) for _ in range(3)]
    for request, outcome in zip(policy.requests, outcomes, strict=True):
        view = world.events(outcome.action)[0].body["view"]
        assert type(view) is dict
        assert view["counters"] == dict(request.view.counters)
    assert [request.view.counters["succeeded"] for request in policy.requests] == [0, 1, 2]


def test_a_misspelt_word_in_a_policy_file_is_refused_at_load(world: World) -> None:
    rules = world.folder / "policy.yaml"
    rules.write_text("version: 1\nrules:\n  - name: all\n    outcom: allow\n")
    with pytest.raises(agentgate.PolicyRefused):
        world.gate(policy=rules)


@pytest.mark.parametrize(("said", "outcome"), [(abort("x"), "aborted"), (deny("x"), "policy_denied")])
def test_a_no_is_a_no_whatever_was_allowed_before(world: World, said: agentgate.Decision, outcome: str) -> None:
    with world.gate(policy=ScriptedPolicy(allow(), said)) as gate:
        assert gate.execute(gate.propose(opened(gate), "refund", ONE)).reason == outcome
    assert world.downstream.total == 0


def test_a_policy_out_of_time_denies_and_is_not_waited_for(world: World) -> None:
    leave = threading.Event()

    def hang(_request: PolicyRequest) -> agentgate.Decision:
        leave.wait(30)
        return allow()

    settings = agentgate.Settings(policy_within=timedelta(milliseconds=20))
    with world.gate(policy=ScriptedPolicy(hang), settings=settings) as gate:
        outcome = gate.call(opened(gate), "refund", ONE)
        leave.set()
    assert isinstance(outcome, Refused)
    assert world.downstream.total == 0


def test_a_claims_own_decisions_are_decided_again_as_well(world: World) -> None:
    """What a later policy refused or held at a claim is in the record like any proposal's decision."""
    ask = require_approval("big")
    with world.gate(policy=ScriptedPolicy(allow(), deny("moved"), allow(), ask, otherwise=allow())) as gate:
        run = opened(gate)
        for key in ("refused", "held", "started"):
            gate.execute(gate.propose(run, "refund", ONE, key=key))
    found = agentgate.recheck(world.url, ScriptedPolicy(otherwise=deny("all"), name="none"))
    assert (found.rechecked, found.cannot_evaluate) == (6, 0)
    assert (found.same, found.tightened) == (1, 5)


def test_a_roll_out_over_a_fleet_wedges_nothing_and_goes_back(world: World) -> None:
    """Two pinned versions side by side: what one may not start waits for the other, under its key."""
    with (
        world.gate(policy=ScriptedPolicy(name="v1"), pinned=True) as old,
        world.gate(policy=ScriptedPolicy(name="v2"), pinned=True) as new,
    ):
        run = opened(old)
        for n, (active, other) in enumerate(((old, new), (new, old), (old, new))):
            active.activate_policy(by="ops:ada")
            call = {"account": f"a{n}", "cents": 1}
            waits = other.call(run, "refund", call, key=f"k{n}")
            assert isinstance(waits, Refused)
            assert (waits.reason, waits.retryable) == ("policy_inactive", True)
            done = active.call(run, "refund", call, key=f"k{n}")
            assert isinstance(done, Done)
            assert done.action == waits.action
    assert world.downstream.total == 3
