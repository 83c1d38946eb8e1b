"""A batch is what proposing its calls one after the other would be, in one commit (design §3)."""

from datetime import timedelta

import pytest

import agentgate
from agentgate import (
    Call,
    Done,
    Held,
    Key,
    KeyConflict,
    Limits,
    PolicyRequest,
    Refused,
    Unavailable,
    abort,
    allow,
    deny,
    require_approval,
)
from agentgate.testing import FakeClock, ScriptedPolicy
from support import faulty
from support.worlds import PRINCIPAL, World, kinds, opened

ONE = {"account": "a1", "cents": 1}
TWO = {"account": "a2", "cents": 2}
THREE = {"account": "a3", "cents": 3}


def by_cents(request: PolicyRequest) -> agentgate.Decision:
    """Answer by the amount: 7 asks, 8 denies, 9 ends the run, everything else is allowed."""
    match request.arguments:
        case {"cents": 7}:
            return require_approval("big")
        case {"cents": 8}:
            return deny("no")
        case {"cents": 9}:
            return abort("stop")
        case _:
            return allow("small")


def refund(cents: int, key: str | None = None, *, account: str = "a1", **more: object) -> Call:
    return Call("refund", {"account": account, "cents": cents}, key=key, **more)  # type: ignore[arg-type]


def answering() -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=by_cents)


def test_a_batch_is_answered_in_the_order_it_was_given_and_each_call_is_executed_as_ever(world: World) -> None:
    with world.gate(policy=answering()) as gate:
        run = opened(gate)
        proposals = gate.propose_many(run, [refund(1, "a"), refund(7, "b"), refund(8, "c"), refund(2, account="a2")])
        outcomes = [gate.execute(proposal) for proposal in proposals]
    assert [proposal.state for proposal in proposals] == ["READY", "HELD", "REFUSED", "READY"]
    assert [proposal.key for proposal in proposals[:3]] == ["a", "b", "c"]
    assert not any(proposal.repeated for proposal in proposals)
    assert kinds(outcomes) == ["Done", "Held", "Refused", "Done"]
    assert world.downstream.total == 2
    assert not world.damage()


