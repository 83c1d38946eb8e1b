"""Which standing grants cover a request: asked as a fact before a decision, and once more inside the claim.

What a grant says is read from its event and the payload beside it, both compared with their digests: a row that was
forged into the table grants nothing.
"""

from collections.abc import Mapping
from typing import Any

from agentgate.canonical import Json
from agentgate.core.records import ActionRecord
from agentgate.errors import Damaged, Misuse, NotCanonical, Sealed
from agentgate.event import Event, decode, event_hash
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.policy.facts import FactProvider
from agentgate.policy.grants import MOST_SHOWN, PREFIX, account_of, predicate_of
from agentgate.policy.request import PolicyRequest
from agentgate.sealing import SealingKeys
from agentgate.store import actions, grants, runs
from agentgate.store.grants import StoredGrant


def provider(ledger: Ledger) -> FactProvider:
    """Make the provider of the fact ``standing_grants``: which grants cover a request, soonest over first."""

    def standing_grants(request: PolicyRequest) -> list[Json]:
        with ledger.database.read() as connection:
            run, action = runs.read(connection, request.run), actions.read(connection, request.action)
            # Once an event of the run has seen a grant over, it stays over (design §5, Clocks).
            at_us = request.at_us if run is None else max(request.at_us, run.at_us)
            found = grants.live(
                connection,
                ledger=ledger.id,
                tenant=request.tenant,
                namespace=request.namespace,
                tool=request.tool,
                at_us=at_us,
            )
        own = {} if action is None else dict(action.reserved)
        told: list[Json] = []
        for one in found:
            # What the action has taken itself is there for it: it may have to be tried again.
            left = (one.most or 0) - one.used + own.get(account_of(one.id), 0)
            event = said(one)
            if left > 0 and event is not None and _covers(event, one, request, ledger.sealing):
                body: Mapping[str, Any] = event.body
                told.append({"id": one.id, "until_us": body["until_us"], "left": left, "by": body["by"]})
        return told[:MOST_SHOWN]

    return standing_grants


def said(stored: StoredGrant) -> Event | None:
    """Return a grant's event; None where it is not what its hash says, or another's: then it grants nothing."""
    if stored.encoded is None or event_hash(stored.encoded) != stored.hash:
        return None
    try:
        event = decode(stored.encoded)
    except Damaged:
        return None
    fits = event.type == "standing_granted" and event.body["id"] == stored.id
    return event if fits else None


def _covers(event: Event, stored: StoredGrant, request: PolicyRequest, sealing: SealingKeys | None) -> bool:
    body: Mapping[str, Any] = event.body
    about = (body["tenant"], body["namespace"], body["tool"], body["spec"])
    if about != (request.tenant, request.namespace, request.tool, request.spec.digest.hex()):
        return False
    if body.get("principal", request.principal) != request.principal:
        return False
    where = payload_of(event, stored, sealing)
    try:
        return where is not None and predicate_of(where).covers(request.arguments)
    except Misuse:
        return False


def payload_of(event: Event, stored: StoredGrant, sealing: SealingKeys | None) -> Any:
    """Return what the payload beside a grant says; None where it is gone, sealed, or not what the event names."""
    named: Any = event.body["payloads"]
    payload = stored.payload
    if payload is None or payload.kind not in named:
        return None
    digest = bytes.fromhex(named[payload.kind])
    try:
        opened = payload.opened(sealing, digest=digest)
        return opened.value() if opened.digest == digest else None
    except (Sealed, Damaged, NotCanonical):
        return None


def is_gone(transaction: Transaction, action: ActionRecord, reserves: Mapping[str, int]) -> bool:
    """Tell whether a claim takes from a standing grant that does not stand, or that is not its tool's."""
    ids = [name.removeprefix(PREFIX) for name in reserves if name.startswith(PREFIX)]
    return any(
        not grants.serves(
            transaction.connection,
            one,
            tenant=action.tenant,
            namespace=action.namespace,
            tool=action.tool,
            spec=action.spec,
            at_us=transaction.draft.at_us,
        )
        for one in ids
    )
