"""What callers hand back to a gate: a run's handle, an action's id. Both may come from anywhere, and say anything."""

import re

from agentgate.errors import Misuse, NotFound
from agentgate.gate.names import check_name, check_tenant
from agentgate.gate.opening import Run
from agentgate.outcome import Proposal

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHOWN = 64


def check_run(value: object) -> Run:
    """Return a run's handle; whether the tenant has such a run is asked of the ledger.

    Raises:
        Misuse: it is none, or names what no run of a caller has.
        NotFound: its id is none.
    """
    if type(value) is not Run:
        raise Misuse("run: give what Gate.run returned")
    check_tenant(value.tenant)
    check_name(value.principal, "run.principal")
    check_id(value.id, "run")
    return value


def named(action: object, tenant: object) -> tuple[str, str]:
    """Return the tenant and the id of an action that is given by its proposal, or by its id.

    Raises:
        Misuse: neither.
        NotFound: a text that is no action's id.
    """
    if issubclass(type(action), Proposal):
        tenant, action = action.tenant, action.action  # type: ignore[attr-defined]  # asked of its type alone
    return check_tenant(tenant), check_id(action, "action")


def check_digest(value: object) -> bytes:
    """Return the digest of what somebody was shown.

    Raises:
        Misuse: it is none.
    """
    if type(value) is not str or _DIGEST.fullmatch(value) is None:
        raise Misuse("digest: give the 64 hex digits of what was shown, from the question itself")
    return bytes.fromhex(value)


def check_id(value: object, kind: str) -> str:
    """Return an id; whether there is such a thing is asked of the ledger.

    Raises:
        Misuse: it is no text.
        NotFound: a text that is no id.
    """
    if type(value) is not str:
        raise Misuse(f"{kind}: give its id as a text")
    if _ID.fullmatch(value) is None:  # no database is asked about a text that it could not even be given
        raise NotFound(kind, value[:_SHOWN])
    return value
