"""The disk itself fails, in a process of its own: no effect without its start, nothing half written, and on it goes."""

import resource
import signal
from pathlib import Path

import pytest

import agentgate
from agentgate import AgentgateError, Damaged, Done, Effect, Gate, Run, Unavailable
from support import faulty, forking
from support.worlds import World, made, named, opened

PAGE, MOST = 4_096, 24


def paying(world: World) -> agentgate.Tool[..., object]:
    def pay(key: str, *, effect: Effect) -> str:
        world.downstream.apply(effect, resource=key)
        return key * 1_000  # a result that takes some pages

    return named("pay", pay, resource="{key}")


def attempt(gate: Gate, run: Run, key: str) -> object:
    try:
        return gate.call(run, "pay", {"key": key}, key=key)
    except AgentgateError as error:
        return error


def limit(most: int) -> None:
    """Let no file of this process grow beyond so many bytes; to write there is an error, not a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def check(world: World, key: str, answer: object) -> None:
    assert isinstance(answer, Done | Unavailable), (key, answer)
    effects = [one.resource for one in world.downstream.arrivals].count(key)
    rows = world.sql("SELECT id FROM agentgate_actions WHERE key_text = ?", key)
    words = world.words(rows[0][0]) if rows else []
    assert effects <= words.count("started") <= 1, (key, words)
    if isinstance(answer, Done):
        assert effects == 1


@pytest.mark.parametrize("journal", faulty.JOURNALS)
@pytest.mark.parametrize("pages", range(0, 24, 3))
def test_a_file_that_may_grow_no_further_stops_effects_and_halves_nothing(
    tmp_path: Path, journal: str, pages: int
) -> None:
    world = made(tmp_path, journal=journal)

    def work() -> None:
        with world.gate(paying(world)) as gate:
            run = opened(gate)
            assert isinstance(attempt(gate, run, "warm"), Done)
            limit(world.path.stat().st_size + pages * PAGE)
            answers = {f"k{number}": attempt(gate, run, f"k{number}") for number in range(MOST)}
            limit(resource.RLIM_INFINITY)
            assert any(isinstance(answer, AgentgateError) for answer in answers.values())
            for key, answer in answers.items():
                check(world, key, answer)
            assert isinstance(attempt(gate, run, "afterwards"), Done)

    assert forking.run(work) == 0
    assert not world.damage()


@pytest.mark.parametrize("journal", faulty.JOURNALS)
def test_a_file_removed_under_a_gate_is_damage_and_nothing_runs_without_a_record(tmp_path: Path, journal: str) -> None:
    world = made(tmp_path, journal=journal)
    with world.gate(paying(world)) as gate:
        run = opened(gate)
        assert isinstance(attempt(gate, run, "warm"), Done)
        world.path.unlink()
        assert isinstance(attempt(gate, run, "k"), Damaged | Unavailable)
    assert [one.resource for one in world.downstream.arrivals] == ["warm"]
    assert not world.path.exists()
