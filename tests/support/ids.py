"""Ids and digests that read well in a failing test, and repeat."""

import hashlib


def an_id(number: int) -> str:
    """Make a well-formed UUIDv7 text with this number in front."""
    return f"{number:08x}-0000-7000-8000-000000000000"


def a_hash(name: str | int) -> bytes:
    """Make 32 bytes that stand for this name."""
    return hashlib.sha256(str(name).encode()).digest()


LEDGER = an_id(0xA)
RUN = an_id(0xB)
ACTION = an_id(0xC)
APPROVAL = an_id(0xD)
AT_US = 1_700_000_000_000_000
