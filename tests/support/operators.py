"""Tools whose answers get lost, and people who say what became of it."""

from typing import Any

import agentgate
from agentgate import Effect, Gate, Unknown
from agentgate.tools.decorator import AnyTool
from support.worlds import World, opened

ONE = {"account": "a1", "cents": 1250}
KEY = "refund-1"


def lost(world: World, *, times: int = 1, **declared: Any) -> AnyTool:
    """Make a tool that reaches the downstream and loses its answer, the first times that it is called."""
    calls: list[int] = []

    def refund(account: str, cents: int, *, effect: Effect) -> dict[str, int]:
        calls.append(effect.attempt)
        world.downstream.apply(effect, resource=account)
        if len(calls) <= times:
            raise ConnectionResetError
        return {"cents": cents}

    return agentgate.tool(**{"risk": "external", "resource": "account:{account}"} | declared)(refund)


def call(gate: Gate, **options: Any) -> agentgate.Outcome:
    return gate.call(opened(gate), "refund", ONE, key=KEY, **options)


def asked(outcome: agentgate.Outcome) -> agentgate.Approval:
    assert isinstance(outcome, Unknown)
    assert outcome.question is not None
    return outcome.question


def answer(gate: Gate, question: agentgate.Approval, verdict: Any, by: str = "ada", **more: Any) -> Any:
    return gate.approvals.answer(question.id, digest=question.digest, verdict=verdict, by=by, tenant="acme", **more)


def grants(world: World, action: str) -> list[tuple[str, str]]:
    """Read what was asked about an action, in order: its kind and its state."""
    statement = "SELECT kind, state FROM agentgate_approvals WHERE action = ? ORDER BY asked_n"
    return [(str(kind), str(state)) for kind, state in world.sql(statement, action)]


def asked_action(world: World) -> str:
    return str(world.value("SELECT id FROM agentgate_actions"))
