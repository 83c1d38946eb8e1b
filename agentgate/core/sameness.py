"""When two calls are the same call, and by what a tenant recognises a request or an outcome again.

The rules of docs/format.md, on bytes: nothing here reads a ledger or decides what follows from a repeat.
"""

from dataclasses import dataclass

from agentgate.canonical import Json, canonical
from agentgate.digests import fingerprint
from agentgate.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a call asked for, as far as it is known.

    Args:
        supplied: JCS of the arguments as they were sent; None where they are gone.
        arguments: JCS of the completed ones; None where they are gone.
        request: the request fingerprint; None where its key was destroyed.
    """

    supplied: bytes | None
    arguments: bytes | None
    request: bytes | None


def same_arguments(new: Asked, recorded: Asked) -> bool:
    """Tell whether a call repeats a recorded one: bytes against bytes, where they are gone by fingerprint.

    Where neither is left, no call is the same: a repeat that cannot be shown is a conflict, never a run.
    """
    pairs = ((new.supplied, recorded.supplied), (new.arguments, recorded.arguments))
    if any(one is not None and one == other for one, other in pairs):
        return True
    gone = recorded.supplied is None or recorded.arguments is None
    return gone and new.request is not None and new.request == recorded.request


def request_fingerprint(key: bytes, *, namespace: str, tool: str, arguments: Json) -> bytes:
    """Recognise the same request of a tenant, whatever its key; ``arguments`` are the completed ones."""
    return fingerprint(key, "request", canonical({"namespace": namespace, "tool": tool, "arguments": arguments}))


def outcome_fingerprint(key: bytes, *, request: bytes, observation: Observation) -> bytes:
    """Recognise the same outcome of the same request."""
    body = observation.to_json()
    result = body.get("value", body.get("error"))
    named: dict[str, Json] = {"request": request.hex(), "status": observation.status, "result": result}
    return fingerprint(key, "outcome", canonical(named))
