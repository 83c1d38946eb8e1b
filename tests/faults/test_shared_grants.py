"""A standing grant of seven uses is seven effects: however many threads and processes claim at once."""

from datetime import timedelta
from pathlib import Path

import agentgate
from agentgate import Done, Held, Refused
from support import forking
from support.racing import at_once
from support.worlds import World, made, opened, slow

USES = 7
THREADS = 50
PROCESSES = 8
EACH = 7
RULES = """
version: 1
rules:
  - {name: refunds, match: {tool: refund}, outcome: require_approval, standing: true}
"""


def prepared(tmp_path: Path) -> World:
    world = made(tmp_path)
    (tmp_path / "policy.yaml").write_text(RULES)
    with gate_of(world) as gate:
        opened(gate)
        about = {"where": [{"path": "/cents", "at_most": 5}], "rest": "any"}
        gate.grants.add(
            tool="refund", tenant="acme", where=about, uses=USES, until=timedelta(hours=1), by="ada", why="seven"
        )
    return world


def gate_of(world: World) -> agentgate.Gate:
    tool = world.refund(resource=None, parallel=False)
    return world.gate(tool, policy=world.folder / "policy.yaml", settings=slow())


def one(gate: agentgate.Gate, name: str) -> None:
    outcome = gate.call(opened(gate), "refund", {"account": name, "cents": 1}, key=name)
    gone = isinstance(outcome, Refused) and outcome.reason == "standing_gone"
    assert gone or isinstance(outcome, Done | Held), outcome


def check(world: World) -> None:
    assert world.downstream.total == USES
    assert set(world.downstream.effects.values()) == {1}
    assert world.sql("SELECT most, used FROM agentgate_budgets") == [(USES, USES)]
    assert not world.damage()


def test_fifty_threads_on_seven_uses_make_exactly_seven_effects(tmp_path: Path) -> None:
    world = prepared(tmp_path)
    with gate_of(world) as gate:
        at_once(THREADS, lambda n: one(gate, f"a{n}"))
    check(world)


def test_eight_processes_on_seven_uses_make_exactly_seven_effects(tmp_path: Path) -> None:
    world = prepared(tmp_path)

    def work(n: int) -> None:
        with gate_of(world) as gate:
            for step in range(EACH):
                one(gate, f"p{n}-{step}")

    children = [forking.start(lambda n=n: work(n)) for n in range(PROCESSES)]  # type: ignore[misc]
    assert [forking.end(child) for child in children] == [0] * PROCESSES
    check(world)
