"""The format computed a second time, from docs/format.md alone and with the standard library alone.

Not a product and not fast: no bounds, no refusals. What agentgate answers and what this computes must be equal
before a vector is written, so that a mistake in one of them cannot become the format.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import aes

UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986 §2.3
NUL = b"\0"

# A spec's fields that are written out where the declaration leaves them out; risk decides the last two.
SPEC_DEFAULTS: dict[str, Any] = {
    "description": "",
    "errors": "unknown",
    "max_output_bytes": 65_536,
    "namespace": "",
    "permissions": [],
    "retry": {"attempts": 1, "longest_wait_us": 60_000_000, "wait_us": 1_000_000, "within_us": 600_000_000},
    "risk": "external",
    "sensitive": [],
    "tags": [],
    "timeout_us": 60_000_000,
    "undeclared": "deny",
    "version": "",
}
SPEC_SETS = ("permissions", "sensitive", "tags")


# --- canonical form: RFC 8785 -------------------------------------------------------------------------------


def jcs(value: Any) -> bytes:
    """Write a JSON value: members by UTF-16 code units, numbers as ECMAScript does, strings barely escaped."""
    return _written(value).encode("utf-8")


def read(text: str | bytes) -> Any:
    """Read a good JSON text; whole floats that a double holds exactly are ints, as in the canonical form."""
    return _whole(json.loads(text))


def _written(value: Any) -> str:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(name)}:{_written(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int) else _number(value)


def _text(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(short.get(c) or (c if c >= " " else f"\\u{ord(c):04x}") for c in text) + '"'


def _number(number: float) -> str:
    """Source: ECMA-262, Number::toString, from the shortest digits that read back as the same double."""
    if number == 0:
        return "0"
    sign, figures, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, figures)).rstrip("0")
    point = len(figures) + exponent  # where the point stands, counted from the first digit
    return ("-" if sign else "") + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{point - 1:+d}"


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


# --- digests ------------------------------------------------------------------------------------------------


def digest(domain: str, value: Any) -> str:
    """SHA-256( "agentgate/" domain "/v1" NUL JCS(value) )."""
    return hashlib.sha256(b"agentgate/" + domain.encode() + b"/v1" + NUL + jcs(value)).hexdigest()


def payload(kind: str, salt: bytes, content: bytes) -> str:
    """SHA-256( "agentgate/payload/v1" NUL kind NUL salt bytes )."""
    return hashlib.sha256(b"agentgate/payload/v1" + NUL + kind.encode() + NUL + salt + content).hexdigest()


def key_id(key: bytes) -> str:
    """The first 16 digits of SHA-256( "agentgate/sealing-key/v1" NUL key )."""
    return hashlib.sha256(b"agentgate/sealing-key/v1" + NUL + key).hexdigest()[:16]


def sealed(key: bytes, nonce: bytes, kind: str, salt: bytes, content: bytes) -> bytes:
    """0x01, the nonce, and AES-256-GCM of salt and bytes, with the payload's 32 digest bytes as associated data."""
    return b"\x01" + nonce + aes.seal(key, nonce, salt + content, bytes.fromhex(payload(kind, salt, content)))


def document(kind: str, content: bytes) -> str:
    """SHA-256( "agentgate/document/v1" NUL kind NUL bytes )."""
    return hashlib.sha256(b"agentgate/document/v1" + NUL + kind.encode() + NUL + content).hexdigest()


def fingerprint(key: bytes, kind: str, content: bytes) -> str:
    """HMAC-SHA-256( the tenant's key, "agentgate/fingerprint/v1" NUL kind NUL bytes )."""
    return hmac.new(key, b"agentgate/fingerprint/v1" + NUL + kind.encode() + NUL + content, hashlib.sha256).hexdigest()


# --- documents ----------------------------------------------------------------------------------------------


def spec_document(declared: dict[str, Any]) -> bytes:
    """Write all fields out, in JCS; what has no default and is not declared stays away."""
    spec = {**SPEC_DEFAULTS, **declared}
    read_only = spec["risk"] == "read_only"
    spec.setdefault("recovery", {"class": "repeat" if read_only else "operator"})
    spec.setdefault("parallel", read_only)
    spec["retry"] = {**SPEC_DEFAULTS["retry"], **spec["retry"]}
    return jcs({**spec, **{name: by_code_point(spec[name]) for name in SPEC_SETS}})


def by_code_point(texts: Iterable[str]) -> list[str]:
    """Sort a set, without repeats."""
    return sorted(set(texts), key=lambda text: [ord(character) for character in text])


def policy_identity(kind: str, engine: str, engine_version: str, documents: dict[str, bytes]) -> str:
    """digest("policy", {kind, engine, engine_version, documents: [{name, document}] sorted by name})."""
    listed = [{"name": name, "document": document("policy", documents[name])} for name in by_code_point(documents)]
    bound = {"kind": kind, "engine": engine, "engine_version": engine_version, "documents": listed}
    return digest("policy", bound)


def resource(parts: Iterable[str | tuple[str]], arguments: dict[str, Any]) -> str:
    """Join literal text and, for a one-tuple, the percent-encoded argument of that name."""
    return "".join(part if isinstance(part, str) else _encoded(str(arguments[part[0]])) for part in parts)


def _encoded(text: str) -> str:
    return "".join(chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in text.encode("utf-8"))


# --- events and chains --------------------------------------------------------------------------------------


def event_hash(encoded: bytes) -> str:
    """Hash an event's stored bytes: SHA-256( "agentgate/event/v1" NUL bytes )."""
    return hashlib.sha256(b"agentgate/event/v1" + NUL + encoded).hexdigest()


def genesis(ledger: str, run: str) -> str:
    """digest("genesis", {ledger, run})."""
    return digest("genesis", {"ledger": ledger, "run": run})


def chained(ledger: str, run: str, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give events their run, n and prev, and return the links: {n, hash, event}."""
    links: list[dict[str, Any]] = []
    prev = genesis(ledger, run)
    for n, event in enumerate(events):
        encoded = jcs({"v": 1, "run": run, "n": n, "prev": prev, **event})
        prev = event_hash(encoded)
        links.append({"n": n, "hash": prev, "event": encoded.decode()})
    return links
