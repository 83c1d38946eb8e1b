"""A LangGraph agent whose existing tools go through a gate: no adapter, no network, LangChain's own fake model.

    python examples/langgraph_agent.py /tmp/shop            # a conversation: found, invalid, corrected, denied
    CRASH=1 python examples/langgraph_agent.py /tmp/shop2   # killed inside the refund ...
    python examples/langgraph_agent.py /tmp/shop2           # ... and resumed: the money has moved once

`gated` and `Gated` are the whole integration, about forty lines; below them is an agent as anybody has one. Why each
line is as it is stands in docs/loops.md.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import interrupt
from pydantic import ValidationError

import agentgate

# The integration.


def gated(tool: BaseTool, **declared: Any) -> agentgate.Tool[..., Any]:
    """Put an existing tool behind a gate, with what its operator declares: risk, recovery, resource and the like."""
    schema = tool.args_schema if isinstance(tool.args_schema, dict) else tool.get_input_jsonschema()
    spec = agentgate.ToolSpec(name=tool.name, description=tool.description, input_schema=schema, **declared)
    # Otherwise LangChain makes an ordinary text of these errors, and the record would hold a success.
    bare = tool.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})
    invoke = bare.ainvoke if getattr(bare, "func", bare) is None else bare.invoke  # None: it is only a coroutine
    validate = getattr(tool.args_schema, "model_validate", dict)

    def run(arguments: dict[str, Any], *, effect: agentgate.Effect) -> Any:
        try:
            validate(arguments)
        except ValidationError as error:  # here nothing has happened yet; from inside the tool it proves nothing
            raise agentgate.NoEffect(str(error), code="invalid_arguments", retryable=False) from error
        config = ensure_config()  # a copy of the graph's
        config["configurable"]["idempotency_key"] = effect.idempotency_key
        return invoke(arguments, config)

    return agentgate.gated(spec, run, passing="one")


class Gated(AgentMiddleware):
    """Every tool call of an agent goes through the gate; stands last in the list, for what follows is never asked."""

    pauses: tuple[type, ...] = (agentgate.Held,)  # and agentgate.Unknown, where a person finds out before it goes on

    def __init__(self, gate: agentgate.Gate, *, principal: str) -> None:
        super().__init__()
        self.gate, self.principal = gate, principal

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> ToolMessage:  # noqa: ARG002
        call, place = request.tool_call, request.runtime.execution_info
        if place is None or place.thread_id is None:
            raise RuntimeError("a call needs a place that outlives the process: give a checkpointer and a thread_id")
        thread, turn = place.thread_id, place.task_id
        key = agentgate.Key.adapter("langgraph", thread, turn, call["id"], call["name"], twin(request))
        run = self.gate.run(thread, principal=self.principal)
        ask = partial(self.gate.call, run, call["name"], call["args"], key=key, supersede=True)
        while isinstance(outcome := ask(), self.pauses):
            shown = outcome.approval.shown if isinstance(outcome, agentgate.Held) else outcome.observation.text()
            interrupt({"action": outcome.action, "shown": shown})  # what wakes it up decides nothing: the gate is asked
        told = outcome.observation
        status = "success" if told.status == "ok" else "error"
        return ToolMessage(told.text(), name=call["name"], tool_call_id=call["id"], status=status)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> ToolMessage:
        return await asyncio.to_thread(self.wrap_tool_call, request, handler)


def twin(request: ToolCallRequest) -> int:
    """Number a task's calls that share id and name: models reuse ids. An agent gives each call a task of its own."""
    if request.runtime.config["metadata"]["langgraph_path"][0] == "__pregel_push":
        return 0
    call = request.tool_call
    last = next(message for message in reversed(request.state["messages"]) if isinstance(message, AIMessage))
    alike = [id(each) for each in last.tool_calls if each["id"] == call["id"] and each["name"] == call["name"]]
    return alike.index(id(call))


# The agent: two tools of LangChain's, a policy in a file, a model that is a script.


def shop(folder: Path) -> tuple[BaseTool, BaseTool]:
    @tool
    def find_orders(customer: str) -> list[dict[str, Any]]:
        """List a customer's orders."""
        return [{"order": "o-17", "customer": customer, "account": "a1", "cents": 1250}]

    @tool
    def refund(account: str, cents: int, config: RunnableConfig) -> dict[str, Any]:
        """Pay money back to an account."""
        payment = {"account": account, "cents": cents, "key": config["configurable"]["idempotency_key"]}
        with (folder / "payments.jsonl").open("a") as payments:  # the world: money moves here
            payments.write(json.dumps(payment) + "\n")
        if os.environ.get("CRASH"):
            os.kill(os.getpid(), signal.SIGKILL)
        return {"refunded": cents}

    return find_orders, refund


class Scripted(FakeMessagesListChatModel):
    """Answers by how far the conversation has come, so that another process goes on where this one stopped."""

    def bind_tools(self, *_: Any, **__: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=self.responses[turn].model_copy(deep=True))])


def calls(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id="call_0") for name, args in wanted])


SCRIPT: list[BaseMessage] = [
    calls(("find_orders", {"customer": "c-7"})),
    calls(("refund", {"account": "a1", "cents": "12.50"})),
    calls(("refund", {"account": "a1", "cents": 1250})),
    calls(("refund", {"account": "a1", "cents": 90000})),
    AIMessage("That is all I can do for you."),
]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="shop-"))
    folder.mkdir(exist_ok=True)
    ledger = f"sqlite:///{folder / 'ledger.db'}"
    agentgate.migrate(ledger)
    find_orders, refund = tools = shop(folder)
    behind = [gated(find_orders, risk="read_only"), gated(refund, risk="external", resource="account:{account}")]
    with (
        agentgate.Gate.open(ledger, policy=Path(__file__).with_name("policy.yaml"), tools=behind) as gate,
        SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver,
    ):
        gates = [Gated(gate, principal="agent:support")]
        agent = create_agent(Scripted(responses=SCRIPT), tools, middleware=gates, checkpointer=saver)
        thread: RunnableConfig = {"configurable": {"thread_id": "ticket-4711"}}
        unfinished = agent.get_state(thread).next
        begin: Any = None if unfinished else {"messages": [{"role": "user", "content": "I want my 12.50 back."}]}
        # sync: a turn that is not saved would get another key after a crash, and so another effect.
        for message in agent.invoke(begin, thread, durability="sync")["messages"]:
            message.pretty_print()
    print(f"\nmoney moved: {len((folder / 'payments.jsonl').read_text().splitlines())} time(s); all is in {folder}")


if __name__ == "__main__":
    main()
