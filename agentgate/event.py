"""An event: what happened, as one canonical document that is stored exactly as it is hashed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from agentgate.bodies import ABOUT, ACTION_TYPES, BODIES, DECIDED
from agentgate.canonical import Bounds, Json, canonical, parse
from agentgate.digests import digest
from agentgate.errors import Damaged, NotCanonical
from agentgate.jcs import LARGEST_INTEGER
from agentgate.shape import Shape, count, exactly, hash32, identifier, misfit, one_of, record

# An event holds digests and bounded views, never payloads; real ones are 1-6 kB.
EVENT_BOUNDS = Bounds(max_bytes=1_048_576, max_depth=16, max_nodes=50_000)

_HASHED = b"agentgate/event/v1\0"
_ENVELOPE: Shape = {
    "v": exactly(1),
    "run": identifier,
    "n": count,
    "prev": hash32,
    "type": one_of(*sorted(BODIES)),
    "at_us": count,
    "action?": identifier,
    "body": record({}),
}
_DECIDED = frozenset(kind for kind, shape in BODIES.items() if {"decision", "decision?"} & set(shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One link of a run's chain.

    Args:
        run: the run's id; the ledger's own chain has the ledger's id here.
        n: position in the chain, from 0 without a gap.
        prev: hash of event n - 1; the genesis digest at n = 0.
        type: a word of the closed list `agentgate.bodies.BODIES`.
        at_us: ledger time, microseconds UTC; never before the event it follows.
        action: id of the action it is about, where there is one.
        body: fields of that type, closed.
    """

    run: str
    n: int
    prev: bytes
    type: str
    at_us: int
    action: str | None
    body: Mapping[str, Json]

    def document(self) -> dict[str, Json]:
        """Return the document that is stored as its canonical bytes."""
        document: dict[str, Json] = {
            "v": 1,
            "run": self.run,
            "n": self.n,
            "prev": self.prev.hex(),
            "type": self.type,
            "at_us": self.at_us,
            "body": dict(self.body),
        }
        if self.action is not None:
            document["action"] = self.action
        return document

    def encode(self) -> bytes:
        """Return the bytes that are stored and hashed."""
        return canonical(self.document())


def event_hash(encoded: bytes) -> bytes:
    """Hash an event's stored bytes as they are: never canonicalised again."""
    return hashlib.sha256(_HASHED + encoded).digest()


def genesis(ledger: str, run: str) -> bytes:
    """Return what the first event of a chain names as its predecessor."""
    return digest("genesis", {"ledger": ledger, "run": run})


def offence(document: Json) -> str | None:
    """Return the JSON Pointer of what a reader of version 1 must refuse, or None for a well-formed event."""
    if type(document) is not dict:
        return ""
    body = document.get("body")
    found = misfit(_ENVELOPE, document | {"body": {}} if "body" in document else document)
    if found is not None:
        return found
    found = misfit(BODIES[str(document["type"])], body, "/body")
    if found is not None:
        return found
    if ("action" in document) != (document["type"] in ACTION_TYPES):
        return "/action"
    assert type(body) is dict  # its shape was checked above
    return _half_decided(body) if document["type"] in _DECIDED else None


def _half_decided(body: Mapping[str, Json]) -> str | None:
    """Refuse a policy's answer that is recorded without everything it was asked, spec and validator included."""
    if not any(name in body for name in DECIDED):
        return None
    return next((f"/body/{name}" for name in (*DECIDED, *ABOUT) if name not in body), None)


def decode(encoded: bytes) -> Event:
    """Read an event back from its stored bytes.

    Raises:
        Damaged: the bytes are no event that a reader of version 1 accepts.
    """
    document = _plainly(encoded)
    if document is None:
        try:
            document = parse(encoded, bounds=EVENT_BOUNDS)
        except NotCanonical as error:
            raise Damaged("event", f"not canonical at {error.path or '/'}: {error.reason}") from error
        if canonical(document) != encoded:
            raise Damaged("event", "not canonical: the same event has other bytes")  # whose hash this one is not
    found = offence(document)
    if found is not None:
        raise Damaged("event", f"{found or '/'} is not what version 1 allows")
    assert type(document) is dict  # `offence` refused everything else
    return _from_document(document)


def _plainly(encoded: bytes) -> Json:
    """Read an event by the C decoder where that is provably enough; None where the strict reader must look.

    What is written again for the value is the same text, so no member stood twice and nothing was read as something
    else; what else the strict reader refuses is too large to be short, or a float, which no event may hold.
    """
    if len(encoded) > _SHORT:
        return None
    try:
        text = encoded.decode()
        document: Json = _READ(text) if text.isascii() or max(text) <= _ALIKE else None
        return document if _WRITE(document).encode() == encoded else None
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int:
    number = int(digits)
    if abs(number) > LARGEST_INTEGER:
        raise ValueError(digits)
    return number


def _no_float(digits: str) -> float:
    raise ValueError(digits)


_ALIKE = "\ud7ff"  # up to here names sort alike by code point and, as in the canonical form, by UTF-16 unit
_SHORT = EVENT_BOUNDS.max_nodes  # a value and what parts it from the next are two characters at least
_READ = json.JSONDecoder(parse_int=_integer, parse_float=_no_float).decode
_WRITE = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def _from_document(document: dict[str, Json]) -> Event:
    action = document.get("action")
    n, at_us, body = document["n"], document["at_us"], document["body"]
    assert type(n) is int  # all three were checked by the envelope's shape
    assert type(at_us) is int
    assert type(body) is dict
    return Event(
        run=str(document["run"]),
        n=n,
        prev=bytes.fromhex(str(document["prev"])),
        type=str(document["type"]),
        at_us=at_us,
        action=None if action is None else str(action),
        body=body,
    )
