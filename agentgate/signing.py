"""Signatures of people's votes: the key a person signs with, the signed vote they send, and how a gate checks it.

Ed25519 (RFC 8032) over the 32 bytes of the vote digest. A person signs where no ledger is near; what comes to the
gate is the vote, the hash of the public key and the signature, never the private key. Whose a key is, and since when,
is told by `agentgate.keyring`.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from agentgate.approval import Verdict, vote_digest
from agentgate.canonical import Json
from agentgate.clock import Clock, SystemClock
from agentgate.errors import Misuse
from agentgate.jcs import encodable
from agentgate.ownfiles import read_private, write_private
from agentgate.shape import code, hash32, misfit, nonce16, one_of, signature64

PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
NONCE_BYTES: Final = 16

_PRIME: Final = 2**255 - 19
_D: Final = -121_665 * pow(121_666, -1, _PRIME) % _PRIME
_SIGN_BIT: Final = 1 << 255
_OF_ORDER_8: Final = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
# The y coordinates, as 255 bits can write them, of the points whose order divides 8: with either sign bit 14 encodings.
# Under such a key a signature that nobody made fits every message, or some of them. Source: Chalkias, Garillot,
# Nikolaenko, "Taming the many EdDSAs" (SSR 2020), table 1; the same seven as in libsodium's ge25519_has_small_order.
_SMALL_ORDER: Final = frozenset({0, 1, _OF_ORDER_8, _PRIME - _OF_ORDER_8, _PRIME - 1, _PRIME, _PRIME + 1})


def key_hash(public: bytes) -> bytes:
    """Name a public key: SHA-256 of its 32 raw bytes."""
    return hashlib.sha256(public).digest()


def unfit(public: object) -> str | None:
    """Say why these are not the bytes of a public key that may stand for a person; None where they are."""
    if type(public) is not bytes or len(public) != PUBLIC_BYTES:
        return f"it is not {PUBLIC_BYTES} bytes"
    y = int.from_bytes(public, "little") & ~_SIGN_BIT
    if y in _SMALL_ORDER:
        return "it is of small order: anybody can sign for it"
    if y >= _PRIME:
        return "it is not canonical: the same key has another encoding"
    # RFC 8032 §5.1.3: x² = (y² - 1) / (d y² + 1) must be a square. u/v is one where u·v is (Euler's criterion).
    if pow((y * y - 1) * (_D * y * y + 1), (_PRIME - 1) // 2, _PRIME) != 1:
        return "it is no point of the curve"
    return None


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """Tell whether this key signed this message; False for whatever is no key or no signature.

    Keys of small order and keys that are not canonical are refused: RFC 8032 does not forbid them, and the library
    below takes them.

    Args:
        public: 32 raw bytes.
        signature: 64 raw bytes.
        message: what was signed.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if type(signature) is not bytes or len(signature) != SIGNATURE_BYTES or unfit(public) is not None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What a person says to what they were shown.

    Args:
        approval: the approval digest as shown, 32 bytes.
        verdict: what they say.
        approver: who says it.
        key: the hash of the public key it is signed with; None when unsigned.
        nonce: 16 random bytes.
    """

    approval: bytes
    verdict: Verdict
    approver: str
    key: bytes | None = None
    nonce: bytes

    @property
    def digest(self) -> bytes:
        """Return the vote digest: what is signed."""
        return vote_digest(
            approval=self.approval, verdict=self.verdict, approver=self.approver, key=self.key, nonce=self.nonce
        )


_SIGNED = {
    "approval": hash32,
    "verdict": one_of(*get_args(Verdict)),
    "approver": code,
    "key": hash32,
    "nonce": nonce16,
    "signature": signature64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedVote:
    """A vote as a person sends it: nothing in it is secret.

    Args:
        approval: the approval digest as shown, 32 bytes.
        verdict: what they say.
        approver: who says it; the name that the keyring gives the key.
        key: the hash of the public key.
        nonce: 16 random bytes.
        signature: 64 bytes over the vote digest.
    """

    approval: bytes
    verdict: Verdict
    approver: str
    key: bytes
    nonce: bytes
    signature: bytes

    def __post_init__(self) -> None:
        wrong = [name for name in ("approval", "key", "nonce", "signature") if type(getattr(self, name)) is not bytes]
        wrong = wrong or [(misfit(_SIGNED, self.to_json()) or "").lstrip("/")]
        if wrong[0]:
            raise Misuse(f"{wrong[0]}: {_MUST_BE[wrong[0]]}")

    @property
    def vote(self) -> Vote:
        """Return what was signed."""
        return Vote(
            approval=self.approval, verdict=self.verdict, approver=self.approver, key=self.key, nonce=self.nonce
        )

    def to_json(self) -> dict[str, Json]:
        """Return the vote as JSON, to be carried to where the ledger is."""
        return {
            "approval": self.approval.hex(),
            "verdict": self.verdict,
            "approver": self.approver,
            "key": self.key.hex(),
            "nonce": self.nonce.hex(),
            "signature": self.signature.hex(),
        }

    @classmethod
    def from_json(cls, value: Json) -> "SignedVote":
        """Read a vote that was carried as JSON.

        Raises:
            Misuse: a member is missing, unknown, or not what it must be.
        """
        wrong = misfit(_SIGNED, value)
        if wrong is not None:
            remedy = _MUST_BE.get(wrong.lstrip("/"), f"leave it out; a signed vote is {{{', '.join(_SIGNED)}}}")
            raise Misuse(f"signed vote: {wrong or '/'}: {remedy}")
        found: Any = value  # every member was just checked
        raw = {name: bytes.fromhex(found[name]) for name in ("approval", "key", "nonce", "signature")}
        return cls(verdict=found["verdict"], approver=found["approver"], **raw)


_MUST_BE: Mapping[str, str] = {
    "": f"give an object of {', '.join(_SIGNED)}",
    "approval": "give the approval digest as it was shown: 32 bytes, or 64 hexadecimal digits",
    "verdict": f"give one of {', '.join(get_args(Verdict))}",
    "approver": "give the name of whoever votes: 1 to 200 printable characters",
    "key": "give the hash of the public key: 32 bytes, or 64 hexadecimal digits",
    "nonce": "give 16 random bytes, or 32 hexadecimal digits",
    "signature": "give 64 bytes, or 128 hexadecimal digits",
}


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A person's private key: it signs, and shows itself nowhere; it cannot be pickled.

    Args:
        private: the key as `cryptography` holds it; made by `new` and `load`.
    """

    private: Any = field(repr=False)  # the library is imported when a key is made, not before
    public: bytes = field(init=False)
    hash: bytes = field(init=False)

    def __post_init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not isinstance(self.private, Ed25519PrivateKey):
            raise Misuse("private: give an Ed25519 private key; `agentgate keys generate FILE` makes one")
        object.__setattr__(self, "public", self.private.public_key().public_bytes_raw())
        object.__setattr__(self, "hash", key_hash(self.public))

    def __repr__(self) -> str:
        return f"SigningKey(hash={self.hash.hex()})"

    @classmethod
    def new(cls, clock: Clock | None = None) -> "SigningKey":
        """Make a fresh key from the clock's randomness."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        seed = (clock or SystemClock()).random(PUBLIC_BYTES)
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, passphrase: str | None = None) -> "SigningKey":
        """Read a key from a PEM file (PKCS #8) that its owner alone may read.

        Args:
            path: the file.
            passphrase: what it was saved with; None where it was saved without.

        Raises:
            Misuse: no such file, others may read it, it holds no Ed25519 key, or the passphrase is not the one.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        content = read_private(Path(path), "signing key")
        secret = None if passphrase is None else _secret(passphrase)
        try:
            return cls(load_pem_private_key(content, secret))
        except TypeError:  # how the library says that a passphrase is missing, or is given where none is needed
            problem = "is saved with a passphrase; give it" if secret is None else "has no passphrase; give none"
            raise Misuse(f"signing key: {path} {problem}") from None
        except Misuse:
            raise Misuse(f"signing key: {path} holds another kind of key; {_MAKE}") from None
        except (ValueError, UnsupportedAlgorithm):
            problem = "holds no key" if secret is None else "cannot be read with this passphrase"
            raise Misuse(f"signing key: {path} {problem}; {_MAKE}") from None

    def save(self, path: str | os.PathLike[str], *, passphrase: str | None = None) -> None:
        """Write the key into a new PEM file (PKCS #8) that its owner alone may read.

        Args:
            path: a file that does not exist yet.
            passphrase: encrypts the file; None leaves it as it is.

        Raises:
            Misuse: there is such a file already, it cannot be made, or the passphrase is empty.
        """
        from cryptography.hazmat.primitives import serialization as form

        hidden = form.NoEncryption() if passphrase is None else form.BestAvailableEncryption(_secret(passphrase))
        content = self.private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hidden)
        write_private(Path(path), content, "signing key")

    def sign(self, message: bytes) -> bytes:
        """Sign bytes; 64 raw bytes come back."""
        signature: bytes = self.private.sign(message)
        return signature


