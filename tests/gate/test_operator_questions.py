"""When nobody knows whether it happened, operators are asked, once, and what they agree on is what is done."""

from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Done, Keyed, Requirement, Settings, Unknown
from agentgate.testing import FakeClock, ScriptedPolicy
from support.operators import answer, asked, asked_action, call, grants, lost
from support.worlds import World, named, opened

DAY = timedelta(days=1)
PLAIN = Requirement(kind="question")
TWO = Requirement(quorum=2, roles=("finance",))


# --- asking --------------------------------------------------------------------------------------


def test_an_outcome_that_nobody_may_run_again_is_asked_about_at_once_and_once(world: World) -> None:
    with world.gate(lost(world)) as gate:
        first = asked(call(gate))
        again = [asked(call(gate)), asked(gate.execute(asked_action(world), tenant="acme"))]
        (waiting,) = gate.waiting(tenant="acme")
    assert {one.id for one in again} == {first.id}
    assert first.requirement == PLAIN
    assert (waiting.kind, waiting.approval) == ("unknown", first.id)
    assert world.words(asked_action(world)) == ["proposed", "started", "in_doubt", "question_asked"]
    assert world.events(asked_action(world))[-1].body["attempt"] == 1
    assert world.downstream.total == 1
    assert world.damage() == []


def test_people_are_shown_what_may_have_happened_and_what_their_answer_does(world: World) -> None:
    with world.gate(lost(world)) as gate:
        shown = asked(call(gate)).shown
    for told in ("attempt 1", "again", "applied", "not_applied", "1250"):
        assert told in shown


def test_a_question_that_nobody_answered_in_time_is_asked_again_by_whoever_looks_next(
    world: World, clock: FakeClock
) -> None:
    with world.gate(lost(world), clock=clock) as gate:
        first = asked(call(gate))
        clock.advance(DAY)
        second = asked(call(gate))
        third = asked(call(gate))
    assert second.id != first.id
    assert third.id == second.id
    assert world.words(asked_action(world))[3:] == ["question_asked", "question_expired", "question_asked"]


