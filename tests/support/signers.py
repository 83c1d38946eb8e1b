"""People who sign: keys made of a name, so that every run has the same ones, and keyrings that hold them."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentgate.publickeys import ApproverKey
from agentgate.signing import SigningKey

FROM_US = 1_700_000_000_000_000
FROM = "2023-11-14T22:13:20Z"
DAY_US = 86_400_000_000

# Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs" (SSR 2020), table 1: the eight points of small order, and the
# six encodings more of them that are not canonical.
SMALL_ORDER = (
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
)


def seed(name: str) -> bytes:
    """The private bytes of a name."""
    return hashlib.sha256(f"signer {name}".encode()).digest()


def signer(name: str) -> SigningKey:
    """The private key of a name."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed(name)))


def private_forms(name: str) -> set[bytes]:
    """The private bytes of a name in every form in which they are looked for."""
    whole = seed(name)
    found = {whole, whole.hex().encode(), whole.hex().upper().encode(), repr(whole).encode()}
    for pad in range(3):  # inside a PEM or DER file they begin at any offset
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(encode(b"\0" * pad + whole)[(0, 2, 3)[pad] : (pad + len(whole)) * 8 // 6])
    return found


def public(name: str, /, **changes: Any) -> ApproverKey:
    """The public key of a name, valid from `FROM_US` on."""
    fields: dict[str, Any] = {"public": signer(name).public, "name": f"person:{name}", "from_us": FROM_US}
    return ApproverKey(**fields | changes)


def entry(name: str, /, **changes: Any) -> dict[str, Any]:
    """The entry of a name in a keyring file; a change of None leaves a member out."""
    entry = {"public": signer(name).public.hex(), "name": f"person:{name}", "roles": ["finance"], "from": FROM}
    return {field: value for field, value in (entry | changes).items() if value is not None}


def keyring_file(path: Path, *entries: Any, **changes: Any) -> Path:
    """Write a keyring file."""
    path.write_text(json.dumps({"version": 1, "keys": list(entries)} | changes), "utf-8")
    path.chmod(0o644)
    return path
