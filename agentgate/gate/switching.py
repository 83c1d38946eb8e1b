"""The kill switch: a scope is paused or resumed in one transaction of the ledger's own chain.

Every claim reads the switch in its own transaction (`agentgate.store.locks.paused`), and writers take turns: once a
pause is committed, no claim is that does not see it. What was claimed before may run on, and is reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from agentgate.canonical import Json, canonical
from agentgate.clock import to_datetime
from agentgate.core.draft import Payload
from agentgate.errors import Misuse, NotFound
from agentgate.event import decode
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.names import check_name, check_tenant, check_text
from agentgate.store import events, runs, switches
from agentgate.store.statements import Row
from agentgate.store.switches import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a switch is about: everything, a tenant, or a tool of one tenant or of all.

    Args:
        tenant: whose actions; None for everybody's.
        tool: of which tool; None for every one.
        namespace: the tool's server.
    """

    tenant: str | None = None
    tool: str | None = None
    namespace: str = ""

    def __str__(self) -> str:
        whose = "every tenant" if self.tenant is None else f"tenant {self.tenant}"
        if self.tool is None:
            return "everything" if self.tenant is None else whose
        return f"tool {self.tool}" + (f" of {self.namespace}" if self.namespace else "") + f", {whose}"

    @property
    def kind(self) -> str:
        """Return ``all``, ``tenant`` or ``tool``, as events name it."""
        return "tool" if self.tool is not None else "all" if self.tenant is None else "tenant"

    @property
    def place(self) -> Place:
        """Return the key of the scope's row."""
        return self.kind, self.tenant or "", self.namespace, self.tool or ""

    def to_json(self) -> dict[str, Json]:
        """Return the scope as events hold it."""
        value: dict[str, Json] = {"kind": self.kind}
        if self.tenant is not None:
            value["tenant"] = self.tenant
        return value if self.tool is None else value | {"namespace": self.namespace, "tool": self.tool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Executing:
    """An action that was claimed before a pause, and may run on.

    Args:
        action: its id.
        run: its run's id.
        tenant: whose it is.
        namespace: the tool's server.
        tool: the tool's name.
        until: when its lease ends, unless it is renewed.
    """

    action: str
    run: str
    tenant: str
    namespace: str
    tool: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A scope is paused: no effect within it is claimed any more.

    Args:
        scope: what is paused.
        since: when the pause was recorded.
        changed: whether this call paused it; False where it was paused already.
        executing: what had been claimed before, and may run on.
    """

    scope: Scope
    since: datetime
    changed: bool
    executing: tuple[Executing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A scope is not paused any more, as far as its own switch goes.

    Args:
        scope: what was resumed.
        changed: whether this call resumed it; False where it was not paused.
        paused: the scopes that are paused still: those around it, within it and beside it.
    """

    scope: Scope
    changed: bool
    paused: tuple[Scope, ...]


def scope_of(tenant: str | None, tool: str | None, namespace: str) -> Scope:
    """Read what a switch is to be about.

    Raises:
        Misuse: a name that is none, or a namespace without its tool.
    """
    if tool is None and namespace != "":
        raise Misuse("namespace: name its tool as well; a namespace alone is no scope")
    return Scope(
        tenant=None if tenant is None else check_tenant(tenant),
        tool=None if tool is None else check_name(tool, "tool"),
        namespace=namespace if namespace == "" else check_name(namespace, "namespace"),
    )


def pause(ledger: Ledger, scope: Scope, *, by: str, reason: str) -> Paused:
    """Stop every later effect of a scope, and report what executes within it now.

    Raises:
        Misuse: no reason.
        NotFound: the ledger knows no such tenant or tool: a misspelt pause would stop nothing.
    """
    if not (check_text(reason, "reason") or "").strip():
        raise Misuse("reason: say why, in words; it is kept beside the record")
    texts = _texts(ledger, reason)
    _check_known(ledger, scope)

    def paused(transaction: Transaction) -> Paused:
        at_us, changed = _throw(transaction, scope, paused=True, by=by, texts=texts)
        found = switches.executing(transaction.connection, scope.place)
        return Paused(scope=scope, since=to_datetime(at_us), changed=changed, executing=tuple(map(_executing, found)))

    return ledger.change(ledger.id, paused)


def resume(ledger: Ledger, scope: Scope, *, by: str, reason: str) -> Resumed:
    """Let a scope's effects be claimed again, as far as no other switch stops them."""
    texts = _texts(ledger, check_text(reason, "reason") or "")

    def resumed(transaction: Transaction) -> Resumed:
        _, changed = _throw(transaction, scope, paused=False, by=by, texts=texts)
        return Resumed(scope=scope, changed=changed, paused=tuple(still_paused(transaction.connection)))

    return ledger.change(ledger.id, resumed)


def still_paused(connection: Connection) -> Iterator[Scope]:
    """Yield every scope that is paused, first paused first."""
    for (_, tenant, namespace, tool), _ in switches.paused(connection):
        yield Scope(tenant=tenant or None, tool=tool or None, namespace=namespace)


def _throw(
    transaction: Transaction, scope: Scope, *, paused: bool, by: str, texts: tuple[Payload, ...]
) -> tuple[int, bool]:
    """Record the switch unless it stands so already; return since when it does, and whether that is new."""
    connection, draft = transaction.connection, transaction.draft
    stood = switches.stands(connection, scope.place)
    if stood is None and not paused:
        return draft.at_us, False
    if stood is not None and stood[0] is paused:
        link = events.link(connection, draft.run.id, stood[1])
        return (draft.at_us if link is None else decode(link.encoded).at_us), False
    body: dict[str, Json] = {"scope": scope.to_json(), "paused": paused, "by": by}
    event = draft.add("switched", body, payloads=texts)
    switches.throw(connection, scope.place, paused=paused, n=event.n)
    return event.at_us, True


def _texts(ledger: Ledger, reason: str) -> tuple[Payload, ...]:
    return (ledger.payload("texts", canonical({"reason": reason})),) if reason else ()


def _executing(row: Row) -> Executing:
    action, run, tenant, namespace, tool, until_us = row
    return Executing(action=action, run=run, tenant=tenant, namespace=namespace, tool=tool, until=to_datetime(until_us))


def _check_known(ledger: Ledger, scope: Scope) -> None:
    with ledger.database.read() as connection:
        if scope.tenant is not None and not runs.has_tenant(connection, scope.tenant):
            raise NotFound("tenant", scope.tenant)
    if scope.tool is not None and not is_registered(ledger, scope.namespace, scope.tool):
        raise NotFound("tool", scope.tool)


def is_registered(ledger: Ledger, namespace: str, tool: str) -> bool:
    """Tell whether a gate has ever put a spec of this name on the ledger's record."""
    start = 0
    while True:
        with ledger.database.read() as connection:
            page = events.links(connection, ledger.id, start=start)
        for link in page:
            event = decode(link.encoded)
            body = event.body
            if event.type == "spec_registered" and (body["namespace"], body["tool"]) == (namespace, tool):
                return True
        if not page:
            return False
        start = page[-1].n + 1
