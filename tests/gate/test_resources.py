"""Writes to one resource take turns, and an unknown outcome holds it."""

import os
import threading
from collections.abc import Callable

import agentgate
from agentgate import Done, Refused, ToolError
from support import forking
from support.worlds import World, gates, named, opened

ONE = {"account": "a1", "cents": 1}


# --- resources -----------------------------------------------------------------------------------


def both(*ends: Callable[[], object]) -> agentgate.Tool[..., object]:
    """Make a tool on a resource whose calls end as told, one after the other."""
    left = list(ends)

    def act(account: str) -> object:
        return left.pop(0)() if left else account

    return named("act", act, resource="account:{account}")


def fail(error: Exception) -> Callable[[], object]:
    def end() -> object:
        raise error

    return end


def test_writes_to_one_resource_take_turns_and_others_go_on(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(30)

    with gates(world, both(hold)) as (first, second):
        run = opened(first)
        thread = threading.Thread(target=first.call, args=(run, "act", {"account": "a"}), kwargs={"key": "holds"})
        thread.start()
        assert entered.wait(30)
        busy = second.call(run, "act", {"account": "a"}, key="k")
        assert isinstance(second.call(run, "act", {"account": "b"}), Done)
        holder = second.propose(run, "act", {"account": "a"}, key="holds")
        leave.set()
        thread.join()
        assert isinstance(second.call(run, "act", {"account": "a"}, key="k"), Done)
    assert isinstance(busy, Refused)
    assert (busy.reason, busy.retryable, busy.blocking) == ("busy", True, holder.action)
    assert world.value("SELECT count(*) FROM agentgate_locks") == 0


def test_an_unknown_outcome_blocks_its_resource_in_every_run_until_it_is_reconciled(world: World) -> None:
    with gates(world, both(fail(ConnectionResetError()))) as (first, second):
        unknown = first.call(opened(first, "run-1"), "act", {"account": "a"}, key="k")
        other = opened(second, "run-2")
        blocked = second.call(other, "act", {"account": "a"}, key="waits")
        assert isinstance(second.call(other, "act", {"account": "b"}), Done)
        # Another tenant's account of the same name is another account.
        assert isinstance(second.call(opened(second, tenant="other"), "act", {"account": "a"}), Done)
        second.reconcile(unknown.action, applied=True, by="ada", evidence=None, tenant="acme")
        assert isinstance(second.call(other, "act", {"account": "a"}, key="waits"), Done)
    assert isinstance(blocked, Refused)
    assert (blocked.reason, blocked.retryable, blocked.blocking) == ("blocked", True, unknown.action)


def test_a_clean_failure_gives_the_resource_back(world: World) -> None:
    with world.gate(both(fail(ToolError("not_found", "no")))) as gate:
        run = opened(gate)
        gate.call(run, "act", {"account": "a"})
        assert isinstance(gate.call(run, "act", {"account": "a"}), Done)


def test_the_action_that_blocks_its_resource_may_itself_run_again(world: World) -> None:
    with world.gate(both(fail(ConnectionResetError()))) as gate:
        run = opened(gate)
        unknown = gate.call(run, "act", {"account": "a"}, key="k")
        gate.reconcile(unknown.action, applied=False, by="ada", evidence=None, tenant="acme")
        assert isinstance(gate.call(run, "act", {"account": "a"}, key="k"), Done)
    assert world.value("SELECT count(*) FROM agentgate_locks") == 0


def test_reads_of_one_resource_run_beside_each_other_and_beside_a_doubt(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def look(account: str) -> str:
        if account == "slow":
            entered.set()
            leave.wait(30)
        return account

    read = named("look", look, risk="read_only", resource="account:{account}")
    with world.gate(read, both(fail(ConnectionResetError()))) as gate:
        run = opened(gate)
        thread = threading.Thread(target=gate.call, args=(run, "look", {"account": "slow"}))
        thread.start()
        assert entered.wait(30)
        leave.set()
        assert isinstance(gate.call(run, "look", {"account": "slow"}), Done)
        thread.join()
        gate.call(run, "act", {"account": "a"})
        assert isinstance(gate.call(run, "look", {"account": "a"}), Done)


def test_a_forked_child_is_a_holder_of_its_own(world: World) -> None:
    """A gate that is carried over a fork does not take its parent for a dead worker, nor itself for its parent."""
    holders: list[str] = []

    def act() -> None:
        holders.append(world.value("SELECT holder FROM agentgate_attempts ORDER BY fence DESC LIMIT 1"))

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        gate.call(run, "act", {})
        assert forking.run(lambda: gate.call(run, "act", {})) == 0
        (_, theirs) = world.sql("SELECT holder FROM agentgate_attempts ORDER BY fence")
    assert str(os.getpid()) in holders[0]
    assert theirs[0] != holders[0]
