"""A claim outside its proposal's own transaction asks the claiming gate's policy, and records what it said."""

import threading
import time
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, PolicyRequest, Refused, Unknown, allow, deny, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, gates, named, opened

ONE = {"account": "a1", "cents": 1}


def test_what_was_allowed_and_is_denied_at_the_claim_is_refused(world: World) -> None:
    with gates(world) as (loose, _), world.gate(policy=ScriptedPolicy(deny("moved"), name="strict")) as strict:
        proposal = loose.propose(opened(loose), "refund", ONE, key="k")
        outcome = strict.execute(proposal)
        # A looser policy never revives a refusal.
        later = loose.call(opened(loose), "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "policy_denied"
    assert later.action == proposal.action
    assert isinstance(later, Refused)
    refused = world.events(proposal.action)[1]
    assert refused.type == "refused"
    assert refused.body["policy"] == ScriptedPolicy(name="strict").identity.digest.hex()
    assert world.downstream.total == 0


def test_what_was_allowed_and_needs_a_person_at_the_claim_is_held(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(allow(), require_approval("big"))) as gate:
        proposal = gate.propose(opened(gate), "refund", ONE, key="k")
        outcome = gate.execute(proposal)
    assert isinstance(outcome, agentgate.Held)
    assert outcome.digest == proposal.digest
    assert world.words(proposal.action) == ["proposed", "held"]
    assert world.value("SELECT pending FROM agentgate_runs WHERE name = 'ticket-1'") == 1


def test_the_same_answer_goes_on_whatever_the_policy_is_called(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(name="v1")) as old, world.gate(policy=ScriptedPolicy(name="v2")) as new:
        proposal = old.propose(opened(old), "refund", ONE)
        assert isinstance(new.execute(proposal), Done)
    started = world.events(proposal.action)[1]
    assert started.body["policy"] == ScriptedPolicy(name="v2").identity.digest.hex()


def test_a_separate_claim_records_all_that_a_recheck_needs_and_a_fused_one_points_to_its_proposal(world: World) -> None:
    policy = ScriptedPolicy(otherwise=allow("fine", "with words"), facts=["freeze"])
    with world.gate(policy=policy, facts={"freeze": lambda _: False}) as gate:
        run = opened(gate)
        fused = gate.call(run, "refund", ONE)
        apart = gate.propose(run, "refund", ONE)
        gate.execute(apart)
    asked = {"decision", "policy", "engine", "shadow", "view", "asked_at_us", "validator"}
    proposed, started, _ = world.events(fused.action)
    assert asked <= proposed.body.keys()
    assert not asked & started.body.keys()
    assert started.body["proposed"] == proposed.n
    proposed, started, _ = world.events(apart.action)
    assert asked <= proposed.body.keys() & started.body.keys()
    assert started.body["payloads"].keys() >= {"facts", "texts"}  # type: ignore[union-attr]


def test_the_policy_sees_the_run_as_it_was_read(world: World) -> None:
    policy = ScriptedPolicy()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        gate.call(run, "refund", ONE, key="k1")
        gate.execute(gate.propose(run, "refund", ONE, key="k2"))
    first, second, third = policy.requests
    assert first.view.counters["proposed"] == 0
    assert (second.view.counters["proposed"], second.view.counters["succeeded"]) == (1, 1)
    assert [recent.state for recent in second.view.recent] == ["SUCCEEDED"]
    assert [recent.state for recent in third.view.recent] == ["READY", "SUCCEEDED"]
    assert (third.key.text, third.revision, third.run_name) == ("k2", 1, "ticket-1")
    assert third.action == second.action
    started = [event for event in world.events(third.action) if event.type == "started"]
    assert started[0].body["view"]["n"] == third.view.n  # type: ignore[index,call-overload]


def test_a_spec_that_changed_refuses_what_was_proposed_under_the_old_one(world: World) -> None:
    def refund(account: str, cents: int, reason: str = "none") -> str:
        return f"{account} {cents} {reason}"

    with world.gate() as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", ONE, key="k")
        gate.register(named("refund", refund), replace=True)
        outcome = gate.execute(proposal)
        again = gate.call(run, "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "spec_changed"
    assert isinstance(again, Done)
    assert again.observation.value == "a1 1 none"
    assert world.downstream.total == 0


def test_a_tool_that_this_gate_does_not_have_refuses_the_same_way(world: World) -> None:
    with world.gate() as gate, world.gate(named("other", lambda: None)) as bare:
        proposal = gate.propose(opened(gate), "refund", ONE, key="k")
        outcome = bare.execute(proposal)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "spec_changed"


def test_a_tool_is_replaced_only_on_purpose(world: World) -> None:
    def refund(account: str) -> str:
        return account

    with world.gate() as gate:
        with pytest.raises(agentgate.SpecRefused):
            gate.register(named("refund", refund))
        assert isinstance(gate.call(opened(gate), "refund", ONE), Done)


def test_two_policies_that_disagree_forever_end_after_three_questions(world: World) -> None:
    """Whatever a policy does between two looks, a call comes back."""
    ids = iter(range(100))

    def fickle(_request: PolicyRequest) -> agentgate.Decision:
        return require_approval("big", requirement=agentgate.Requirement(quorum=1 + next(ids)))

    with world.gate(policy=ScriptedPolicy(otherwise=fickle)) as gate:
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(outcome, agentgate.Held)


# --- whatever goes wrong denies -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (RuntimeError("a secret"), "policy_raised"),
        (lambda _: None, "policy_no_answer"),
        (lambda _: "allow", "policy_bad_answer"),
        (lambda _: True, "policy_bad_answer"),
    ],
)
def test_a_policy_that_goes_wrong_denies_on_the_record(world: World, answer: object, code: str) -> None:
    with world.gate(policy=ScriptedPolicy(answer)) as gate:  # type: ignore[arg-type]
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.error.details == {"rule": "gate", "reasons": [code]}
    assert "secret" not in str(outcome)
    assert world.events(outcome.action)[0].body["decision"]["reasons"] == [{"code": code}]  # type: ignore[index,call-overload]
    assert world.downstream.total == 0


