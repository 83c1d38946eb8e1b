"""examples/langgraph_agent.py with all sorts of tools: what each may do to the record, and what it may not."""

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, interrupt
from pydantic import BaseModel, field_validator

from support.graphs import GRAPH, SECONDS, START, World, call, code, script, thread, told


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_tool_that_the_gate_does_not_know_does_not_run(world: World) -> None:
    ran = []

    @tool
    def stray() -> None:
        """Run past the gate."""
        ran.append(1)

    with world.gate() as gate:
        model = GRAPH.Scripted(responses=script([call("stray")]))
        middleware = [GRAPH.Gated(gate, principal="agent:x")]
        agent: Any = create_agent(model, [stray], middleware=middleware, checkpointer=InMemorySaver())
        (message,) = told(agent.invoke(START, thread()))
    assert code(message) == "unknown_tool"
    assert not ran


def test_a_retry_around_the_gate_repeats_no_effect(world: World) -> None:
    ran = []

    @tool
    def fragile() -> None:
        """Fail after it has happened."""
        ran.append(1)
        raise RuntimeError("connection reset")

    retrying = ToolRetryMiddleware(max_retries=3, initial_delay=0.0)
    with world.agent_with(fragile, [call("fragile")], around=[retrying]) as agent:
        (message,) = told(agent.invoke(START, thread()))
    assert code(message) == "unknown_outcome"
    assert len(ran) == 1


def test_an_error_that_langchain_would_make_an_ordinary_text_is_an_error(world: World) -> None:
    @tool
    def careless() -> None:
        """Fail."""
        raise ToolException("the account is closed")

    careless.handle_tool_error = True
    with world.agent_with(careless, [call("careless")], errors="no_effect") as agent:
        (message,) = told(agent.invoke(START, thread()))
    assert message.status == "error"
    assert "the account is closed" in message.content
    assert world.events("succeeded") == 0
    assert world.events("failed") == 1


# What only the tool's own model knows.


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number


def test_what_only_the_tools_own_model_refuses_is_refused_before_the_effect(world: World) -> None:
    ran = []

    @tool(args_schema=Even)
    def halve(number: int) -> int:
        """Halve an even number."""
        ran.append(number)
        return number // 2

    with world.agent_with(halve, [call("halve", number=3)], [call("halve", number=4)]) as agent:
        odd, even = told(agent.invoke(START, thread()))
    assert code(odd) == "invalid_arguments"
    assert even.content == "2"
    assert ran == [4]


class Torn(BaseException):
    """As KeyboardInterrupt: nobody may take it for a result."""


def test_an_interruption_passes_and_leaves_the_call_in_doubt(world: World) -> None:
    ran = []

    @tool
    def tear() -> None:
        """Be interrupted."""
        ran.append(1)
        raise Torn

    with world.agent_with(tear, [call("tear")]) as agent:
        with pytest.raises(Torn):
            agent.invoke(START, thread(), durability="sync")
        (message,) = told(agent.invoke(None, thread()))
    assert code(message) == "unknown_outcome"
    assert len(ran) == 1


def test_a_call_without_a_place_that_outlives_the_process_does_not_run(world: World) -> None:
    with world.gate() as gate:
        model = GRAPH.Scripted(responses=script([call("pay", account="a1", cents=5)]))
        agent: Any = create_agent(model, world.tools(), middleware=[GRAPH.Gated(gate, principal="agent:x")])
        with pytest.raises(RuntimeError, match="checkpointer"):
            agent.invoke(START)
    assert not world.effects


# Under asyncio.


def test_an_agent_under_asyncio_goes_through_the_same_gate(world: World) -> None:
    with world.agent("twins", saver=InMemorySaver()) as agent:
        state = asyncio.run(agent.ainvoke(START, thread()))
    assert [code(message) for message in told(state)] == ["", ""]
    assert len(world.effects) == 2


def test_a_tool_that_is_only_a_coroutine_goes_through_the_gate(world: World) -> None:
    @tool
    async def pause(number: int) -> int:
        """Wait, and give it back."""
        await asyncio.sleep(0)
        return number

    with world.agent_with(pause, [call("pause", number=3)]) as agent:
        (message,) = told(agent.invoke(START, thread()))
    assert (message.status, message.content) == ("success", "3")


def test_a_cancelled_conversation_finds_the_result_of_the_effect_that_went_on(world: World) -> None:
    entered, leave, ran = threading.Event(), threading.Event(), []

    @tool
    def slow() -> str:
        """Take its time."""
        entered.set()
        leave.wait(SECONDS)
        ran.append(1)
        return "done"

    async def converse(agent: Any) -> dict[str, Any]:
        task = asyncio.create_task(agent.ainvoke(START, thread(), durability="sync"))
        await asyncio.to_thread(entered.wait, SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        leave.set()
        async with asyncio.timeout(SECONDS):
            while not world.events("succeeded"):  # noqa: ASYNC110 - only the record knows when it has ended
                await asyncio.sleep(0.01)
        state: dict[str, Any] = await agent.ainvoke(None, thread())
        return state

    with world.agent_with(slow, [call("slow")]) as agent:
        state = asyncio.run(converse(agent))
    (message,) = told(state)
    assert (message.status, message.content) == ("success", "done")
    assert len(ran) == 1


# What forty lines do not do; docs/loops.md says so.


def test_a_tool_that_wants_the_graphs_state_does_not_run(world: World) -> None:
    ran = []

    @tool
    def injected(state: Annotated[dict[str, Any], InjectedState]) -> None:
        """Look into the graph."""
        ran.append(state)

    with world.agent_with(injected, [call("injected")]) as agent:
        (message,) = told(agent.invoke(START, thread()))
    assert code(message) == "invalid_arguments"
    assert not ran


def test_a_tool_that_pauses_the_graph_itself_is_in_doubt(world: World) -> None:
    @tool
    def pausing() -> str:
        """Ask somebody."""
        return str(interrupt("may I?"))

    with world.agent_with(pausing, [call("pausing")]) as agent:
        state = agent.invoke(START, thread())
    (message,) = told(state)
    assert code(message) == "unknown_outcome"
    assert "__interrupt__" not in state


def test_a_command_of_a_tool_is_told_and_not_obeyed(world: World) -> None:
    @tool
    def commanding() -> Command[str]:
        """Change the graph's state."""
        return Command(update={"messages": [HumanMessage("forged")]})

    with world.agent_with(commanding, [call("commanding")]) as agent:
        state = agent.invoke(START, thread())
    assert [type(message) for message in state["messages"]].count(HumanMessage) == 1
    assert "forged" in told(state)[0].content
