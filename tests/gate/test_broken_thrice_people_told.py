"""Telling many questions: what one of them costs does not grow with how many are pending."""

from typing import Any

import pytest
from sqlalchemy.engine import Connection

from agentgate import Gate, require_approval
from agentgate.store import notices
from agentgate.testing import CollectingChannel, ScriptedPolicy
from support.worlds import World, opened

ASK = require_approval("big")


def ask(gate: Gate, count: int, *, first: int = 0) -> None:
    for number in range(first, first + count):
        gate.call(opened(gate), "refund", {"account": f"a{number}", "cents": 1}, key=f"k{number}")


def test_what_is_told_costs_the_same_however_many_are_pending(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, due = 0, notices.due

    def step() -> None:
        nonlocal steps
        steps += 1

    def counted(connection: Connection, name: str, **given: Any) -> Any:
        raw: Any = connection.connection.driver_connection
        raw.set_progress_handler(step, 1)
        try:
            return due(connection, name, **given)
        finally:
            raw.set_progress_handler(None, 0)

    monkeypatch.setattr(notices, "due", counted)
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        ask(gate, 30)
        assert gate.deliver(CollectingChannel("few")) == 30
        few, steps = steps / 30, 0
        ask(gate, 90, first=30)
        assert gate.deliver(CollectingChannel("many")) == 120
    assert 0 < steps / 120 <= few * 1.5, (few, steps / 120)


def test_what_is_asked_while_others_are_told_is_told_too_and_ended_marks_go(world: World) -> None:
    class Asking(CollectingChannel):
        def asked(self, question: Any) -> None:
            super().asked(question)
            if len(self.questions) == 1:
                ask(gate, 2, first=10)

    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        ask(gate, 3)
        channel = Asking()
        assert gate.deliver(channel) == 5
        assert len({question.id for question in channel.questions}) == 5
        for question in channel.questions[:4]:
            gate.approvals.reject(question.id, digest=question.digest, by="person:ada", tenant="acme")
        ask(gate, 1, first=20)
        assert gate.deliver(channel) == 1
    assert world.value("SELECT count(*) FROM agentgate_notices") == 2
