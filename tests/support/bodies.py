"""One body of every event type with every field that version 1 knows, optional ones included.

Written out by hand from formats.md, as an outsider would: not made from the shapes it is to test.
"""

import json

from agentgate.canonical import Json
from support.ids import ACTION, APPROVAL, AT_US, RUN, a_hash, an_id

HASH = a_hash("any").hex()
PAYLOADS: dict[str, Json] = {"texts": a_hash("texts").hex()}
AMOUNTS: list[Json] = [{"account": "budget:eu", "amount": -3}]
BY: dict[str, Json] = {"by": "person:ada", "payloads": PAYLOADS}
ATTEMPT: dict[str, Json] = {"attempt": 1, "fence": 7}
REQUIREMENT: dict[str, Json] = {
    "kind": "approval",
    "quorum": 2,
    "roles": ["finance"],
    "proposer": False,
    "signed": True,
    "obligations": ["four_eyes"],
    "question_us": 86_400_000_000,
    "grant_us": 900_000_000,
}
DECISION: dict[str, Json] = {
    "outcome": "require_approval",
    "rule": "large-refunds",
    "reasons": [{"code": "over_limit"}],
    "requirement": REQUIREMENT,
    "obligations": ["log_it"],
    "reserves": AMOUNTS,
}
ENGINE: dict[str, Json] = {
    "kind": "closed",
    "name": "rules",
    "version": "1",
    "documents": [{"name": "policy.yaml", "document": HASH}],
}
VIEW: dict[str, Json] = {
    "n": 3,
    "counters": {"proposed": 1},
    "budgets": {"money": 1250},
    "recent": [
        {"namespace": "", "tool": "refund", "state": "FAILED", "reason": "timeout", "request": HASH, "outcome": HASH}
    ],
}
DECIDED: dict[str, Json] = {
    "decision": DECISION,
    "policy": HASH,
    "engine": ENGINE,
    "shadow": [{"policy": HASH, "decision": DECISION}],
    "view": VIEW,
    "asked_at_us": AT_US,
    "spec": HASH,
    "validator": {"name": "jsonschema", "version": "4.26.0"},
}
KEY: dict[str, Json] = {"source": "caller", "scope": "", "text": "refund-4711"}
ASKED: dict[str, Json] = {
    "id": APPROVAL,
    "requirement": HASH,
    "presentation": HASH,
    "digest": HASH,
    "expires_at_us": AT_US,
    "grant_us": 900_000_000,
}

