"""A small ledger in which a policy decided in every place where one can, and policies that remember what they saw."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import agentgate
from agentgate.policy.identity import PolicyIdentity, stated
from agentgate.policy.request import PolicyRequest

Answer = Callable[[PolicyRequest], agentgate.Decision]


@dataclass
class Witness:
    """A policy that remembers its requests, to the order of the last object's members."""

    answer: Answer
    name: str = "witness"
    facts: tuple[str, ...] = ("on_call", "phase")
    asked: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def identity(self) -> PolicyIdentity:
        return stated(self.name)

    def decide(self, request: PolicyRequest) -> agentgate.Decision:
        told = (f"{one.name}={getattr(request, one.name)!r}" for one in fields(request))  # a repr leaves some of it out
        self.asked[request.action, request.at_us] = f"{' '.join(told)} {request.spec.document().decode()}"
        return self.answer(request)


def by_word(request: PolicyRequest) -> agentgate.Decision:
    """Do as the world says, and where it says nothing, as the arguments do."""
    assert isinstance(request.arguments, dict)
    match request.facts["phase"] or request.arguments["do"]:
        case "deny":
            return agentgate.deny("no", "because it says so")
        case "ask":
            return agentgate.require_approval("ask", "a person should look")
        case "abort":
            return agentgate.abort("stop", "enough")
        case "raise":
            raise ValueError("as it was told")
        case _:
            return agentgate.allow()


def allow(_request: PolicyRequest) -> agentgate.Decision:
    return agentgate.allow()


def deny(_request: PolicyRequest) -> agentgate.Decision:
    return agentgate.deny("now_denied", "never")


def ask(_request: PolicyRequest) -> agentgate.Decision:
    return agentgate.require_approval("now_asked")


@agentgate.tool(risk="external")
def act(do: str, times: int = 1) -> dict[str, Any]:
    """Do something."""
    return {"did": do, "times": times}


@agentgate.tool(risk="external", recovery=agentgate.Repeat())
def doubt(do: str) -> None:
    """Fail so that nobody knows."""
    raise RuntimeError(do)


@dataclass(frozen=True)
class Story:
    """What was recorded: the ledger, the policy that was asked, and the actions by what became of them."""

    url: str
    path: Path
    policy: Witness
    actions: dict[str, str]


def tell(folder: Path) -> Story:
    """Record a decision in each place where there can be one, in two runs."""
    path = folder / "agent.db"
    url = f"sqlite:///{path}?journal=delete"
    agentgate.migrate(url)
    policy, world, actions = Witness(by_word), {"phase": ""}, {}
    facts = {"phase": lambda _request: world["phase"], "on_call": lambda _request: {"who": "ada", "since": 9}}
    with agentgate.Gate.open(url, policy=policy, tools=[act, doubt], facts=facts) as gate:
        run = gate.run("told", principal="agent:teller", tenant="acme", goal="to tell")
        raw = '{ "do": "allow", "times": 2.0 }'
        called = gate.call(run, "act", raw, key="called", provenance={"zeal": 1, "ask": [1, {"b": 2, "a": 1}]})
        actions["called"] = called.action
        actions["apart"] = gate.propose(run, "act", {"do": "allow"}, principal="agent:other").action
        gate.execute(actions["apart"], tenant="acme")
        for word in ("deny", "ask", "raise"):
            actions[word] = gate.call(run, "act", {"do": word}, key=word).action
        gate.call(run, "act", {"do": 7})
        gate.call(run, "acts", {"do": "allow"})
        for later in ("held", "refused"):
            actions[later] = gate.propose(run, "act", {"do": "allow"}).action
        actions["doubted"] = gate.call(run, "doubt", {"do": "allow"}).action
        other = gate.run("aborted", principal="agent:teller", tenant="acme")
        actions["abort"] = gate.call(other, "act", {"do": "abort"}).action
        for world["phase"], action in (("ask", "held"), ("ask", "doubted"), ("deny", "refused"), ("", "doubted")):
            gate.execute(actions[action], tenant="acme")
    return Story(url=url, path=path, policy=policy, actions=actions)
