"""What stands in an action's way is told as it is: a worker that is gone is no busy one."""

import agentgate
from agentgate import Effect, Refused, Unknown
from support import forking
from support.worlds import World, opened


def _dying(world: World) -> None:
    def refund(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001 - as its spec says
        forking.die()

    def work() -> None:
        with world.gate(agentgate.gated(world.refund().spec, refund)) as gate:
            gate.call(opened(gate), "refund", {"account": "a1", "cents": 1}, key="first")

    assert forking.run(work) == forking.KILLED


def test_a_dead_worker_blocks_its_resource_as_unknown_at_the_first_look(world: World) -> None:
    _dying(world)
    with world.gate(world.refund()) as gate:
        run = opened(gate)
        other = gate.call(run, "refund", {"account": "a1", "cents": 2}, key="second")
        assert isinstance(other, Refused)
        assert (other.reason, other.retryable) == ("blocked", True)
        first = gate.call(run, "refund", {"account": "a1", "cents": 1}, key="first")
        assert isinstance(first, Unknown)
        assert other.blocking == first.action
    assert world.downstream.total == 0


def test_what_a_tool_said_of_a_doubtful_end_stands_in_the_details(world: World) -> None:
    def break_off(account: str, cents: int) -> None:  # noqa: ARG001 - as its spec says
        raise ConnectionResetError("reset by peer")

    with world.gate(agentgate.gated(world.refund().spec, break_off)) as gate:
        told = [gate.call(opened(gate), "refund", {"account": "a1", "cents": 1}, key="k") for _ in range(2)]
    for outcome in told:
        assert isinstance(outcome, Unknown)
        assert outcome.error.code == "unknown_outcome"
        assert outcome.error.details is not None
        assert "reset by peer" in str(outcome.error.details)
