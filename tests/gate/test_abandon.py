"""Giving up: a named person says that nobody will know; what that does to key, resource and limits."""

import threading
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Gate, Limits, NotFound, NotPossible, Outcome, Proposal, Refused, Run, Unknown
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, grant, named, opened

LOST = timedelta(minutes=2)
ACCOUNT = {"account": "a"}


class Bank:
    """Pays in the mood that is next: well, in doubt, failing, or staying inside until it is let go."""

    def __init__(self, *moods: str) -> None:
        self.moods = list(moods)
        self.inside, self.go = threading.Semaphore(0), threading.Event()

    def pay(self, account: str) -> str:
        mood = self.moods.pop(0) if self.moods else "well"
        if mood == "doubt":
            raise RuntimeError("the connection broke")
        if mood == "clean":
            raise agentgate.NoEffect("closed")
        if mood == "stay":
            self.inside.release()
            assert self.go.wait(30)
        return account

    def tool(self) -> AnyTool:
        return named("pay", self.pay, resource="account:{account}")


def _pay(gate: Gate, key: str | None = None, run: Run | None = None) -> Outcome:
    return gate.call(run or opened(gate), "pay", ACCOUNT, key=key)


def _abandon(gate: Gate, action: str) -> Proposal:
    return gate.abandon(action, by="ops:ada", note="the bank is gone", tenant="acme")


def test_what_was_abandoned_blocks_nobody_and_is_told_as_unknown_for_ever(world: World) -> None:
    with world.gate(Bank("doubt").tool()) as gate:
        lost = _pay(gate, key="k1")
        assert isinstance(_pay(gate, key="k2"), Refused)
        assert _abandon(gate, lost.action).state == "ABANDONED"
        assert isinstance(_pay(gate, key="k2"), Done)
        told = _pay(gate, key="k1")
        assert isinstance(told, Unknown)
        assert (told.abandoned, told.reason, told.action) == (True, "abandoned", lost.action)
        assert told.error.message == "nobody will find out whether it happened"
    assert not world.sql("SELECT * FROM agentgate_locks")
    assert not world.damage()


def test_the_record_says_who_gave_up_and_why(world: World) -> None:
    with world.gate(Bank("doubt").tool()) as gate:
        lost = _pay(gate)
        _abandon(gate, lost.action)
    event = world.events(lost.action)[-1]
    assert (event.type, event.body["by"]) == ("abandoned", "ops:ada")
    content = world.value("SELECT content FROM agentgate_payloads WHERE run = ? AND n = ?", event.run, event.n)
    assert bytes(content) == b'{"note":"the bank is gone"}'


def test_the_next_one_in_doubt_on_the_resource_takes_over_the_block(world: World, clock: FakeClock) -> None:
    bank = Bank("stay", "doubt")
    with world.gate(bank.tool(), clock=clock) as gate:
        first = gate.propose(opened(gate), "pay", ACCOUNT)
        thread = threading.Thread(target=gate.execute, args=(first,))
        thread.start()
        assert bank.inside.acquire(timeout=30)
        clock.advance(LOST)
        gate.reconcile(first, applied=False, by="ada", evidence="nothing there")
        gate.cancel(first, by="ada")
        second = _pay(gate)  # in doubt, and holds the lock
        bank.go.set()
        thread.join()  # the first was wrongly said not to have happened: it is in doubt again
        assert isinstance(second, Unknown)
        assert world.words(first.action)[-1] == "late"
        _abandon(gate, second.action)
        blocked = _pay(gate)
        assert isinstance(blocked, Refused)
        assert (blocked.reason, blocked.blocking) == ("blocked", first.action)
        gate.reconcile(first, applied=True, by="ada", evidence="there it is")
        assert isinstance(gate.execute(blocked.action, tenant="acme"), Done)
    assert not world.damage()


def test_one_in_doubt_without_the_lock_is_given_up_while_another_works_there(world: World, clock: FakeClock) -> None:
    banks = [Bank("stay") for _ in range(3)]
    tools = [named(f"pay{n}", bank.pay, resource="account:{account}") for n, bank in enumerate(banks)]
    with world.gate(*tools, clock=clock) as gate:
        begun = [gate.propose(opened(gate), f"pay{n}", ACCOUNT) for n in range(3)]
        threads = [threading.Thread(target=gate.execute, args=(one,)) for one in begun]
        for one, bank, thread in zip(begun, banks, threads, strict=True):
            thread.start()
            assert bank.inside.acquire(timeout=30)
            if one is not begun[2]:
                clock.advance(LOST)
                gate.reconcile(one, applied=False, by="ada", evidence="nothing there")
        for n in (0, 1):
            banks[n].go.set()
            threads[n].join()
        assert [world.state(one.action) for one in begun] == ["UNKNOWN", "UNKNOWN", "EXECUTING"]
        gate.abandon(begun[0], by="ops:ada")
        assert world.sql("SELECT action FROM agentgate_locks") == [(begun[2].action,)]
        banks[2].go.set()
        threads[2].join()
        assert world.sql("SELECT action FROM agentgate_locks") == [(begun[1].action,)]
        gate.abandon(begun[1], by="ops:ada")
    assert not world.sql("SELECT * FROM agentgate_locks")
    assert not world.damage()


