"""People's public keys: what each may do from when until when, and the file that lists them.

    {"version": 1, "keys": [{"public": "<64 hexadecimal digits>", "name": "person:ada", "roles": ["finance"],
        "from": "2026-12-01T00:00:00Z", "until"?: …, "revoked"?: …, "trusted_to_add"?: true}]}

A closed, strict shape: a misspelt member would be a revocation that nobody heeds. What a key counts for is judged in
`agentgate.keyring`; changing a file is `agentgate.keyfile`'s.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from agentgate.canonical import Bounds, Json, parse, pointer
from agentgate.clock import MICROSECOND, to_datetime
from agentgate.errors import KeyringRefused, Misuse, NotCanonical
from agentgate.jcs import LARGEST_INTEGER
from agentgate.shape import code, exactly, flag, hash32, listing, misfit, record
from agentgate.signing import key_hash, unfit

KeyRefusal: TypeAlias = Literal["unknown_key", "key_not_yet_valid", "key_expired", "key_revoked"]
"""Why a key carries no vote."""

BOUNDS: Final = Bounds(max_bytes=1_048_576, max_depth=8, max_nodes=100_000)
VERSION: Final = 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
_WRITE_PUBLIC = "give the 32 bytes of an Ed25519 public key, in a file as 64 lower-case hexadecimal digits"
_WRITE_NAME = "give 1 to 200 printable characters"
_WRITE_TIME = "write a time in UTC, from 1970 to 2255, as 2026-12-01T00:00:00Z"
_WRITE_LATER = "give a later time, or leave it out"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproverKey:
    """A person's public key, and what it may do from when until when.

    Args:
        public: 32 raw bytes.
        name: whose it is: the approver that its votes count as. One person may have several keys, and has one vote.
        roles: what the person may approve.
        from_us: the first microsecond of its validity.
        until_us: the first microsecond after it; None where it has no end.
        revoked_us: since when it carries nothing any more, not even what it signed before; None where it does.
        trusted_to_add: whether keys in a ledger's table are trusted that this one has signed.
    """

    public: bytes
    name: str
    roles: tuple[str, ...] = ()
    from_us: int
    until_us: int | None = None
    revoked_us: int | None = None
    trusted_to_add: bool = False
    hash: bytes = field(init=False)

    def __post_init__(self) -> None:
        problem = unfit(self.public)
        if problem is not None:
            raise Misuse(f"public: {problem}; {_WRITE_PUBLIC}")
        if code(self.name, "") is not None:
            raise Misuse(f"name: {_WRITE_NAME}")
        if type(self.roles) is not tuple or any(code(role, "") is not None for role in self.roles):
            raise Misuse(f"roles: give a tuple of names; of each, {_WRITE_NAME}")
        for name, at_us in (("from_us", self.from_us), ("until_us", self.until_us), ("revoked_us", self.revoked_us)):
            needed = name == "from_us"
            if (at_us is None and needed) or (at_us is not None and not _is_time(at_us)):
                raise Misuse(f"{name}: give whole microseconds since 1970 UTC")
        if self.until_us is not None and self.until_us <= self.from_us:
            raise Misuse(f"until_us: it ends before it begins; {_WRITE_LATER}")
        object.__setattr__(self, "roles", tuple(sorted(set(self.roles))))
        object.__setattr__(self, "hash", key_hash(self.public))

    def judge(self, *, at_us: int, now_us: int) -> KeyRefusal | None:
        """Say why a vote that was received at ``at_us`` does not count at ``now_us``; None where it does.

        Validity is judged by the time of receipt, a revocation by the present: what a revoked key has signed may
        have been signed by whoever took it, whatever time stands beside it.
        """
        if self.revoked_us is not None and self.revoked_us <= now_us:
            return "key_revoked"
        if min(at_us, now_us) < self.from_us:  # else a row from the future would make a key valid before its time
            return "key_not_yet_valid"
        if self.until_us is not None and at_us >= self.until_us:
            return "key_expired"
        return None


def _is_time(at_us: object) -> bool:
    return type(at_us) is int and 0 <= at_us <= LARGEST_INTEGER


def time_us(value: str) -> int:
    """Read a time of a keyring file: RFC 3339 in UTC, with at most six decimals and a ``Z``.

    Raises:
        ValueError: it is none, or one whose microseconds since 1970 the format cannot hold.
    """
    if _TIME.fullmatch(value) is None:
        raise ValueError(_WRITE_TIME)
    at_us = (datetime.fromisoformat(value) - _EPOCH) // MICROSECOND
    if not _is_time(at_us):
        raise ValueError(_WRITE_TIME)
    return at_us


def time_text(at_us: int) -> str:
    """Write a time as a keyring file holds it."""
    return to_datetime(at_us).isoformat().replace("+00:00", "Z")


def _time(value: Json, path: str) -> str | None:
    try:
        time_us(value if type(value) is str else "")
    except ValueError:
        return path
    return None


_REMEDIES: Mapping[str, str] = {
    "version": f"write {VERSION}, the version of the shape that this code reads",
    "keys": "give a list of keys",
    "public": _WRITE_PUBLIC,
    "name": _WRITE_NAME,
    "roles": f"give a list of names, [] where there is none; of each, {_WRITE_NAME}",
    "from": _WRITE_TIME,
    "until": f"{_WRITE_TIME}, or leave it out",
    "revoked": f"{_WRITE_TIME}, or leave it out",
    "trusted_to_add": "write true or false",
}
_ENTRY = {
    "public": hash32,
    "name": code,
    "roles": listing(code),
    "from": _time,
    "until?": _time,
    "revoked?": _time,
    "trusted_to_add?": flag,
}
_FILE = {"version": exactly(VERSION), "keys": listing(record(_ENTRY))}


def read_document(content: bytes, *, source: str) -> dict[str, Any]:
    """Read a keyring file's bytes as the document they hold; each member of it is what it must be.

    Args:
        content: the bytes.
        source: the file, for messages.

    Raises:
        KeyringRefused: one is not, or a key in it is weak, stands twice, or ends before it begins.
    """
    try:
        document: Any = parse(content, bounds=BOUNDS)
    except NotCanonical as error:
        raise KeyringRefused(source, error.path, error.reason, error.remedy) from error
    wrong = misfit(_FILE, document)
    if wrong is not None:
        raise KeyringRefused(source, wrong, *_explained(document, wrong))
    keys_of(document, source=source)
    checked: dict[str, Any] = document
    return checked


def keys_of(document: Mapping[str, Any], *, source: str) -> tuple[ApproverKey, ...]:
    """Return the keys of a document of the right shape, in its order.

    Raises:
        KeyringRefused: a key is weak, stands twice, or ends before it begins.
    """
    found: dict[bytes, ApproverKey] = {}
    for position, entry in enumerate(document["keys"]):
        place = pointer("keys", position)
        problem = unfit(bytes.fromhex(entry["public"]))
        if problem is not None:
            raise KeyringRefused(source, f"{place}/public", problem, _WRITE_PUBLIC)
        if "until" in entry and time_us(entry["until"]) <= time_us(entry["from"]):
            raise KeyringRefused(source, f"{place}/until", "it ends before it begins", _WRITE_LATER)
        key = _key(entry)
        if key.hash in found:
            raise KeyringRefused(source, f"{place}/public", "the key stands in the file already", "name each key once")
        found[key.hash] = key
    return tuple(found.values())


def _key(entry: Mapping[str, Any]) -> ApproverKey:
    ends = {f"{name}_us": time_us(entry[name]) for name in ("from", "until", "revoked") if name in entry}
    return ApproverKey(
        public=bytes.fromhex(entry["public"]),
        name=entry["name"],
        roles=tuple(entry["roles"]),
        trusted_to_add=entry.get("trusted_to_add", False),
        **ends,
    )


def entry_of(key: ApproverKey) -> dict[str, Json]:
    """Write a key as an entry of a keyring file."""
    entry: dict[str, Json] = {"public": key.public.hex(), "name": key.name, "roles": list(key.roles)}
    times = (("from", key.from_us), ("until", key.until_us), ("revoked", key.revoked_us))
    entry |= {name: time_text(at_us) for name, at_us in times if at_us is not None}
    return entry | {"trusted_to_add": True} if key.trusted_to_add else entry


_OF_FILE, _OF_ENTRY = (tuple(name.removesuffix("?") for name in shape) for shape in (_FILE, _ENTRY))


def _explained(document: Json, path: str) -> tuple[str, str]:
    """Say what is wrong at the place that does not fit, and what would do."""
    parts = path.split("/")[1:]
    members = _OF_FILE if len(parts) <= 1 else _OF_ENTRY
    if len(parts) in (0, 2):  # the file itself, or one of its keys
        return "it is no object", f"give one of {', '.join(members)}"
    name = parts[0] if len(parts) == 1 else parts[2]
    if name not in members:
        return "it is an unknown member", f"leave it out; the members are {', '.join(members)}"
    around: Any = document
    for part in parts[:-1]:
        around = around[int(part) if type(around) is list else part]
    missing = type(around) is dict and name not in around
    return "it is missing" if missing else "it is not what it must be", _REMEDIES[name]
