"""Each state of an action is one outcome, to be matched; what the rules say is never an exception."""

import threading
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Failed, Held, NotFound, Refused, Running, ToolError, Unknown, deny, require_approval
from agentgate.testing import ScriptedPolicy
from support.worlds import World, gates, named, opened

ARGUMENTS = {"account": "a1", "cents": 5}


def test_what_the_policy_allows_is_done(world: World) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refund", ARGUMENTS)
    match outcome:
        case Done(observation):
            assert observation.value == {"cents": 5}
        case _:
            pytest.fail(str(outcome))
    assert (outcome.source, outcome.confirmed, outcome.reason) == ("executed", "unchecked", "succeeded")
    assert world.words(outcome.action) == ["proposed", "started", "succeeded"]
    assert world.downstream.total == 1


def test_proposing_runs_nothing_until_it_is_executed(world: World) -> None:
    with world.gate() as gate:
        proposal = gate.propose(opened(gate), "refund", ARGUMENTS)
        assert (proposal.state, proposal.outcome, proposal.repeated) == ("READY", None, False)
        assert world.downstream.total == 0
        outcome = gate.execute(proposal)
    assert isinstance(outcome, Done)
    assert outcome.action == proposal.action
    assert outcome.digest == proposal.digest


def test_an_action_is_executed_by_its_id_from_another_gate(world: World) -> None:
    with gates(world) as (first, second):
        proposal = first.propose(opened(first), "refund", ARGUMENTS)
        assert isinstance(second.execute(proposal.action, tenant="acme"), Done)
        again = first.execute(proposal)
    assert isinstance(again, Done)
    assert again.source == "replayed"
    assert world.downstream.total == 1


def test_what_the_policy_denies_is_refused_in_its_own_words(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(deny("too_much", "over the limit", rule="big"))) as gate:
        outcome = gate.call(opened(gate), "refund", ARGUMENTS)
    match outcome:
        case Refused(reason):
            assert reason == "policy_denied"
            assert not outcome.retryable
        case _:
            pytest.fail(str(outcome))
    assert outcome.error.message == "over the limit"
    assert outcome.error.details == {"rule": "big", "reasons": ["too_much"]}
    assert world.downstream.total == 0


def test_what_needs_a_person_is_held(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        run = opened(gate)
        outcome = gate.call(run, "refund", ARGUMENTS, key="k")
        again = gate.call(run, "refund", ARGUMENTS, key="k")
    match outcome:
        case Held(approval):
            assert "refund" in approval.shown
        case _:
            pytest.fail(str(outcome))
    assert again == outcome


def test_a_known_failure_is_failed_and_rests_until_it_is_retried(world: World) -> None:
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ToolError("rate_limited", "slow down")
        return "fine"

    with world.gate(named("flaky", flaky)) as gate:
        run = opened(gate)
        outcome = gate.call(run, "flaky", {}, key="k")
        replayed = gate.call(run, "flaky", {}, key="k")
        retried = gate.call(run, "flaky", {}, key="k", retry=True)
    match outcome:
        case Failed(error):
            assert (error.code, error.message, outcome.retryable) == ("rate_limited", "slow down", True)
        case _:
            pytest.fail(str(outcome))
    assert isinstance(replayed, Failed)
    assert isinstance(retried, Done)
    assert len(tries) == 2
    assert world.words(outcome.action) == [
        "proposed",
        "started",
        "failed",
        "replayed",
        "retried",
        "started",
        "succeeded",
    ]


def test_what_somebody_else_executes_is_running(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> str:
        entered.set()
        leave.wait(30)
        return "fine"

    with gates(world, named("hold", hold)) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=first.call, args=(run, "hold", {}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        outcome = second.call(run, "hold", {}, key="k")
        leave.set()
        thread.join()
        after = second.call(run, "hold", {}, key="k")
    match outcome:
        case Running(until):
            assert until.tzinfo is not None
        case _:
            pytest.fail(str(outcome))
    assert isinstance(after, Done)


def test_what_may_have_happened_is_unknown_and_not_run_again(world: World) -> None:
    tries: list[int] = []

    def lost() -> None:
        tries.append(1)
        raise ConnectionResetError("by peer")

    with world.gate(named("lost", lost)) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "lost", {}, key="k", retry=True) for _ in range(3)]
    asked: set[str] = set()
    for outcome in outcomes:
        match outcome:
            case Unknown(question):
                assert question is not None
                asked.add(question.id)
                assert outcome.error.code == "unknown_outcome"
            case _:
                pytest.fail(str(outcome))
    assert len(tries) == 1


def test_an_unknown_tool_is_refused_with_names_that_are_near(world: World) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refnud", ARGUMENTS)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "unknown_tool"
    assert outcome.error.details == {"near": ["refund"]}


def test_invalid_arguments_are_refused_with_what_to_correct_and_never_the_value(world: World) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refund", {"account": "a1", "cents": "a secret", "more": 1})
    assert isinstance(outcome, Refused)
    assert outcome.error.code == "invalid_arguments"
    assert isinstance(outcome.error.details, list)
    assert {detail["path"] for detail in outcome.error.details if isinstance(detail, dict)} == {"/cents", "/more"}
    assert "a secret" not in str(outcome)


@pytest.mark.parametrize(
    "raw", [b'{"account":"a1","account":"a2","cents":1}', "{", b"\xff", "[1] 2", '{"cents":1e400}']
)
def test_raw_input_that_is_no_json_is_refused_with_a_path(world: World, raw: bytes | str) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refund", raw)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "invalid_arguments"
    assert world.downstream.total == 0


def test_raw_json_is_taken_as_the_value_it_says(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "refund", b'{"cents": 5.0, "account": "a1"}', key="k"), Done)
        again = gate.call(run, "refund", ARGUMENTS, key="k")
    assert isinstance(again, Done)
    assert again.source == "replayed"


