"""SIGKILL between two attempts: the action rests where the last one left it, and whoever comes goes on from there."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import agentgate
from agentgate import Done, Effect, Failed, Keyed, NoEffect, Retry, ToolError, Unknown
from agentgate.testing import FakeClock
from agentgate.tools.decorator import AnyTool
from support import faulty, forking
from support.worlds import World, made, named, opened

MINUTE = timedelta(minutes=1)
PATIENT = Retry(attempts=3, wait=MINUTE, longest_wait=MINUTE)


def tool(world: World, *, error: Exception, fails: int) -> AnyTool:
    """Make a tool that raises so many times in all processes together, then reaches the downstream."""
    tries = world.folder / "tries"

    def act(*, effect: Effect) -> str:
        with tries.open("a") as file:
            file.write("x")
        if tries.stat().st_size <= fails:
            raise error
        world.downstream.apply(effect)
        return "done"

    return named("act", act, retry=PATIENT, recovery=Keyed(hours=1))


@pytest.mark.parametrize("journal", faulty.JOURNALS)
@pytest.mark.parametrize(
    ("error", "rests", "outcome"),
    [(NoEffect("not now"), "FAILED", Failed), (ToolError("transient", "lost"), "UNKNOWN", Unknown)],
)
def test_a_process_killed_between_two_attempts_loses_nothing_and_the_next_goes_on_from_the_same_count(
    tmp_path: Path, journal: str, error: Exception, rests: str, outcome: type
) -> None:
    world = made(tmp_path, journal=journal)

    def work() -> None:
        with world.gate(tool(world, error=error, fails=2)) as gate:
            gate.call(opened(gate), "act", {}, key="k")

    pid = forking.start(work)
    over = time.monotonic() + 60
    while world.sql("SELECT 1 FROM agentgate_actions WHERE state = ?", rests) == []:
        assert time.monotonic() < over
        time.sleep(0.01)
    time.sleep(0.05)  # into its sleep
    os.kill(pid, signal.SIGKILL)
    assert forking.end(pid) == forking.KILLED
    with world.gate(tool(world, error=error, fails=2)) as gate:
        rested = gate.call(opened(gate), "act", {}, key="k", wait=0)
    assert isinstance(rested, outcome)
    assert world.state(rested.action) == rests
    assert (world.folder / "tries").stat().st_size == 1
    assert world.damage() == []
    later = FakeClock(datetime.now(UTC) + MINUTE)
    with world.gate(tool(world, error=error, fails=2), clock=later) as gate:
        done = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(done, Done)
    assert world.value("SELECT attempts FROM agentgate_actions") == 3
    assert world.downstream.total == 1
    assert world.damage() == []


def test_eight_processes_that_retry_one_key_make_its_attempts_once_together(tmp_path: Path) -> None:
    world = made(tmp_path)
    tries = world.folder / "tries"
    retry = Retry(attempts=4, wait=timedelta(milliseconds=20))

    def act() -> None:
        with tries.open("a") as file:
            file.write("x")
        raise NoEffect("not now")

    def work() -> None:
        with world.gate(named("act", act, retry=retry)) as gate:
            assert isinstance(gate.call(opened(gate), "act", {}, key="k"), Failed | agentgate.Running)

    with world.gate(named("act", act, retry=retry)) as gate:
        opened(gate)
    assert [forking.end(pid) for pid in [forking.start(work) for _ in range(8)]] == [0] * 8
    assert tries.stat().st_size <= 4
    with world.gate(named("act", act, retry=retry)) as gate:
        assert isinstance(gate.call(opened(gate), "act", {}, key="k"), Failed)
    assert tries.stat().st_size == 4
    assert world.damage() == []
