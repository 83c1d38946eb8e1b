"""What was small enough to be recorded is small enough to be read back, whatever the bounds of the day."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agentgate


@agentgate.tool(risk="external")
def keep(text: str) -> dict[str, int]:
    """Take a text."""
    return {"length": len(text)}


@agentgate.tool(risk="external")
def nest(depth: int) -> Any:
    """Return a deep value."""
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


def policy(_request: agentgate.PolicyRequest) -> agentgate.Decision:
    """Deny with more words than one argument may have."""
    if _request.tool == "nest" and _request.arguments == {"depth": 0}:
        reasons = tuple(agentgate.Reason(code=f"r{n}", text="ä" * 2_000) for n in range(64))
        return agentgate.Decision(outcome="deny", rule="wordy", reasons=reasons)
    return agentgate.allow()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[agentgate.Gate]:
    url = f"sqlite:///{tmp_path}/agent.db"
    agentgate.migrate(url)
    settings = agentgate.Settings(bounds=agentgate.Bounds(max_bytes=1_000_000, max_nodes=50_000))
    with agentgate.Gate.open(url, policy=policy, tools=[keep, nest], settings=settings) as opened:
        yield opened


def test_arguments_larger_than_the_default_bound_run_apart_from_their_proposal(gate: agentgate.Gate) -> None:
    run = gate.run("r", principal="agent:a")
    outcome = gate.execute(gate.propose(run, "keep", {"text": "x" * 500_000}))
    assert isinstance(outcome, agentgate.Done)
    assert outcome.observation.value == {"length": 500_000}


def test_the_deepest_result_that_is_kept_is_handed_back(gate: agentgate.Gate) -> None:
    run = gate.run("r", principal="agent:a")
    first = gate.call(run, "nest", {"depth": 99}, key="deep")
    again = gate.call(run, "nest", {"depth": 99}, key="deep")
    assert isinstance(first, agentgate.Done)
    assert isinstance(again, agentgate.Done)
    assert again.observation.value == first.observation.value


def test_the_longest_reasons_of_a_denial_are_handed_back(gate: agentgate.Gate) -> None:
    run = gate.run("r", principal="agent:a")
    first = gate.call(run, "nest", {"depth": 0}, key="wordy")
    again = gate.call(run, "nest", {"depth": 0}, key="wordy")
    assert isinstance(first, agentgate.Refused)
    assert isinstance(again, agentgate.Refused)
    assert again.error == first.error