_FULL: dict[str, dict[str, Json]] = {
    "run_opened": {
        "tenant": "acme",
        "name": "ticket-4711",
        "principal": "agent:support",
        "limits": {"actions": 50, "failures": 3, "parallel": 2, "pending": 5, "retries": 4, "wall_us": 1},
        "payloads": PAYLOADS,
    },
    "run_halted": {"reason": "aborted", **BY},
    "run_closed": {"reason": "done", **BY},
    "proposed": {
        "outcome": "held",
        "reason": "policy_denied",
        "digest": HASH,
        "principal": "agent:support",
        "namespace": "",
        "tool": "refund",
        "key": KEY,
        "revision": 1,
        "intended": KEY,
        "intended_revision": 2,
        "edits": {"action": an_id(9), "by": "person:ada"},
        "raw_bytes": 12,
        "request": HASH,
        "resource": HASH,
        "expires_at_us": AT_US,
        "approval": ASKED,
        "payloads": {
            "raw": HASH,
            "supplied": HASH,
            "arguments": HASH,
            "provenance": HASH,
            "facts": HASH,
            "texts": HASH,
            "presentation": HASH,
            "result": HASH,
            "evidence": HASH,
        },
        **DECIDED,
    },
    "held": {"proposed": 1, "approval": ASKED, "payloads": PAYLOADS, **DECIDED},
    "approved": {"approval": APPROVAL, "votes": [HASH], "until_us": AT_US, "payloads": {}},
    "voted": {
        "approval": APPROVAL,
        "shown": HASH,
        "vote": HASH,
        "verdict": "approve",
        "approver": "person:ada",
        "roles": ["finance"],
        "key": HASH,
        "nonce": "0" * 32,
        "signature": "1" * 128,
        "payloads": PAYLOADS,
    },
    "vote_revoked": {"approval": APPROVAL, "vote": HASH, **BY},
    "rejected": {"approval": APPROVAL, "vote": HASH, **BY},
    "question_asked": {"approval": ASKED, "requirement": REQUIREMENT, "attempt": 1, "payloads": PAYLOADS},
    "question_expired": {"approval": APPROVAL, "payloads": {}},
    "grant_expired": {"approval": APPROVAL, "payloads": {}},
    "grant_revoked": {"approval": APPROVAL, **BY},
    "action_expired": {"payloads": {}},
    "cancelled": BY,
    "superseded": {"successor": an_id(9), "payloads": {}},
    "refused": {"reason": "spec_changed", "proposed": 1, "payloads": PAYLOADS, **DECIDED},
    "waited": {"reason": "blocked", "proposed": 1, "blocking": an_id(9), "payloads": PAYLOADS, **DECIDED},
    "replayed": {"principal": "agent:support", "payloads": {}},
    "started": {
        "proposed": 1,
        "digest": HASH,
        "holder": "host/1/2/gate",
        "lease_until_us": AT_US,
        "deadline_us": AT_US,
        "approval": APPROVAL,
        "reserves": AMOUNTS,
        "dedupe_until_us": AT_US,
        "payloads": PAYLOADS,
        **ATTEMPT,
        **DECIDED,
    },
    "succeeded": {
        "outcome": HASH,
        "result_bytes": 2,
        "notes": ["output_invalid"],
        "settled": AMOUNTS,
        "payloads": {"result": HASH},
        **ATTEMPT,
    },
    "failed": {
        "code": "not_found",
        "retryable": False,
        "outcome": HASH,
        "retry_at_us": AT_US,
        "settled": AMOUNTS,
        "payloads": {"result": HASH},
        **ATTEMPT,
    },
    "in_doubt": {"code": "timeout", "outcome": HASH, "by": "gate", "payloads": PAYLOADS, **ATTEMPT},
    "late": {"status": "ok", "code": "timeout", "clean": False, "payloads": {"evidence": HASH}, **ATTEMPT},
    "retried": {"until_us": AT_US, **BY},
    "reconciled": {
        "verdict": "applied",
        "attempts": [1],
        "worker_known_dead": True,
        "outcome": HASH,
        "approval": APPROVAL,
        "until_us": AT_US,
        "settled": AMOUNTS,
        **BY,
    },
    "abandoned": BY,
    "confirmed": {"attempt": 1, "name": "check", "version": "1", "payloads": PAYLOADS},
    "contradicted": {"attempt": 1, "name": "check", "version": "1", "payloads": PAYLOADS},
    "charged": {"charges": AMOUNTS, **BY},
    "erased": {"run": RUN, "n": 1, "kinds": ["arguments", "result"], **BY},
    "ledger_created": {"format": 1, "origin": "agentgate/x"},
    "spec_registered": {"namespace": "", "tool": "refund", "spec": HASH},
    "policy_activated": {"tenant": "acme", "policy": HASH, "engine": ENGINE, **BY},
    "switched": {
        "scope": {"kind": "tool", "tenant": "acme", "namespace": "", "tool": "refund"},
        "paused": True,
        **BY,
    },
    "limited": {
        "scope": {"kind": "account", "tenant": "acme", "namespace": "crm", "tool": "refund", "account": "refunds"},
        "limits": {"amount": 100},
        **BY,
    },
    "standing_granted": {
        "id": APPROVAL,
        "tenant": "acme",
        "principal": "agent:support",
        "namespace": "crm",
        "tool": "refund",
        "spec": HASH,
        "uses": 7,
        "until_us": AT_US,
        "like": ACTION,
        **BY,
    },
    "standing_revoked": {"id": APPROVAL, **BY},
    "key_added": {
        "key": HASH,
        "public": HASH,
        "name": "ada",
        "roles": ["finance"],
        "from_us": AT_US,
        "until_us": AT_US,
        "signer": HASH,
        "signature": "1" * 128,
        **BY,
    },
    "key_revoked": {"key": HASH, "since_us": AT_US, **BY},
    "archived": {"run": RUN, "n": 4, "head": HASH, **BY},
    "restored": {"lost_from_us": AT_US, **BY},
}

# What may be left out, by type; a decision with all that belongs to it, or none of it.
OPTIONAL: dict[str, frozenset[str]] = {
    "run_halted": frozenset({"by"}),
    "run_closed": frozenset({"by"}),
    "proposed": frozenset(
        {
            "reason",
            "intended",
            "intended_revision",
            "edits",
            "raw_bytes",
            "request",
            "resource",
            "expires_at_us",
            "approval",
        }
    ),
    "voted": frozenset({"key", "signature"}),
    "question_asked": frozenset({"attempt"}),
    "rejected": frozenset({"vote"}),
    "waited": frozenset({"blocking"}),
    "started": frozenset({"approval", "reserves", "dedupe_until_us"}),
    "succeeded": frozenset({"outcome"}),
    "failed": frozenset({"outcome", "retry_at_us"}),
    "in_doubt": frozenset({"outcome"}),
    "late": frozenset({"code"}),
    "reconciled": frozenset({"outcome", "approval", "until_us"}),
    "standing_granted": frozenset({"principal", "like"}),
    "key_added": frozenset({"until_us"}),
}
TYPES = tuple(_FULL)
_WRITTEN = """
    run_opened run_halted run_closed charged erased
    ledger_created spec_registered policy_activated switched limited
    standing_granted standing_revoked key_added key_revoked archived restored
"""
WITHOUT_ACTION = frozenset(_WRITTEN.split())


def full(kind: str) -> dict[str, Json]:
    """Return a body of this type with every field there is."""
    copied: dict[str, Json] = json.loads(json.dumps(_FULL[kind]))  # nothing shared, within or without
    return {"v": 1, **copied}


def document(kind: str) -> dict[str, Json]:
    """Return a whole event of this type."""
    event: dict[str, Json] = {
        "v": 1,
        "run": RUN,
        "n": 4,
        "prev": a_hash("prev").hex(),
        "type": kind,
        "at_us": AT_US,
        "body": full(kind),
    }
    return event if kind in WITHOUT_ACTION else event | {"action": ACTION}