def test_what_was_abandoned_counts_as_taken(world: World) -> None:
    with world.gate(Bank("doubt").tool()) as gate:
        run = opened(gate, limits=Limits(actions=1))
        _abandon(gate, _pay(gate, run=run).action)
        refused = _pay(gate, run=run)
        assert isinstance(refused, Refused)
        assert refused.reason == "limit_actions"
    assert world.sql("SELECT taken, unknown FROM agentgate_runs WHERE name = 'ticket-1'") == [(1, 0)]
    assert not world.damage()


def test_a_worker_that_lives_is_not_given_up_and_one_that_is_lost_is(world: World, clock: FakeClock) -> None:
    bank = Bank("stay")
    with world.gate(bank.tool(), clock=clock) as gate:
        begun = gate.propose(opened(gate), "pay", ACCOUNT)
        thread = threading.Thread(target=gate.execute, args=(begun,))
        thread.start()
        assert bank.inside.acquire(timeout=30)
        with pytest.raises(NotPossible, match="its worker may still tell"):
            gate.abandon(begun, by="ops:ada")
        clock.advance(LOST)
        assert gate.abandon(begun, by="ops:ada").state == "ABANDONED"
        assert world.words(begun.action) == ["proposed", "started", "in_doubt", "abandoned"]
        bank.go.set()
        thread.join()
        # What came after all is kept, with its fence, and changes nothing.
        late = world.events(begun.action)[-1]
        assert (late.type, late.body["status"], late.body["fence"]) == ("late", "ok", 1)
        assert world.state(begun.action) == "ABANDONED"
        assert isinstance(_pay(gate), Done)
        # Somebody may still write down what it shows.
        gate.reconcile(begun, applied=True, by="ops:ada", evidence="it came back after all")
        assert world.state(begun.action) == "ABANDONED"
    assert not world.damage()


@pytest.mark.parametrize("state", ["READY", "HELD", "SUCCEEDED", "FAILED", "REFUSED", "ABANDONED"])
def test_only_an_unknown_outcome_is_given_up(world: World, state: str) -> None:
    bank = Bank(*{"FAILED": ["clean"], "ABANDONED": ["doubt"]}.get(state, []))
    decision = agentgate.require_approval("big") if state == "HELD" else agentgate.allow()
    with world.gate(bank.tool(), policy=ScriptedPolicy(otherwise=decision)) as gate:
        action = gate.propose(opened(gate), "pay", ACCOUNT).action
        if state in {"SUCCEEDED", "FAILED", "ABANDONED"}:
            gate.execute(action, tenant="acme")
        if state == "REFUSED":
            gate.cancel(action, by="ops:ada", tenant="acme")
        if state == "ABANDONED":
            _abandon(gate, action)
        assert world.state(action) == state
        before = world.words(action)
        with pytest.raises(NotPossible) as caught:
            _abandon(gate, action)
    assert caught.value.state == state
    assert world.words(action) == before


def test_a_grant_that_led_to_an_unknown_outcome_stays_used(world: World) -> None:
    policy = ScriptedPolicy(otherwise=agentgate.require_approval("big"))
    with world.gate(Bank("doubt").tool(), policy=policy) as gate:
        held = _pay(gate)
        assert isinstance(held, agentgate.Held)
        grant(gate, held)
        assert isinstance(gate.execute(held.action, tenant="acme"), Unknown)
        _abandon(gate, held.action)
    assert world.sql("SELECT state FROM agentgate_approvals WHERE kind = 'approval'") == [("used",)]
    assert not world.damage()


def test_another_tenants_action_is_not_found(world: World) -> None:
    with world.gate(Bank("doubt").tool()) as gate:
        lost = _pay(gate)
        with pytest.raises(NotFound):
            gate.abandon(lost.action, by="ops:ada", tenant="umbrella")
    assert world.state(lost.action) == "UNKNOWN"
