"""A late success after "not applied" never lets the effect run again: not in another state, not in another revision."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Effect, Gate, Keyed, NoEffect, NotPossible, Refused, Unknown
from agentgate.testing import FakeClock
from agentgate.tools.recovery import Recovery
from support.worlds import World, named, opened

LOST = timedelta(minutes=2)
RESOURCES = pytest.mark.parametrize("resource", [None, "account:{account}"])


class Lost:
    """The first effect answers when it is told to; what comes after it does what it is told."""

    def __init__(self, world: World, *, then: str = "pays") -> None:
        self.world, self.then = world, then
        self.inside, self.go = threading.Event(), threading.Event()
        self.entered = 0
        self.second_inside, self.second_go = threading.Event(), threading.Event()

    def pay(self, account: str, *, effect: Effect) -> str:
        self.entered += 1
        if self.entered == 1:
            self.inside.set()
            assert self.go.wait(30)
        elif self.then == "fails":
            self.second_inside.set()
            assert self.second_go.wait(30)
            raise NoEffect("nothing was sent")
        elif self.then == "is lost":
            raise ConnectionResetError
        self.world.downstream.apply(effect, resource=account)
        return "paid"


@contextmanager
def lost(
    world: World, clock: FakeClock, bank: Lost, *, resource: str | None, recovery: Recovery | None = None
) -> Iterator[tuple[Gate, str]]:
    """Have an effect under way whose action somebody says did not happen, wrongly; let it answer at the end."""
    declared = {} if resource is None else {"resource": resource}
    tool = named("pay", bank.pay, **declared, **({} if recovery is None else {"recovery": recovery}))
    with world.gate(tool, clock=clock) as gate:
        thread = threading.Thread(target=call, args=(gate,))
        thread.start()
        assert bank.inside.wait(30)
        (action,) = (row[0] for row in world.sql("SELECT id FROM agentgate_actions"))
        clock.advance(LOST)
        gate.reconcile(action, applied=False, by="ada", evidence="nothing in the bank's log", tenant="acme")
        try:
            yield gate, action
        finally:
            bank.go.set()
            bank.second_go.set()
            thread.join()
    assert not world.damage()


def call(gate: Gate) -> agentgate.Outcome:
    return gate.call(opened(gate), "pay", {"account": "a"}, key="k")


def answered(world: World, bank: Lost, action: str) -> None:
    """Let the first effect succeed, late."""
    bank.go.set()
    for _ in range(3_000):
        if "late" in world.words(action):
            return
        threading.Event().wait(0.01)
    raise AssertionError("no late answer")


@RESOURCES
def test_ready_again_it_is_unknown_and_not_run(world: World, clock: FakeClock, resource: str | None) -> None:
    bank = Lost(world)
    with lost(world, clock, bank, resource=resource) as (gate, action):
        answered(world, bank, action)
        assert isinstance(call(gate), Unknown)
        gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        assert isinstance(call(gate), Done)
    assert world.downstream.total == 1


@RESOURCES
def test_cancelled_its_key_opens_no_revision_once_it_is_known_to_have_happened(
    world: World, clock: FakeClock, resource: str | None
) -> None:
    bank = Lost(world)
    with lost(world, clock, bank, resource=resource) as (gate, action):
        gate.cancel(action, by="ada", tenant="acme")
        answered(world, bank, action)
        blocked = call(gate)
        assert isinstance(blocked, Refused)
        assert blocked.action == action
        gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        refused = call(gate)
        assert isinstance(refused, Refused)
        assert (refused.action, refused.reason, refused.retryable) == (action, "happened", False)
        assert gate.propose(opened(gate), "pay", {"account": "a"}, key="k").revision == 1
    assert world.downstream.total == 1


@RESOURCES
def test_a_later_revision_waits_for_the_answer_and_is_refused_once_it_has_happened(
    world: World, clock: FakeClock, resource: str | None
) -> None:
    bank = Lost(world)
    with lost(world, clock, bank, resource=resource) as (gate, action):
        gate.cancel(action, by="ada", tenant="acme")
        second = gate.propose(opened(gate), "pay", {"account": "a"}, key="k")
        assert second.revision == 2
        answered(world, bank, action)
        waits = gate.execute(second)
        assert isinstance(waits, Refused)
        assert (waits.reason, waits.blocking, waits.retryable) == ("blocked", action, True)
        gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        refused = gate.execute(second)
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.retryable) == ("happened", False)
        assert call(gate).action == second.action
    assert world.downstream.total == 1


def test_a_later_revision_that_may_be_tried_again_is_not_once_an_earlier_one_has_happened(
    world: World, clock: FakeClock
) -> None:
    """Its own key downstream is another one, so that nothing there would know the effect again."""
    bank = Lost(world, then="is lost")
    with lost(world, clock, bank, resource=None, recovery=Keyed(hours=24)) as (gate, action):
        gate.cancel(action, by="ada", tenant="acme")
        second = call(gate)
        assert isinstance(second, Unknown)
        answered(world, bank, action)
        assert isinstance(call(gate), Unknown)
        gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        assert isinstance(call(gate), Unknown)
        assert bank.entered == 2
        assert "happened" in [event.body.get("reason") for event in world.events(second.action)]
    assert world.downstream.total == 1


def test_while_another_attempt_runs_nobody_says_that_it_happened_so_that_its_failure_makes_nothing_ready(
    world: World, clock: FakeClock
) -> None:
    bank = Lost(world, then="fails")
    with lost(world, clock, bank, resource=None) as (gate, action):
        outcomes: list[agentgate.Outcome] = []
        second = threading.Thread(target=lambda: outcomes.append(call(gate)))
        second.start()
        assert bank.second_inside.wait(30)
        answered(world, bank, action)
        with pytest.raises(NotPossible) as refused:
            gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        assert "once that has ended" in str(refused.value)
        bank.second_go.set()
        second.join()
        assert isinstance(outcomes[0], Unknown)
        gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        assert isinstance(call(gate), Done)
    assert world.downstream.total == 1
