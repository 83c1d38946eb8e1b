"""Whose keys a gate trusts: a file from outside the database, and what that file's keys have added in the ledger.

The name of a key is its approver: a vote signed with ada's key is ada's and nobody else's. A key is judged twice, when
a vote is received and again when an action is claimed, so that a row which somebody wrote into the database counts for
nothing. Nothing here reads a database; `Keyring.load` alone reads a file.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agentgate.canonical import Json
from agentgate.digests import digest
from agentgate.errors import Misuse
from agentgate.jcs import LARGEST_INTEGER
from agentgate.ownfiles import read_unchanged
from agentgate.publickeys import ApproverKey, KeyRefusal, keys_of, read_document
from agentgate.signing import SigningKey, key_hash, verify

AdditionRefusal: TypeAlias = Literal["in_file", "unfit", "unknown_signer", "untrusted_signer", "bad_signature"]
"""Why a key that stands in a ledger's table is not trusted for standing there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerKey:
    """A key as it stands in a ledger's table: whoever writes the database wrote it, so nothing here is checked yet.

    Args:
        public: 32 raw bytes.
        name: whose it is said to be.
        roles: what the person may approve.
        from_us: the first microsecond of its validity.
        until_us: the first microsecond after it; None where it has no end.
        signer: the hash of the key that signed the addition.
        signature: over `addition_digest`.
    """

    public: bytes
    name: str
    roles: tuple[str, ...]
    from_us: int
    until_us: int | None = None
    signer: bytes
    signature: bytes

    @property
    def hash(self) -> bytes:
        """Return the hash of the public key."""
        return key_hash(self.public)

    def key(self) -> ApproverKey:
        """Return the key that is to be trusted; never one that is trusted to add others.

        Raises:
            Misuse: it is none that could be.
        """
        return ApproverKey(
            public=self.public, name=self.name, roles=self.roles, from_us=self.from_us, until_us=self.until_us
        )


def addition_digest(ledger: str, key: ApproverKey) -> bytes:
    """Bind a key to the ledger it is added to: what is signed by somebody who is trusted to add keys.

    Args:
        ledger: the ledger's id.
        key: the key; its revocation is not bound, as that needs no signature, nor whom it may add: nobody.
    """
    bound: dict[str, Json] = {
        "ledger": ledger,
        "key": key.hash.hex(),
        "public": key.public.hex(),
        "name": key.name,
        "roles": list(key.roles),
        "from_us": key.from_us,
    }
    return digest("keyring", bound if key.until_us is None else bound | {"until_us": key.until_us})


def sign_addition(signing_key: SigningKey, key: ApproverKey, *, ledger: str) -> LedgerKey:
    """Sign that a key is to be trusted in a ledger, where that ledger is not near.

    Args:
        signing_key: of somebody whose key in the file says ``trusted_to_add``.
        key: the key to be added.
        ledger: the ledger's id.

    Raises:
        Misuse: the key is revoked, or trusted to add keys: only a file says that of one.
    """
    if key.revoked_us is not None or key.trusted_to_add:
        raise Misuse("key: one that is revoked, or trusted to add keys, is no key to add; put it into the keyring file")
    return LedgerKey(
        public=key.public,
        name=key.name,
        roles=key.roles,
        from_us=key.from_us,
        until_us=key.until_us,
        signer=signing_key.hash,
        signature=signing_key.sign(addition_digest(ledger, key)),
    )


class Keyring:
    """The keys that a gate trusts, by their hash.

    Args:
        keys: each once.
        source: where they come from, for messages.
    """

    __slots__ = ("_keys", "source")

    def __init__(self, keys: Iterable[ApproverKey] = (), *, source: str = "keyring") -> None:
        found: dict[bytes, ApproverKey] = {}
        for key in keys:
            if type(key) is not ApproverKey:
                raise Misuse("keys: give ApproverKey values, or load them: Keyring.load(FILE)")
            if key.hash in found:
                raise Misuse(f"keys: the key {key.hash.hex()} stands there twice; name each key once")
            found[key.hash] = key
        self._keys = found
        self.source = source

    def __repr__(self) -> str:
        return f"Keyring({len(self)} keys from {self.source!r})"

    def __iter__(self) -> Iterator[ApproverKey]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: bytes) -> ApproverKey | None:
        """Return the key of this hash, valid or not; None where there is none."""
        return self._keys.get(key)

    def judge(self, key: bytes, *, at_us: int, now_us: int) -> ApproverKey | KeyRefusal:
        """Return the key whose vote counts, or the word that says why it does not.

        Args:
            key: the hash of the public key.
            at_us: when the gate received the vote.
            now_us: now: at a claim later than the vote.
        """
        found = self._keys.get(key)
        if found is None:
            return "unknown_key"
        return found.judge(at_us=at_us, now_us=now_us) or found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Keyring":
        """Read a keyring from a file that its owner alone may change; docs/approvals.md has its shape.

        Raises:
            KeyringRefused: a member or key in it is not what it must be.
            Misuse: no such file, or others may change it.
        """
        return cls.read(read_unchanged(Path(path), "keyring"), source=str(path))

    @classmethod
    def read(cls, content: bytes, *, source: str) -> "Keyring":
        """Read a keyring from the bytes of such a file.

        Raises:
            KeyringRefused: a member or key in it is not what it must be.
        """
        return cls(keys_of(read_document(content, source=source), source=source), source=source)

    def refuses(self, added: LedgerKey, *, ledger: str, now_us: int) -> AdditionRefusal | None:
        """Say why a key is not trusted for standing in a ledger's table; None where it is.

        The signer is judged by the present: when an addition was signed is told by the database alone, and whoever
        writes there writes any time.

        Args:
            added: as it stands there.
            ledger: the ledger's id.
            now_us: now.
        """
        try:
            key = added.key()
        except Misuse:
            return "unfit"
        if key.hash in self._keys:
            return "in_file"
        signer = self._keys.get(added.signer)
        if signer is None:
            return "unknown_signer"
        if not signer.trusted_to_add or signer.judge(at_us=now_us, now_us=now_us) is not None:
            return "untrusted_signer"
        return None if verify(signer.public, added.signature, addition_digest(ledger, key)) else "bad_signature"

    def with_ledger_keys(
        self, added: Iterable[LedgerKey], *, revoked: Mapping[bytes, int], ledger: str, now_us: int
    ) -> "Keyring":
        """Return this keyring, of a file, with what a ledger's table adds to it and takes from it.

        Args:
            added: the keys of the table; those that nobody trusted has signed are passed over.
            revoked: by hash, since when the table says that a key is revoked, also one of the file.
            ledger: the ledger's id.
            now_us: now.
        """
        file = Keyring((_revoked(key, revoked) for key in self), source=self.source)
        trusted = (one.key() for one in added if file.refuses(one, ledger=ledger, now_us=now_us) is None)
        by_hash = {key.hash: _revoked(key, revoked) for key in trusted}
        return Keyring((*file, *by_hash.values()), source=self.source)


KeyringSource: TypeAlias = Keyring | str | os.PathLike[str]
"""A keyring, or the path of its file."""


def _revoked(key: ApproverKey, revoked: Mapping[bytes, int]) -> ApproverKey:
    """Return a key with the earlier of its revocations: a later one takes none back."""
    since = [at_us for at_us in (key.revoked_us, revoked.get(key.hash)) if at_us is not None]
    if not since:
        return key
    # A row may hold what no command writes; it must neither end a claim with an error nor take a revocation back.
    return replace(key, revoked_us=min(max(min(since), 0), LARGEST_INTEGER))
