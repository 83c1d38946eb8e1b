"""Conversations with the agent of examples/langgraph_agent.py, here or in a child that kills itself on the way.

python -m support.graphs    # forks those children, one for each line it reads
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

import agentgate
from agentgate.store import sqlite
from support.source import ROOT

# No tracer of somebody's shell looks on: it would ask the network.
os.environ.update(LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false")

SECONDS = 60


def example(name: str) -> ModuleType:
    """Load a file of examples/ as the module that it is."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


GRAPH: Any = example("langgraph_agent")


def call(name: str, id: str = "call_0", **arguments: Any) -> ToolCall:
    """Build a model's tool call; its id is every other call's too, as with some models."""
    return ToolCall(name=name, args=arguments, id=id)


def script(*turns: list[ToolCall]) -> list[BaseMessage]:
    """Build a model's part: a message for each list of calls, and a last word."""
    return [*(AIMessage("", tool_calls=turn) for turn in turns), AIMessage("goodbye")]


CONVERSATIONS: Mapping[str, list[BaseMessage]] = {
    "pay": script([call("pay", account="a1", cents=5)]),
    "post": script([call("post", account="a1", cents=5)]),
    "look": script([call("look", account="a1", cents=5)]),
    "twins": script([call("pay", account="a1", cents=5), call("pay", account="a1", cents=5)]),
    "cousins": script([call("pay", account="a1", cents=5), call("pay", account="a2", cents=7)]),
    "denied": script([call("pay", account="denied", cents=5)]),
    "held": script([call("pay", account="held", cents=5)]),
}


class Dies(AgentMiddleware):
    """Stands around the gate, and dies when a call has ended and nobody but the gate has recorded it."""

    def wrap_tool_call(self, request: Any, handler: Callable[..., Any]) -> Any:
        handler(request)
        os.kill(os.getpid(), signal.SIGKILL)


def policy(request: agentgate.PolicyRequest) -> agentgate.Decision:
    """Allow all but two accounts."""
    account = request.arguments["account"] if isinstance(request.arguments, dict) else None
    if account == "denied":
        return agentgate.deny("closed", "this account is closed")
    return agentgate.require_approval("asks") if account == "held" else agentgate.allow()


