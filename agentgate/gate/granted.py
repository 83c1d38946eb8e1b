"""Standing grants as values: what one says, what is left of it, and what one would say that nobody has given yet.

Sensitive arguments are masked in them, as wherever they leave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from agentgate.canonical import Json
from agentgate.clock import to_datetime
from agentgate.digests import document_digest
from agentgate.errors import Damaged, Misuse
from agentgate.gate.covering import payload_of, said
from agentgate.gate.ledger import Ledger
from agentgate.policy.grants import Predicate, predicate_of
from agentgate.store.grants import StoredGrant
from agentgate.tools.sensitive import MARK, masked, public_path
from agentgate.tools.spec import ToolSpec, from_document

GrantState: TypeAlias = Literal["live", "used_up", "over", "revoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingGrant:
    """A standing grant.

    Args:
        id: its id.
        state: ``live``, ``used_up``, ``over`` or ``revoked``.
        tenant: whose actions it covers.
        principal: of this principal alone; None for everybody of the tenant.
        namespace: the tool's server.
        tool: the tool's name.
        spec: digest of the definition that it was given for, in hex: a changed tool is not covered.
        where: what the arguments must be like, sensitive ones masked; None where that is erased, or sealed by a key
            that is not at hand.
        uses: how many it has.
        left: how many of them are left.
        until: when it is over.
        by: who gave it.
        why: in words; None where they are erased or sealed.
        like: the action whose arguments it was given for.
    """

    id: str
    state: GrantState
    tenant: str
    principal: str | None
    namespace: str
    tool: str
    spec: str
    where: Mapping[str, Json] | None = field(repr=False)
    uses: int
    left: int
    until: datetime
    by: str
    why: str | None = field(repr=False)
    like: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What a standing grant would be about; nobody has given it.

    Args:
        namespace: the tool's server.
        tool: the tool's name.
        spec: digest of its definition, in hex.
        where: what the arguments must be like, sensitive ones masked.
    """

    namespace: str
    tool: str
    spec: str
    where: Mapping[str, Json] = field(repr=False)


def meant(spec: ToolSpec, predicate: Predicate) -> Meant:
    """Say what a grant of this predicate for this tool would be about."""
    return Meant(namespace=spec.namespace, tool=spec.name, spec=spec.digest.hex(), where=_veiled(spec, predicate))


def granted(ledger: Ledger, facts: StoredGrant | None, texts: StoredGrant | None, *, id: str) -> StandingGrant:
    """Make a grant of what lies there of it.

    Args:
        ledger: the record.
        facts: its row, with its predicate.
        texts: the same, with who gave it in words.
        id: whose it must be.

    Raises:
        Damaged: its event or its tool's definition is missing, or not what its row says.
    """
    event = None if facts is None else said(facts)
    if facts is None or texts is None or event is None:
        raise Damaged(f"standing grant {id}", "its event is missing, or not what its row says")
    body: Mapping[str, Any] = event.body
    left = max(0, (facts.most or 0) - facts.used)
    where, words = payload_of(event, facts, ledger.sealing), payload_of(event, texts, ledger.sealing)
    return StandingGrant(
        id=id,
        state=_state(facts, left=left, over=body["until_us"] <= ledger.clock.now_us()),
        tenant=body["tenant"],
        principal=body.get("principal"),
        namespace=body["namespace"],
        tool=body["tool"],
        spec=body["spec"],
        where=None if where is None else _where(facts, where, body["spec"]),
        uses=body["uses"],
        left=left,
        until=to_datetime(body["until_us"]),
        by=body["by"],
        why=None if words is None else words.get("why"),
        like=body.get("like"),
    )


def _state(stored: StoredGrant, *, left: int, over: bool) -> GrantState:
    if stored.revoked:
        return "revoked"
    return "over" if over else "live" if left else "used_up"


def _where(stored: StoredGrant, where: Json, digest: str) -> Mapping[str, Json]:
    """Return a recorded predicate as it may be shown: only the tool's definition says what in it is sensitive."""
    content = stored.definition
    if content is None or document_digest("spec", content).hex() != digest:
        raise Damaged(f"standing grant {stored.id}", "its tool's definition is missing, or not what its event names")
    try:
        return _veiled(from_document(content), predicate_of(where))
    except Misuse as error:
        raise Damaged(f"standing grant {stored.id}", "what is recorded as its predicate is none") from error


def _veiled(spec: ToolSpec, predicate: Predicate) -> Mapping[str, Json]:
    told = predicate.to_json()
    if not spec.sensitive:
        return told
    roots = {_root(path) for path in spec.sensitive}
    conditions: list[Json] = []
    for one in predicate.where:
        value: Json = MARK
        if one.path == "":
            value = _all(spec, one.test, one.value)
        elif _root(one.path) not in roots:
            value = one.value
        conditions.append({"path": public_path(spec, one.path), one.test: value})
    return told | {"where": conditions}


def _all(spec: ToolSpec, test: str, value: Json) -> Json:
    """Mask what all of the arguments are compared with."""
    if type(value) is list and test == "one_of":
        return [masked(spec, one) for one in value]
    return masked(spec, value)


def _root(path: str) -> str:
    return path.split("/", 2)[1]
