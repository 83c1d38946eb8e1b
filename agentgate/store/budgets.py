"""Rows of budgets: what tenants, tools and accounts may spend, and have.

Few rows concern one call: they are read by their places, and written only where they are there.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.engine import Connection

from agentgate.core.budgets import TENANT, Budget, Place
from agentgate.core.records import TAKEN
from agentgate.errors import Damaged
from agentgate.policy.grants import PREFIX
from agentgate.states import State
from agentgate.store.actions import reserved
from agentgate.store.schema import RESERVING, TRIED, actions, attempts, budgets, runs
from agentgate.store.statements import Row, Statement, insert_all

AT_ONCE = 4  # the tenant, the tool, and what a call usually reserves
ACCOUNTS = 64

_COLUMNS = (
    budgets.c.kind, budgets.c.namespace, budgets.c.name, budgets.c.measure, budgets.c.most, budgets.c.used,
    budgets.c.n,
)  # fmt: skip
_PLACE = and_(
    budgets.c.tenant == bindparam("tenant"),
    budgets.c.kind == bindparam("kind"),
    budgets.c.namespace == bindparam("namespace"),
    budgets.c.name == bindparam("name"),
)
_AT = Statement(
    select(*_COLUMNS).where(
        or_(
            *(
                and_(
                    budgets.c.tenant == bindparam("tenant"),
                    budgets.c.kind == bindparam(f"kind_{place}"),
                    budgets.c.namespace == bindparam(f"namespace_{place}"),
                    budgets.c.name == bindparam(f"name_{place}"),
                )
                for place in range(AT_ONCE)
            )
        )
    )
)


def _accounts(side: ColumnElement[bool]) -> Select[Any]:
    """Select a tenant's accounts on one side of those of its standing grants, of which there may be many."""
    found = (
        select(*_COLUMNS)
        .where(
            budgets.c.tenant == bindparam("tenant"),
            budgets.c.kind == literal_column("'account'"),
            budgets.c.namespace == literal_column("''"),
            side,
        )
        .order_by(budgets.c.name)
        .limit(literal_column(str(ACCOUNTS)))
    )
    return select(found.subquery())


_ACCOUNTS = Statement(
    union_all(
        _accounts(budgets.c.name < literal_column(f"'{PREFIX}'")),
        _accounts(budgets.c.name >= literal_column(f"'{PREFIX[:-1]};'")),  # ";" is what comes after ":"
    )
)
_MOVE = Statement(
    update(budgets)
    .where(
        _PLACE,
        budgets.c.measure == bindparam("measure"),
        budgets.c.used == bindparam("was_used"),
        budgets.c.n == bindparam("was_n"),
    )
    .values(used=bindparam("used"))
)
_LIFT = Statement(delete(budgets).where(_PLACE))
_OF_TENANT = Statement(
    select(runs.c.taken, runs.c.executing, runs.c.pending, runs.c.tokens, runs.c.money).where(
        runs.c.tenant == bindparam("tenant")
    )
)
_OF_TOOL = Statement(
    select(actions.c.state, func.count())
    .where(
        actions.c.tenant == bindparam("tenant"),
        actions.c.namespace == bindparam("namespace"),
        actions.c.tool == bindparam("tool"),
    )
    .group_by(actions.c.state)
)
_TAKEN: list[ColumnElement[str]] = [literal_column(f"'{state.value}'") for state in sorted(TAKEN)]
_RESERVED = Statement(
    select(actions.c.id, actions.c.reserved).where(
        RESERVING, actions.c.tenant == bindparam("tenant"), actions.c.state.in_(_TAKEN)
    )
)
_ENDS = Statement(
    select(attempts.c.state)
    .select_from(actions.join(attempts, attempts.c.action == actions.c.id))
    .where(
        TRIED,
        actions.c.tenant == bindparam("tenant"),
        actions.c.namespace == bindparam("namespace"),
        actions.c.tool == bindparam("tool"),
        attempts.c.state != "open",
    )
    .order_by(actions.c.id.desc(), attempts.c.number.desc())
    .limit(bindparam("size"))
)


def _budget(row: Row) -> Budget:
    kind, namespace, name, measure, most, used_, n = row
    return Budget(place=Place(kind=kind, namespace=namespace, name=name), measure=measure, most=most, used=used_, n=n)


