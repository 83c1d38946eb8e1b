"""Digests by domain, of payloads and of documents."""

from cases.case import SALT, Case, accepted, encoded, refused
from independent import digest, document, jcs, payload, read

DOMAINS = ("event", "genesis", "action", "requirement", "approval", "vote", "idempotency", "policy")
PAYLOAD_KINDS = (
    "raw", "supplied", "arguments", "provenance", "facts", "texts", "presentation", "result", "evidence",
)  # fmt: skip
VALUES = ["{}", "[]", "null", '"a"', "1.0", '{"b":[1,{"d":null,"c":1e21}],"a":"é\\u0000"}']
CONTENTS = [b"", b"{}", b'{"a":1}', b"\x00\xff\xfe not text", b"agentgate/payload/v1\0raw\0", "ü".encode()]


def cases() -> list[Case]:
    """Build the group."""
    return [*_digests(), *_payloads(), *_documents()]


def _digests() -> list[Case]:
    pairs = [(domain, VALUES[-1]) for domain in DOMAINS] + [("event", text) for text in VALUES]
    found = [
        accepted(f"{text} as {domain}", "digest", {"domain": domain, "text": text}, digest=digest(domain, read(text)))
        for domain, text in dict.fromkeys(pairs)
    ]
    spaced = f" {VALUES[-1].replace(':', ' : ')}"
    found.append(
        accepted(
            "however it is spelled, it is one value",
            "digest",
            {"domain": "event", "text": spaced},
            digest=digest("event", read(VALUES[-1])),
        )
    )
    found += [
        refused(f"no domain of a JSON value: {domain!r}", "digest", {"domain": domain, "text": "{}"}, "misuse")
        for domain in ("", "payload", "document", "fingerprint", "Event", "event/v2", "event\u0000", "event ")
    ]
    found.append(
        refused(
            "a value without a canonical form has no digest",
            "digest",
            {"domain": "event", "text": '{"a":[9007199254740992]}'},
            "integer_range",
            path="/a/0",
        )
    )
    return found


def _payloads() -> list[Case]:
    given = [(kind, SALT, CONTENTS[2]) for kind in PAYLOAD_KINDS] + [("raw", SALT, content) for content in CONTENTS]
    given += [("result", bytes(32), jcs({"status": "ok", "notes": [], "value": 1})), ("result", SALT[::-1], b"{}")]
    found = [
        accepted(
            f"{content!r} as {kind} with salt {salt[:2].hex()}…",
            "payload_digest",
            {"kind": kind, "salt": salt.hex(), "base64": encoded(content)},
            digest=payload(kind, salt, content),
        )
        for kind, salt, content in dict.fromkeys(given)
    ]
    for kind, salt in (("spec", SALT), ("", SALT), ("raw", SALT[:31]), ("raw", SALT + b"\0"), ("raw", b"")):
        name = f"no payload: kind {kind!r} with {len(salt)} bytes of salt"
        found.append(
            refused(name, "payload_digest", {"kind": kind, "salt": salt.hex(), "base64": encoded(b"{}")}, "misuse")
        )
    return found


def _documents() -> list[Case]:
    found = [
        accepted(
            f"{content!r} as {kind}",
            "document_digest",
            {"kind": kind, "base64": encoded(content)},
            digest=document(kind, content),
        )
        for kind in ("spec", "policy")
        for content in (b"", b"{}", b"version: 1\r\nrules: []\r\n", b"\xef\xbb\xbf", CONTENTS[3])
    ]
    return found + [
        refused(f"no document: kind {kind!r}", "document_digest", {"kind": kind, "base64": ""}, "misuse")
        for kind in ("raw", "", "Spec")
    ]
