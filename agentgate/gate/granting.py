"""Standing grants: a person says yes in advance, to arguments that a predicate names, until a time, so many times.

A grant stands on the ledger's own chain. Its uses are the bound of an account of its own, set in the same transaction,
so that the claim that takes one takes it as it takes any budget; taking a grant back sets that bound to 0. Which grants
cover a request is a fact that a policy declares; it is recorded with the decision, as every fact is.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from agentgate.canonical import Json, canonical, parse
from agentgate.clock import new_id, to_datetime, to_us
from agentgate.core.budgets import Budget, Place, account
from agentgate.core.draft import RECORDED_BOUNDS, Payload
from agentgate.core.grantbook import row_of
from agentgate.errors import Damaged, Misuse, NotFound, NotPossible, Unavailable
from agentgate.event import decode, event_hash
from agentgate.gate.answers import unreadable
from agentgate.gate.covering import said
from agentgate.gate.granted import Meant, StandingGrant, granted, meant
from agentgate.gate.handles import check_id
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.names import DEFAULT_TENANT, check_name, check_person, check_tenant, check_text
from agentgate.jcs import LARGEST_INTEGER
from agentgate.policy.grants import Predicate, account_of, exactly, predicate_of
from agentgate.store import actions, budgets, events, grants
from agentgate.store.grants import MOST_LIVE
from agentgate.store.schema import standing
from agentgate.tools.declared import undeclared
from agentgate.tools.registry import ToolSet
from agentgate.tools.spec import ToolSpec, from_document


class Grants:
    """Give, list and take back standing grants; of an open gate.

    Args:
        ledger: the record.
        tools: what the gate knows now.
    """

    def __init__(self, ledger: Ledger, tools: ToolSet) -> None:
        self._ledger = ledger
        self._tools = tools

    def add(
        self,
        *,
        by: str,
        why: str,
        uses: int,
        until: datetime | timedelta,
        tool: str | None = None,
        namespace: str = "",
        where: Mapping[str, object] | None = None,
        action: str | None = None,
        principal: str | None = None,
        spec: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> StandingGrant:
        """Say yes in advance to calls of a tool; give the predicate, or an action whose very arguments are meant.

        Args:
            by: who says so; stands in the record for ever.
            why: in words; kept beside the record.
            uses: how many effects it may have.
            until: when it is over, or how long from now.
            tool: the tool's exact name, as the ledger knows it now: a definition that changes is not covered.
            namespace: the tool's server.
            where: what the arguments must be like, as ``{"where": [{"path": "/cents", "at_most": 5000}, …]}``: every
                part of them must be named by a path. With ``"rest": "any"`` beside it the others may be anything.
            action: an action's id: its tool and exactly its arguments, unless ``where`` says otherwise.
            principal: of this principal alone.
            spec: the digest, in hex, of the tool's definition that whoever gives it has seen; another is refused.
            tenant: whose calls.

        Returns:
            The grant.

        Raises:
            Misuse: something that is missing, or is none; it is named.
            NotFound: no such tool on record, or no such action of this tenant.
            NotPossible: the tool has as many grants that stand as it may have, or is another than was seen.
            Unavailable: the database could not be had. With the reason ``commit`` the grant may be on record, with
                ``answer`` it is: look at the list before you add it again.
        """
        ledger = self._ledger
        if type(spec) not in {str, type(None)}:
            raise Misuse("spec: give what preview() returned as spec, or leave it out")
        found, predicate = self._about(tool, namespace, where, action, check_tenant(tenant))
        if spec not in {None, found.digest.hex()}:
            raise NotPossible(f"tool {found.name}", "give it", "another than was shown", "look at it again")
        texts = ledger.payload("texts", canonical({"why": _reason(why)}))
        payloads = (ledger.payload("facts", canonical(predicate.to_json())), texts)
        id_, given_by = new_id(ledger.clock), check_person(by, "by")
        body: dict[str, Json] = {
            "id": id_,
            "tenant": tenant,
            "namespace": found.namespace,
            "tool": found.name,
            "spec": found.digest.hex(),
            "uses": _uses(uses),
            "by": given_by,
        }
        body |= {} if principal is None else {"principal": check_name(principal, "principal")}
        body |= {} if action is None else {"like": action}

        ledger.change(ledger.id, partial(_grant, body=body, until=until, payloads=payloads))
        return self._answer(id_)

    def preview(
        self,
        *,
        tool: str | None = None,
        namespace: str = "",
        where: Mapping[str, object] | None = None,
        action: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> Meant:
        """Say what `add` would say yes to, and give nothing; the arguments are those of `add`.

        Raises:
            Misuse: something that is missing, or is none; it is named.
            NotFound: no such tool on record, or no such action of this tenant.
        """
        return meant(*self._about(tool, namespace, where, action, check_tenant(tenant)))

    def _about(
        self, tool: object, namespace: object, where: Mapping[str, object] | None, action: str | None, tenant: str
    ) -> tuple[ToolSpec, Predicate]:
        spec, predicate = self._meant(tool, namespace, where, action, tenant)
        _check_names(spec, predicate, sealed=self._ledger.sealing is not None)
        return spec, predicate

    def _meant(
        self, tool: object, namespace: object, where: Mapping[str, object] | None, action: str | None, tenant: str
    ) -> tuple[ToolSpec, Predicate]:
        if (tool is None) == (action is None):
            raise Misuse("tool: name a tool, or an action that its calls are to be like; one of them")
        if action is not None:
            spec, arguments = _recorded(self._ledger, action, tenant)
            return spec, exactly(arguments) if where is None else predicate_of(where)
        if where is None:
            raise Misuse("where: say what the arguments must be like; without it nothing would be covered")
        server = "" if namespace == "" else check_name(namespace, "namespace")
        name = check_name(tool, "tool")
        known = self._tools.lookup(server, name)
        return _registered(self._ledger, server, name) if known is None else known.spec, predicate_of(where)

    def list(self, *, tenant: str | None = None, ended: bool = False) -> Iterator[StandingGrant]:
        """Read standing grants, oldest first, page by page as you go through them.

        Args:
            tenant: whose; everybody's where it is left out.
            ended: also those that are used up, over or revoked.
        """
        whose = None if tenant is None else check_tenant(tenant)
        return self._list(whose, ended=ended)

    def _list(self, tenant: str | None, *, ended: bool) -> Iterator[StandingGrant]:
        about, after = {"ledger": self._ledger.id}, ""
        while True:
            with self._ledger.database.read() as connection:
                facts = grants.page(connection, **about, kind="facts", after=after)
                texts = grants.page(connection, **about, kind="texts", after=after)
            for with_facts, with_texts in zip(facts, texts, strict=True):
                one = granted(self._ledger, with_facts, with_texts, id=with_facts.id)
                if tenant in {None, one.tenant} and (ended or one.state == "live"):
                    yield one
            if not facts:
                return
            after = facts[-1].id

    def show(self, id: str, *, tenant: str = DEFAULT_TENANT) -> StandingGrant:
        """Read one standing grant, whether it stands or not.

        Raises:
            NotFound: no such grant of this tenant.
            Damaged: what lies there of it contradicts itself.
        """
        check_tenant(tenant)
        check_id(id, "standing grant")
        with self._ledger.database.read() as connection:
            found = grants.one(connection, id, ledger=self._ledger.id, kind="facts")
        grant = None if found is None else self._read(id)
        if grant is None or grant.tenant != tenant:
            raise NotFound("standing grant", id)
        return grant

    def revoke(self, id: str, *, by: str, why: str = "", tenant: str = DEFAULT_TENANT) -> StandingGrant:
        """Take a standing grant back: no claim after this one uses it. What has used it has, and is not undone.

        Raises:
            NotFound: no such grant of this tenant.
        """
        ledger = self._ledger
        check_tenant(tenant)
        check_id(id, "standing grant")
        given_by, text = check_name(by, "by"), check_text(why, "why") or ""
        payloads = (ledger.payload("texts", canonical({"why": text})),) if text else ()

        def revoked(transaction: Transaction) -> None:
            connection = transaction.connection
            stored = grants.one(connection, id, ledger=ledger.id, kind="texts")
            event = None if stored is None else said(stored)
            if stored is None or event is None or event.body["tenant"] != tenant:
                raise NotFound("standing grant", id)
            if stored.revoked:
                return
            taken = transaction.draft.add("standing_revoked", {"id": id, "by": given_by}, payloads=payloads)
            grants.revoke(connection, id, n=taken.n)
            _bound(transaction, tenant, id, most=0, used=stored.used, by=given_by)

        ledger.change(ledger.id, revoked)
        return self._answer(id)

    def _answer(self, id: str) -> StandingGrant:
        """Read a grant once what was asked for is on record."""
        try:
            return self._read(id)
        except Unavailable as error:
            raise unreadable(error) from error

    def _read(self, id: str) -> StandingGrant:
        about = {"ledger": self._ledger.id}
        with self._ledger.database.read() as connection:
            facts = grants.one(connection, id, **about, kind="facts")
            texts = grants.one(connection, id, **about, kind="texts")
        return granted(self._ledger, facts, texts, id=id)


def _bound(transaction: Transaction, tenant: str, grant: str, *, most: int, used: int, by: str) -> None:
    """Bound a grant's account, in the grant's own transaction."""
    place: Place = account(account_of(grant))
    scope: dict[str, Json] = {"kind": "account", "tenant": tenant, "account": place.name}
    event = transaction.draft.add("limited", {"scope": scope, "limits": {"amount": most}, "by": by})
    bound = Budget(place=place, measure="amount", most=most, used=used, n=event.n)
    budgets.replace(transaction.connection, tenant, place, [bound])


def _grant(transaction: Transaction, *, body: dict[str, Json], until: object, payloads: tuple[Payload, ...]) -> None:
    """Write a grant down, and bound its account by its uses."""
    connection, at_us = transaction.connection, transaction.draft.at_us
    event = transaction.draft.add("standing_granted", body | {"until_us": _until_us(until, at_us)}, payloads=payloads)
    given: Mapping[str, Any] = event.body
    tenant, tool = given["tenant"], given["tool"]
    if grants.count(connection, tenant=tenant, namespace=given["namespace"], tool=tool, at_us=at_us) >= MOST_LIVE:
        state, remedy = f"covered by {MOST_LIVE} standing grants", "revoke some, or add one that covers more"
        raise NotPossible(f"tool {tool}", "add another", state, remedy)
    grants.add(connection, dict(zip(standing.columns.keys(), row_of(event), strict=True)))
    _bound(transaction, tenant, given["id"], most=given["uses"], used=0, by=given["by"])


def _check_names(spec: ToolSpec, predicate: Predicate, *, sealed: bool) -> None:
    """Refuse a predicate that could cover nothing, and one whose values would lie in clear."""
    unknown = undeclared(spec.checked_input, dict.fromkeys(predicate.names()))
    if unknown:
        raise Misuse(f"where: {spec.name} has no argument {unknown[0]!r}; name those that it declares")
    if spec.sensitive and not sealed:
        raise Misuse("where: this tool has sensitive arguments; open the gate with its sealing key")


def _reason(why: str) -> str:
    text = check_text(why, "why") or ""
    if not text.strip():
        raise Misuse("why: say why, in words; it is kept beside the record")
    return text


def _uses(value: object) -> int:
    if type(value) is not int or not 1 <= value <= LARGEST_INTEGER:
        raise Misuse("uses: give a whole number from 1 to 2**53 - 1")
    return value


def _until_us(until: object, at_us: int) -> int:
    if isinstance(until, timedelta):
        until_us = at_us + to_us(until)
    elif isinstance(until, datetime):
        if until.utcoffset() is None:
            raise Misuse("until: a datetime without a time zone; give an aware one, or a timedelta from now")
        until_us = to_us(until - to_datetime(0))
    else:
        raise Misuse("until: give a datetime, or a timedelta from now")
    if not at_us < until_us <= LARGEST_INTEGER:
        raise Misuse("until: it is over already, or never; give a time to come")
    return until_us


def _recorded(ledger: Ledger, action: str, tenant: str) -> tuple[ToolSpec, Json]:
    """Read an action's tool and its arguments from the record."""
    with ledger.database.read() as connection:
        found = actions.read(connection, action) if type(action) is str else None
        if found is None or found.tenant != tenant:
            raise NotFound("action", str(action)[:64])
        link = events.link(connection, found.run, found.proposed_n)
        payload = events.payload(connection, found.run, found.proposed_n, "arguments")
        document = None if found.spec is None else events.document(connection, found.spec)
    if link is None or event_hash(link.encoded) != link.hash:
        raise Damaged(f"action {action}", "its proposal is missing or not what its hash says")
    named: Any = decode(link.encoded).body["payloads"]
    if document is None or payload is None or "arguments" not in named:
        raise Misuse("action: it has no arguments that any tool took; name the tool and say where")
    digest = bytes.fromhex(named["arguments"])
    opened = payload.opened(ledger.sealing, digest=digest)
    if opened.digest != digest:
        raise Damaged(f"action {action}", "its arguments are not what its proposal names")
    return from_document(document[1]), parse(opened.content, bounds=RECORDED_BOUNDS)


def _registered(ledger: Ledger, namespace: str, tool: str) -> ToolSpec:
    """Read the definition of a tool that was put on record last."""
    newest, start = None, 0
    while True:
        with ledger.database.read() as connection:
            page = events.links(connection, ledger.id, start=start)
        for link in page:
            event = decode(link.encoded)
            if event.type == "spec_registered" and (event.body["namespace"], event.body["tool"]) == (namespace, tool):
                newest = bytes.fromhex(str(event.body["spec"]))
        if not page:
            break
        start = page[-1].n + 1
    with ledger.database.read() as connection:
        document = None if newest is None else events.document(connection, newest)
    if document is None:
        raise NotFound("tool", tool)
    return from_document(document[1])
