"""The body of every event type, version 1: closed, so a reader refuses what it does not know.

A body holds ids, codes, counts and digests. What people or models wrote lies in payloads beside the event, at
(run, n, kind), and is named here by digest. A new field is a new version of that body. docs/format.md says
what each field means.
"""

from collections.abc import Mapping
from types import MappingProxyType

from agentgate.shape import (
    Check,
    Shape,
    code,
    count,
    exactly,
    flag,
    hash32,
    identifier,
    integer,
    listing,
    listing_by,
    mapping,
    nonce16,
    one_of,
    ordinal,
    record,
    signature64,
    text,
)

PAYLOAD_KINDS = frozenset(
    {"raw", "supplied", "arguments", "provenance", "facts", "texts", "presentation", "result", "evidence"}
)
LIMIT_NAMES = frozenset(
    {
        *("actions", "failures", "no_progress", "parallel", "pending", "rejections", "retries"),
        *("wall_us", "active_us", "tokens", "money"),
    }
)
# What a tenant, a tool or an account may be bounded by (`limited`).
BUDGET_NAMES = frozenset({"actions", "failures", "parallel", "pending", "tokens", "money", "amount"})

_KEY = record({"source": one_of("caller", "adapter", "outside", "own"), "scope": text, "text": text})
_REQUIREMENT = record(
    {
        "kind": one_of("approval", "question"),
        "quorum": ordinal,
        "roles": listing(text),
        "proposer": flag,
        "signed": flag,
        "obligations": listing(code),
        "question_us?": ordinal,
        "grant_us?": ordinal,
    }
)
_AMOUNT = record({"account": code, "amount": integer})
AMOUNTS = listing_by("account", _AMOUNT)
_DECISION = record(
    {
        "outcome": one_of("allow", "deny", "require_approval", "abort"),
        "rule": code,
        "reasons": listing(record({"code": code})),
        "requirement?": _REQUIREMENT,
        "obligations": listing(code),
        "reserves": AMOUNTS,
    }
)
_RECENT = record(
    {"namespace": text, "tool": text, "state": code, "reason?": code, "request?": hash32, "outcome?": hash32}
)
_VIEW = record({"n": count, "counters": mapping(integer), "budgets": mapping(integer), "recent": listing(_RECENT)})
_ENGINE = record(
    {
        "kind": one_of("open", "closed"),
        "name": code,
        "version": code,
        "documents": listing(record({"name": text, "document": hash32})),
    }
)
_APPROVAL = record(
    {
        "id": identifier,
        "requirement": hash32,
        "presentation": hash32,
        "digest": hash32,
        "expires_at_us": count,
        "grant_us": ordinal,
    }
)
_SCOPE = record({"kind": one_of("all", "tenant", "tool"), "tenant?": text, "namespace?": text, "tool?": text})
_BUDGET = record(
    {"kind": one_of("tenant", "tool", "account"), "tenant": text, "namespace?": text, "tool?": text, "account?": code}
)
_PAYLOADS = mapping(hash32, names=PAYLOAD_KINDS)
_VERSION: Mapping[str, Check] = {"v": exactly(1)}

# What a policy was asked and what it said: all of it or none of it stands in a body.
DECIDED: Shape = MappingProxyType(
    {
        "decision": _DECISION,
        "policy": hash32,
        "engine": _ENGINE,
        "shadow": listing(record({"policy": hash32, "decision": _DECISION})),
        "view": _VIEW,
        "asked_at_us": count,
    }
)
# What was decided about: it stands beside every decision, and in a proposal also without one.
ABOUT = ("spec", "validator")
_ABOUT: Shape = {"spec?": hash32, "validator?": record({"name": code, "version": code})}
_DECIDED_OR_NOT: Shape = {**{f"{name}?": check for name, check in DECIDED.items()}, **_ABOUT}
_ATTEMPT = {"attempt": ordinal, "fence": ordinal}
_BY = {"by": text, "payloads": _PAYLOADS}


def _body(fields: Shape, *more: Shape) -> Shape:
    merged = dict(_VERSION) | dict(fields)
    for shape in more:
        merged |= shape
    return MappingProxyType(merged)


