"""The rules of keys (design §8), sentence by sentence: who is told what, what a repeat finds, and what a wait costs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import agentgate
from agentgate import (
    Call,
    Done,
    Gate,
    Held,
    Key,
    KeyConflict,
    Limits,
    Refused,
    Run,
    abort,
    allow,
    deny,
    require_approval,
)
from agentgate.gate.ledger import Transaction
from agentgate.testing import FakeClock, ScriptedPolicy
from support import faulty
from support.worlds import World, gates, grant, named, opened

ONE = {"account": "a1", "cents": 1}
TWO = {"account": "a1", "cents": 2}


def conflict(gate: Gate, run: Run, arguments: object, **more: object) -> KeyConflict:
    with pytest.raises(KeyConflict) as raised:
        gate.propose(run, "refund", arguments, key="k", **more)  # type: ignore[arg-type]
    return raised.value


# --- who is told what ---------------------------------------------------------------------------------


def test_a_call_without_a_key_is_its_own_intent_under_the_actions_id(world: World) -> None:
    with world.gate() as gate:
        first, second = (gate.propose(opened(gate), "refund", ONE) for _ in range(2))
    assert first.action != second.action
    assert first.key == first.action
    assert world.events(first.action)[0].body["key"] == {"source": "own", "scope": "", "text": first.action}


@pytest.mark.parametrize("state", ["READY", "HELD", "SUCCEEDED", "REFUSED"])
def test_another_principal_is_told_the_same_after_the_same_reads_whatever_is_there(
    world: World, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.install(monkeypatch)
    first = {"HELD": require_approval("big"), "REFUSED": deny("no")}.get(state, allow())
    told: list[tuple[str, tuple[object, ...], list[str]]] = []
    with world.gate(policy=ScriptedPolicy(first)) as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", ONE, key="k")
        if state == "SUCCEEDED":
            gate.execute(proposal)
        assert world.state(proposal.action) == state
        for arguments in (ONE, TWO):
            for supersede in (False, True):
                count = faulty.Count()
                with faulty.during(count):
                    raised = conflict(gate, run, arguments, principal="agent:other", supersede=supersede)
                told.append((str(raised), raised.args, count.statements))
        assert all(one == told[0] for one in told)
        assert not any("agentgate_payloads" in statement for statement in told[0][2])  # nothing of it was even read
        assert str(conflict(gate, run, TWO)) == told[0][0]  # nor is it told apart from one's own mistake


def test_an_invalid_input_under_anothers_key_learns_nothing_of_it(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.call(run, "refund", ONE, key="k")
        refused = gate.call(run, "refund", {"account": "a1"}, key="k", principal="agent:other")
    assert isinstance(refused, Refused)
    assert refused.reason == "invalid_arguments"


def test_a_key_from_outside_is_each_principals_own(world: World) -> None:
    key = Key(source="outside", text="42")
    with world.gate() as gate:
        run = opened(gate)
        mine = gate.call(run, "refund", ONE, key=key)
        theirs = gate.call(run, "refund", TWO, key=key, principal="agent:other")
        again = gate.call(run, "refund", ONE, key=key)
    assert isinstance(theirs, Done)
    assert again.action == mine.action != theirs.action


# --- what a repeat is told ------------------------------------------------------------------------------


def _denies(_gate: Gate, _run: Run, policy: ScriptedPolicy) -> None:
    policy.say(deny("no"), deny("no"))


def _aborts(_gate: Gate, _run: Run, policy: ScriptedPolicy) -> None:
    policy.say(abort("stop"), abort("stop"))


def _pauses(gate: Gate, _run: Run, _policy: ScriptedPolicy) -> None:
    gate.pause(by="ada", reason="a bad hour")


def _closes(gate: Gate, run: Run, _policy: ScriptedPolicy) -> None:
    gate.close_run(run, by="ada")


@pytest.mark.parametrize("now", [_denies, _aborts, _pauses, _closes])
def test_a_replay_tells_what_happened_whatever_holds_now(
    world: World, now: Callable[[Gate, Run, ScriptedPolicy], None]
) -> None:
    policy = ScriptedPolicy()
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        done = gate.call(run, "refund", ONE, key="k")
        now(gate, run, policy)
        again = [gate.call(run, "refund", ONE, key="k"), gate.propose(run, "refund", ONE, key="k").outcome]
        again += [proposal.outcome for proposal in gate.propose_many(run, [Call("refund", ONE, key="k")])]
    for outcome in again:
        assert isinstance(outcome, Done)
        assert (outcome.action, outcome.source) == (done.action, "replayed")
    assert len(policy.requests) == 1
    assert world.downstream.total == 1


def test_a_conflict_is_told_before_anything_that_makes_a_call_wait(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.propose(run, "refund", ONE, key="k")
        gate.pause(by="ada", reason="a bad hour")
        assert conflict(gate, run, TWO).key == "k"


# --- ends that are nobody's no, and ends that are ------------------------------------------------------


def test_a_key_opens_a_new_revision_after_its_run_was_halted(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(allow(), abort("stop"))) as gate:
        run = opened(gate)
        waiting = gate.propose(run, "refund", ONE, key="k")
        gate.propose(run, "refund", TWO)
        done = gate.call(opened(gate, "next"), "refund", ONE, key="k")
    assert world.events(waiting.action)[-1].body["reason"] == "run_halted"
    assert isinstance(done, Done)
    assert world.value("SELECT revision FROM agentgate_actions WHERE id = ?", done.action) == 2


def test_a_key_opens_a_new_revision_after_an_approval_that_was_not_used_in_time(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ScriptedPolicy(require_approval("big"), allow()), clock=clock) as gate:
        run = opened(gate)
        held = gate.call(run, "refund", ONE, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        clock.advance(timedelta(hours=1))
        done = gate.call(run, "refund", ONE, key="k")
    assert world.words(held.action)[-1] == "grant_expired"
    assert isinstance(done, Done)
    assert done.action != held.action


def _rejected(world: World, gate: Gate, held: Held) -> None:
    _add(world, gate, held, "rejected")


def _revoked(world: World, gate: Gate, held: Held) -> None:
    grant(gate, held)
    _add(world, gate, held, "grant_revoked")


def _add(world: World, gate: Gate, held: Held, kind: str) -> None:
    """Record what a person said, as the verbs of approvals will."""

    def added(transaction: Transaction) -> None:
        transaction.file(held.action)
        transaction.draft.add(kind, {"approval": held.approval.id, "by": "ada"}, action=held.action)

    gate._shop.ledger.change(world.events(held.action)[0].run, added)


@pytest.mark.parametrize("end", [_rejected, _revoked])
def test_a_persons_no_is_final_for_the_key(world: World, end: Callable[[World, Gate, Held], None]) -> None:
    policy = ScriptedPolicy(require_approval("big"))
    with world.gate(policy=policy) as gate:
        run = opened(gate)
        held = gate.call(run, "refund", ONE, key="k")
        assert isinstance(held, Held)
        end(world, gate, held)
        again = [gate.call(opened(gate, name), "refund", ONE, key="k") for name in ("ticket-1", "another")]
    assert all(isinstance(outcome, Refused) and outcome.action == held.action for outcome in again)
    assert len(policy.requests) == 1
    assert world.downstream.total == 0


# --- waits ----------------------------------------------------------------------------------------------


def test_a_wait_is_recorded_once_for_each_reason_and_leaves_the_key_as_good_as_it_was(world: World) -> None:
    reached: list[str] = []

    def act(n: int) -> int:
        if n == 0:  # while it runs, nothing else of the run may
            for _ in range(3):
                waiting = other.call(opened(other, "run"), "act", {"n": 1}, key="k")
                assert isinstance(waiting, Refused)
                assert waiting.retryable
                reached.append(waiting.reason)
        return n

    with gates(world, named("act", act)) as (gate, other):
        run = gate.run("run", principal="agent:support", tenant="acme", limits=Limits(parallel=1))
        gate.pause(by="ada", reason="a bad hour", tool="act")
        for _ in range(3):
            paused = gate.call(run, "act", {"n": 1}, key="k")
            assert isinstance(paused, Refused)
            reached.append(paused.reason)
        gate.resume(by="ada", tool="act")
        gate.call(run, "act", {"n": 0})
        done = gate.call(run, "act", {"n": 1}, key="k")
    assert reached == ["paused"] * 3 + ["limit_parallel"] * 3
    assert isinstance(done, Done)
    assert world.words(done.action) == ["proposed", "waited", "waited", "started", "succeeded"]
    assert world.value("SELECT revision FROM agentgate_actions WHERE id = ?", done.action) == 1


def test_a_busy_or_blocked_resource_is_a_wait_recorded_once(world: World) -> None:
    reached: list[str] = []

    def refund(account: str, cents: int) -> int:
        if cents == 1:
            reached.extend(wait(other) for _ in range(2))
            raise RuntimeError("nobody knows")
        return len(account)

    def wait(gate: Gate) -> str:
        outcome = gate.call(opened(gate, "other"), "refund", TWO, key="k")
        assert isinstance(outcome, Refused)
        assert outcome.retryable
        return outcome.reason

    with gates(world, named("refund", refund, resource="account:{account}")) as (gate, other):
        doubted = gate.call(opened(gate), "refund", ONE)
        reached += [wait(gate) for _ in range(2)]
        gate.reconcile(doubted.action, applied=False, by="ada", evidence="looked", tenant="acme")
        done = gate.call(opened(gate, "other"), "refund", TWO, key="k")
    assert reached == ["busy", "busy", "blocked", "blocked"]
    assert isinstance(done, Done)
    assert world.words(done.action) == ["proposed", "waited", "waited", "started", "succeeded"]


def test_siblings_of_a_batch_that_ran_side_by_side_are_durable_when_one_of_them_fails(world: World) -> None:
    def act(n: int) -> int:
        if n == 2:
            raise SystemExit("its thread is gone")
        return n * 10

    calls = [Call("act", {"n": n}, key=f"k{n}") for n in range(5)]
    tool = named("act", act, resource="thing:{n}")  # without one, what is in doubt would rightly block the others
    with world.gate(tool) as gate, ThreadPoolExecutor() as pool:
        tries = [pool.submit(gate.execute, proposal) for proposal in gate.propose_many(opened(gate), calls)]
        failures = [one.exception() for one in tries]
    assert [type(failure) for failure in failures] == [type(None)] * 2 + [SystemExit] + [type(None)] * 2
    with world.gate(tool) as gate:
        again = [proposal.outcome for proposal in gate.propose_many(opened(gate), calls)]
    told = [one.observation.value if isinstance(one, Done) else type(one).__name__ for one in again]
    assert told == [0, 10, "Unknown", 30, 40]
    assert isinstance(again[2], agentgate.Unknown)
