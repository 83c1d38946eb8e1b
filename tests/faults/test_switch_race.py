"""Eight processes race claims while a ninth pauses: what it does not report as executing does not begin any more."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentgate import Done, Effect, Gate, Paused, Refused
from agentgate.testing import Downstream
from agentgate.tools.decorator import AnyTool
from support import faulty, forking
from support.worlds import World, made, named, opened

PROCESSES = 8
CALLS = 60
ROUNDS = 3
BETWEEN_S = 0.005
PATIENCE_S = 60


def tool(world: World) -> AnyTool:
    """Make a tool that first of all says when its effect began; the clock is one for all processes."""

    def act(key: str, *, effect: Effect) -> str:
        stamp = f"{time.monotonic_ns()} {effect.action_id}\n"
        book = os.open(world.folder / "book", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(book, stamp.encode())
        os.close(book)
        Downstream(world.folder / "downstream.db").apply(effect, resource=key)
        return key

    return named("act", act)


def work(world: World, n: int) -> None:
    """Call under key after key, each until it is done; what is paused comes back with the same key."""
    with world.gate(tool(world)) as gate:
        run = opened(gate, f"agent-{n}")
        for step in range(CALLS):
            key = f"{n}/{step}"
            while not isinstance(outcome := gate.call(run, "act", {"key": key}, key=key), Done):
                assert isinstance(outcome, Refused), outcome
                assert outcome.reason == "paused"
                time.sleep(BETWEEN_S)


def begun(world: World) -> list[tuple[int, str]]:
    """Read when which effects began, in order."""
    book = world.folder / "book"
    lines = book.read_text().splitlines() if book.exists() else []
    return sorted((int(at), action) for at, action in (line.split() for line in lines))


def wait_for(there: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < until
        time.sleep(BETWEEN_S)


def waiting(world: World) -> int:
    """Count the actions that wait because of the pause."""
    return int(world.value("SELECT count(*) FROM agentgate_actions WHERE state = 'READY' AND waited = 'paused'"))


def pause_once(world: World, gate: Gate, *, after: int) -> Paused:
    """Pause in the middle of it all; check that nothing began since."""
    wait_for(lambda: len(begun(world)) >= after)
    paused = gate.pause(by="ops:ada", reason="stop it")
    returned = time.monotonic_ns()
    wait_for(lambda: waiting(world) == PROCESSES)
    reported = {one.action for one in paused.executing}
    assert [action for at, action in begun(world) if at > returned and action not in reported] == []
    # By the ledger's own order, in which rows are numbered as they are written: no start between the two switches.
    last = "SELECT max(rowid) FROM agentgate_events WHERE "
    switched = world.value(last + 'instr(event, \'"type":"switched"\')')
    assert switched > world.value(last + 'instr(event, \'"type":"started"\')')
    return paused


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_once_a_pause_has_returned_nothing_begins_that_it_did_not_report(tmp_path: Path, journal: str) -> None:
    world = made(tmp_path, journal=journal)
    with world.gate(tool(world)) as gate:
        opened(gate)
    children = [forking.start(lambda n=n: work(world, n)) for n in range(PROCESSES)]  # type: ignore[misc]
    with world.gate(tool(world)) as gate:
        reported = 0
        for turn in range(1, ROUNDS + 1):
            before = turn * PROCESSES * CALLS // (ROUNDS + 2)
            paused = pause_once(world, gate, after=before)
            reported += len(paused.executing)
            assert len(begun(world)) < PROCESSES * CALLS  # it was in the middle
            gate.resume(by="ops:ada")
    assert [forking.end(child) for child in children] == [0] * PROCESSES
    print(f"\n{journal}: {ROUNDS} pauses among {PROCESSES} processes, {reported} effects reported as executing")
    # Resumed, the same keys ran, each once.
    assert len(begun(world)) == PROCESSES * CALLS
    assert world.downstream.total == PROCESSES * CALLS
    assert set(world.downstream.effects.values()) == {1}
    assert world.sql("SELECT state, count(*) FROM agentgate_actions GROUP BY state") == [
        ("SUCCEEDED", PROCESSES * CALLS)
    ]
    assert not world.damage()
