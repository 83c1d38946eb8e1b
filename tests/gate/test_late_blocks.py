"""A late answer puts an attempt in doubt again: its resource is blocked from then on (design §5)."""

import threading
from datetime import timedelta

import agentgate
from agentgate import Done, Refused, Unknown
from agentgate.testing import FakeClock
from support.worlds import World, named, opened

LOST = timedelta(minutes=2)
ACCOUNT = {"account": "a"}


class Worker:
    """An effect that stays inside until it is let go."""

    def __init__(self) -> None:
        self.inside, self.go = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.inside.set()
        assert self.go.wait(30)
        return "done"


class Bank:
    """Workers in the order they come; who comes after them is done at once."""

    def __init__(self, *workers: Worker) -> None:
        self.workers = list(workers)

    def pay(self, account: str) -> str:
        return self.workers.pop(0)() if self.workers else account


def _begun(gate: agentgate.Gate, worker: Worker) -> tuple[str, threading.Thread]:
    """Have an effect under way; return its action and the thread it is called from."""
    proposal = gate.propose(opened(gate), "pay", ACCOUNT)
    thread = threading.Thread(target=gate.execute, args=(proposal,))
    thread.start()
    assert worker.inside.wait(30)
    return proposal.action, thread


def _lost(gate: agentgate.Gate, clock: FakeClock, action: str) -> None:
    """Take over from a worker, and say that nothing happened: wrongly, as it turns out."""
    clock.advance(LOST)
    gate.reconcile(action, applied=False, by="ada", evidence="nothing in the bank's log", tenant="acme")
    gate.cancel(action, by="ada", tenant="acme")


def test_a_late_answer_blocks_its_resource(world: World, clock: FakeClock) -> None:
    worker = Worker()
    with world.gate(named("pay", Bank(worker).pay, resource="account:{account}"), clock=clock) as gate:
        action, thread = _begun(gate, worker)
        _lost(gate, clock, action)
        worker.go.set()
        thread.join()
        assert world.words(action)[-1] == "late"
        other = gate.call(opened(gate), "pay", ACCOUNT)
        assert isinstance(other, Refused)
        assert (other.reason, other.blocking) == ("blocked", action)
        gate.reconcile(action, applied=True, by="ada", evidence="there it is", tenant="acme")
        assert isinstance(gate.execute(other.action, tenant="acme"), Done)
    assert agentgate.verify(world.url).ok


def test_a_late_answer_blocks_its_resource_once_the_one_at_work_there_has_ended(world: World, clock: FakeClock) -> None:
    first, second = Worker(), Worker()
    with world.gate(named("pay", Bank(first, second).pay, resource="account:{account}"), clock=clock) as gate:
        action, lost = _begun(gate, first)
        _lost(gate, clock, action)
        successor, thread = _begun(gate, second)
        first.go.set()
        lost.join()
        assert world.words(action)[-1] == "late"
        assert agentgate.verify(world.url).ok
        second.go.set()
        thread.join()
        assert world.state(successor) == "SUCCEEDED"
        other = gate.call(opened(gate), "pay", ACCOUNT)
        assert isinstance(other, Refused)
        assert (other.reason, other.blocking) == ("blocked", action)
    assert agentgate.verify(world.url).ok


def test_a_late_answer_of_a_tool_that_runs_in_parallel_blocks_nothing(world: World, clock: FakeClock) -> None:
    worker = Worker()
    tool = named("pay", Bank(worker).pay, resource="account:{account}", risk="read_only", recovery=agentgate.Operator())
    with world.gate(tool, clock=clock) as gate:
        action, thread = _begun(gate, worker)
        clock.advance(LOST)
        assert isinstance(gate.execute(action, tenant="acme"), Unknown)
        worker.go.set()
        thread.join()
        assert isinstance(gate.call(opened(gate), "pay", ACCOUNT), Done)
    assert agentgate.verify(world.url).ok
