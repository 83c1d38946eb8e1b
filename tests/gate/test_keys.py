"""A key names an intent: what a repeat finds, what conflicts, and what may be tried again (design §8)."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Held, Key, KeyConflict, Limits, Misuse, Refused, abort, allow, deny, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, gates, named, opened

ONE = {"account": "a1", "cents": 1}
TWO = {"account": "a1", "cents": 2}


def test_the_same_key_and_arguments_are_the_same_action_and_its_outcome_is_replayed_on_the_record(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        first = gate.call(run, "refund", ONE, key="k")
        again = [gate.call(run, "refund", ONE, key="k") for _ in range(3)]
        proposed = gate.propose(run, "refund", ONE, key="k")
    assert isinstance(first, Done)
    for outcome in (*again, proposed.outcome):
        assert isinstance(outcome, Done)
        assert (outcome.action, outcome.source) == (first.action, "replayed")
        assert outcome.observation == first.observation
    assert proposed.repeated
    assert world.words(first.action) == ["proposed", "started", "succeeded", *["replayed"] * 4]
    assert world.downstream.total == 1


def test_a_repeat_is_found_from_another_run_and_recorded_where_the_action_is(world: World) -> None:
    with gates(world) as (one, other):
        first = one.call(opened(one, "run-1"), "refund", ONE, key="k")
        again = other.call(opened(other, "run-2"), "refund", ONE, key="k")
        proposal = other.propose(opened(other, "run-2"), "refund", ONE, key="k")
    assert isinstance(again, Done)
    assert (again.action, again.source) == (first.action, "replayed")
    assert proposal.repeated
    assert world.downstream.total == 1
    assert world.words(first.action)[-2:] == ["replayed", "replayed"]
    assert {event.run for event in world.events(first.action)} == {world.events(first.action)[0].run}


def test_a_waiting_action_of_one_run_is_executed_by_a_call_of_another(world: World) -> None:
    with world.gate() as gate:
        proposal = gate.propose(opened(gate, "run-1"), "refund", ONE, key="k")
        outcome = gate.call(opened(gate, "run-2"), "refund", ONE, key="k")
    assert isinstance(outcome, Done)
    assert outcome.action == proposal.action
    assert world.value("SELECT taken FROM agentgate_runs WHERE name = 'run-1'") == 1
    assert world.value("SELECT taken FROM agentgate_runs WHERE name = 'run-2'") == 0


@pytest.mark.parametrize(
    "spelling", [ONE, b'{"cents":1.0,"account":"a1"}', '{ "account": "\\u0061\\u0031", "cents":1}']
)
def test_arguments_are_compared_as_values_not_as_spelled(world: World, spelling: object) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.call(run, "refund", ONE, key="k")
        outcome = gate.call(run, "refund", spelling, key="k")
    assert isinstance(outcome, Done)
    assert outcome.source == "replayed"


def test_arguments_are_the_same_as_supplied_or_as_completed(world: World) -> None:
    def greet(name: str, times: int = 2) -> str:
        return name * times

    with world.gate(named("greet", greet)) as gate:
        run = opened(gate)
        gate.call(run, "greet", {"name": "a"}, key="k")
        assert isinstance(gate.call(run, "greet", {"name": "a", "times": 2}, key="k"), Done)
        with pytest.raises(KeyConflict):
            gate.call(run, "greet", {"name": "a", "times": 3}, key="k")


def test_arguments_stay_the_same_as_supplied_when_the_tools_defaults_change(world: World) -> None:
    def greet(name: str, times: int = 2) -> str:
        return name * times

    def greet_more(name: str, times: int = 5) -> str:
        return name * times

    with world.gate(named("greet", greet)) as gate:
        run = opened(gate)
        first = gate.call(run, "greet", {"name": "a"}, key="k")
        gate.register(named("greet", greet_more), replace=True)
        again = gate.call(run, "greet", {"name": "a"}, key="k")
    assert again.action == first.action


def test_other_arguments_under_a_key_are_a_conflict_that_names_neither(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.call(run, "refund", {"account": "first secret", "cents": 1}, key="k")
        for command in (gate.call, gate.propose):
            with pytest.raises(KeyConflict) as raised:
                command(run, "refund", {"account": "second secret", "cents": 1}, key="k")
            assert "secret" not in str(raised.value)
            assert raised.value.code == "key_conflict"
    assert world.downstream.total == 1


def test_other_arguments_conflict_even_while_the_first_is_in_flight(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold(n: int) -> int:
        entered.set()
        leave.wait(30)
        return n

    with world.gate(named("hold", hold)) as gate:
        run = opened(gate)
        thread = threading.Thread(target=gate.call, args=(run, "hold", {"n": 1}), kwargs={"key": "k"})
        thread.start()
        assert entered.wait(30)
        with pytest.raises(KeyConflict):
            gate.call(run, "hold", {"n": 2}, key="k")
        leave.set()
        thread.join()


def test_another_principals_key_is_a_conflict_that_reveals_nothing(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        done = gate.call(run, "refund", ONE, key="k")
        told = []
        for arguments in (ONE, TWO):
            with pytest.raises(KeyConflict) as raised:
                gate.call(run, "refund", arguments, key="k", principal="agent:other")
            told.append(str(raised.value))
    assert told[0] == told[1]
    assert done.action not in told[0]
    assert "agent:support" not in told[0]


def test_keys_of_two_tools_and_two_namespaces_are_their_own(world: World) -> None:
    def echo(n: int) -> int:
        return n

    tools = [named("echo", echo), named("other", echo), named("echo", echo, namespace="server")]
    with world.gate(*tools) as gate:
        run = opened(gate)
        outcomes = [
            gate.call(run, "echo", {"n": 1}, key="k"),
            gate.call(run, "other", {"n": 1}, key="k"),
            gate.call(run, "echo", {"n": 1}, key="k", namespace="server"),
            gate.call(run, "echo", {"n": 1}, key=Key(source="adapter", text="k")),
            gate.call(run, "echo", {"n": 1}, key=Key(source="outside", text="k")),
            gate.call(run, "echo", {"n": 1}, key=Key(source="outside", text="k"), principal="agent:other"),
        ]
    assert len({outcome.action for outcome in outcomes}) == 6
    assert all(isinstance(outcome, Done) and outcome.source == "executed" for outcome in outcomes)


@pytest.mark.parametrize("key", ["", "a\x00b", "x" * 201, "\ud800", Key(source="own", text="mine"), 3])
def test_a_key_that_cannot_be_kept_is_misuse(world: World, key: object) -> None:
    with world.gate() as gate, pytest.raises(Misuse):
        gate.call(opened(gate), "refund", ONE, key=key)  # type: ignore[arg-type]


def test_an_invalid_input_binds_no_key(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        for wrong in ({"account": "a1", "cents": "x"}, "{", {"account": "a1", "cents": 2**53}):
            refused = gate.call(run, "refund", wrong, key="k")
            assert isinstance(refused, Refused)
            assert world.events(refused.action)[0].body["intended"] == {"source": "caller", "scope": "", "text": "k"}
        done = gate.call(run, "refund", ONE, key="k")
    assert isinstance(done, Done)
    assert world.value("SELECT revision FROM agentgate_actions WHERE id = ?", done.action) == 1


# --- revisions ---------------------------------------------------------------------------------


def _cancelled(gate: agentgate.Gate, run: agentgate.Run, _clock: FakeClock) -> None:
    gate.cancel(gate.propose(run, "refund", ONE, key="k"), by="ada")


def _expired(gate: agentgate.Gate, run: agentgate.Run, clock: FakeClock) -> None:
    gate.propose(run, "refund", ONE, key="k")
    clock.advance(timedelta(hours=1))


def _unanswered(gate: agentgate.Gate, run: agentgate.Run, clock: FakeClock) -> None:
    assert isinstance(gate.call(run, "refund", ONE, key="k"), Held)
    clock.advance(timedelta(hours=24))


def _limited(gate: agentgate.Gate, _run: agentgate.Run, _clock: FakeClock) -> None:
    limited = opened(gate, "limited", limits=Limits(actions=0))
    refused = gate.call(limited, "refund", ONE, key="k")
    assert isinstance(refused, Refused)
    assert refused.reason == "limit_actions"


def _respecified(gate: agentgate.Gate, run: agentgate.Run, _clock: FakeClock) -> None:
    proposal = gate.propose(run, "refund", ONE, key="k")

    def refund(account: str, cents: int) -> int:
        return len(account) + cents

    gate.register(named("refund", refund, description="another spec"), replace=True)
    refused = gate.execute(proposal)
    assert isinstance(refused, Refused)
    assert refused.reason == "spec_changed"


def _closed(gate: agentgate.Gate, _run: agentgate.Run, _clock: FakeClock) -> None:
    other = opened(gate, "closing")
    gate.propose(other, "refund", ONE, key="k")
    gate.close_run(other, by="ada")


@pytest.mark.parametrize(
    ("ended", "first"),
    [
        (_cancelled, allow()),
        (_expired, allow()),
        (_unanswered, require_approval("big")),
        (_limited, allow()),
        (_respecified, allow()),
        (_closed, allow()),
    ],
)
def test_a_key_opens_a_new_revision_after_what_was_nobodys_no(
    world: World,
    clock: FakeClock,
    ended: Callable[[agentgate.Gate, agentgate.Run, FakeClock], None],
    first: agentgate.Decision,
) -> None:
    with world.gate(policy=ScriptedPolicy(first), clock=clock) as gate:
        run = opened(gate)
        ended(gate, run, clock)
        outcome = gate.call(run, "refund", ONE, key="k")
        again = gate.call(run, "refund", ONE, key="k")
    assert isinstance(outcome, Done), outcome
    assert again.action == outcome.action
    assert world.value("SELECT revision FROM agentgate_actions WHERE id = ?", outcome.action) == 2


def test_a_denied_key_stays_denied_whatever_the_policy_says_later(world: World) -> None:
    policy = ScriptedPolicy(deny("no"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "refund", ONE, key="k") for _ in range(3)]
    assert {outcome.action for outcome in outcomes} == {outcomes[0].action}
    assert all(isinstance(outcome, Refused) and outcome.reason == "policy_denied" for outcome in outcomes)
    assert len(policy.requests) == 1


def test_a_key_whose_policy_ended_the_run_stays_refused(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(abort("stop"))) as gate:
        assert isinstance(gate.call(opened(gate), "refund", ONE, key="k"), Refused)
        outcome = gate.call(opened(gate, "other"), "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "aborted"


# --- supersede ---------------------------------------------------------------------------------


def test_other_arguments_take_a_waiting_actions_place_where_asked_to(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(require_approval("big"))) as gate:
        run = opened(gate)
        held = gate.propose(run, "refund", ONE, key="k")
        proposal = gate.propose(run, "refund", TWO, key="k", supersede=True)
        with pytest.raises(KeyConflict):
            gate.propose(run, "refund", ONE, key="k")
        outcome = gate.execute(held)
    assert (proposal.state, proposal.revision) == ("READY", 2)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "superseded"
    superseded = world.events(held.action)[1]
    assert superseded.body["successor"] == proposal.action


def test_nothing_that_has_started_is_superseded(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.call(run, "refund", ONE, key="k")
        with pytest.raises(KeyConflict):
            gate.call(run, "refund", TWO, key="k", supersede=True)


def test_an_action_that_waits_in_another_run_is_superseded_there(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(require_approval("big"))) as gate:
        waiting = gate.propose(opened(gate, "run-1"), "refund", ONE, key="k")
        taken = gate.call(opened(gate, "run-2"), "refund", TWO, key="k", supersede=True)
    assert isinstance(taken, Done)
    superseded = world.events(waiting.action)[-1]
    assert (superseded.type, superseded.run) == ("superseded", world.events(waiting.action)[0].run)
    assert superseded.body["successor"] == taken.action
    pending = "SELECT pending, refused FROM agentgate_runs WHERE name = 'run-1'"
    assert world.sql(pending) == [(0, 1)]
    assert not world.damage()


def test_what_is_denied_takes_nobodys_place_and_not_its_key(world: World) -> None:
    policy = ScriptedPolicy(require_approval("big"), deny("no"), require_approval("big"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        held = gate.propose(run, "refund", ONE, key="k")
        denied = gate.propose(run, "refund", TWO, key="k", supersede=True)
        again = gate.propose(run, "refund", ONE, key="k")
        with pytest.raises(KeyConflict):
            gate.propose(run, "refund", TWO, key="k")
        taken = gate.propose(run, "refund", TWO, key="k", supersede=True)
    assert (denied.state, denied.key) == ("REFUSED", denied.action)
    assert (again.action, again.state) == (held.action, "HELD")
    assert (taken.state, taken.revision) == ("HELD", 2)
    body = world.events(denied.action)[0].body
    assert (body["intended"], body["intended_revision"]) == ({"source": "caller", "scope": "", "text": "k"}, 2)
    assert not world.damage()


def test_the_policy_is_asked_again_about_a_denied_call_as_it_was_when_it_was_to_take_a_place(world: World) -> None:
    def second_never(request: agentgate.PolicyRequest) -> agentgate.Decision:
        return deny("no") if (request.key.text, request.revision) == ("k", 2) else allow("fine")

    policy = agentgate.python_policy(second_never, identity="second never")
    with world.gate(policy=policy) as gate:
        gate.propose(opened(gate), "refund", ONE, key="k")
        gate.propose(opened(gate), "refund", TWO, key="k", supersede=True)
    report = agentgate.recheck(world.url, policy)
    assert (report.verdict, report.rechecked) == ("same", 2)


@pytest.mark.parametrize("how", ["halted", "too many questions"])
def test_what_a_run_or_a_limit_refuses_takes_nobodys_place_either(world: World, how: str) -> None:
    policy = ScriptedPolicy(require_approval("big"), abort("stop") if how == "halted" else require_approval("big"))
    with world.gate(policy=policy) as gate:
        held = gate.propose(opened(gate, "run-1"), "refund", ONE, key="k")
        here = opened(gate, "run-2", limits=Limits(pending=0))
        refused = gate.propose(here, "refund", TWO, key="k", supersede=True)
    assert (refused.state, refused.key) == ("REFUSED", refused.action)
    assert world.state(held.action) == "HELD"


def test_a_question_that_takes_anothers_place_is_no_question_more(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        run = opened(gate, limits=Limits(pending=1))
        gate.propose(run, "refund", ONE, key="k")
        proposal = gate.propose(run, "refund", TWO, key="k", supersede=True)
    assert proposal.state == "HELD"
    assert world.value("SELECT pending FROM agentgate_runs WHERE name = 'ticket-1'") == 1


def test_a_key_of_which_any_revision_has_started_is_not_superseded(world: World) -> None:
    def failing(n: int) -> int:
        raise agentgate.NoEffect(f"nothing was sent of {n}")

    with world.gate(named("failing", failing)) as gate:
        run = opened(gate)
        failed = gate.call(run, "failing", {"n": 1}, key="k")
        gate.cancel(failed.action, by="ada", tenant="acme")
        second = gate.propose(run, "failing", {"n": 1}, key="k")
        for command in (gate.propose, gate.call):
            with pytest.raises(KeyConflict):
                command(run, "failing", {"n": 2}, key="k", supersede=True)
        with pytest.raises(KeyConflict):
            gate.propose_many(run, [agentgate.Call("failing", {"n": 2}, key="k", supersede=True)])
    assert (second.revision, world.state(second.action)) == (2, "READY")


def test_superseding_with_the_same_arguments_is_a_repeat(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        first = gate.propose(run, "refund", ONE, key="k")
        again = gate.propose(run, "refund", ONE, key="k", supersede=True)
    assert again.action == first.action
    assert again.repeated


def test_fifty_proposals_of_one_key_at_once_are_one_action(world: World) -> None:
    found: list[str] = []
    with gates(world) as pair:
        runs = [opened(gate) for gate in pair]

        def work(n: int) -> None:
            found.append(pair[n % 2].propose(runs[n % 2], "refund", ONE, key="k").action)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 50
    assert len(set(found)) == 1
