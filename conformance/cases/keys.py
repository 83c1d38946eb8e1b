"""Keys handed downstream, when two calls are the same call, and fingerprints."""

from typing import Any

from cases.authority import ADAPTER, CALLER, OUTSIDE, OWN
from cases.case import LEDGER, RUN, TENANT_KEY, Case, a_hash, accepted, encoded, refused
from independent import digest, fingerprint, jcs, read, resource

MEANT: dict[str, Any] = {
    "ledger": LEDGER,
    "tenant": "default",
    "namespace": "",
    "tool": "refund",
    "key": CALLER,
    "revision": 1,
}
A, AB, B = '{"a":1}', '{"a":1,"b":2}', '{"b":2}'
ABC = '{"a":1,"b":2,"c":3}'
ONE, TWO = a_hash("one request"), a_hash("another request")

# name, new, recorded (a member left out is gone), same
SAME: list[tuple[str, dict[str, str], dict[str, str], bool]] = [
    ("as supplied and as completed", {"s": A, "a": AB}, {"s": A, "a": AB}, True),
    ("as supplied, though completed otherwise", {"s": A, "a": ABC}, {"s": A, "a": AB}, True),
    ("as completed, though supplied otherwise", {"s": AB, "a": AB}, {"s": A, "a": AB}, True),
    ("supplied as the other was completed", {"s": AB, "a": ABC}, {"s": A, "a": AB}, False),
    ("neither", {"s": B, "a": B}, {"s": A, "a": AB}, False),
    ("bytes that are there go before a fingerprint", {"s": B, "a": B, "r": ONE}, {"s": A, "a": AB, "r": ONE}, False),
    ("all bytes gone, the same fingerprint", {"s": A, "a": AB, "r": ONE}, {"r": ONE}, True),
    ("all bytes gone, another fingerprint", {"s": A, "a": AB, "r": TWO}, {"r": ONE}, False),
    ("the supplied gone, completed alike", {"s": B, "a": AB, "r": ONE}, {"a": AB, "r": ONE}, True),
    ("the supplied gone, completed otherwise", {"s": A, "a": ABC, "r": TWO}, {"a": AB, "r": ONE}, False),
    ("the completed gone, supplied alike", {"s": A, "a": ABC, "r": TWO}, {"s": A, "r": ONE}, True),
    ("the completed gone, the same fingerprint", {"s": B, "a": AB, "r": ONE}, {"s": A, "r": ONE}, True),
    ("nothing left to compare with", {"s": A, "a": AB, "r": ONE}, {}, False),
    ("nothing left on either side", {"s": A, "a": AB}, {}, False),
]

# template, its parts, arguments
RESOURCES: list[tuple[str, list[str | tuple[str]], dict[str, Any]]] = [
    ("account:{account}", ["account:", ("account",)], {"account": "a1"}),
    ("account:{account}", ["account:", ("account",)], {"account": "a/1 ü%{}~-._"}),
    ("account:{account}", ["account:", ("account",)], {"account": ""}),
    ("{a}{b}/{a}", [("a",), ("b",), "/", ("a",)], {"a": 1, "b": -7, "c": "unused"}),
    ("the whole ledger, é", ["the whole ledger, é"], {}),
    ("order {id}", ["order ", ("id",)], {"id": 9_007_199_254_740_991}),
]
ERROR = {"code": "not_found", "message": "no such account", "retryable": False}


def cases() -> list[Case]:
    """Build the group."""
    return [*_idempotency(), *_same(), *_fingerprints()]


def _idempotency() -> list[Case]:
    changes: list[tuple[str, dict[str, Any]]] = [
        ("the caller's key", {}),
        ("an adapter's key", {"key": ADAPTER}),
        ("a key from outside", {"key": OUTSIDE}),
        ("no key of the caller's", {"key": OWN}),
        ("a later revision", {"revision": 2}),
        ("another tenant", {"tenant": "acme"}),
        ("another namespace", {"namespace": "crm"}),
        ("another tool", {"tool": "refund2"}),
        ("a copy of the ledger under another id", {"ledger": RUN}),
    ]
    return [
        accepted(f"downstream: {name}", "idempotency_key", given, key=digest("idempotency", given))
        for name, change in changes
        for given in [{**MEANT, **change}]
    ]


def _same() -> list[Case]:
    long = {"s": "supplied", "a": "arguments", "r": "request"}
    found = []
    for name, new, recorded, same in SAME:
        given = {
            "new": {long[part]: value for part, value in new.items()},
            "recorded": {long[part]: value for part, value in recorded.items()},
        }
        found.append(accepted(f"the same call? {name}", "same_arguments", given, same=same))
    return found


def _fingerprints() -> list[Case]:
    found = [
        accepted(
            f"fingerprint: {content!r} as {kind} under {key[:2].hex()}…",
            "fingerprint",
            {"key": key.hex(), "kind": kind, "base64": encoded(content)},
            fingerprint=fingerprint(key, kind, content),
        )
        for kind in ("request", "outcome", "resource")
        for key, content in ((TENANT_KEY, b"{}"), (TENANT_KEY[::-1], b"{}"), (TENANT_KEY, "ü\0".encode()))
    ]
    for key, kind in ((b"", "request"), (TENANT_KEY, "Request"), (TENANT_KEY, "")):
        given = {"key": key.hex(), "kind": kind, "base64": ""}
        found.append(refused(f"fingerprint: kind {kind!r}, {len(key)} bytes of key", "fingerprint", given, "misuse"))
    return [*found, *_requests(), *_outcomes(), *_resources()]


def _requests() -> list[Case]:
    found = []
    for namespace, tool, text in (
        ("", "refund", AB),
        ("crm", "refund", AB),
        ("", "t", "null"),
        ("", "t", '{"b":1e21,"a":1.0}'),
    ):
        asked = {"namespace": namespace, "tool": tool, "arguments": read(text)}
        given = {"key": TENANT_KEY.hex(), "namespace": namespace, "tool": tool, "arguments": text}
        out = fingerprint(TENANT_KEY, "request", jcs(asked))
        found.append(accepted(f"request: {namespace}/{tool} {text}", "request_fingerprint", given, fingerprint=out))
    return found


def _outcomes() -> list[Case]:
    ended: list[tuple[str, Any]] = [("ok", {"cents": 1250}), ("ok", None), ("ok", "text"), ("error", ERROR)]
    ended.append(("error", {**ERROR, "retryable": True, "details": [1], "suggested_action": "look it up"}))
    found = []
    for number, (status, result) in enumerate(ended):
        body = {"request": ONE, "status": status, "result": result}
        given = {"key": TENANT_KEY.hex(), **body}
        out = fingerprint(TENANT_KEY, "outcome", jcs(body))
        found.append(accepted(f"outcome: {status}, {number}", "outcome_fingerprint", given, fingerprint=out))
    return found


def _resources() -> list[Case]:
    found = []
    for template, parts, arguments in RESOURCES:
        name = resource(parts, arguments)
        given = {"key": TENANT_KEY.hex(), "template": template, "arguments": jcs(arguments).decode()}
        out = fingerprint(TENANT_KEY, "resource", name.encode())
        found.append(accepted(f"resource: {name}", "resource_fingerprint", given, resource=name, fingerprint=out))
    huge = {"key": TENANT_KEY.hex(), "template": "n:{n}", "arguments": '{"n":1e21}'}
    out = fingerprint(TENANT_KEY, "resource", b"n:1000000000000000000000")
    name = "resource: a whole number that is a float in canonical form is written out"
    found.append(accepted(name, "resource_fingerprint", huge, resource="n:1000000000000000000000", fingerprint=out))
    return found
