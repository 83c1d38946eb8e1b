"""Keys of people in the ledger's own table: added by whoever a keyring trusts to add, revoked by any operator.

Both stand in the ledger's own chain, with who did it. No gate trusts a key for standing in the table: `trusted` says
which of them are, by a keyring from outside the database.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from sqlalchemy.engine import Connection

from agentgate.canonical import Json, canonical
from agentgate.clock import MICROSECOND
from agentgate.core.draft import Payload
from agentgate.core.keybook import added_row
from agentgate.errors import Misuse, NotPossible
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.names import check_name, check_text
from agentgate.keyring import AdditionRefusal, Keyring, LedgerKey
from agentgate.shape import hash32
from agentgate.store import keys

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGN_AGAIN = "have it signed by a key of the keyring file that says trusted_to_add, is valid and not revoked"
_REMEDIES: Mapping[AdditionRefusal, tuple[str, str]] = MappingProxyType(
    {
        "in_file": ("in the keyring file already", "nothing is to be added"),
        "unfit": ("no key that could stand for a person", "make one: agentgate keys generate FILE"),
        "unknown_signer": ("signed by a key that is not in the keyring file", _SIGN_AGAIN),
        "untrusted_signer": ("signed by a key that is not trusted to add any", _SIGN_AGAIN),
        "bad_signature": ("not what was signed", f"{_SIGN_AGAIN}, for this ledger"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKey:
    """A key as it stands in the ledger's table.

    Args:
        added: the key, and who signed for it; None where it is only revoked there.
        hash: the hash of its public key.
        revoked_us: since when it is revoked there; None where it is not.
        refusal: why a keyring does not trust it for standing there; None where it does, or where none was asked.
    """

    added: LedgerKey | None
    hash: bytes
    revoked_us: int | None
    refusal: AdditionRefusal | None


class KeyTable:
    """Add, revoke and list the keys of one ledger; `Gate.keys`.

    Args:
        ledger: whose.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(self, added: LedgerKey, *, keyring: Keyring, by: str, note: str = "") -> None:
        """Put a key into the ledger's table, for every gate whose keyring trusts whoever signed for it.

        Args:
            added: from `agentgate.sign_addition`. One that stands there already takes the place of that.
            keyring: what it is judged by: what nobody would trust is not put on the record.
            by: who adds it.
            note: why, in words.

        Raises:
            NotPossible: the keyring does not trust it.
            Unavailable: the database could not be had.
        """
        if type(added) is not LedgerKey:
            raise Misuse("added: give what agentgate.sign_addition returned")
        if type(keyring) is not Keyring:
            raise Misuse("keyring: give a Keyring: Keyring.load(FILE)")
        who, texts = check_name(by, "by"), self._texts(note)

        def put(transaction: Transaction) -> None:
            draft = transaction.draft
            trusting = keyring.with_ledger_keys(
                (), revoked=keys.revoked(transaction.connection), ledger=self._ledger.id, now_us=draft.at_us
            )
            refusal = trusting.refuses(added, ledger=self._ledger.id, now_us=draft.at_us)
            if refusal is not None:
                state, remedy = _REMEDIES[refusal]
                raise NotPossible(f"key {added.hash.hex()}", "add it", state, remedy)
            body = _body(added) | {"by": who}
            event = draft.add("key_added", body, payloads=texts)
            keys.put(transaction.connection, added.hash, added_row(body, n=event.n))

        self._ledger.change(self._ledger.id, put)

    def revoke(self, key: str | bytes, *, by: str, since: datetime | None = None, note: str = "") -> bool:
        """Let a key carry nothing any more, whether it stands in the table or in the file of a gate.

        Nothing takes a revocation back. It needs no signature: it only makes things stricter. A misspelt hash would
        revoke nothing, so look at the list afterwards.

        Args:
            key: the hash of the public key, as hexadecimal digits or bytes.
            by: who revokes it.
            since: from when on; now where it is left out. A later time takes no earlier one back.
            note: why, in words.

        Returns:
            Whether this call changed anything.

        Raises:
            Misuse: no hash, or a time without its zone.
            Unavailable: the database could not be had.
        """
        named, who, texts = _hash(key), check_name(by, "by"), self._texts(note)
        given_us = None if since is None else _us(since)

        def revoked(transaction: Transaction) -> bool:
            connection, draft = transaction.connection, transaction.draft
            since_us = draft.at_us if given_us is None else given_us
            stands = keys.revocation(connection, named)
            if stands is not None and stands[0] <= since_us:
                return False
            body: dict[str, Json] = {"key": named.hex(), "since_us": since_us, "by": who}
            event = draft.add("key_revoked", body, payloads=texts)
            keys.revoke(connection, named, since_us=since_us, n=event.n)
            return True

        return self._ledger.change(self._ledger.id, revoked)

    def list(self, keyring: Keyring | None = None) -> tuple[ListedKey, ...]:
        """Read the keys of the table, in the order in which they were added, and what is revoked beside them.

        Args:
            keyring: what they are judged by; without one nothing is said of whether they are trusted.
        """
        if type(keyring) not in {Keyring, type(None)}:
            raise Misuse("keyring: give a Keyring, as Keyring.load(path) returns it, or leave it out")
        with self._ledger.database.read() as connection:
            added, revoked = keys.added(connection), keys.revoked(connection)
        now_us, ledger = self._ledger.clock.now_us(), self._ledger.id
        ring = None if keyring is None else keyring.with_ledger_keys((), revoked=revoked, ledger=ledger, now_us=now_us)
        found = tuple(
            ListedKey(
                added=one,
                hash=one.hash,
                revoked_us=revoked.get(one.hash),
                refusal=None if ring is None else ring.refuses(one, ledger=ledger, now_us=now_us),
            )
            for one in added
        )
        only = revoked.keys() - {one.hash for one in added}
        return found + tuple(
            ListedKey(added=None, hash=key, revoked_us=revoked[key], refusal=None) for key in sorted(only)
        )

    def _texts(self, note: str) -> tuple[Payload, ...]:
        text = check_text(note, "note")
        return (self._ledger.payload("texts", canonical({"note": text})),) if text else ()


def trusted(connection: Connection, keyring: Keyring, *, ledger: str, now_us: int) -> Keyring:
    """Return a keyring with what the ledger's table, as this transaction sees it, adds to it and takes from it."""
    added, revoked = keys.added(connection), keys.revoked(connection)
    if not added and not revoked:
        return keyring
    return keyring.with_ledger_keys(added, revoked=revoked, ledger=ledger, now_us=now_us)


def _body(added: LedgerKey) -> dict[str, Json]:
    body: dict[str, Json] = {
        "key": added.hash.hex(),
        "public": added.public.hex(),
        "name": added.name,
        "roles": [*added.key().roles],
        "from_us": added.from_us,
        "signer": added.signer.hex(),
        "signature": added.signature.hex(),
    }
    return body if added.until_us is None else body | {"until_us": added.until_us}


def _hash(key: object) -> bytes:
    if type(key) is str and hash32(key, "") is None:
        return bytes.fromhex(key)
    if type(key) is bytes and hash32(key.hex(), "") is None:
        return key
    raise Misuse("key: give the hash of the public key, as 64 hexadecimal digits or 32 bytes; `keys list` shows it")


def _us(since: object) -> int:
    if type(since) is not datetime or since.tzinfo is None or since < _EPOCH:
        raise Misuse("since: give a datetime with its zone, from 1970")
    return (since - _EPOCH) // MICROSECOND