def test_a_policy_that_goes_wrong_at_the_claim_denies_too(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(allow(), RuntimeError("?"))) as gate:
        outcome = gate.execute(gate.propose(opened(gate), "refund", ONE))
    assert isinstance(outcome, Refused)
    assert outcome.reason == "policy_denied"


def test_a_policy_that_never_answers_denies_within_its_time(world: World) -> None:
    leave = threading.Event()

    def hang(_request: PolicyRequest) -> agentgate.Decision:
        leave.wait(30)
        return allow()

    settings = agentgate.Settings(policy_within=timedelta(milliseconds=50))
    started = time.monotonic()
    with world.gate(policy=ScriptedPolicy(hang), settings=settings) as gate:
        outcome = gate.call(opened(gate), "refund", ONE)
    assert time.monotonic() - started < 10
    leave.set()
    assert isinstance(outcome, Refused)
    assert outcome.error.details == {"rule": "gate", "reasons": ["policy_timeout"]}


def test_a_fact_that_cannot_be_had_denies(world: World) -> None:
    def broken(_request: PolicyRequest) -> bool:
        raise OSError("a secret")

    for facts in ({}, {"freeze": broken}, {"freeze": lambda _: object()}):
        with world.gate(policy=ScriptedPolicy(facts=["freeze"]), facts=facts) as gate:
            outcome = gate.call(opened(gate), "refund", ONE)
        assert isinstance(outcome, Refused)
        assert outcome.error.details == {"rule": "gate", "reasons": ["fact_unavailable"]}
        assert "secret" not in str(outcome)
    assert world.downstream.total == 0


