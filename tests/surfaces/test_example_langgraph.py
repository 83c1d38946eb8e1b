"""examples/langgraph_agent.py: the public face serves a loop that is not ours, also when its process is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START as ENTRY
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

import agentgate
from support.graphs import GRAPH, SECONDS, START, Children, World, call, code, script, thread, told
from support.source import ROOT


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    kept = Children()
    yield kept
    kept.close()


# As a reader runs it.


def run_example(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "langgraph_agent.py"), str(folder)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def payments(folder: Path) -> int:
    return len((folder / "payments.jsonl").read_text().splitlines())


def test_the_example_allows_corrects_and_denies(tmp_path: Path) -> None:
    done = run_example(tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ('"order": "o-17"', '"path": "/cents"', '{"refunded": 1250}', '"rule": "refunds-over-500"'):
        assert done.stdout.count(said) == 1
    assert payments(tmp_path) == 1


def test_the_example_killed_inside_a_tool_and_resumed_has_one_effect(tmp_path: Path) -> None:
    killed = run_example(tmp_path, CRASH="1")
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert payments(tmp_path) == 1
    resumed = run_example(tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert '"code": "unknown_outcome"' in resumed.stdout
    assert '{"refunded": 1250}' not in resumed.stdout
    assert "That is all I can do for you." in resumed.stdout
    assert payments(tmp_path) == 1


# What a call comes to.


def test_an_allowed_call_has_its_effect_once_and_the_message_carries_the_result(world: World) -> None:
    (message,) = world.converse("pay")
    assert (message.status, message.content, message.name, message.tool_call_id) == (
        "success",
        '{"paid": 5}',
        "pay",
        "call_0",
    )
    assert [effect["cents"] for effect in world.effects] == [5]


def test_a_denied_call_has_no_effect_and_the_model_is_told_why(world: World) -> None:
    (message,) = world.converse("denied")
    assert code(message) == "policy_denied"
    assert "this account is closed" in message.content
    assert not world.effects


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"account": "a1"}, 'the property \\"cents\\"'),
        ({"account": "a1", "cents": "5"}, '"path": "/cents"'),
        ({"account": "a1", "cents": 5, "x": 1}, '"path": "/x"'),
    ],
)
def test_an_invalid_call_has_no_effect_and_the_model_is_told_what_to_correct(
    world: World, arguments: dict[str, Any], said: str
) -> None:
    (message,) = world.converse(script([call("pay", **arguments)]))
    assert code(message) == "invalid_arguments"
    assert said in message.content
    assert not world.effects


def test_a_tool_keeps_the_graphs_own_configuration_and_gets_the_key_to_hand_downstream(world: World) -> None:
    world.converse("pay")
    (effect,) = world.effects
    assert effect["thread"] == "t"
    assert len(effect["key"]) == 64


# Killed.


def test_killed_inside_an_effect_the_resumed_agent_is_told_that_it_may_have_happened(
    world: World, children: Children
) -> None:
    children.die(world.folder, "pay", at="1")
    (message,) = world.converse("pay")
    assert code(message) == "unknown_outcome"
    assert len(world.effects) == 1


def test_killed_after_the_record_and_before_the_checkpoint_the_result_is_replayed(
    world: World, children: Children
) -> None:
    children.die(world.folder, "pay", at="after")
    assert world.events("succeeded") == 1
    (message,) = world.converse("pay")
    assert (message.status, message.content) == ("success", '{"paid": 5}')
    assert len(world.effects) == 1
    assert world.events("replayed") == 1


def test_killed_inside_a_read_the_resumed_agent_reads_again(world: World, children: Children) -> None:
    children.die(world.folder, "look", at="1")
    (message,) = world.converse("look")
    assert (message.status, message.content) == ("success", '{"paid": 5}')
    assert [effect["tool"] for effect in world.effects] == ["look", "look"]


def test_killed_inside_a_keyed_effect_it_is_sent_again_with_the_same_key(world: World, children: Children) -> None:
    children.die(world.folder, "post", at="1")
    (message,) = world.converse("post")
    assert message.status == "success"
    first, second = world.effects
    assert first["key"] == second["key"]


def test_killed_in_the_second_of_two_calls_alike_neither_is_repeated(world: World, children: Children) -> None:
    children.die(world.folder, "twins", at="2")
    messages = world.converse("twins")
    assert sorted(code(message) for message in messages) == ["", "unknown_outcome"]
    assert len(world.effects) == 2


def test_a_turn_that_was_not_saved_is_another_call_and_waits_for_the_one_in_doubt(
    world: World, children: Children
) -> None:
    children.die(world.folder, "pay", at="1", durability="exit")
    (message,) = world.converse("pay")
    assert message.status == "error"
    assert "another action" in message.content
    assert "the same resource" in message.content
    assert len(world.effects) == 1


# Alike and at once, and repeated by the framework.


def test_two_calls_alike_in_one_message_are_two_effects(world: World) -> None:
    messages = world.converse("twins")
    assert [message.content for message in messages] == ['{"paid": 5}'] * 2
    assert len(world.effects) == 2


def test_a_bare_tool_node_repeats_all_calls_of_a_message_and_none_of_their_effects(world: World) -> None:
    failing = iter([False, False, False, True])

    def wrap(request: Any, handler: Any) -> Any:
        message = gated.wrap_tool_call(request, handler)
        if next(failing, False):
            raise ConnectionError("the fourth call's wrapper fails, and its siblings' messages are lost with it")
        return message

    turn, _ = script([call("look", account="a1", cents=5)] * 3 + [call("look", account="a2", cents=5)])
    with world.gate() as gate:
        gated = GRAPH.Gated(gate, principal="agent:x")
        nodes = StateGraph(MessagesState)
        nodes.add_node("tools", ToolNode(world.tools(), wrap_tool_call=wrap))
        nodes.add_edge(ENTRY, "tools")
        graph: Any = nodes.compile(checkpointer=InMemorySaver())
        with pytest.raises(ConnectionError):
            graph.invoke({"messages": [turn]}, thread(), durability="sync")
        assert len(world.effects) == 4  # alike or not: each call of the message is one of its own
        state = graph.invoke(None, thread())
    assert [message.content for message in told(state)] == ['{"paid": 5}'] * 4
    assert len(world.effects) == world.events("replayed") == 4


def test_twenty_agents_at_once_each_have_their_effects(world: World) -> None:
    saver = InMemorySaver()
    with world.agent("cousins", saver=saver) as agent, ThreadPoolExecutor(20) as pool:

        def converse(number: int) -> list[ToolMessage]:
            return told(agent.invoke(START, {"configurable": {"thread_id": f"t{number}"}}))

        conversations = list(pool.map(converse, range(20)))
    assert all(len(messages) == 2 for messages in conversations)
    # The accounts are shared: who found one busy was told so, and had no effect.
    codes = [code(message) for messages in conversations for message in messages]
    assert set(codes) <= {"", "conflict"}
    assert len(world.effects) == codes.count("")


# A person must decide.


def test_a_held_call_pauses_the_graph_and_what_wakes_it_up_decides_nothing(world: World) -> None:
    with world.agent("held") as agent:
        (asked,) = agent.invoke(START, thread(), durability="sync")["__interrupt__"]
        assert 'account = "held"' in asked.value["shown"]
    with world.agent("held") as agent:  # another process
        for resume in ("approved", True, {"decision": "approve"}):
            (again,) = agent.invoke(Command(resume=resume), thread(), durability="sync")["__interrupt__"]
            assert again.value == asked.value
    assert not world.effects
    assert world.events("proposed") == 1


def test_a_question_that_was_taken_back_is_asked_again_by_a_graph_that_wakes_up(world: World) -> None:
    with world.agent("held") as agent:
        (asked,) = agent.invoke(START, thread(), durability="sync")["__interrupt__"]
        with world.gate() as gate:
            gate.cancel(asked.value["action"], by="operator:jo")
        (again,) = agent.invoke(Command(resume=True), thread(), durability="sync")["__interrupt__"]
    assert again.value["action"] != asked.value["action"]
    assert "\nrevision   2\n" in again.value["shown"]
    assert not world.effects


def test_a_call_in_doubt_can_pause_the_graph_until_somebody_has_found_out(
    world: World, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GRAPH.Gated, "pauses", (agentgate.Held, agentgate.Unknown))
    children.die(world.folder, "pay", at="1")
    with world.agent("pay") as agent:
        (paused,) = agent.invoke(None, thread(), durability="sync")["__interrupt__"]
        assert "it may have happened" in paused.value["shown"]
    with world.gate() as gate:
        bank = {"statement": "one payment of 5"}
        gate.reconcile(paused.value["action"], applied=True, by="operator:jo", evidence=bank, result={"paid": 5})
    with world.agent("pay") as agent:
        (message,) = told(agent.invoke(Command(resume="go on"), thread()))
    assert (message.status, message.content) == ("success", '{"paid": 5}')
    assert len(world.effects) == 1
