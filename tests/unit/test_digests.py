"""The digests, byte for byte as docs/format.md writes them."""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.digests import (
    DOCUMENT_KINDS,
    FINGERPRINT_KINDS,
    PAYLOAD_KINDS,
    digest,
    document_digest,
    fingerprint,
    idempotency_key,
    payload_digest,
)
from agentgate.errors import Misuse, NotCanonical

SALT = bytes(range(32))
IDENTITY: dict[str, Any] = {
    "ledger": "01890a5d-ac96-774b-bcce-b302099a8057",
    "tenant": "acme",
    "namespace": "",
    "tool": "refund",
    "key": {"source": "caller", "scope": "", "text": "refund-4711"},
    "revision": 1,
}


def test_a_digest_is_over_domain_version_and_canonical_bytes() -> None:
    assert digest("event", {"b": 1, "a": [2.0]}) == hashlib.sha256(b'agentgate/event/v1\0{"a":[2],"b":1}').digest()


def test_a_payload_digest_is_over_kind_salt_and_bytes() -> None:
    expected = hashlib.sha256(b"agentgate/payload/v1\0arguments\0" + SALT + b'{"a":1}').digest()
    assert payload_digest("arguments", SALT, b'{"a":1}') == expected


def test_a_document_digest_is_over_kind_and_bytes_as_they_are() -> None:
    expected = hashlib.sha256(b"agentgate/document/v1\0policy\0rules: []\r\n").digest()
    assert document_digest("policy", b"rules: []\r\n") == expected


def test_a_fingerprint_is_a_keyed_hash_over_kind_and_bytes() -> None:
    expected = hmac.new(b"k" * 32, b"agentgate/fingerprint/v1\0resource\0account:a1", "sha256").digest()
    assert fingerprint(b"k" * 32, "resource", b"account:a1") == expected


def test_an_idempotency_key_is_the_hex_digest_of_who_meant_what() -> None:
    jcs = (
        b'{"key":{"scope":"","source":"caller","text":"refund-4711"},"ledger":"01890a5d-ac96-774b-bcce-b302099a8057",'
        b'"namespace":"","revision":1,"tenant":"acme","tool":"refund"}'
    )
    assert idempotency_key(**IDENTITY) == hashlib.sha256(b"agentgate/idempotency/v1\0" + jcs).hexdigest()


# What is hashed is hashed for ever: these lines may never change.
def test_the_digests_are_the_released_ones() -> None:
    assert [
        digest("event", {}).hex(),
        payload_digest("raw", SALT, b"").hex(),
        document_digest("spec", b"{}").hex(),
        fingerprint(b"k" * 32, "request", b"{}").hex(),
        idempotency_key(**IDENTITY),
    ] == [
        "43c402771ca8faa3dc4d801c5fadcb88d13d5441fdedfb7a91d52da2a04fac70",
        "cfe1408a3ab2ba47f1d840223afe614f0319b54d0d5b64466c9e9b24b1ed244d",
        "d3589d16a6b492524f32c4944d37631f33c3554eec67f7398c19a91a83bcb38c",
        "9ba15d878c93ee225a278a60ddde47a22cf0e0bfe31af40b0e4b264ad8293696",
        "f31987de06288da4e1a048f35d63d1e370fdc3118e83c0ce0e7f2f7b8b9adbdf",
    ]


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("ledger", "01890a5d-ac96-774b-bcce-b302099a8058"),
        ("tenant", "other"),
        ("namespace", "crm"),
        ("tool", "refund2"),
        ("key", {"source": "adapter", "scope": "", "text": "refund-4711"}),
        ("key", {"source": "caller", "scope": "bob", "text": "refund-4711"}),
        ("revision", 2),
    ],
)
def test_another_field_is_another_idempotency_key(field: str, other: object) -> None:
    changed: dict[str, Any] = {**IDENTITY, field: other}
    assert idempotency_key(**changed) != idempotency_key(**IDENTITY)


# Law: no bytes stand for two things. Every domain and kind is ended by a NUL, which none of them contains.
@given(st.binary(max_size=40), st.binary(min_size=32, max_size=32))
def test_the_same_bytes_in_another_domain_or_kind_have_another_digest(content: bytes, salt: bytes) -> None:
    made = [payload_digest(kind, salt, content) for kind in PAYLOAD_KINDS]
    made += [document_digest(kind, content) for kind in DOCUMENT_KINDS]
    made += [fingerprint(salt, kind, content) for kind in FINGERPRINT_KINDS]
    made += [digest(domain, content.hex()) for domain in ("event", "genesis", "action", "vote")]
    assert len(set(made)) == len(made)
    assert {len(one) for one in made} == {32}


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: digest("payload", {}),
        lambda: digest("document", {}),
        lambda: digest("fingerprint", {}),
        lambda: digest("", {}),
        lambda: digest("event/v2\0", {}),
        lambda: digest("Event", {}),
        lambda: digest("event\n", {}),
        lambda: payload_digest("spec", SALT, b""),
        lambda: payload_digest("raw\0", SALT, b""),
        lambda: payload_digest("raw", SALT[:31], b""),
        lambda: payload_digest("raw", b"", b""),
        lambda: document_digest("raw", b""),
        lambda: fingerprint(b"", "request", b""),
        lambda: fingerprint(b"k", "Request", b""),
    ],
)
def test_a_domain_kind_salt_or_key_of_another_shape_is_refused(misuse: Callable[[], bytes]) -> None:
    with pytest.raises(Misuse):
        misuse()


def test_a_value_without_canonical_form_has_no_digest() -> None:
    with pytest.raises(NotCanonical):
        digest("event", {"at": float("nan")})
