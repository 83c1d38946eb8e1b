"""What binds an action to what was proposed, and people's answers to what they were shown."""

from typing import Any

from cases.case import ACTION, APPROVAL, AT_US, LEDGER, RUN, Case, a_hash, accepted
from independent import by_code_point, digest

OWN = {"source": "own", "scope": "", "text": ACTION}
CALLER = {"source": "caller", "scope": "", "text": "refund-4711"}
ADAPTER = {"source": "adapter", "scope": "", "text": "langgraph/thread-1/0"}
OUTSIDE = {"source": "outside", "scope": "agent:support", "text": "é\u0301 as given"}
PROPOSED: dict[str, Any] = {
    "ledger": LEDGER,
    "run": RUN,
    "tenant": "default",
    "principal": "agent:support",
    "namespace": "",
    "tool": "refund",
    "spec": a_hash("spec"),
    "arguments": a_hash("arguments"),
    "key": CALLER,
    "revision": 1,
}
REQUIRED: dict[str, Any] = {
    "action": a_hash("action"),
    "kind": "approval",
    "quorum": 1,
    "roles": [],
    "proposer": False,
    "signed": False,
    "obligations": [],
}
SHOWN: dict[str, Any] = {
    "ledger": LEDGER,
    "id": APPROVAL,
    "requirement": a_hash("requirement"),
    "presentation": a_hash("presentation"),
    "expires_at_us": AT_US,
}
VOTED: dict[str, Any] = {
    "approval": a_hash("approval"),
    "verdict": "approve",
    "approver": "person:ada",
    "nonce": "000102030405060708090a0b0c0d0e0f",
}


def cases() -> list[Case]:
    """Build the group."""
    return [*_actions(), *_requirements(), *_approvals(), *_votes()]


def _actions() -> list[Case]:
    changes: list[tuple[str, dict[str, Any]]] = [
        ("as proposed", {}),
        ("without arguments to complete", {"arguments": None}),
        ("of an unknown tool", {"arguments": None, "spec": None}),
        ("with provenance", {"provenance": a_hash("provenance")}),
        ("of another namespace", {"namespace": "crm"}),
        ("of another tenant and principal", {"tenant": "acme", "principal": "agent:other"}),
        ("of an adapter's key", {"key": ADAPTER}),
        ("of a key from outside, scoped by its principal", {"key": OUTSIDE}),
        ("without a key: its id is the key", {"key": OWN}),
        ("a later revision", {"revision": 2}),
        ("of a tool whose name is not ASCII", {"tool": "rückerstatten 😀"}),
        ("of another ledger", {"ledger": RUN}),
        ("of another run", {"run": LEDGER}),
    ]
    return [_bound(f"action: {name}", "action_digest", PROPOSED, change) for name, change in changes]


def _requirements() -> list[Case]:
    roles = ["finance", "Finance", "é", "\uffee", "😀", "finance"]
    changes: list[tuple[str, dict[str, Any]]] = [
        ("one approver", {}),
        ("two, signed, the proposer among them", {"quorum": 2, "signed": True, "proposer": True}),
        ("obligations keep their order", {"obligations": ["z", "a", "z"]}),
        ("a question about an attempt", {"kind": "question", "attempt": 1}),
        ("a question about a later attempt", {"kind": "question", "attempt": 2}),
        ("of another action", {"action": a_hash("other")}),
    ]
    found = [_bound(f"requirement: {name}", "requirement_digest", REQUIRED, change) for name, change in changes]
    listed = {**REQUIRED, "roles": by_code_point(roles)}
    out = digest("requirement", listed)
    found.append(
        accepted(
            "requirement: roles are a set, sorted by code point",
            "requirement_digest",
            {**REQUIRED, "roles": roles},
            digest=out,
        )
    )
    return found


def _approvals() -> list[Case]:
    changes: list[tuple[str, dict[str, Any]]] = [
        ("as shown", {}),
        ("shown otherwise", {"presentation": a_hash("another")}),
        ("shown for longer", {"expires_at_us": AT_US + 1}),
        ("at the end of numbers", {"expires_at_us": 2**53 - 1}),
        ("asked again under another id", {"id": ACTION}),
    ]
    return [_bound(f"approval: {name}", "approval_digest", SHOWN, change) for name, change in changes]


def _votes() -> list[Case]:
    verdicts = ("approve", "reject", "again", "applied", "not_applied")
    found = [_bound(f"vote: {word}", "vote_digest", VOTED, {"verdict": word}) for word in verdicts]
    changes: list[tuple[str, dict[str, Any]]] = [
        ("with a key", {"key": a_hash("public key")}),
        ("of another person", {"approver": "person:grace"}),
        ("with another nonce", {"nonce": "f" * 32}),
        ("on another approval", {"approval": a_hash("another")}),
    ]
    return found + [_bound(f"vote: {name}", "vote_digest", VOTED, change) for name, change in changes]


def _bound(name: str, op: str, base: dict[str, Any], change: dict[str, Any]) -> Case:
    """Change some fields, None leaving one out, and hash what is left under the operation's own domain."""
    given = {field: value for field, value in {**base, **change}.items() if value is not None}
    return accepted(name, op, given, digest=digest(op.removesuffix("_digest"), given))
