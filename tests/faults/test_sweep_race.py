"""Sweeps in processes of their own, beside workers that live and workers that die: the dead alone are taken over."""

import time
from pathlib import Path

import pytest

from agentgate import Done, Effect, Keyed
from agentgate.tools.decorator import AnyTool
from support import faulty, forking
from support.worlds import World, made, named, opened

WORKERS = 4
SWEEPERS = 2
CALLS = 40
DEATHS = 3


def act(world: World) -> AnyTool:
    def work(key: str, *, effect: Effect) -> str:
        world.downstream.apply(effect, resource=key)
        return key

    return named("act", work)


def die(key: str) -> None:
    assert key
    forking.die()


def tools(world: World) -> tuple[AnyTool, AnyTool]:
    return act(world), named("die", die, recovery=Keyed(hours=1))


def work(world: World, n: int) -> None:
    with world.gate(*tools(world)) as gate:
        run = opened(gate, f"worker-{n}")
        for step in range(CALLS):
            outcome = gate.call(run, "act", {"key": f"{n}/{step}"}, key=f"{n}/{step}")
            assert isinstance(outcome, Done), outcome
            assert outcome.source == "executed"


def sweep(world: World) -> None:
    with world.gate() as gate:
        while not (world.folder / "over").exists():
            assert gate.sweep().damaged == ()


def perish(world: World, n: int) -> None:
    with world.gate(*tools(world)) as gate:
        gate.call(opened(gate, f"dying-{n}"), "die", {"key": f"{n}"}, key=f"{n}")


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_sweeps_beside_workers_take_over_from_the_dead_alone(tmp_path: Path, journal: str) -> None:
    world = made(tmp_path, journal=journal)
    with world.gate(*tools(world)) as gate:
        opened(gate)
    sweepers = [forking.start(lambda: sweep(world)) for _ in range(SWEEPERS)]
    workers = [forking.start(lambda n=n: work(world, n)) for n in range(WORKERS)]  # type: ignore[misc]
    for n in range(DEATHS):
        assert forking.run(lambda n=n: perish(world, n)) == forking.KILLED  # type: ignore[misc]
    assert [forking.end(child) for child in workers] == [0] * WORKERS
    until = time.monotonic() + 30
    while world.sql("SELECT 1 FROM agentgate_actions WHERE state = 'EXECUTING'"):
        assert time.monotonic() < until
        time.sleep(0.01)
    (tmp_path / "over").touch()
    assert [forking.end(child) for child in sweepers] == [0] * SWEEPERS
    doubted = [event for event in world.events() if event.type == "in_doubt"]
    assert [event.body["code"] for event in doubted] == ["crashed"] * DEATHS
    assert world.sql("SELECT tool, state, count(*) FROM agentgate_actions GROUP BY 1, 2") == [
        ("act", "SUCCEEDED", WORKERS * CALLS),
        ("die", "UNKNOWN", DEATHS),
    ]
    assert set(world.downstream.effects.values()) == {1}
    assert not world.damage()
