"""One case, and the ids and texts that cases share."""

import base64
import hashlib
from typing import Any

Case = dict[str, Any]


def an_id(number: int) -> str:
    """A UUID text that reads well in a report."""
    return f"{number:08x}-0000-7000-8000-000000000000"


def a_hash(name: str) -> str:
    """64 hexadecimal digits that stand for this name."""
    return hashlib.sha256(name.encode()).hexdigest()


LEDGER = an_id(0xA)
RUN = an_id(0xB)
ACTION = an_id(0xC)
APPROVAL = an_id(0xD)
SALT = bytes(range(32))
TENANT_KEY = bytes(range(100, 132))
AT_US = 1_700_000_000_000_000


def encoded(content: bytes) -> str:
    """Bytes as they travel in a case."""
    return base64.b64encode(content).decode("ascii")


def accepted(name: str, op: str, given: dict[str, Any], **out: Any) -> Case:
    """A case that has an answer."""
    return {"name": name, "op": op, "in": given, "out": out}


def refused(name: str, op: str, given: dict[str, Any], reason: str, **where: Any) -> Case:
    """A case that must be refused, with one reason and, where there is one, the place."""
    return {"name": name, "op": op, "in": given, "refused": {"reason": reason, **where}}