def test_an_empty_batch_is_an_empty_list_and_writes_nothing(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        assert gate.propose_many(run, []) == []
        assert gate.propose_many(run, ()) == []
    assert [event.type for event in world.events()[1:]] == ["spec_registered", "run_opened"]


def test_an_invalid_call_is_its_own_refusal_and_holds_nobody_up(world: World) -> None:
    with world.gate() as gate:
        calls = [refund(1, "a"), Call("refund", "{", key="b"), Call("refnud", ONE, key="c"), refund(2, "d")]
        proposals = gate.propose_many(opened(gate), calls)
    assert [proposal.state for proposal in proposals] == ["READY", "REFUSED", "REFUSED", "READY"]
    reasons = [proposal.outcome.reason for proposal in proposals if isinstance(proposal.outcome, Refused)]
    assert reasons == ["invalid_arguments", "unknown_tool"]
    assert proposals[1].key == proposals[1].action  # it binds no key


def test_each_call_has_its_own_namespace_principal_provenance_and_key(world: World) -> None:
    def echo(n: int) -> int:
        return n

    policy = answering()
    tools = [agentgate.tool(name="echo", namespace=space, risk="read_only")(echo) for space in ("", "server")]
    with world.gate(*tools, policy=policy) as gate:
        calls = [
            Call("echo", {"n": 1}, key="k"),
            Call("echo", {"n": 1}, key="k", namespace="server", principal="agent:other", provenance={"turn": 3}),
            Call("echo", {"n": 1}, key=Key(source="outside", text="k"), principal="agent:other"),
        ]
        proposals = gate.propose_many(opened(gate), calls)
    asked = [(one.namespace, one.principal, one.provenance, one.key.source, one.key.scope) for one in policy.requests]
    assert asked == [
        ("", PRINCIPAL, None, "caller", ""),
        ("server", "agent:other", {"turn": 3}, "caller", ""),
        ("", "agent:other", None, "outside", "agent:other"),
    ]
    assert len({proposal.action for proposal in proposals}) == 3


def test_every_call_is_decided_on_what_those_before_it_leave_and_the_record_says_so(world: World) -> None:
    policy = answering()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        gate.call(run, "refund", ONE)
        gate.propose_many(run, [refund(7), refund(8), refund(1)])
    seen = [request.view for request in policy.requests[1:]]
    counted = [{name: view.counters[name] for name in ("proposed", "pending", "refused", "taken")} for view in seen]
    assert counted == [
        {"proposed": 1, "pending": 0, "refused": 0, "taken": 1},
        {"proposed": 2, "pending": 1, "refused": 0, "taken": 1},
        {"proposed": 3, "pending": 1, "refused": 1, "taken": 1},
    ]
    assert [[one.state for one in view.recent] for view in seen] == [
        ["SUCCEEDED"],
        ["HELD", "SUCCEEDED"],
        ["REFUSED", "HELD", "SUCCEEDED"],
    ]
    recorded = [event.body["view"] for event in world.events() if event.type == "proposed"]
    assert recorded[1:] == [view.to_json() for view in seen]
    assert {view.n for view in seen} == {3}  # read at once, before the batch


def test_what_the_policy_saw_in_a_batch_is_what_it_sees_at_a_recheck(world: World) -> None:
    def patient(request: PolicyRequest) -> agentgate.Decision:
        return deny("enough") if request.view.counters["proposed"] >= 3 else allow("fine")

    policy = agentgate.python_policy(patient, identity="patient")
    with world.gate(policy=policy) as gate:
        proposals = gate.propose_many(opened(gate), [refund(n) for n in range(5)])
    assert [proposal.state for proposal in proposals] == ["READY"] * 3 + ["REFUSED"] * 2
    report = agentgate.recheck(world.url, policy)
    assert (report.verdict, report.rechecked) == ("same", 5)


def test_a_view_of_a_long_batch_holds_as_many_actions_as_any(world: World) -> None:
    policy = answering()
    with world.gate(policy=policy) as gate:
        gate.propose_many(opened(gate), [refund(n) for n in range(20, 50)])
    assert [len(request.view.recent) for request in policy.requests] == [min(n, 16) for n in range(30)]


# --- ends of runs and limits ------------------------------------------------------------------------


def test_an_abort_refuses_the_later_calls_unasked_and_all_that_waits_in_the_run(world: World) -> None:
    policy = answering()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        earlier = gate.propose(run, "refund", ONE)
        elsewhere = gate.propose(opened(gate, "other"), "refund", ONE)
        proposals = gate.propose_many(run, [refund(1), refund(7), refund(8), refund(9), refund(2), refund(3)])
    reasons = [proposal.outcome.reason for proposal in proposals if isinstance(proposal.outcome, Refused)]
    assert reasons == ["run_halted", "run_halted", "policy_denied", "aborted", "run_halted", "run_halted"]
    assert len(policy.requests) == 6  # nobody was asked about what came after
    assert world.state(earlier.action) == "REFUSED"
    assert world.state(elsewhere.action) == "READY"
    assert world.value("SELECT state FROM agentgate_runs WHERE name = 'ticket-1'") == "HALTED"
    assert world.downstream.total == 0
    assert not world.damage()


def test_a_batch_for_a_run_that_is_not_open_is_refused_call_by_call(world: World) -> None:
    policy = answering()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        gate.close_run(run, by="ada")
        proposals = gate.propose_many(run, [refund(1), refund(2)])
    assert [proposal.outcome.reason for proposal in proposals if proposal.outcome] == ["run_closed", "run_closed"]
    assert not policy.requests


def test_a_limit_on_questions_counts_those_of_the_batch(world: World) -> None:
    with world.gate(policy=answering()) as gate:
        run = opened(gate, limits=Limits(pending=2))
        proposals = gate.propose_many(run, [refund(7), refund(7), refund(7), refund(1)])
    assert [proposal.state for proposal in proposals] == ["HELD", "HELD", "REFUSED", "READY"]
    assert isinstance(proposals[2].outcome, Refused)
    assert proposals[2].outcome.reason == "limit_pending"


# --- keys -------------------------------------------------------------------------------------------


def test_a_batch_that_comes_again_is_found_call_by_call(world: World) -> None:
    calls = [refund(1, "a"), refund(7, "b"), refund(8, "c")]
    policy = answering()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        first = gate.propose_many(run, calls)
        gate.execute(first[0])
        again = gate.propose_many(opened(gate, "another run"), calls)
    assert [one.action for one in again] == [one.action for one in first]
    assert all(one.repeated for one in again)
    assert isinstance(again[0].outcome, Done)
    assert again[0].outcome.source == "replayed"
    assert len(policy.requests) == 4
    assert world.words(first[0].action)[-1] == world.words(first[2].action)[-1] == "replayed"
    assert not world.damage()


def test_the_same_key_and_arguments_twice_in_a_batch_are_one_action(world: World) -> None:
    policy = answering()
    with world.gate(policy=policy) as gate:
        first, twin, other = gate.propose_many(opened(gate), [refund(1, "k"), refund(1, "k"), refund(1, "j")])
    assert first.action == twin.action != other.action
    assert (first.repeated, twin.repeated, other.repeated) == (False, True, False)
    assert len(policy.requests) == 2


@pytest.mark.parametrize("twin", [refund(2, "k"), refund(1, "k", principal="agent:other")])
def test_a_key_that_stands_for_two_calls_of_a_batch_refuses_it_whole_before_anybody_is_asked(
    world: World, twin: Call
) -> None:
    policy = answering()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        with pytest.raises(KeyConflict) as raised:
            gate.propose_many(run, [refund(9), refund(1, "k"), twin])
        assert (raised.value.call, raised.value.key) == (2, "k")
        assert str(raised.value).startswith("calls[2]: key 'k' of tool 'refund' stands for another call")
        assert not policy.requests
        assert world.value("SELECT count(*) FROM agentgate_actions") == 0
        fixed = gate.propose_many(run, [refund(1, "k"), refund(2, "j")])
    assert [proposal.state for proposal in fixed] == ["READY", "READY"]


@pytest.mark.parametrize("call", [refund(2, "k"), refund(1, "k", principal="agent:other")])
def test_a_key_that_stands_for_an_earlier_call_refuses_a_batch_whole(world: World, call: Call) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.propose(run, "refund", {"account": "a1", "cents": 1}, key="k")
        with pytest.raises(KeyConflict) as raised:
            gate.propose_many(run, [refund(3), call])
    assert raised.value.call == 1
    assert world.value("SELECT count(*) FROM agentgate_actions") == 1


def test_a_call_of_a_batch_takes_the_place_of_what_waits_in_whatever_run(world: World) -> None:
    with world.gate(policy=answering()) as gate:
        here, there = opened(gate), opened(gate, "there")
        first = gate.propose(here, "refund", {"account": "a1", "cents": 1}, key="a")
        second = gate.propose(there, "refund", {"account": "a1", "cents": 7}, key="b")
        calls = [refund(2, "a", supersede=True), refund(3, "b", supersede=True), refund(4, "b", supersede=True)]
        proposals = gate.propose_many(here, calls)
    assert [(one.state, one.revision) for one in proposals] == [("READY", 2), ("REFUSED", 2), ("READY", 3)]
    assert world.state(first.action) == world.state(second.action) == "REFUSED"
    assert world.events(second.action)[-1].body["successor"] == proposals[1].action
    assert world.events(second.action)[-1].run == there.id
    assert not world.damage()


def test_an_action_whose_time_is_over_is_a_new_revision_in_the_same_commit(world: World, clock: FakeClock) -> None:
    with world.gate(clock=clock) as gate:
        here, there = opened(gate), opened(gate, "there")
        over = [gate.propose(run, "refund", ONE, key=run.name) for run in (here, there)]
        clock.advance(timedelta(hours=2))
        again = gate.propose_many(here, [Call("refund", ONE, key=run.name) for run in (here, there)])
    assert [world.state(one.action) for one in over] == ["REFUSED", "REFUSED"]
    assert [(one.state, one.revision, one.repeated) for one in again] == [("READY", 2, False)] * 2
    assert not world.damage()


# --- the transaction ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 8, 100])
def test_a_batch_of_any_size_is_one_commit_and_writes_a_handful_of_statements(
    world: World, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.install(monkeypatch)
    count = faulty.Count()
    with world.gate() as gate:
        run = opened(gate)
        gate.propose(run, "refund", ONE)
        with faulty.during(count):
            gate.propose_many(run, [refund(n, f"k{n}") for n in range(size)])
    writes = [statement for statement in count.statements if statement.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert count.statements.count("BEGIN IMMEDIATE") == 1
    # One update of the run; actions, events and payloads in one statement for each power of two of their number.
    assert len(writes) == 1 + 3 * (size.bit_count() if size > 8 else 1)
    assert len(count.statements) <= 3 * size + 20


def test_a_run_that_ends_while_the_policy_thinks_is_thought_about_again(world: World) -> None:
    with world.gate(policy=answering()) as other:

        def closing(request: PolicyRequest) -> agentgate.Decision:
            if request.arguments == {"account": "a1", "cents": 2}:
                other.close_run(opened(other), by="ada")
            return allow("fine")

        with world.gate(policy=ScriptedPolicy(otherwise=closing)) as gate:
            proposals = gate.propose_many(opened(gate), [refund(1), refund(2)])
    assert [proposal.outcome.reason for proposal in proposals if proposal.outcome] == ["run_closed", "run_closed"]
    assert world.value("SELECT count(*) FROM agentgate_actions") == 2


def test_a_counter_that_moves_while_the_policy_thinks_voids_no_answer(world: World) -> None:
    with world.gate() as other:

        def busy(_request: PolicyRequest) -> agentgate.Decision:
            other.call(opened(other), "refund", THREE)
            return allow("fine")

        policy = ScriptedPolicy(otherwise=busy)
        with world.gate(policy=policy) as gate:
            proposals = gate.propose_many(opened(gate), [refund(1), refund(2)])
    assert [proposal.state for proposal in proposals] == ["READY", "READY"]
    assert len(policy.requests) == 2
    assert not world.damage()


def test_a_key_that_was_taken_while_the_policy_thought_is_a_repeat(world: World) -> None:
    with world.gate() as other:
        taken: list[str] = []

        def taking(_request: PolicyRequest) -> agentgate.Decision:
            if not taken:
                taken.append(other.propose(opened(other, "theirs"), "refund", TWO, key="k").action)
            return allow("fine")

        with world.gate(policy=ScriptedPolicy(otherwise=taking)) as gate:
            one, two = gate.propose_many(opened(gate), [refund(1), Call("refund", TWO, key="k")])
    assert (one.repeated, two.repeated) == (False, True)
    assert two.action == taken[0]


def test_a_key_that_never_stands_still_is_unavailable_and_nothing_was_written(world: World) -> None:
    with world.gate() as other:

        def restless(_request: PolicyRequest) -> agentgate.Decision:
            there = opened(other, "theirs")
            other.cancel(other.propose(there, "refund", TWO, key="k"), by="ada")
            return allow("fine")

        with world.gate(policy=ScriptedPolicy(otherwise=restless)) as gate:
            run = opened(gate)
            with pytest.raises(Unavailable) as raised:
                gate.propose_many(run, [refund(1), Call("refund", TWO, key="k")])
    assert raised.value.reason == "moved"
    assert world.value("SELECT count(*) FROM agentgate_actions WHERE run = ?", run.id) == 0
    assert not world.damage()


def test_a_held_call_of_a_batch_is_found_again_by_its_key(world: World) -> None:
    with world.gate(policy=answering()) as gate:
        held, _ = gate.propose_many(opened(gate), [refund(7, "k"), refund(1)])
        again = gate.call(opened(gate), "refund", {"account": "a1", "cents": 7}, key="k")
    assert isinstance(held.outcome, Held)
    assert isinstance(again, Held)
    assert again.approval == held.outcome.approval
