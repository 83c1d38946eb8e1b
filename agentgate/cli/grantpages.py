"""What people read of standing grants, and what ``--json`` writes of them.

What a grant covers is written by the lines that approvers are shown: exact, in ASCII, no name left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from agentgate.canonical import Json
from agentgate.cli import pages
from agentgate.cli.documents import at_us
from agentgate.core.presenting import exact
from agentgate.core.presenting.values import Tree
from agentgate.gate.granted import Meant, StandingGrant

_LABEL = 11
_TREE = Tree(hidden=frozenset(), remarks={}, opened=frozenset())
_BOUNDS = {"at_most": "at most", "at_least": "at least"}


def page(grant: StandingGrant, now: datetime) -> Iterator[str]:
    """Show a grant."""
    yield _line("grant", grant.id)
    yield _line("state", f"{grant.state}; {_of(grant)}")
    yield from given(grant, grant.principal, tenant=grant.tenant, like=grant.like)
    yield from terms(grant.uses, grant.until, now, by=grant.by, why=grant.why)


def given(about: Meant | StandingGrant, principal: str | None, *, tenant: str, like: str | None) -> Iterator[str]:
    """Show what a grant covers, for whom, and every part of the arguments that it names."""
    yield _line("tool", pages.tool(about.namespace, about.tool))
    yield _line("definition", about.spec)
    whose = "everybody" if principal is None else pages.text(principal)
    yield _line("for", f"{whose} of tenant {pages.text(tenant)}")
    if like is not None:
        yield _line("like", f"action {pages.text(like)}")
    if about.where is None:
        yield _line("arguments", "erased, or sealed by a key that is not at hand: --sealing-key FILE")
        return
    yield _line("arguments", "")
    yield from (f"  {line}" for line in _predicate(about.where))


def terms(uses: int, until: datetime, now: datetime, *, by: str, why: str | None) -> Iterator[str]:
    """Show how often and how long, and who says so."""
    yield _line("uses", f"{uses:,}")
    yield _line("until", f"{pages.time(until)} ({pages.time_left(until, now)})")
    yield _line("by", pages.text(by))
    yield _line("why", "erased, or sealed" if why is None else pages.text(why))


def table(grants: Iterable[StandingGrant], now: datetime) -> Iterator[str]:
    """List grants, each with the uses and the time that are left of it."""
    head = ("uses", "time left", "state", "tool", "for", "tenant", "by", "grant")
    rows = (
        (
            _of(grant),
            pages.time_left(grant.until, now),
            grant.state,
            pages.tool(grant.namespace, grant.tool),
            "everybody" if grant.principal is None else pages.text(grant.principal),
            pages.text(grant.tenant),
            pages.text(grant.by),
            grant.id,
        )
        for grant in grants
    )
    return pages.table(head, rows)


def document(grant: StandingGrant) -> dict[str, Json]:
    """Write a grant."""
    return {
        "id": grant.id,
        "state": grant.state,
        "tenant": grant.tenant,
        "principal": grant.principal,
        "namespace": grant.namespace,
        "tool": grant.tool,
        "spec": grant.spec,
        "where": None if grant.where is None else dict(grant.where),
        "uses": grant.uses,
        "left": grant.left,
        "until_us": at_us(grant.until),
        "by": grant.by,
        "why": grant.why,
        "like": grant.like,
    }


def _line(label: str, value: str) -> str:
    return f"{label:<{_LABEL}}{value}".rstrip()


def _of(grant: StandingGrant) -> str:
    return f"{grant.left:,} of {grant.uses:,} left"


def _predicate(where: Mapping[str, Json]) -> Iterator[str]:
    conditions: Any = where["where"]
    for one in conditions:
        (test,) = (name for name in one if name != "path")
        yield from _condition(one["path"], test, one[test])
    yield "anything else may be anything" if "rest" in where else "and nothing else"


def _condition(path: str, test: str, value: Any) -> Iterator[str]:
    head = exact.name(path) if path else "all of them"
    if path == "" and test == "equals" and type(value) is dict:
        yield "exactly these:" if value else "none"
        yield from _TREE.members(value, "  ")
    elif test == "one_of" and type(value) is list:
        yield f"{head} one of {len(value):,}:"
        for one in value:
            yield from _TREE.value("or", one, "  ")
    elif test == "equals":
        yield from _TREE.value(head, value, "")
    else:
        yield f"{head} {_BOUNDS.get(test, test)} {pages.json(value)}"
