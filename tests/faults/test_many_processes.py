"""Sixteen processes, two hundred actions each, one SQLite file: nobody is told "database is locked", nobody starves."""

import json
import os
import time
from pathlib import Path

import pytest

from agentgate import Done
from support import faulty, forking
from support.worlds import World, made, opened

PROCESSES = 16
ACTIONS = 200
LONGEST_WAIT_S = 10.0


def work(world: World, n: int) -> None:
    """Call two hundred times in a run of its own; leave behind how long the longest took, or what went wrong."""
    longest = 0.0
    with world.gate(world.refund(resource=None)) as gate:
        run = opened(gate, f"agent-{n}")
        for step in range(ACTIONS):
            began = time.monotonic()
            outcome = gate.call(run, "refund", {"account": f"a{n}", "cents": step}, key=f"{n}/{step}")
            longest = max(longest, time.monotonic() - began)
            assert isinstance(outcome, Done), outcome
    (world.folder / f"longest-{n}.json").write_text(json.dumps(longest))


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_sixteen_processes_share_one_file(tmp_path: Path, journal: str) -> None:
    world = made(tmp_path, journal=journal)
    with world.gate(world.refund(resource=None)) as gate:
        opened(gate)
    began = time.monotonic()
    children = [forking.start(lambda n=n: work(world, n)) for n in range(PROCESSES)]  # type: ignore[misc]
    ends = [forking.end(child) for child in children]
    took = time.monotonic() - began
    longest = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("longest-*.json"))]
    calls = PROCESSES * ACTIONS
    print(
        f"\n{journal}: {calls} calls of {PROCESSES} processes on {os.cpu_count()} cores in {took:.1f} s, "
        f"{calls / took:.0f} a second; the worst wait of a call {max(longest, default=0):.2f} s"
    )
    assert ends == [0] * PROCESSES
    assert world.downstream.total == calls
    assert set(world.downstream.effects.values()) == {1}
    assert not world.damage()
    assert world.sql("SELECT state, count(*) FROM agentgate_actions GROUP BY state") == [("SUCCEEDED", calls)]
    assert max(longest) < LONGEST_WAIT_S
