"""The loop: a scripted model proposes calls, the gate answers, the model may think again. This is all of it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agentgate.canonical import Json
from agentgate.demo.story import Story
from agentgate.gate.face import Gate
from agentgate.gate.opening import Run
from agentgate.outcome import Outcome, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as the model proposes it.

    Args:
        tool: the tool's name.
        arguments: what it is called with.
        key: names the intent; the same in every process and after every restart.
        second_thought: what the model sends when it is told that these arguments are invalid.
    """

    tool: str
    arguments: dict[str, Json]
    key: str | None = None
    second_thought: dict[str, Json] | None = None


def work(story: Story, gate: Gate, run: Run, calls: Iterable[Call]) -> list[Outcome]:
    """Propose calls one after the other, correcting what the gate calls invalid; return what came of each."""
    waiting, outcomes = deque(calls), list[Outcome]()
    while waiting:
        call = waiting.popleft()
        story.agent(call.tool, call.arguments, call.key)
        outcome = gate.call(run, call.tool, call.arguments, key=call.key)
        story.gate(outcome)
        outcomes.append(outcome)
        if isinstance(outcome, Refused) and outcome.error.code == "invalid_arguments" and call.second_thought:
            waiting.appendleft(replace(call, arguments=call.second_thought, second_thought=None))
    return outcomes
