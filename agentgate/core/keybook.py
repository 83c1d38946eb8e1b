"""What the events of a ledger's own chain say of people's keys: which were added, and since when any are revoked.

A key that is added again stands as it was added last; of its revocations the earliest holds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentgate.canonical import canonical
from agentgate.event import Event
from agentgate.signing import key_hash

KEY_EVENTS: Final = frozenset({"key_added", "key_revoked"})

AddedRow = tuple[bytes, str, bytes, int, int | None, bytes, bytes, int]
"""public, name, roles, from_us, until_us, signer, signature, n"""


@dataclass(slots=True)
class KeyBook:
    """The rows that the events make, by the hash of the key; the columns in the order of their tables."""

    added: dict[bytes, AddedRow] = field(default_factory=dict)
    revoked: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def take(self, event: Event) -> Iterator[tuple[str, str]]:
        """Take an event of `KEY_EVENTS` in; yield what it contradicts."""
        body: Mapping[str, Any] = event.body
        key = bytes.fromhex(body["key"])
        if event.type == "key_added":
            self.added[key] = added_row(body, n=event.n)
            if key_hash(bytes.fromhex(body["public"])) != key:
                yield "digest", "the key is not the hash of its public key"
        elif key not in self.revoked or body["since_us"] < self.revoked[key][0]:
            self.revoked[key] = (body["since_us"], event.n)


def added_row(body: Mapping[str, Any], *, n: int) -> AddedRow:
    """Return the row, but for its key, that a `key_added` makes."""
    return (
        bytes.fromhex(body["public"]),
        body["name"],
        canonical(body["roles"]),
        body["from_us"],
        body.get("until_us"),
        bytes.fromhex(body["signer"]),
        bytes.fromhex(body["signature"]),
        n,
    )
