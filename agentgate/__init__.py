"""agentgate makes the effects of AI agents safe to allow.

A loop proposes a tool call; the gate decides whether it runs, runs it itself, and records what happened.

    import agentgate

    agentgate.migrate("sqlite:///agent.db")
    with agentgate.Gate.open("sqlite:///agent.db", policy="policy.yaml", tools=[refund]) as gate:
        run = gate.run("ticket-4711", principal="agent:support")
        outcome = gate.call(run, "refund", {"account": "a1", "cents": 1250}, key="refund-4711")
"""

from agentgate.action import Key
from agentgate.approval import Requirement
from agentgate.canonical import Bounds, Json
from agentgate.effects import Effect
from agentgate.errors import (
    AgentgateError,
    Damaged,
    KeyConflict,
    Misuse,
    NotCanonical,
    NotFound,
    NotPossible,
    PolicyRefused,
    RunConflict,
    SpecRefused,
    Unavailable,
    Ungated,
    UnsafeStore,
    WrongSchema,
)
from agentgate.gate.face import Gate
from agentgate.gate.migrating import migrate
from agentgate.gate.opening import Run
from agentgate.gate.settings import Settings
from agentgate.limits import Limits
from agentgate.observation import Error, NoEffect, Observation, ToolError
from agentgate.outcome import Approval, Done, Failed, Held, Outcome, Proposal, Refused, Running, Unknown
from agentgate.policy.decision import Decision, Reason, Reserve, abort, allow, deny, require_approval
from agentgate.policy.evaluation import Policy, python_policy
from agentgate.policy.request import PolicyRequest, View
from agentgate.tools.decorator import Function, Tool, gated, tool
from agentgate.tools.recovery import FunctionName, Keyed, Operator, Probe, Repeat, Retry, Transactional
from agentgate.tools.spec import ToolSpec

__all__ = [
    "AgentgateError",
    "Approval",
    "Bounds",
    "Damaged",
    "Decision",
    "Done",
    "Effect",
    "Error",
    "Failed",
    "Function",
    "FunctionName",
    "Gate",
    "Held",
    "Json",
    "Key",
    "KeyConflict",
    "Keyed",
    "Limits",
    "Misuse",
    "NoEffect",
    "NotCanonical",
    "NotFound",
    "NotPossible",
    "Observation",
    "Operator",
    "Outcome",
    "Policy",
    "PolicyRefused",
    "PolicyRequest",
    "Probe",
    "Proposal",
    "Reason",
    "Refused",
    "Repeat",
    "Requirement",
    "Reserve",
    "Retry",
    "Run",
    "RunConflict",
    "Running",
    "Settings",
    "SpecRefused",
    "Tool",
    "ToolError",
    "ToolSpec",
    "Transactional",
    "Unavailable",
    "Ungated",
    "Unknown",
    "UnsafeStore",
    "View",
    "WrongSchema",
    "abort",
    "allow",
    "deny",
    "gated",
    "migrate",
    "python_policy",
    "require_approval",
    "tool",
]


def __dir__() -> list[str]:
    return __all__
