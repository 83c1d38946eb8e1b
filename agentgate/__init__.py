"""agentgate makes the effects of AI agents safe to allow.

A loop proposes a tool call; the gate decides whether it runs, runs it itself, and records what happened.

    import agentgate

    agentgate.migrate("sqlite:///agent.db")
    with agentgate.Gate.open("sqlite:///agent.db", policy="policy.yaml", tools=[refund]) as gate:
        run = gate.run("ticket-4711", principal="agent:support")
        outcome = gate.call(run, "refund", {"account": "a1", "cents": 1250}, key="refund-4711")
"""

from importlib import import_module
from types import MappingProxyType

# Where each public name lives; a name is imported when it is first asked for, so a process that only declares
# tools never loads a database. `__init__.pyi` says the same to type checkers.
_HOMES = MappingProxyType(
    {
        "Activated": "agentgate.gate.activating",
        "ActivePolicy": "agentgate.gate.activating",
        "AgentgateError": "agentgate.errors",
        "Allowance": "agentgate.gate.limiting",
        "Applied": "agentgate.tools.verdicts",
        "Approval": "agentgate.outcome",
        "ApproverKey": "agentgate.publickeys",
        "Argument": "agentgate.tools.expected",
        "Bounds": "agentgate.canonical",
        "Break": "agentgate.core.verification",
        "Breaker": "agentgate.breaker",
        "Call": "agentgate.gate.calls",
        "Checked": "agentgate.tools.verdicts",
        "Channel": "agentgate.gate.channels",
        "Damaged": "agentgate.errors",
        "Decision": "agentgate.policy.decision",
        "Difference": "agentgate.core.findings",
        "Done": "agentgate.outcome",
        "Effect": "agentgate.effects",
        "EnvironmentSecrets": "agentgate.secrets",
        "Error": "agentgate.observation",
        "Executing": "agentgate.gate.switching",
        "Failed": "agentgate.outcome",
        "FileSecrets": "agentgate.secrets",
        "Function": "agentgate.tools.decorator",
        "FunctionName": "agentgate.tools.recovery",
        "Gate": "agentgate.gate.face",
        "Held": "agentgate.outcome",
        "Json": "agentgate.canonical",
        "Key": "agentgate.action",
        "KeyConflict": "agentgate.errors",
        "KeyTable": "agentgate.gate.keyring",
        "Keyed": "agentgate.tools.recovery",
        "Keyring": "agentgate.keyring",
        "KeyringRefused": "agentgate.errors",
        "Late": "agentgate.outcome",
        "LedgerKey": "agentgate.keyring",
        "Limits": "agentgate.limits",
        "ListedKey": "agentgate.gate.keyring",
        "Misuse": "agentgate.errors",
        "NoEffect": "agentgate.observation",
        "NotApplied": "agentgate.tools.verdicts",
        "NotCanonical": "agentgate.errors",
        "NotEvaluated": "agentgate.core.findings",
        "NotFound": "agentgate.errors",
        "NotPossible": "agentgate.errors",
        "NowDenied": "agentgate.core.findings",
        "Observation": "agentgate.observation",
        "Operator": "agentgate.tools.recovery",
        "Outcome": "agentgate.outcome",
        "Paused": "agentgate.gate.switching",
        "Policy": "agentgate.policy.evaluation",
        "PolicyRefused": "agentgate.errors",
        "PolicyRequest": "agentgate.policy.request",
        "Probe": "agentgate.tools.recovery",
        "Proposal": "agentgate.outcome",
        "Reason": "agentgate.policy.decision",
        "Recheck": "agentgate.core.findings",
        "RecheckProgress": "agentgate.core.findings",
        "Question": "agentgate.gate.questions",
        "Refused": "agentgate.outcome",
        "Repeat": "agentgate.tools.recovery",
        "Requirement": "agentgate.approval",
        "Reserve": "agentgate.policy.decision",
        "Resumed": "agentgate.gate.switching",
        "Retry": "agentgate.tools.recovery",
        "Run": "agentgate.gate.opening",
        "RunConflict": "agentgate.errors",
        "Running": "agentgate.outcome",
        "Scope": "agentgate.gate.switching",
        "Sealed": "agentgate.errors",
        "SealingKey": "agentgate.sealing",
        "SealingKeys": "agentgate.sealing",
        "Settings": "agentgate.gate.settings",
        "SignedVote": "agentgate.signing",
        "SigningKey": "agentgate.signing",
        "SpecRefused": "agentgate.errors",
        "StandingGrant": "agentgate.gate.granted",
        "Swept": "agentgate.gate.overdue",
        "Tool": "agentgate.tools.decorator",
        "ToolError": "agentgate.observation",
        "ToolSpec": "agentgate.tools.spec",
        "Transactional": "agentgate.tools.recovery",
        "Unavailable": "agentgate.errors",
        "Ungated": "agentgate.errors",
        "Unknown": "agentgate.outcome",
        "UnsafeStore": "agentgate.errors",
        "Verification": "agentgate.core.verification",
        "View": "agentgate.policy.request",
        "VoteRefused": "agentgate.errors",
        "VoteView": "agentgate.gate.questions",
        "Waiting": "agentgate.gate.inbox",
        "WrongSchema": "agentgate.errors",
        "abort": "agentgate.policy.decision",
        "allow": "agentgate.policy.decision",
        "deny": "agentgate.policy.decision",
        "expected_state": "agentgate.tools.expected",
        "gated": "agentgate.tools.decorator",
        "migrate": "agentgate.gate.migrating",
        "python_policy": "agentgate.policy.evaluation",
        "recheck": "agentgate.gate.rechecking",
        "require_approval": "agentgate.policy.decision",
        "sign_addition": "agentgate.keyring",
        "sign_vote": "agentgate.signing",
        "standing_reserve": "agentgate.policy.grants",
        "tool": "agentgate.tools.decorator",
        "verify": "agentgate.gate.verifying",
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list, not two


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
