"""Active policies: which policy holds for a tenant, said once in the ledger's own chain and read by pinned gates.

A pinned gate reads the row in the transaction of every claim (`governs`), and writers take turns: once an activation
is committed, no pinned gate that holds another policy starts anything. What was claimed before may run on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from agentgate.canonical import Json
from agentgate.clock import to_datetime
from agentgate.errors import Damaged, NotFound
from agentgate.event import Event, decode
from agentgate.gate.commands import note_payloads
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.names import check_tenant, check_text
from agentgate.gate.thinking import Mind
from agentgate.policy.identity import PolicyIdentity
from agentgate.store import events, policies, runs
from agentgate.store.policies import EVERYBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivePolicy:
    """A policy that holds for a tenant, or for every tenant that has none of its own.

    Args:
        tenant: whose; None for everybody's.
        policy: its digest in hex.
        engine: what runs it, and of which version.
        documents: the names of what it is made of.
        by: who activated it.
        since: when.
    """

    tenant: str | None
    policy: str
    engine: str
    documents: tuple[str, ...]
    by: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """A policy is the active one.

    Args:
        active: the entry as it stands now.
        changed: whether this call made it so; False where it was active already.
        replaced: the digest of the policy whose place it took; None where there was none, or nothing changed.
        own: the tenants that go on with a policy of their own, where everybody's was activated.
    """

    active: ActivePolicy
    changed: bool
    replaced: str | None
    own: tuple[ActivePolicy, ...]


def activate(ledger: Ledger, mind: Mind, *, by: str, note: str, tenant: str | None) -> Activated:
    """Make a gate's policy the active one, of a tenant or of everybody, in one event of the ledger's own chain.

    Raises:
        NotFound: the ledger knows no such tenant: a misspelt one would leave the other governed as before.
    """
    texts = note_payloads(ledger, check_text(note, "note") or "")
    identity, whose = mind.policy.identity, EVERYBODY if tenant is None else check_tenant(tenant)
    if tenant is not None:
        with ledger.database.read() as connection:
            if not runs.has_tenant(connection, tenant):
                raise NotFound("tenant", tenant)

    def activated(transaction: Transaction) -> Activated:
        connection, draft = transaction.connection, transaction.draft
        stood = policies.of(connection, whose)
        changed = stood is None or stood[0] != identity.digest
        if changed:
            event = draft.add("policy_activated", _body(identity, whose, by), payloads=texts)
            policies.activate(connection, tenant=whose, policy=identity.digest, n=event.n)
            now = _active(event)
        else:
            assert stood is not None
            now = _active(_said(connection, ledger.id, (whose, *stood)))
        others = (row for row in policies.all_active(connection) if row[0] != whose and row[1] != identity.digest)
        return Activated(
            active=now,
            changed=changed,
            replaced=stood[0].hex() if changed and stood is not None else None,
            own=tuple(_active(_said(connection, ledger.id, row)) for row in others) if whose == EVERYBODY else (),
        )

    return ledger.change(ledger.id, activated, documents=mind.documents)


def active(connection: Connection, ledger: str) -> Iterator[ActivePolicy]:
    """Yield every active policy, everybody's first.

    Raises:
        Damaged: a row says something else than its event.
    """
    for row in policies.all_active(connection):
        yield _active(_said(connection, ledger, row))


def governs(connection: Connection, ledger: str, *, tenant: str, policy: bytes) -> bool:
    """Tell whether a policy is the active one of a tenant, as row and event say alike.

    Raises:
        Damaged: the row says something else than its event; whoever wrote it wanted something to run, or not to.
    """
    row = policies.governing(connection, tenant)
    if row is None:
        return False
    _said(connection, ledger, row)
    return bool(row[1] == policy)


def _body(identity: PolicyIdentity, tenant: str, by: str) -> dict[str, Json]:
    return {"tenant": tenant, "policy": identity.digest.hex(), "engine": identity.to_json(), "by": by}


def _said(connection: Connection, ledger: str, row: tuple[str, bytes, int]) -> Event:
    """Read the event that a row was made by."""
    tenant, policy, n = row
    link = events.link(connection, ledger, n)
    event = None if link is None else decode(link.encoded)
    said = None if event is None or event.type != "policy_activated" else (event.body["tenant"], event.body["policy"])
    if event is None or said != (tenant, policy.hex()):
        whose = f"of tenant {tenant}" if tenant else "of every tenant"
        raise Damaged(f"the active policy {whose}", f"event {n} of the ledger's own chain does not say so")
    return event


def _active(event: Event) -> ActivePolicy:
    body = event.body
    engine = body["engine"]
    assert type(engine) is dict  # an event's shape was checked when it was read or drafted
    documents = engine["documents"]
    assert type(documents) is list
    return ActivePolicy(
        tenant=str(body["tenant"]) or None,
        policy=str(body["policy"]),
        engine=f"{engine['name']} {engine['version']}",
        documents=tuple(str(one["name"]) for one in documents if type(one) is dict),
        by=str(body["by"]),
        since=to_datetime(event.at_us),
    )
