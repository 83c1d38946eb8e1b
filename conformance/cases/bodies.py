"""The least that an event of each type says, and the most, written by hand from docs/format.md."""

from copy import deepcopy
from typing import Any

from cases.case import ACTION, APPROVAL, AT_US, RUN, a_hash, an_id

HASH = a_hash("any")
KEY = {"source": "caller", "scope": "", "text": "refund-4711"}
ASKED = {
    "id": APPROVAL, "requirement": HASH, "presentation": HASH, "digest": HASH, "expires_at_us": AT_US, "grant_us": 1,
}  # fmt: skip
REQUIREMENT = {
    "kind": "approval", "quorum": 2, "roles": ["finance"], "proposer": False, "signed": True, "obligations": ["call"],
}  # fmt: skip
ENGINE = {"kind": "closed", "name": "rules", "version": "1", "documents": [{"name": "rules", "document": HASH}]}
ALLOW = {"outcome": "allow", "rule": "small", "reasons": [], "obligations": [], "reserves": []}
ASK = {
    "outcome": "require_approval",
    "rule": "large",
    "reasons": [{"code": "over_limit"}, {"code": "new_account"}],
    "requirement": REQUIREMENT,
    "obligations": ["log"],
    "reserves": [{"account": "refunds eu", "amount": 1250}],
}
DENY = {"outcome": "deny", "rule": "none", "reasons": [{"code": "no"}], "obligations": [], "reserves": []}
RECENT = {"namespace": "", "tool": "refund", "state": "FAILED", "reason": "timeout", "request": HASH, "outcome": HASH}
DECIDED: dict[str, Any] = {
    "decision": ALLOW,
    "policy": HASH,
    "engine": ENGINE,
    "shadow": [],
    "view": {"n": 0, "counters": {}, "budgets": {}, "recent": []},
    "asked_at_us": AT_US,
    "spec": HASH,
    "validator": {"name": "jsonschema", "version": "4.26.0"},
}
FULLY_DECIDED: dict[str, Any] = {
    **DECIDED,
    "decision": ASK,
    "shadow": [{"policy": HASH, "decision": ALLOW}, {"policy": HASH, "decision": ASK}],
    "view": {"n": 3, "counters": {"taken": 1}, "budgets": {"refunds eu": -5}, "recent": [RECENT, {**RECENT}]},
}
_BY: dict[str, Any] = {"by": "person:ada", "payloads": {}}
_NONE: dict[str, Any] = {"payloads": {}}
_ENDED: dict[str, Any] = {"attempt": 1, "fence": 7, "payloads": {}}
_PROPOSED: dict[str, Any] = {
    "digest": HASH, "principal": "agent:support", "namespace": "", "tool": "refund", "key": KEY,
    "revision": 1, "payloads": {},
}  # fmt: skip
_STARTED: dict[str, Any] = {
    **_ENDED, "proposed": 1, "digest": HASH, "holder": "host/1/2/gate", "lease_until_us": AT_US, "deadline_us": AT_US,
}  # fmt: skip

_CHECKED: dict[str, Any] = {**_PROPOSED, "spec": HASH, "request": HASH, "payloads": {"arguments": HASH}}
ALLOWED: dict[str, Any] = {**_CHECKED, **DECIDED, "outcome": "allowed", "expires_at_us": AT_US}
HELD: dict[str, Any] = {**_CHECKED, **FULLY_DECIDED, "outcome": "held", "approval": ASKED, "resource": HASH}
OUTCOMES: dict[str, dict[str, Any]] = {
    "allowed": ALLOWED,
    "held": HELD,
    "denied": {**_CHECKED, **DECIDED, "decision": DENY, "outcome": "refused", "reason": "policy_denied"},
    "refused for its arguments": {
        **_PROPOSED, "outcome": "refused", "reason": "invalid_arguments", "spec": HASH, "intended": KEY,
        "key": {"source": "own", "scope": "", "text": ACTION}, "validator": DECIDED["validator"],
        "payloads": {"raw": HASH, "result": HASH},
    },
    "refused the place of what waits": {
        **_CHECKED, **DECIDED, "decision": DENY, "outcome": "refused", "reason": "policy_denied",
        "key": {"source": "own", "scope": "", "text": ACTION}, "intended": KEY, "intended_revision": 2,
    },
    "refused, too long to be kept": {
        **_PROPOSED, "outcome": "refused", "reason": "invalid_arguments", "raw_bytes": 262_145, "spec": HASH,
        "validator": DECIDED["validator"],
    },
}  # fmt: skip

