"""Eight pinned processes race claims while a ninth activates another policy: once it returns, none starts any more."""

import time
from functools import partial
from pathlib import Path

import pytest
from faults.test_switch_race import begun, tool, wait_for

from agentgate import Done, Running
from agentgate.testing import ScriptedPolicy
from support import faulty, forking
from support.worlds import World, made, opened

PROCESSES = 8
CALLS = 30
BETWEEN_S = 0.005
BY = "ops:ada"
ACTIVATED = 'SELECT max(rowid) FROM agentgate_events WHERE instr(event, \'"type":"policy_activated"\')'
STARTED = 'SELECT max(rowid) FROM agentgate_events WHERE instr(event, \'"type":"started"\')'


def work(world: World, n: int) -> None:
    """Call under key after key, each until it is done; what waits for its policy comes back with the same key."""
    with world.gate(tool(world), policy=ScriptedPolicy(name="old"), pinned=True) as gate:
        run = opened(gate, f"agent-{n}")
        for step in range(CALLS):
            key = f"{n}/{step}"
            while not isinstance(outcome := gate.call(run, "act", {"key": key}, key=key), Done):
                # One of them is being done by the gate of the other policy, see below.
                assert isinstance(outcome, Running) or outcome.reason == "policy_inactive", outcome
                time.sleep(BETWEEN_S)


def waiting(world: World) -> int:
    """Count the actions that wait because of the activation."""
    return int(
        world.value("SELECT count(*) FROM agentgate_actions WHERE state = 'READY' AND waited = 'policy_inactive'")
    )


def executing(world: World) -> set[str]:
    return {action for (action,) in world.sql("SELECT action FROM agentgate_attempts WHERE state = 'open'")}


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_once_an_activation_has_returned_no_pinned_gate_of_another_policy_starts_anything(
    tmp_path: Path, journal: str
) -> None:
    world = made(tmp_path, journal=journal)
    with world.gate(tool(world), policy=ScriptedPolicy(name="old")) as old:
        opened(old)
        old.activate_policy(by=BY)
        children = [forking.start(partial(work, world, n)) for n in range(PROCESSES)]
        with world.gate(tool(world), policy=ScriptedPolicy(name="new"), pinned=True) as new:
            wait_for(lambda: len(begun(world)) >= PROCESSES * CALLS // 3)
            new.activate_policy(by=BY)
            wait_for(lambda: waiting(world) == PROCESSES)
            # By the ledger's own order, in which rows are numbered as they are written.
            assert world.value(ACTIVATED) > world.value(STARTED)
            assert not executing(world)
            before = len(begun(world))
            assert before < PROCESSES * CALLS  # it was in the middle
            # What the old ones had proposed and may not start, the new one does.
            (action,) = world.sql("SELECT id FROM agentgate_actions WHERE state = 'READY' ORDER BY id LIMIT 1")[0]
            assert isinstance(new.execute(action, tenant="acme"), Done)
            assert len(begun(world)) == before + 1
        old.activate_policy(by=BY)  # and back again
    assert [forking.end(child) for child in children] == [0] * PROCESSES
    print(f"\n{journal}: {before} effects of {PROCESSES * CALLS} had begun when the other policy was activated")
    assert world.downstream.total == len(begun(world)) == PROCESSES * CALLS
    assert set(world.downstream.effects.values()) == {1}
    assert not world.damage()
