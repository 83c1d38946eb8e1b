"""Sealing payloads at rest: the keys, and the bytes of a sealed text. What is sealed is decided in `gate.ledger`.

    sealed text   0x01 · nonce (12 bytes) · AES-256-GCM(key, nonce, salt · bytes; associated data: the payload digest)

The digest is what the event names, so a sealed text stands for one payload of one event and no other; the salt lies
inside. A key never lies in the database: there stands its id, which is made of it, so that no wrong key can bear it.
"""

import base64
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Final, TypeAlias, TypeGuard

from agentgate.clock import Clock, SystemClock
from agentgate.digests import SALT_BYTES, payload_digest
from agentgate.errors import Damaged, Misuse, Sealed
from agentgate.ownfiles import read_private, write_private

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
VERSION: Final = b"\x01"
OVERHEAD: Final = len(VERSION) + NONCE_BYTES + SALT_BYTES + 16
"""How much longer a sealed text is than the bytes in it: version, nonce, salt, tag."""

_ID_DOMAIN = b"agentgate/sealing-key/v1\0"
_ID_DIGITS = 16
_ID = re.compile(r"[0-9a-f]{16}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_STANDARD = str.maketrans("-_", "+/")
_WRITE_KEYS = "write each key on a line of its own, as 64 hexadecimal digits or as base64 of 32 bytes"


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A key that seals payloads; its ``id`` is made of it and may be seen by anybody.

    Args:
        key: 32 random bytes; never a password.
    """

    key: bytes = field(repr=False)
    id: str = field(init=False)

    def __post_init__(self) -> None:
        if type(self.key) is not bytes or len(self.key) != KEY_BYTES:
            raise Misuse(f"key: give exactly {KEY_BYTES} random bytes; `agentgate seal-key FILE` makes them")
        made = hashlib.sha256(_ID_DOMAIN + self.key).hexdigest()[:_ID_DIGITS]
        object.__setattr__(self, "id", made)

    @classmethod
    def new(cls, clock: Clock | None = None) -> "SealingKey":
        """Make a fresh key; keep it before you use it: what it sealed is lost with it."""
        return cls((clock or SystemClock()).random(KEY_BYTES))

    def text(self) -> str:
        """Write the key as a key file holds it."""
        return base64.b64encode(self.key).decode("ascii")


@dataclass(frozen=True, slots=True)
class SealingKeys:
    """The key that seals, and older ones that still open what they sealed.

    Args:
        current: seals from now on.
        older: open only.
    """

    current: SealingKey
    older: tuple[SealingKey, ...] = ()

    def __post_init__(self) -> None:
        if not all(type(one) is SealingKey for one in (self.current, *self.older)):
            raise Misuse("sealing: give SealingKey values")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "SealingKeys":
        """Read keys from a file that its owner alone may read: the first seals, all of them open.

        Args:
            path: one key a line, as base64 or as hexadecimal digits; empty lines and lines that begin with # are
                passed over.

        Raises:
            Misuse: no such file, others may read it, or it holds no keys.
        """
        return cls._read(read_private(Path(path), "sealing").decode("ascii", "replace"), str(path))

    @classmethod
    def from_environment(cls, name: str) -> "SealingKeys":
        """Read keys from a variable of the environment, separated by spaces: the first seals, all of them open.

        Raises:
            Misuse: there is no such variable, or it holds no keys.
        """
        if name not in os.environ:
            raise Misuse(f"sealing: the environment has no {name}; {_WRITE_KEYS}")
        return cls._read("\n".join(os.environ[name].split()), name)

    @classmethod
    def _read(cls, text: str, where: str) -> "SealingKeys":
        lines = (line.strip() for line in text.splitlines())
        keys = tuple(_key(line, where) for line in lines if line and not line.startswith("#"))
        if not keys:
            raise Misuse(f"sealing: {where} holds no key; {_WRITE_KEYS}")
        return cls(keys[0], keys[1:])

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all of them, the current one's first."""
        return tuple(one.id for one in self._all())

    def _all(self) -> tuple[SealingKey, ...]:
        return (self.current, *self.older)

    def seal(self, salt: bytes, content: bytes, *, digest: bytes, nonce: bytes) -> bytes:
        """Seal a payload with the current key.

        Args:
            salt: the payload's; it lies in the sealed text and nowhere else.
            content: the payload's bytes.
            digest: the payload's, as its event names it.
            nonce: 12 random bytes, for this text alone.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return VERSION + nonce + AESGCM(self.current.key).encrypt(nonce, salt + content, digest)

    def open(self, kind: str, text: bytes, *, digest: bytes, by: str) -> tuple[bytes, bytes]:
        """Open a sealed text, and check that it is what its event names.

        Args:
            kind: the payload's.
            text: as stored.
            digest: as the event names it.
            by: the id of the key that sealed it, as stored.

        Returns:
            The salt and the bytes.

        Raises:
            Sealed: the key of that id is none of these.
            Damaged: the text, its key's id or the digest was changed.
        """
        named = next((one for one in self._all() if one.id == by), None)
        opened = None if named is None else _opened(named, kind, text, digest)
        if opened is not None:
            return opened
        # Whoever writes the database could name another key, so that its text looks like one nobody here can open.
        if named is not None or any(_opened(one, kind, text, digest) is not None for one in self._all()):
            raise Damaged(f"sealed {kind}", "it was changed, or is not what its event names")
        raise Sealed(kind, by, self.ids)


SealingSource: TypeAlias = SealingKey | SealingKeys | Callable[[], SealingKey | SealingKeys]
"""What gives a gate its keys: the keys, or a function that fetches them once, when the gate is opened."""


def sealing_keys(source: SealingSource | None) -> SealingKeys | None:
    """Return the keys that a caller gave.

    Raises:
        Misuse: it gave none.
    """
    keys = source() if callable(source) else source
    if keys is None and source is None:
        return None
    if type(keys) is SealingKey:
        return SealingKeys(keys)
    if type(keys) is not SealingKeys:
        raise Misuse("sealing: give a SealingKey, SealingKeys, or a function that returns one")
    return keys


def open_sealed(keys: SealingKeys | None, kind: str, text: bytes, *, digest: bytes, by: object) -> tuple[bytes, bytes]:
    """Open a sealed text with whatever keys there are; arguments, answer and errors as `SealingKeys.open`."""
    if not is_key_id(by) or len(text) < OVERHEAD:
        raise Damaged(f"sealed {kind}", "it is no sealed text")
    if keys is None:
        raise Sealed(kind, by, ())
    return keys.open(kind, text, digest=digest, by=by)


def is_key_id(value: object) -> TypeGuard[str]:
    """Tell whether this may stand as the id of a key."""
    return type(value) is str and _ID.fullmatch(value) is not None


def _opened(key: SealingKey, kind: str, text: bytes, digest: bytes) -> tuple[bytes, bytes] | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(text) < OVERHEAD or not text.startswith(VERSION):
        return None
    nonce, sealed = text[len(VERSION) :][:NONCE_BYTES], text[len(VERSION) + NONCE_BYTES :]
    try:
        whole = AESGCM(key.key).decrypt(nonce, sealed, digest)
    except InvalidTag:
        return None
    salt, content = whole[:SALT_BYTES], whole[SALT_BYTES:]
    # AES-GCM alone does not bind the key: a text can be made that opens with two. The digest does.
    return (salt, content) if compare_digest(payload_digest(kind, salt, content), digest) else None


def _key(line: str, where: str) -> SealingKey:
    try:
        key = bytes.fromhex(line) if _HEX.fullmatch(line) else base64.b64decode(_padded(line), validate=True)
    except ValueError:  # binascii's errors are of this kind
        key = b""
    if len(key) != KEY_BYTES:
        raise Misuse(f"sealing: {where} holds a line that is no key; {_WRITE_KEYS}") from None
    return SealingKey(key)


def _padded(line: str) -> str:
    """Return base64 of either alphabet as the standard one with its padding."""
    return line.translate(_STANDARD).rstrip("=") + "=" * (-len(line.rstrip("=")) % 4)


def write_key(path: Path, key: SealingKey) -> None:
    """Write a key into a new file that its owner alone may read.

    Raises:
        Misuse: there is such a file already, or it cannot be made.
    """
    write_private(path, f"# agentgate sealing key {key.id}\n{key.text()}\n".encode("ascii"), "sealing")