def test_a_question_that_was_rejected_is_not_asked_again_while_nothing_new_happens(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        gate.approvals.reject(question.id, digest=question.digest, by="ada", tenant="acme")
        outcomes = [call(gate) for _ in range(3)]
        gate.sweep()
    assert all(isinstance(outcome, Unknown) and outcome.question is None for outcome in outcomes)
    assert world.state(asked_action(world)) == "UNKNOWN"
    assert grants(world, asked_action(world)) == [("question", "rejected")]


def test_a_sweep_asks_what_a_crash_left_unasked(world: World) -> None:
    tool = lost(world)
    with world.gate(tool) as gate:
        call(gate)
    world.sql("DELETE FROM agentgate_approvals")  # as if the process had died before it asked
    action, run, n = world.sql("SELECT id, run, last_n - 1 FROM agentgate_actions")[0]
    link = world.value("SELECT hash FROM agentgate_events WHERE run = ? AND n = ?", run, n)
    world.sql("DELETE FROM agentgate_payloads WHERE run = ? AND n > ?", run, n)
    world.sql("DELETE FROM agentgate_events WHERE run = ? AND n > ?", run, n)
    world.sql("UPDATE agentgate_actions SET last_n = ?, approval = NULL", n)
    world.sql("UPDATE agentgate_runs SET n = ?, head = ? WHERE id = ?", n, link, run)
    with world.gate(tool) as gate:
        assert gate.sweep().asked == 1
        assert gate.sweep().asked == 0
        assert asked(call(gate)).requirement == PLAIN
    assert world.words(action) == ["proposed", "started", "in_doubt", "question_asked"]


def test_a_gate_asks_about_no_tool_that_it_does_not_know(world: World, clock: FakeClock) -> None:
    """Its settings are another application's: they do not say who must agree on this one."""
    with world.gate(lost(world), clock=clock) as gate:
        asked(call(gate))
        clock.advance(DAY)
    with world.gate(named("other", lambda: None), clock=clock) as gate:
        swept = gate.sweep()
    assert (swept.questions, swept.asked) == (1, 0)


@pytest.mark.parametrize(("hours", "asks"), [(0.5, False), (2, True)])
def test_a_keyed_tool_is_asked_about_once_its_window_is_over(
    world: World, clock: FakeClock, hours: float, *, asks: bool
) -> None:
    with world.gate(lost(world, recovery=Keyed(hours=1)), clock=clock) as gate:
        first = call(gate)
        clock.advance(timedelta(hours=hours))
        outcome = call(gate)
    assert isinstance(first, Unknown)
    assert first.question is None
    assert isinstance(outcome, Unknown) == asks
    assert not asks or asked(outcome).requirement == PLAIN


# --- who is asked --------------------------------------------------------------------------------


def test_whoever_had_to_approve_the_first_run_is_asked_about_the_second(world: World) -> None:
    policy = ScriptedPolicy(otherwise=agentgate.require_approval("big", requirement=TWO))
    with world.gate(lost(world), policy=policy) as gate:
        held = call(gate)
        assert isinstance(held, agentgate.Held)
        for name in ("bea", "cleo"):
            digest = held.approval.digest
            gate.approvals.approve(held.approval.id, digest=digest, by=name, roles=["finance"], tenant="acme")
        question = asked(call(gate))
        assert question.requirement == Requirement(kind="question", quorum=2, roles=("finance",))
        answer(gate, question, "again", by="bea", roles=["finance"])
        assert isinstance(call(gate), Unknown)  # one of two
        answer(gate, question, "again", by="cleo", roles=["finance"])
        assert isinstance(call(gate), Done)
    assert world.damage() == []


def test_settings_say_who_answers_where_no_policy_asks_for_anybody(world: World) -> None:
    wanted = Requirement(kind="question", quorum=2, roles=("sre",), question=timedelta(hours=1))
    with world.gate(lost(world), settings=Settings(operators=wanted)) as gate:
        assert asked(call(gate)).requirement == wanted


@pytest.mark.parametrize("wrong", [Requirement(), "sre", None])
def test_settings_take_no_approval_for_a_question(wrong: Any) -> None:
    with pytest.raises(agentgate.Misuse, match="operators"):
        Settings(operators=wrong)


def test_an_answer_to_a_gate_that_asks_less_does_not_do_for_one_that_asks_more(world: World) -> None:
    tool = lost(world)
    with world.gate(tool) as lax:
        answer(lax, asked(call(lax)), "again")
    strict = Settings(operators=Requirement(kind="question", quorum=2))
    with world.gate(tool, settings=strict) as gate:
        question = asked(call(gate))
        assert question.requirement.quorum == 2
        for name in ("ada", "bea"):
            answer(gate, question, "again", by=name)
        assert isinstance(call(gate), Done)
    assert grants(world, asked_action(world)) == [("question", "void"), ("question", "used")]


# --- answers -------------------------------------------------------------------------------------


def test_again_starts_one_attempt_in_any_process_and_not_a_second(world: World) -> None:
    tool = lost(world, times=2)
    with world.gate(tool) as gate:
        first = asked(call(gate))
        granted = answer(gate, first, "again")
        assert granted.state == "granted"
    with world.gate(tool) as gate:
        second = asked(call(gate))
    assert second.id != first.id
    assert world.words(asked_action(world))[3:] == [
        *("question_asked", "voted", "approved", "started", "in_doubt", "question_asked"),
    ]
    assert world.events(asked_action(world))[6].body["approval"] == first.id
    assert grants(world, asked_action(world)) == [("question", "used"), ("question", "pending")]
    assert world.downstream.total == 2
    assert world.damage() == []


def test_applied_is_success_under_the_question_that_it_answers(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        said = answer(gate, question, "applied", evidence={"ticket": 7})
        assert said.state == "used"
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.source == "reconciled"
    event = next(one for one in world.events(asked_action(world)) if one.type == "reconciled")
    assert (event.body["verdict"], event.body["approval"], event.body["by"]) == ("applied", question.id, "ada")
    assert world.downstream.total == 1
    assert world.sql("SELECT count(*) FROM agentgate_locks") == [(0,)]
    assert world.damage() == []


def test_not_applied_makes_it_ready_and_it_runs_as_the_policy_says(world: World) -> None:
    with world.gate(lost(world)) as gate:
        answer(gate, asked(call(gate)), "not_applied", worker_known_dead=True)
        assert world.state(asked_action(world)) == "READY"
        assert isinstance(call(gate), Done)
    event = next(one for one in world.events(asked_action(world)) if one.type == "reconciled")
    assert (event.body["verdict"], event.body["worker_known_dead"]) == ("not_applied", True)
    assert world.damage() == []


def test_not_applied_in_a_run_that_is_closed_is_refused_with_it(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        gate.close_run(opened(gate), by="ada")
        answer(gate, question, "not_applied")
    assert world.state(asked_action(world)) == "REFUSED"
    assert world.words(asked_action(world))[-2:] == ["reconciled", "refused"]


def test_again_is_no_answer_in_a_run_where_nothing_starts_any_more(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        gate.close_run(opened(gate), by="ada")
        with pytest.raises(agentgate.NotPossible, match="not_applied"):
            answer(gate, question, "again")
        answer(gate, question, "applied")
    assert world.state(asked_action(world)) == "SUCCEEDED"


def test_what_is_answered_after_somebody_reconciled_counts_for_nothing(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        gate.reconcile(asked_action(world), applied=True, by="bea", evidence="looked", tenant="acme")
        with pytest.raises(agentgate.VoteRefused) as refused:
            answer(gate, question, "again")
    assert refused.value.reason == "void"
    assert world.state(asked_action(world)) == "SUCCEEDED"


def test_a_grant_that_was_not_used_in_time_is_over_and_it_is_asked_again(world: World, clock: FakeClock) -> None:
    with world.gate(lost(world), clock=clock) as gate:
        answer(gate, asked(call(gate)), "again")
        clock.advance(timedelta(minutes=16))
        assert asked(call(gate)).requirement == PLAIN
    assert grants(world, asked_action(world)) == [("question", "expired"), ("question", "pending")]
    assert world.downstream.total == 1


def test_a_rejected_question_leaves_the_other_ways_out_open(world: World) -> None:
    with world.gate(lost(world)) as gate:
        question = asked(call(gate))
        gate.approvals.reject(question.id, digest=question.digest, by="ada", tenant="acme")
        gate.abandon(asked_action(world), by="ada", tenant="acme")
    assert world.state(asked_action(world)) == "ABANDONED"