# --- an unknown outcome ------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [deny("no"), require_approval("big")])
def test_a_policy_that_denies_or_asks_at_an_unknown_outcome_moves_nothing(
    world: World, answer: agentgate.Decision
) -> None:
    def act() -> None:
        raise ConnectionResetError

    tool = named("act", act, recovery=agentgate.Repeat())
    with world.gate(tool, policy=ScriptedPolicy(allow(), answer, answer)) as gate:
        run = opened(gate)
        unknown = gate.call(run, "act", {}, key="k")
        again = [gate.call(run, "act", {}, key="k") for _ in range(2)]
    assert isinstance(unknown, Unknown)
    assert all(isinstance(outcome, Unknown) for outcome in again)
    asks = ["question_asked"] if answer.requirement is not None else []
    assert world.words(unknown.action) == ["proposed", "started", "in_doubt", "waited", *asks]
    waited = world.events(unknown.action)[3]
    assert waited.body["reason"] == "policy_asks"
    assert waited.body["decision"]["outcome"] == answer.outcome  # type: ignore[index,call-overload]


# --- the switch ---------------------------------------------------------------------------------


def test_a_switch_thrown_before_the_claim_stops_the_effect_and_leaves_the_action(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", ONE, key="k")
        world.pause()
        outcomes = [gate.execute(proposal), gate.execute(proposal), gate.call(run, "refund", ONE, key="other")]
        assert world.downstream.total == 0
        world.pause(paused=False)
        done = [gate.execute(proposal), gate.call(run, "refund", ONE, key="other")]
    for outcome in outcomes:
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.retryable) == ("paused", True)
    assert all(isinstance(outcome, Done) for outcome in done)
    assert world.words(proposal.action) == ["proposed", "waited", "started", "succeeded"]


def test_a_switch_thrown_while_the_policy_thinks_stops_the_effect(world: World) -> None:
    def think(_request: PolicyRequest) -> agentgate.Decision:
        world.pause()
        return allow()

    with world.gate(policy=ScriptedPolicy(think)) as gate:
        outcome = gate.call(opened(gate), "refund", ONE)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "paused"
    assert world.downstream.total == 0


@pytest.mark.parametrize(
    ("row", "stops"),
    [
        (("tenant", "acme", "", ""), True),
        (("tenant", "other", "", ""), False),
        (("tool", "acme", "", "refund"), True),
        (("tool", "", "", "refund"), True),
        (("tool", "acme", "server", "refund"), False),
        (("tool", "acme", "", "other"), False),
        (("tool", "other", "", "refund"), False),
    ],
)
def test_a_switch_stops_what_it_names_and_nothing_else(world: World, row: tuple[str, ...], *, stops: bool) -> None:
    world.sql("INSERT INTO agentgate_switches VALUES (?, ?, ?, ?, 1, 0)", *row)
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refund", ONE)
    assert isinstance(outcome, Refused) == stops
    assert world.downstream.total == (0 if stops else 1)


def test_the_switch_stops_another_attempt_at_an_unknown_outcome_too(world: World) -> None:
    tries: list[int] = []

    def act() -> None:
        tries.append(1)
        raise ConnectionResetError

    with world.gate(named("act", act, recovery=agentgate.Repeat())) as gate:
        run = opened(gate)
        gate.call(run, "act", {}, key="k")
        world.pause()
        outcome = gate.call(run, "act", {}, key="k")
    assert isinstance(outcome, Unknown)
    assert len(tries) == 1
    assert world.words(outcome.action)[-1] == "waited"


# --- READY expires -------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [timedelta(0), timedelta(microseconds=1)])
def test_what_was_allowed_expires_at_its_time_and_not_before(world: World, short: timedelta) -> None:
    clock = FakeClock(tick=timedelta(0))
    with world.gate(clock=clock) as gate:
        proposal = gate.propose(opened(gate), "refund", ONE)
        clock.advance(timedelta(hours=1) - short)
        outcome = gate.execute(proposal)
    assert isinstance(outcome, Done) == bool(short)
    assert world.downstream.total == int(bool(short))


def test_what_an_event_has_seen_expired_stays_expired_when_the_clock_is_set_back(world: World) -> None:
    clock = FakeClock()
    with world.gate(clock=clock) as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", ONE, key="k")
        clock.advance(timedelta(hours=2))
        gate.call(run, "refund", ONE, key="other")
        clock.jump(-timedelta(hours=2))
        outcome = gate.execute(proposal)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "action_expired"