def test_outcomes_are_frozen_and_name_their_action(world: World) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refund", ARGUMENTS)
    with pytest.raises(AttributeError):
        outcome.action = "other"  # type: ignore[misc]
    assert len(outcome.action) == 36
    assert len(outcome.digest) == 64


def test_a_foreign_tenants_action_is_not_found(world: World) -> None:
    with world.gate() as gate:
        proposal = gate.propose(opened(gate, tenant="acme"), "refund", ARGUMENTS)
        for command in (
            lambda: gate.execute(proposal.action, tenant="other"),
            lambda: gate.execute(proposal.action),
            lambda: gate.cancel(proposal.action, by="ada", tenant="other"),
            lambda: gate.reconcile(proposal.action, applied=True, by="ada", evidence=None, tenant="other"),
        ):
            with pytest.raises(NotFound) as raised:
                command()
            assert raised.value.args == ("action", proposal.action)
        with pytest.raises(NotFound):
            gate.execute("0197b6c2-0000-7000-8000-000000000001", tenant="acme")
    assert world.state(proposal.action) == "READY"


def test_the_same_run_name_of_two_tenants_is_two_runs_with_keys_of_their_own(world: World) -> None:
    with world.gate() as gate:
        ours, theirs = (opened(gate, tenant=tenant) for tenant in ("acme", "other"))
        outcomes = [gate.call(run, "refund", ARGUMENTS, key="k") for run in (ours, theirs)]
    assert ours.id != theirs.id
    assert [outcome.source for outcome in outcomes if isinstance(outcome, Done)] == ["executed", "executed"]
    assert world.downstream.total == 2
    assert sorted(world.downstream.effects.values()) == [1, 1]


def test_two_intended_identical_calls_have_two_keys_and_both_run(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        for _ in range(2):
            assert isinstance(gate.call(run, "refund", ARGUMENTS), Done)
        assert isinstance(gate.call(run, "refund", ARGUMENTS, key="k"), Done)
    assert world.downstream.total == 3


def test_the_effect_is_told_what_it_is_part_of(world: World) -> None:
    seen: list[agentgate.Effect] = []

    def look(*, effect: agentgate.Effect) -> None:
        seen.append(effect)

    with world.gate(named("look", look, timeout=20)) as gate:
        outcome = gate.call(opened(gate), "look", {})
    (effect,) = seen
    assert effect.action_id == outcome.action
    assert (effect.attempt, effect.tenant, effect.principal) == (1, "acme", "agent:support")
    started = world.events(outcome.action)[1]
    assert effect.fence == started.body["fence"]
    assert effect.deadline.utcoffset() == timedelta(0)
    assert len(bytes.fromhex(effect.idempotency_key)) == 32
