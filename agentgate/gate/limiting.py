"""Bounding what a tenant, a tool or an account may spend: on the ledger's own chain, for every gate there is.

A bound that stood in a process's settings would be none: another process need not know it. So it is a row, set by an
event that says who set it, and every claim meets it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentgate.canonical import Json, canonical
from agentgate.core.budgets import MEASURES, TENANT, Budget, Place, account, held, tool
from agentgate.errors import Misuse, NotFound
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.names import check_name, check_tenant, check_text
from agentgate.gate.switching import is_registered
from agentgate.jcs import LARGEST_INTEGER
from agentgate.policy.decision import MAX_NAME
from agentgate.policy.grants import PREFIX
from agentgate.store import budgets


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a tenant, a tool or an account may spend, and has.

    Args:
        tenant: whose it is.
        tool: the tool; None where it is no tool's.
        namespace: the tool's server.
        account: the account; None where it is none's.
        most: the bound of each measure.
        used: of it; 0 for ``failures``, which are looked up in the tool's last attempts.
    """

    tenant: str
    tool: str | None = None
    namespace: str = ""
    account: str | None = None
    most: Mapping[str, int]
    used: Mapping[str, int]


def place_of(*, tool_: object, namespace: object, account_: object) -> Place:
    """Read what a bound is to be about.

    Raises:
        Misuse: a name that is none, a namespace without its tool, or a tool and an account at once.
    """
    if tool_ is not None and account_ is not None:
        raise Misuse("account: bound a tool or an account, one at a time")
    if account_ is not None:
        if namespace != "":
            raise Misuse("namespace: leave it out; an account belongs to its tenant")
        return account(_account_name(account_))
    if tool_ is None:
        if namespace != "":
            raise Misuse("namespace: name its tool as well; a namespace alone is nothing that can be bounded")
        return TENANT
    server = "" if namespace == "" else check_name(namespace, "namespace")
    return tool(server, check_name(tool_, "tool"))


def _account_name(value: object) -> str:
    """Return an account's name, as a policy's reserves may name it."""
    if type(value) is not str or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise Misuse(f"account: give a name of 1 to {MAX_NAME} printable characters")
    if value.startswith(PREFIX):
        raise Misuse(f"account: {PREFIX}… is a standing grant's; add or revoke it with gate.grants")
    return value


def limit(ledger: Ledger, most: Mapping[str, int], *, tenant: str, place: Place, by: str, note: str) -> Allowance:
    """Set all bounds of one place anew, as one event; what is used of them already is summed up from the record.

    Raises:
        Misuse: a measure that such a place does not have, or no whole number.
        NotFound: the ledger knows no such tool: a misspelt bound would bound nothing.
    """
    check_tenant(tenant)
    bounds = _checked(most, place)
    if bounds and place.kind == "tool" and not is_registered(ledger, place.namespace, place.name):
        raise NotFound("tool", place.name)
    text = check_text(note, "note")
    texts = (ledger.payload("texts", canonical({"note": text})),) if text else ()

    def limited(transaction: Transaction) -> list[Budget]:
        connection = transaction.connection
        body: dict[str, Json] = {"scope": _scope(tenant, place), "limits": {**bounds}, "by": by}
        event = transaction.draft.add("limited", body, payloads=texts)
        used = budgets.used(connection, tenant=tenant, place=place) if bounds else {}
        new = [
            Budget(place=place, measure=measure, most=bound, used=held(used[measure]), n=event.n)
            for measure, bound in sorted(bounds.items())
        ]
        budgets.replace(connection, tenant, place, new)
        return new

    return _allowance(tenant, place, ledger.change(ledger.id, limited))


def _checked(most: object, place: Place) -> dict[str, int]:
    if not isinstance(most, Mapping):
        raise Misuse("most: give a mapping of measures to whole numbers; {} lifts every bound")
    known = MEASURES[place.kind]
    for measure, bound in most.items():
        if type(measure) is not str or measure not in known:
            raise Misuse(f"most: {measure!r} is nothing that bounds {_ARTICLE[place.kind]}; use {', '.join(known)}")
        if type(bound) is not int or not 0 <= bound <= LARGEST_INTEGER:
            raise Misuse(f"most.{measure}: give a whole number from 0 to 2**53 - 1")
    return dict(most)


_ARTICLE = {"tenant": "a tenant", "tool": "a tool", "account": "an account"}


def _scope(tenant: str, place: Place) -> dict[str, Json]:
    scope: dict[str, Json] = {"kind": place.kind, "tenant": tenant}
    if place.kind == "tool":
        scope |= {"namespace": place.namespace, "tool": place.name}
    return scope | {"account": place.name} if place.kind == "account" else scope


def _allowance(tenant: str, place: Place, found: list[Budget]) -> Allowance:
    whole = Allowance(
        tenant=tenant, most={one.measure: one.most for one in found}, used={one.measure: one.used for one in found}
    )
    if place.kind == "tool":
        return replace(whole, tool=place.name, namespace=place.namespace)
    return replace(whole, account=place.name) if place.kind == "account" else whole
