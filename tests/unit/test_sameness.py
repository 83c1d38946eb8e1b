"""The same call, word by word as docs/format.md says it, and the fingerprints that recognise one."""

import hashlib
import hmac

import pytest

from agentgate.core.sameness import Asked, outcome_fingerprint, request_fingerprint, same_arguments
from agentgate.observation import Error, Observation

KEY = b"k" * 32


def asked(supplied: str | None, arguments: str | None, request: str | None = None) -> Asked:
    parts = (None if part is None else part.encode() for part in (supplied, arguments, request))
    return Asked(**dict(zip(("supplied", "arguments", "request"), parts, strict=True)))


@pytest.mark.parametrize(
    ("new", "recorded", "same"),
    [
        # "as supplied, or as completed, bytes against bytes"
        (asked("a", "ab", "1"), asked("a", "ab", "1"), True),
        (asked("a", "ac", "2"), asked("a", "ab", "1"), True),
        (asked("ab", "ab", "1"), asked("a", "ab", "1"), True),
        (asked("x", "xb", "2"), asked("a", "ab", "1"), False),
        (asked("ab", "abc", "2"), asked("a", "ab", "1"), False),
        (asked("a", "ab", "1"), asked("x", "xb", "1"), False),  # bytes there are go before a fingerprint
        # "where the payload is gone or cannot be opened, by request fingerprint"
        (asked("a", "ab", "1"), asked(None, None, "1"), True),
        (asked("a", "ab", "2"), asked(None, None, "1"), False),
        (asked("a", "ab", "1"), asked("x", None, "1"), True),
        (asked("a", "ab", "2"), asked("a", None, "1"), True),
        (asked("a", "ab", "2"), asked(None, "xb", "1"), False),
        # "where that is gone too, KeyConflict, never a run"
        (asked("a", "ab", "1"), asked(None, None, None), False),
        (asked("a", "ab", None), asked(None, None, None), False),
        (asked(None, None, None), asked(None, None, None), False),
    ],
)
def test_a_call_is_the_same_by_bytes_and_where_they_are_gone_by_fingerprint(
    new: Asked, recorded: Asked, *, same: bool
) -> None:
    assert same_arguments(new, recorded) is same


def hashed(kind: str, content: bytes) -> bytes:
    return hmac.new(KEY, b"agentgate/fingerprint/v1\0" + kind.encode() + b"\0" + content, hashlib.sha256).digest()


def test_a_request_is_recognised_by_tool_and_completed_arguments() -> None:
    expected = hashed("request", b'{"arguments":{"a":1},"namespace":"crm","tool":"t"}')
    assert request_fingerprint(KEY, namespace="crm", tool="t", arguments={"a": 1}) == expected


def test_an_outcome_is_recognised_by_request_status_and_what_came_of_it() -> None:
    request = bytes(32)
    good = Observation(status="ok", value=[1], notes=("capped",))
    bad = Observation(status="error", error=Error(code="not_found", message="m"))
    none = Observation(status="ok")
    start = b'{"request":"' + b"0" * 64 + b'","result":'
    fine = b',"status":"ok"}'
    assert outcome_fingerprint(KEY, request=request, observation=good) == hashed("outcome", start + b"[1]" + fine)
    assert outcome_fingerprint(KEY, request=request, observation=none) == hashed("outcome", start + b"null" + fine)
    assert outcome_fingerprint(KEY, request=request, observation=bad) == hashed(
        "outcome", start + b'{"code":"not_found","message":"m","retryable":false},"status":"error"}'
    )