_MAKE: Final = "`agentgate keys generate FILE` makes one"


def _secret(passphrase: object) -> bytes:
    if type(passphrase) is not str or not passphrase or not encodable(passphrase):
        raise Misuse("passphrase: give a text that is not empty, or None for a file without one")
    return passphrase.encode()


def sign_vote(
    signing_key: SigningKey,
    *,
    approval: str | bytes,
    verdict: Verdict,
    approver: str,
    clock: Clock | None = None,
) -> SignedVote:
    """Sign a vote on what was shown, where no ledger is near.

    Args:
        signing_key: whose vote it is.
        approval: the approval digest as shown: 64 hexadecimal digits, or 32 bytes.
        verdict: approve or reject; of a question again, applied or not_applied.
        approver: the name that the keyring gives the key; a vote under another one is refused.
        clock: whose randomness the nonce is drawn from; the system's where it is left out.

    Raises:
        Misuse: a digest, verdict or name that is none.
    """
    if type(signing_key) is not SigningKey:
        raise Misuse("signing_key: give a SigningKey")
    if type(approval) is str and hash32(approval, "") is None:
        approval = bytes.fromhex(approval)
    nonce = (clock or SystemClock()).random(NONCE_BYTES)
    given: dict[str, Any] = {"approval": approval, "verdict": verdict, "approver": approver, "nonce": nonce}
    # Checked before anything is signed: a signature under something that is no vote must not exist.
    unsigned = SignedVote(**given, key=signing_key.hash, signature=bytes(SIGNATURE_BYTES)).vote
    return SignedVote(**given, key=signing_key.hash, signature=signing_key.sign(unsigned.digest))
