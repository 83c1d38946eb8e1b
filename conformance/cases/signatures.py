"""Signatures of votes, keys that are added to a ledger's table, and public keys under which anybody could sign."""

import hashlib
from typing import Any

import ed25519
from cases.case import AT_US, LEDGER, RUN, Case, a_hash, accepted
from independent import by_code_point, digest

SEEDS = {name: hashlib.sha256(name.encode()).digest() for name in ("ada", "grace")}
NONCE = "000102030405060708090a0b0c0d0e0f"
VOTED: dict[str, Any] = {
    "approval": a_hash("approval"), "verdict": "approve", "approver": "person:ada", "nonce": NONCE,
}  # fmt: skip
ADDED: dict[str, Any] = {"ledger": LEDGER, "name": "person:ada", "roles": ["finance", "legal"], "from_us": AT_US}
# Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs" (2020), table 1.
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


def cases() -> list[Case]:
    """Build the group."""
    return [*_votes(), *_checks(), *_additions()]


def _votes() -> list[Case]:
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("approve", "ada", {}),
        ("reject", "ada", {"verdict": "reject"}),
        ("with another nonce", "ada", {"nonce": "f" * 32}),
        ("of another key", "grace", {"approver": "person:grace"}),
        ("of a name that is not ASCII", "grace", {"approver": "Zoë 😀"}),
        ("on another approval", "ada", {"approval": a_hash("another")}),
    ]
    found = []
    for name, who, change in changes:
        seed, voted = SEEDS[who], VOTED | change
        public = ed25519.public(seed)
        key = hashlib.sha256(public).hexdigest()
        bound = digest("vote", voted | {"key": key})
        out = {"public": public.hex(), "key": key, "digest": bound}
        signature = ed25519.sign(seed, bytes.fromhex(bound)).hex()
        found.append(
            accepted(f"signed vote: {name}", "sign_vote", voted | {"seed": seed.hex()}, **out, signature=signature)
        )
    return found


def _checks() -> list[Case]:
    seed, message = SEEDS["ada"], bytes.fromhex(a_hash("message"))
    public, signature = ed25519.public(seed), ed25519.sign(seed, message)
    whole = (int.from_bytes(signature[32:], "little") + ed25519.ORDER).to_bytes(32, "little")
    asked: list[tuple[str, bytes, bytes, bytes, bool]] = [
        ("as signed", public, signature, message, True),
        ("of nothing", public, ed25519.sign(seed, b""), b"", True),
        ("another message", public, signature, message[::-1], False),
        ("another key", ed25519.public(SEEDS["grace"]), signature, message, False),
        ("a flipped bit", public, bytes([signature[0] ^ 1]) + signature[1:], message, False),
        ("S plus the group's order", public, signature[:32] + whole, message, False),
        ("too short", public, signature[:63], message, False),
        ("too long", public, signature + b"\0", message, False),
        ("a key too short", public[:31], signature, message, False),
        ("a key that is no point", (2).to_bytes(32, "little"), signature, message, False),
        ("nothing", b"", b"", b"", False),
    ]
    # The identity as R and 0 as S fit every message under the identity as a key, and some under the others.
    forged = bytes.fromhex(SMALL_ORDER[0]) + bytes(32)
    asked += [(f"a key of small order: {key}", bytes.fromhex(key), forged, message, False) for key in SMALL_ORDER]
    return [
        accepted(
            f"signature: {name}",
            "verify",
            {"public": key.hex(), "signature": signed.hex(), "message": said.hex()},
            valid=valid,
        )
        for name, key, signed, said, valid in asked
    ]


def _additions() -> list[Case]:
    changes: list[tuple[str, dict[str, Any]]] = [
        ("without end", {}),
        ("with an end", {"until_us": AT_US + 1}),
        ("no roles", {"roles": []}),
        ("roles are a set, sorted by code point", {"roles": ["é", "\uffee", "😀", "B", "a", "B"]}),
        ("another name", {"name": "person:grace"}),
        ("another ledger", {"ledger": RUN}),
        ("from the beginning of time", {"from_us": 0}),
    ]
    found = []
    public = ed25519.public(SEEDS["ada"])
    for name, change in changes:
        given = ADDED | change | {"public": public.hex()}
        listed = given | {"roles": by_code_point(given["roles"]), "key": hashlib.sha256(public).hexdigest()}
        found.append(accepted(f"key added: {name}", "addition_digest", given, digest=digest("keyring", listed)))
    return found