BODIES: Mapping[str, Shape] = MappingProxyType(
    {
        "run_opened": _body(
            {
                "tenant": text,
                "name": text,
                "principal": text,
                "limits": mapping(count, names=LIMIT_NAMES),
                "payloads": _PAYLOADS,
            }
        ),
        "run_halted": _body({"reason": code, "by?": text, "payloads": _PAYLOADS}),
        "run_closed": _body({"reason": code, "by?": text, "payloads": _PAYLOADS}),
        "proposed": _body(
            {
                "outcome": one_of("allowed", "held", "refused"),
                "reason?": code,
                "digest": hash32,
                "principal": text,
                "namespace": text,
                "tool": text,
                "key": _KEY,
                "revision": ordinal,
                "intended?": _KEY,
                "intended_revision?": ordinal,
                "edits?": record({"action": identifier, "by": text}),
                "raw_bytes?": count,
                "request?": hash32,
                "resource?": hash32,
                "expires_at_us?": count,
                "approval?": _APPROVAL,
                "payloads": _PAYLOADS,
            },
            _DECIDED_OR_NOT,
        ),
        "held": _body({"proposed": count, "approval": _APPROVAL, "payloads": _PAYLOADS}, DECIDED, _ABOUT),
        "approved": _body({"approval": identifier, "votes": listing(hash32), "until_us": count, "payloads": _PAYLOADS}),
        "voted": _body(
            {
                "approval": identifier,
                "shown": hash32,
                "vote": hash32,
                "verdict": one_of("approve", "reject", "again", "applied", "not_applied"),
                "approver": text,
                "roles": listing(text),
                "key?": hash32,
                "nonce": nonce16,
                "signature?": signature64,
                "payloads": _PAYLOADS,
            }
        ),
        "vote_revoked": _body({"approval": identifier, "vote": hash32}, _BY),
        "rejected": _body({"approval": identifier, "vote?": hash32}, _BY),
        "question_asked": _body(
            {"approval": _APPROVAL, "requirement": _REQUIREMENT, "attempt?": ordinal, "payloads": _PAYLOADS}
        ),
        "question_expired": _body({"approval": identifier, "payloads": _PAYLOADS}),
        "grant_expired": _body({"approval": identifier, "payloads": _PAYLOADS}),
        "grant_revoked": _body({"approval": identifier}, _BY),
        "action_expired": _body({"payloads": _PAYLOADS}),
        "cancelled": _body({}, _BY),
        "superseded": _body({"successor": identifier, "payloads": _PAYLOADS}),
        "refused": _body({"reason": code, "proposed": count, "payloads": _PAYLOADS}, _DECIDED_OR_NOT),
        "waited": _body(
            {"reason": code, "proposed": count, "blocking?": identifier, "payloads": _PAYLOADS}, _DECIDED_OR_NOT
        ),
        "replayed": _body({"principal": text, "payloads": _PAYLOADS}),
        "started": _body(
            {
                "proposed": count,
                "digest": hash32,
                "holder": code,
                "lease_until_us": count,
                "deadline_us": count,
                "approval?": identifier,
                "reserves?": AMOUNTS,
                "dedupe_until_us?": count,
                "payloads": _PAYLOADS,
            },
            _ATTEMPT,
            _DECIDED_OR_NOT,
        ),
        "succeeded": _body(
            {
                "outcome?": hash32,
                "result_bytes": count,
                "notes": listing(code),
                "settled": AMOUNTS,
                "payloads": _PAYLOADS,
            },
            _ATTEMPT,
        ),
        "failed": _body(
            {
                "code": code,
                "retryable": flag,
                "outcome?": hash32,
                "retry_at_us?": count,
                "settled": AMOUNTS,
                "payloads": _PAYLOADS,
            },
            _ATTEMPT,
        ),
        "in_doubt": _body({"code": code, "outcome?": hash32, "by": code, "payloads": _PAYLOADS}, _ATTEMPT),
        "late": _body({"status": one_of("ok", "error"), "code?": code, "clean": flag, "payloads": _PAYLOADS}, _ATTEMPT),
        "retried": _body({"until_us": count}, _BY),
        "reconciled": _body(
            {
                "verdict": one_of("applied", "not_applied"),
                "attempts": listing(ordinal),
                "worker_known_dead": flag,
                "outcome?": hash32,
                "approval?": identifier,
                "until_us?": count,
                "settled": AMOUNTS,
            },
            _BY,
        ),
        "abandoned": _body({}, _BY),
        "confirmed": _body({"attempt": ordinal, "name": text, "version": text, "payloads": _PAYLOADS}),
        "contradicted": _body({"attempt": ordinal, "name": text, "version": text, "payloads": _PAYLOADS}),
        "charged": _body({"charges": listing(_AMOUNT)}, _BY),
        "erased": _body({"run": identifier, "n": count, "kinds": listing(one_of(*sorted(PAYLOAD_KINDS)))}, _BY),
        "ledger_created": _body({"format": exactly(1), "origin": text}),
        "spec_registered": _body({"namespace": text, "tool": text, "spec": hash32}),
        "policy_activated": _body({"tenant": text, "policy": hash32, "engine": _ENGINE}, _BY),
        "switched": _body({"scope": _SCOPE, "paused": flag}, _BY),
        "limited": _body({"scope": _BUDGET, "limits": mapping(count, names=BUDGET_NAMES)}, _BY),
        "standing_granted": _body(
            {
                "id": identifier,
                "tenant": text,
                "principal?": text,
                "namespace": text,
                "tool": text,
                "spec": hash32,
                "uses": ordinal,
                "until_us": count,
                "like?": identifier,
            },
            _BY,
        ),
        "standing_revoked": _body({"id": identifier}, _BY),
        "key_added": _body(
            {
                "key": hash32,
                "public": hash32,
                "name": text,
                "roles": listing(text),
                "from_us": count,
                "until_us?": count,
                "signer": hash32,
                "signature": signature64,
            },
            _BY,
        ),
        "key_revoked": _body({"key": hash32, "since_us": count}, _BY),
        "archived": _body({"run": identifier, "n": count, "head": hash32}, _BY),
        "restored": _body({"lost_from_us": count}, _BY),
    }
)

RUN_TYPES = frozenset({"run_opened", "run_halted", "run_closed", "charged", "erased"})
LEDGER_TYPES = frozenset(
    {
        "ledger_created",
        "spec_registered",
        "policy_activated",
        "switched",
        "limited",
        "standing_granted",
        "standing_revoked",
        "key_added",
        "key_revoked",
        "erased",
        "archived",
        "restored",
    }
)
ACTION_TYPES = frozenset(BODIES) - RUN_TYPES - LEDGER_TYPES
