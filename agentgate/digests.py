"""The digests of the format, each with its own domain, so that no bytes can stand for two things.

Not a place for field lists: what an action or a vote consists of stands with that value; here only the
hashing of formats.md, version 1. Digests are 32 raw bytes; ``.hex()`` is their form inside JSON.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from agentgate.canonical import Json, canonical
from agentgate.errors import Misuse

SALT_BYTES: Final = 32
PAYLOAD_KINDS: Final = frozenset(
    {"raw", "supplied", "arguments", "provenance", "facts", "texts", "presentation", "result", "evidence"},
)
DOCUMENT_KINDS: Final = frozenset({"spec", "policy"})
FINGERPRINT_KINDS: Final = frozenset({"request", "outcome", "resource"})

_DOMAIN = re.compile(r"[a-z][a-z_-]*")
_FRAMED = frozenset({"payload", "document", "fingerprint"})  # their bytes are not one JCS value: never digest()'s


def digest(domain: str, value: Json) -> bytes:
    """Hash a JSON value under a domain: SHA-256("agentgate/" domain "/v1" NUL JCS(value)).

    Args:
        domain: lower-case word such as ``event`` or ``action``; not ``payload``, ``document``, ``fingerprint``.
        value: made by `agentgate.canonical.snapshot` or `agentgate.canonical.parse`.

    Returns:
        32 raw bytes.

    Raises:
        NotCanonical: the value has no canonical form.
        Misuse: the domain is no lower-case word, or one of the three that frame other bytes.
    """
    return hashlib.sha256(_prefix(domain) + canonical(value)).digest()


def payload_digest(kind: str, salt: bytes, content: bytes) -> bytes:
    """Commit to bytes that may be personal: SHA-256("agentgate/payload/v1" NUL kind NUL salt bytes).

    Args:
        kind: one of `PAYLOAD_KINDS`.
        salt: 32 random bytes, one per use; without them a short payload could be guessed from its digest.
        content: the payload as it is.

    Raises:
        Misuse: an unknown kind, or a salt of another length (which would blur where the content begins).
    """
    _known("payload", kind, PAYLOAD_KINDS)
    if len(salt) != SALT_BYTES:
        raise Misuse(f"a payload's salt has {SALT_BYTES} bytes, not {len(salt)}; take it from the clock's randomness")
    return hashlib.sha256(_framed("payload", kind) + salt + content).digest()


def document_digest(kind: str, content: bytes) -> bytes:
    """Name a spec or a policy file by its content: SHA-256("agentgate/document/v1" NUL kind NUL bytes).

    Raises:
        Misuse: the kind is not one of `DOCUMENT_KINDS`.
    """
    _known("document", kind, DOCUMENT_KINDS)
    return hashlib.sha256(_framed("document", kind) + content).digest()


def fingerprint(key: bytes, kind: str, content: bytes) -> bytes:
    """Recognise a repeat without keeping it: HMAC-SHA-256(key, "agentgate/fingerprint/v1" NUL kind NUL bytes).

    Args:
        key: the tenant's key; once it is destroyed the fingerprints say nothing any more.
        kind: one of `FINGERPRINT_KINDS`.
        content: JCS of the request or outcome, or the resource as UTF-8.

    Raises:
        Misuse: an empty key, or an unknown kind.
    """
    _known("fingerprint", kind, FINGERPRINT_KINDS)
    if not key:
        raise Misuse("a fingerprint needs its tenant's key; an empty key hides nothing")
    return hmac.digest(key, _framed("fingerprint", kind) + content, "sha256")


def idempotency_key(
    *,
    ledger: str,
    tenant: str,
    namespace: str,
    tool: str,
    key: Mapping[str, str],
    revision: int,
) -> str:
    """Make the key a downstream may dedupe on: the same over attempts, processes and resumes.

    Args:
        ledger: the ledger's id, so that a copied database does not share keys with its original.
        tenant: the tenant's name.
        namespace: the tool's namespace, ``""`` when none.
        tool: the tool's name.
        key: the action's key, ``{source, scope, text}``.
        revision: which action of that key, from 1.

    Returns:
        64 lower-case hex digits.
    """
    named: dict[str, Json] = {
        "ledger": ledger,
        "tenant": tenant,
        "namespace": namespace,
        "tool": tool,
        "key": dict(key),
        "revision": revision,
    }
    return digest("idempotency", named).hex()


@cache
def _prefix(domain: str) -> bytes:
    if not _DOMAIN.fullmatch(domain) or domain in _FRAMED:
        raise Misuse(f"{domain!r} is no domain of a JSON digest; name it with a lower-case word of its own")
    return f"agentgate/{domain}/v1\0".encode("ascii")


@cache
def _framed(domain: str, kind: str) -> bytes:
    return f"agentgate/{domain}/v1\0{kind}\0".encode("ascii")


def _known(domain: str, kind: str, kinds: frozenset[str]) -> None:
    if kind not in kinds:
        raise Misuse(f"{kind!r} is no kind of {domain}; the kinds are {', '.join(sorted(kinds))}")
