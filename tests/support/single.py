"""One call of one tool in a run of its own, and what it left."""

import time
from collections.abc import Callable

from agentgate import Outcome
from support.worlds import World, named, opened


def run_one(world: World, function: Callable[..., object], **declared: object) -> Outcome:
    """Call a tool once in a run of its own."""
    with world.gate(named("act", function, **declared)) as gate:
        return gate.call(opened(gate), "act", {}, key="k")


def stored(world: World, action: str, kind: str = "result") -> str:
    """Read an action's payload of a kind."""
    event = next(event for event in reversed(world.events(action)) if kind in event.body["payloads"])  # type: ignore[operator]
    sql = "SELECT content FROM agentgate_payloads WHERE run = ? AND n = ? AND kind = ?"
    return bytes(world.value(sql, event.run, event.n, kind)).decode()


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread is about to write."""
    over = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < over
        time.sleep(0.005)