def read(connection: Connection, *, tenant: str, places: Sequence[Place]) -> list[Budget]:
    """Read the budgets that are set at these places."""
    found: list[Budget] = []
    for first in range(0, len(places), AT_ONCE):
        some = places[first : first + AT_ONCE]
        asked = {"tenant": tenant}
        for number in range(AT_ONCE):
            place = some[min(number, len(some) - 1)]
            asked |= {f"kind_{number}": place.kind, f"namespace_{number}": place.namespace}
            asked[f"name_{number}"] = place.name
        found += [_budget(row) for row in _AT.rows(connection, **asked)]
    return sorted(found, key=lambda one: (one.place, one.measure))


def accounts(connection: Connection, *, tenant: str) -> list[Budget]:
    """Read a tenant's first accounts by name, no more than `ACCOUNTS`, and none of a standing grant."""
    found = [_budget(row) for row in _ACCOUNTS.rows(connection, tenant=tenant)]
    return sorted(found, key=lambda one: one.place)[:ACCOUNTS]


def move(connection: Connection, tenant: str, before: Budget, after: Budget) -> bool:
    """Write what is used of a budget that stands as it was read; return False if another transaction moved it."""
    where = {"measure": before.measure, "was_used": before.used, "was_n": before.n}
    return _MOVE.write(connection, _named(tenant, before.place) | where | {"used": after.used}) == 1


def replace(connection: Connection, tenant: str, place: Place, new: Sequence[Budget]) -> None:
    """Let these be all budgets of a place."""
    _LIFT.write(connection, _named(tenant, place))
    insert_all(
        connection,
        budgets,
        [
            _named(tenant, place) | {"measure": one.measure, "most": one.most, "used": one.used, "n": one.n}
            for one in new
        ],
    )


def _named(tenant: str, place: Place) -> dict[str, str | int]:
    return {"tenant": tenant, "kind": place.kind, "namespace": place.namespace, "name": place.name}


def all_failed(connection: Connection, *, tenant: str, place: Place, most: int) -> bool:
    """Tell whether the last ``most`` attempts of a tool that have ended are all known not to have happened.

    The last of the actions that were proposed last: that order has an index.
    """
    failed = 0
    for (state,) in _ENDS.each(connection, tenant=tenant, namespace=place.namespace, tool=place.name, size=most):
        if state != "failed":  # and no further row is read, however wide the bound is
            return False
        failed += 1
    return failed == most


def used(connection: Connection, *, tenant: str, place: Place) -> dict[str, int]:
    """Sum up what is used at a place, by measure, over all rows there are."""
    if place == TENANT:
        return _used_by_tenant(connection, tenant)
    if place.kind == "tool":
        return _used_by_tool(connection, tenant, place)
    return {"amount": used_of_accounts(connection, tenant=tenant).get(place.name, 0)}


def _used_by_tenant(connection: Connection, tenant: str) -> dict[str, int]:
    sums = dict.fromkeys(("actions", "parallel", "pending", "tokens", "money"), 0)
    for row in _OF_TENANT.each(connection, tenant=tenant):  # added up here: the database's own sum can overflow
        if not all(type(value) is int for value in row):
            raise Damaged(f"tenant {tenant}", "a run of it counts what is no number")
        sums = {name: total + value for (name, total), value in zip(sums.items(), row, strict=True)}
    return sums


def _used_by_tool(connection: Connection, tenant: str, place: Place) -> dict[str, int]:
    rows = _OF_TOOL.rows(connection, tenant=tenant, namespace=place.namespace, tool=place.name)
    states = {str(state): int(count) for state, count in rows}
    return {
        "actions": sum(states.get(state.value, 0) for state in TAKEN),
        "failures": 0,
        "parallel": states.get(State.EXECUTING.value, 0),
        "pending": states.get(State.HELD.value, 0),
    }


def used_of_accounts(connection: Connection, *, tenant: str) -> dict[str, int]:
    """Sum up what every account of a tenant has given, by its name."""
    sums: dict[str, int] = {}
    for action, amounts in _RESERVED.each(connection, tenant=tenant):
        for name, amount in reserved(action, amounts):
            sums[name] = sums.get(name, 0) + amount
    return sums