class World:
    """A folder with a ledger, a checkpointer, and effects that are lines of a file."""

    def __init__(self, folder: Path, *, dies: str = "") -> None:
        self.folder, self.dies = folder, dies
        self.url = f"sqlite:///{folder / 'ledger.db'}"
        agentgate.migrate(self.url)

    @property
    def effects(self) -> list[dict[str, Any]]:
        """What happened, in order."""
        effects = self.folder / "effects.jsonl"
        return [json.loads(line) for line in effects.read_text().splitlines()] if effects.exists() else []

    def events(self, kind: str) -> int:
        """Count the events of a kind, as whoever reads the database sees them."""
        # The gate's own SQLite: another copy of it in this process would take the gate's locks and journal away.
        with closing(sqlite.module().connect(self.folder / "ledger.db")) as connection:
            query = "select count(*) from agentgate_events where json_extract(cast(event as text), '$.type') = ?"
            return int(connection.execute(query, (kind,)).fetchone()[0])

    def act(self, tool: str, account: str, cents: int, config: RunnableConfig) -> dict[str, Any]:
        """Have an effect, and perhaps die of it."""
        key = config["configurable"]["idempotency_key"]
        effect = {"tool": tool, "account": account, "cents": cents, "key": key, "thread": _thread(config)}
        with (self.folder / "effects.jsonl").open("a") as effects:
            effects.write(json.dumps(effect) + "\n")
        if self.dies.isdigit() and len(self.effects) == int(self.dies):
            os.kill(os.getpid(), signal.SIGKILL)
        return {"paid": cents}

    def tools(self) -> list[BaseTool]:
        """Make three tools that do the same and are declared otherwise."""

        @tool
        def pay(account: str, cents: int, config: RunnableConfig) -> dict[str, Any]:
            """Pay."""
            return self.act("pay", account, cents, config)

        @tool
        def post(account: str, cents: int, config: RunnableConfig) -> dict[str, Any]:
            """Pay at a bank that knows our keys."""
            return self.act("post", account, cents, config)

        @tool
        def look(account: str, cents: int, config: RunnableConfig) -> dict[str, Any]:
            """Look at an account."""
            return self.act("look", account, cents, config)

        return [pay, post, look]

    @contextmanager
    def gate(self) -> Iterator[agentgate.Gate]:
        """Open a gate of its own, as another process would."""
        pay, post, look = self.tools()
        behind = [
            GRAPH.gated(pay, risk="external", resource="account:{account}"),
            GRAPH.gated(post, risk="external", recovery=agentgate.Keyed(hours=1)),
            GRAPH.gated(look, risk="read_only"),
        ]
        with agentgate.Gate.open(self.url, policy=policy, tools=behind) as gate:
            yield gate

    @contextmanager
    def agent(self, conversation: str | list[BaseMessage], *, saver: Any = None) -> Iterator[Any]:
        """Build an agent with a gate and a checkpointer of its own, as another process would."""
        turns = CONVERSATIONS[conversation] if isinstance(conversation, str) else conversation
        with (
            self.gate() as gate,
            SqliteSaver.from_conn_string(str(self.folder / "threads.db")) as threads,
        ):
            middleware = [GRAPH.Gated(gate, principal="agent:x")]
            if self.dies == "after":
                middleware.insert(0, Dies())
            model = GRAPH.Scripted(responses=turns)
            yield create_agent(model, self.tools(), middleware=middleware, checkpointer=saver or threads)

    @contextmanager
    def agent_with(self, tool: BaseTool, *turns: list[ToolCall], around: Any = (), **declared: Any) -> Iterator[Any]:
        """Build an agent with one tool of a test's own, which is always allowed."""
        allowing = agentgate.python_policy(lambda _: agentgate.allow(), identity="test")
        with agentgate.Gate.open(self.url, policy=allowing, tools=[GRAPH.gated(tool, **declared)]) as gate:
            middleware = [*around, GRAPH.Gated(gate, principal="agent:x")]
            model = GRAPH.Scripted(responses=script(*turns))
            yield create_agent(model, [tool], middleware=middleware, checkpointer=InMemorySaver())

    def converse(self, conversation: str | list[BaseMessage], *, durability: str = "sync") -> list[ToolMessage]:
        """Have a conversation from its beginning, or from where another process left it."""
        with self.agent(conversation) as agent:
            unfinished = agent.get_state(thread()).next
            state = agent.invoke(None if unfinished else START, thread(), durability=durability)
            return told(state)


class Children:
    """A process that has imported all of this once, and forks a child for each conversation that is to be killed."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        command = [sys.executable, "-m", "support.graphs"]
        self._parent = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def die(self, folder: Path, conversation: str, *, at: str, durability: str = "sync") -> None:
        """Have a conversation in a child that kills itself: in its n-th effect, or ``after`` its first call."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps([str(folder), conversation, at, durability]) + "\n")
        self._parent.stdin.flush()
        assert self._parent.stdout.readline().strip() == str(-signal.SIGKILL)

    def close(self) -> None:
        """Let the process end."""
        self._parent.communicate(timeout=SECONDS)


def _serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _child(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _child(folder: str, conversation: str, dies: str, durability: str) -> NoReturn:
    try:
        World(Path(folder), dies=dies).converse(conversation, durability=durability)
    except BaseException:  # noqa: BLE001 - told to whoever reads the test's output
        traceback.print_exc()
    os._exit(1)


START: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


def thread(name: str = "t") -> RunnableConfig:
    """Name a conversation; its calls run one after the other, so that it dies where it is told to."""
    return {"configurable": {"thread_id": name}, "max_concurrency": 1}


def told(state: Mapping[str, Any]) -> list[ToolMessage]:
    """Return what the model was told of its calls."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def code(message: ToolMessage) -> str:
    """Return the error code that the model was told; "" for a result."""
    if message.status == "success":
        return ""
    return str(json.loads(str(message.content))["code"])


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


if __name__ == "__main__":
    _serve()