LEAST: dict[str, dict[str, Any]] = {
    "run_opened": {"tenant": "acme", "name": "ticket", "principal": "agent:support", "limits": {}, "payloads": {}},
    "run_halted": {"reason": "aborted", **_NONE},
    "run_closed": {"reason": "closed", **_NONE},
    "proposed": {**_PROPOSED, "outcome": "refused", "reason": "unknown_tool"},
    "held": {"proposed": 1, "approval": ASKED, **DECIDED, "decision": ASK, **_NONE},
    "approved": {"approval": APPROVAL, "votes": [], "until_us": AT_US, **_NONE},
    "voted": {
        "approval": APPROVAL, "shown": HASH, "vote": HASH, "verdict": "reject", "approver": "person:ada", "roles": [],
        "nonce": "0" * 32, **_NONE,
    },
    "vote_revoked": {"approval": APPROVAL, "vote": HASH, **_BY},
    "rejected": {"approval": APPROVAL, **_BY},
    "question_asked": {"approval": ASKED, "requirement": REQUIREMENT, **_NONE},
    "question_expired": {"approval": APPROVAL, **_NONE},
    "grant_expired": {"approval": APPROVAL, **_NONE},
    "grant_revoked": {"approval": APPROVAL, **_BY},
    "action_expired": _NONE,
    "cancelled": _BY,
    "superseded": {"successor": an_id(9), **_NONE},
    "refused": {"reason": "spec_changed", "proposed": 1, **_NONE},
    "waited": {"reason": "paused", "proposed": 1, **_NONE},
    "replayed": {"principal": "agent:support", **_NONE},
    "started": _STARTED,
    "succeeded": {"result_bytes": 2, "notes": [], "settled": [], **_ENDED},
    "failed": {"code": "not_found", "retryable": False, "settled": [], **_ENDED},
    "in_doubt": {"code": "timeout", "by": "host/1/2/gate", **_ENDED},
    "late": {"status": "ok", "clean": False, **_ENDED},
    "retried": {"until_us": AT_US, **_BY},
    "reconciled": {"verdict": "applied", "attempts": [1], "worker_known_dead": False, "settled": [], **_BY},
    "abandoned": _BY,
    "confirmed": {"attempt": 1, "name": "is_refunded", "version": "1", **_NONE},
    "contradicted": {"attempt": 1, "name": "is_refunded", "version": "1", **_NONE},
    "charged": {"charges": [], **_BY},
    "erased": {"run": RUN, "n": 1, "kinds": [], **_BY},
    "ledger_created": {"format": 1, "origin": "agentgate/x"},
    "spec_registered": {"namespace": "", "tool": "refund", "spec": HASH},
    "policy_activated": {"tenant": "acme", "policy": HASH, "engine": ENGINE, **_BY},
    "switched": {"scope": {"kind": "all"}, "paused": True, **_BY},
    "limited": {"scope": {"kind": "tenant", "tenant": "acme"}, "limits": {}, **_BY},
    "standing_granted": {
        "id": APPROVAL, "tenant": "acme", "namespace": "", "tool": "refund", "spec": HASH, "uses": 1,
        "until_us": AT_US + 1, **_BY,
    },
    "standing_revoked": {"id": APPROVAL, **_BY},
    "key_added": {
        "key": HASH, "public": HASH, "name": "ada", "roles": [], "from_us": 0, "signer": HASH,
        "signature": "1" * 128, **_BY,
    },
    "key_revoked": {"key": HASH, "since_us": 0, **_BY},
    "archived": {"run": RUN, "n": 4, "head": HASH, **_BY},
    "restored": {"lost_from_us": 0, **_BY},
}  # fmt: skip
MOST: dict[str, dict[str, Any]] = {
    "run_opened": {"limits": {
        "actions": 0, "failures": 1, "no_progress": 2, "parallel": 3, "pending": 4, "wall_us": 5, "active_us": 6,
        "tokens": 7, "money": 8, "retries": 9, "rejections": 10,
    }, "payloads": {"texts": HASH}},
    "run_halted": {"by": "person:ada", "payloads": {"texts": HASH}},
    "run_closed": {"by": "person:ada", "payloads": {"texts": HASH}},
    "proposed": {**HELD, "edits": {"action": an_id(9), "by": "person:ada"}, "payloads": dict.fromkeys(
        ("raw", "supplied", "arguments", "provenance", "facts", "texts", "presentation"), HASH
    )},
    "held": {**FULLY_DECIDED, "payloads": {"facts": HASH, "texts": HASH, "presentation": HASH}},
    "approved": {"votes": [HASH, a_hash("another")]},
    "voted": {"key": HASH, "signature": "1" * 128, "payloads": {"texts": HASH}},
    "question_asked": {"attempt": 1, "payloads": {"presentation": HASH}},
    "rejected": {"vote": HASH, "payloads": {"texts": HASH}},
    "refused": {**FULLY_DECIDED, "decision": DENY, "reason": "policy_denied", "payloads": {"facts": HASH}},
    "waited": {**FULLY_DECIDED, "blocking": an_id(9)},
    "started": {
        **FULLY_DECIDED, "approval": APPROVAL, "dedupe_until_us": AT_US,
        "reserves": [{"account": "refunds eu", "amount": 1250}],
    },
    "succeeded": {
        "outcome": HASH, "notes": ["output_invalid"], "settled": [{"account": "refunds", "amount": -3}],
        "payloads": {"result": HASH},
    },
    "failed": {"outcome": HASH, "retry_at_us": AT_US, "payloads": {"result": HASH}},
    "in_doubt": {"outcome": HASH, "payloads": {"result": HASH}},
    "late": {"code": "timeout", "status": "error", "payloads": {"evidence": HASH}},
    "reconciled": {
        "verdict": "not_applied", "attempts": [1, 2], "outcome": HASH, "approval": APPROVAL, "until_us": AT_US,
        "payloads": {"evidence": HASH, "result": HASH},
    },
    "charged": {"charges": [{"account": "tokens", "amount": 5}]},
    "erased": {"kinds": ["arguments", "raw"]},
    "switched": {"scope": {"kind": "tool", "tenant": "acme", "namespace": "crm", "tool": "refund"}, "paused": False},
    "limited": {
        "scope": {"kind": "tool", "tenant": "acme", "namespace": "crm", "tool": "refund"},
        "limits": {"actions": 0, "failures": 1, "parallel": 2, "pending": 3, "tokens": 4, "money": 5, "amount": 6},
    },
    "standing_granted": {
        "principal": "agent:support", "uses": 2**53 - 1, "like": ACTION, "payloads": {"facts": HASH, "texts": HASH},
    },
    "key_added": {"roles": ["finance"], "until_us": AT_US},
}  # fmt: skip
ABOUT_NO_ACTION = frozenset(
    {
        "run_opened", "run_halted", "run_closed", "charged", "erased", "ledger_created", "spec_registered",
        "policy_activated", "switched", "limited", "standing_granted",
        "standing_revoked", "key_added", "key_revoked", "archived", "restored",
    }
)  # fmt: skip


def event(kind: str, *, most: bool = False, **changes: Any) -> dict[str, Any]:
    """Return a whole event of a type, changed in its envelope; None leaves a field out."""
    body = deepcopy({"v": 1, **LEAST[kind], **(MOST.get(kind, {}) if most else {})})  # a case may change its own
    if kind == "proposed" and most:
        del body["reason"]  # it goes with a refusal
    document: dict[str, Any] = {
        "v": 1, "run": RUN, "n": 4, "prev": a_hash("prev"), "type": kind, "at_us": AT_US, "body": body,
    }  # fmt: skip
    if kind not in ABOUT_NO_ACTION:
        document["action"] = ACTION
    return {field: value for field, value in {**document, **changes}.items() if value is not None}
