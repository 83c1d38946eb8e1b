"""A hand-written loop under a gate: no framework, no network, a function that stands for the model.

    python examples/handwritten_loop.py /tmp/loop

Kill it where you like and start it again: it goes on where it was, and the money moves once.
"""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import agentgate

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="loop-"))
MEMORY = FOLDER / "messages.json"


@agentgate.tool(risk="external", resource="account:{account}")
def refund(account: str, cents: int) -> dict[str, int]:
    """Pay money back to an account."""
    with (FOLDER / "payments.jsonl").open("a") as payments:  # the world: money moves here
        payments.write(json.dumps({"account": account, "cents": cents}) + "\n")
    die("inside")
    return {"refunded": cents}


def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer by how far the conversation has come."""
    turns: list[dict[str, Any]] = [
        {
            "calls": [  # models return several at once
                {"tool": "refund", "arguments": '{"account": "a1", "cents": 1250}'},
                {"tool": "refund", "arguments": '{"account": "a2", "cents": 90000}'},
            ]
        },
        {"content": "That is all I can do for you."},
    ]
    return {"role": "assistant", **turns[sum(message["role"] == "assistant" for message in messages)]}


def say(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Keep a message before anything follows from it: what is not kept, another process would ask for anew."""
    messages.append(message)
    MEMORY.with_suffix(".new").write_text(json.dumps(messages), "utf-8")
    MEMORY.with_suffix(".new").replace(MEMORY)


def loop(gate: agentgate.Gate, run: agentgate.Run) -> list[dict[str, Any]]:
    messages = json.loads(MEMORY.read_text("utf-8")) if MEMORY.exists() else []
    if not messages:
        say(messages, {"role": "user", "content": "I want my 12.50 back."})
    while True:
        last = messages[-1]
        if last["role"] != "assistant":
            say(messages, model(messages))
        elif "calls" not in last:
            return messages
        else:
            # The key is the call's place in the conversation: the same one after a crash, and never its arguments.
            turn = f"{run.name}/{len(messages)}"
            calls = [
                agentgate.Call(call["tool"], call["arguments"], key=f"{turn}/{place}")
                for place, call in enumerate(last["calls"])
            ]
            outcomes = [gate.execute(proposal) for proposal in gate.propose_many(run, calls)]
            die("after")
            if any(isinstance(outcome, agentgate.Held) for outcome in outcomes):
                return messages  # a person decides; start the loop again then, and what is done stays done
            say(messages, {"role": "tool", "content": [outcome.observation.text() for outcome in outcomes]})


def die(where: str) -> None:
    if os.environ.get("CRASH") == where:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    ledger = f"sqlite:///{FOLDER / 'ledger.db'}"
    agentgate.migrate(ledger)
    with agentgate.Gate.open(ledger, policy=Path(__file__).with_name("policy.yaml"), tools=[refund]) as gate:
        for message in loop(gate, gate.run("ticket-4711", principal="agent:support")):
            print(json.dumps(message))


if __name__ == "__main__":
    main()
