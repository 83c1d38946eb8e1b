"""What tenants, tools and accounts may spend: the bounds set on them, and what a transaction does to what is used.

A budget is a row of the table of that name: its bound by the ledger's own chain, what is used by the rows of runs and
actions that it sums up. Pure: whoever reads the rows enters them in a `Book`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agentgate.core.records import TAKEN, ActionFile, ActionRecord, RunRecord
from agentgate.policy.grants import PREFIX
from agentgate.states import State

BudgetKind: TypeAlias = Literal["tenant", "tool", "account"]

# What each kind may be bounded by. A run's row knows no tool, and only an account is spent in amounts of its own.
MEASURES: Mapping[BudgetKind, tuple[str, ...]] = {
    "tenant": ("actions", "parallel", "pending", "tokens", "money"),
    "tool": ("actions", "failures", "parallel", "pending"),
    "account": ("amount",),
}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Whose budget it is, within a tenant; places are locked in this order.

    Args:
        kind: what is bounded.
        namespace: the tool's server, ``""`` where it is no tool.
        name: the tool's or the account's, ``""`` for the tenant itself.
    """

    kind: BudgetKind
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One bound.

    Args:
        place: whose.
        measure: of what, a word of `MEASURES`.
        most: the bound.
        used: of it; 0 for ``failures``, which are not counted but looked up.
        n: the event of the ledger's own chain that set it.
    """

    place: Place
    measure: str
    most: int
    used: int
    n: int

    @property
    def left(self) -> int:
        """What may still be taken."""
        return max(0, self.most - self.used)


Used: TypeAlias = tuple[Place, str]
Moves: TypeAlias = dict[Used, int]

TENANT = Place(kind="tenant")
_MOST_USED = 2**63 - 1  # what a row of any database can hold


def held(used: int) -> int:
    """Return what is used as a budget's row holds it: runs together may spend more than any row can say.

    Only what is charged grows that far, and it never gets less again; so what stays at the most loses nothing.
    """
    return min(used, _MOST_USED)


def tool(namespace: str, name: str) -> Place:
    """Name the place of a tool's budgets."""
    return Place(kind="tool", namespace=namespace, name=name)


def account(name: str) -> Place:
    """Name the place of an account's budget."""
    return Place(kind="account", name=name)


def moved(before: RunRecord | None, after: RunRecord, files: Iterable[tuple[ActionFile | None, ActionFile]]) -> Moves:
    """Return what a transaction adds to what is used of which budget, be it set or not; what stays is left out.

    Args:
        before: the run as it was read; None when the transaction opens it.
        after: the run as it will stand.
        files: (before, after) of every action it touches.
    """
    sums: Counter[Used] = Counter(used_by_run(after))
    if before is not None:
        sums.subtract(used_by_run(before))
    for was, now in files:
        sums.update(used_by_action(now.action))
        if was is not None:
            sums.subtract(used_by_action(was.action))
    return {used: amount for used, amount in sums.items() if amount}


def used_by_run(run: RunRecord) -> Moves:
    """Return what a run uses of its tenant's budgets."""
    counters = run.counters
    return {
        (TENANT, "actions"): counters.taken,
        (TENANT, "parallel"): counters.executing,
        (TENANT, "pending"): counters.pending,
        (TENANT, "tokens"): counters.tokens,
        (TENANT, "money"): counters.money,
    }


def used_by_action(action: ActionRecord) -> Moves:
    """Return what an action uses of its tool's budgets, and of the accounts that it reserved from."""
    place, is_taken = tool(action.namespace, action.tool), action.state in TAKEN
    used: Moves = {
        (place, "actions"): int(is_taken),
        (place, "parallel"): int(action.state is State.EXECUTING),
        (place, "pending"): int(action.state is State.HELD),
    }
    if is_taken:
        used |= {(account(name), "amount"): amount for name, amount in action.reserved}
    return used


class Book:
    """The budgets of a tenant that a transaction knows, and what all its drafts together do to them."""

    def __init__(self) -> None:
        self._read: dict[Place, tuple[Budget, ...]] = {}
        self._spending: list[Callable[[], Moves]] = []

    def counts(self, moved: Callable[[], Moves]) -> None:
        """Let one more draft's changes count."""
        self._spending.append(moved)

    def enter(self, places: Iterable[Place], read: Iterable[Budget]) -> None:
        """Take in the budgets of some places as they stand in the database; a place may have none."""
        found = tuple(read)
        self._read |= {place: tuple(one for one in found if one.place == place) for place in places}

    def unread(self, places: Iterable[Place]) -> tuple[Place, ...]:
        """Return those of the places that were not taken in yet."""
        return tuple(sorted(set(places) - self._read.keys()))

    def touched(self) -> tuple[Place, ...]:
        """Return the places where the drafts change what is used, whether anything is bounded there or not."""
        return tuple({place for place, _ in self._moved()})

    def left(self, *places: Place) -> tuple[Budget, ...]:
        """Return the budgets of some places, as the drafts leave them."""
        return tuple(after for _, after in self._pairs(places))

    def moves(self) -> tuple[tuple[Budget, Budget], ...]:
        """Return (before, after) of the budgets that the drafts change, in the order of their places."""
        return tuple(pair for pair in self._pairs(sorted(self._read)) if pair[0] != pair[1])

    def _pairs(self, places: Iterable[Place]) -> list[tuple[Budget, Budget]]:
        read = [one for place in places for one in self._read.get(place, ())]
        moved = self._moved() if read else {}
        return [(one, replace(one, used=held(one.used + moved.get((one.place, one.measure), 0)))) for one in read]

    def _moved(self) -> Moves:
        sums: Counter[Used] = Counter()
        for moved in self._spending:
            sums.update(moved())
        return {used: amount for used, amount in sums.items() if amount}


def exhausted(budgets: Iterable[Budget], *measures: str) -> Budget | None:
    """Return the first tenant's or tool's budget of these measures of which nothing is left."""
    kinds = {"tenant", "tool"}
    return next(
        (one for one in budgets if one.place.kind in kinds and one.measure in measures and one.used >= one.most), None
    )


def shortfall(budgets: Iterable[Budget], reserves: Mapping[str, int]) -> str | None:
    """Return the reason code of why these amounts cannot be reserved; None where they can.

    Args:
        budgets: those of the accounts, where they are set.
        reserves: how much of which account.
    """
    left = {one.place.name: one.most - one.used for one in budgets if one.place.kind == "account"}
    if not left.keys() >= reserves.keys():
        return "limit_reserves"  # an allowance that nobody bounds is none
    short = [name for name, amount in reserves.items() if amount > left[name]]
    if not short:
        return None
    return "standing_gone" if all(name.startswith(PREFIX) for name in short) else "limit_account"


def left(run: RunRecord, budgets: Iterable[Budget]) -> dict[str, int]:
    """Return what is left of a run's own bounds and of these budgets, by the names that a policy sees.

    ``run.actions``, ``tenant.money``, ``tool.parallel``, ``account.refunds``: in the order in which the record has
    them, so that a policy that goes through them sees the same at a recheck.
    """
    counters = run.counters
    used = {
        "actions": counters.taken,
        "active_us": counters.active_us,
        "failures": counters.failures,
        "money": counters.money,
        "parallel": counters.executing,
        "pending": counters.pending,
        "rejections": counters.rejected,
        "retries": counters.retried,
        "tokens": counters.tokens,
    }
    found = {f"run.{name}": max(0, most - used[name]) for name, most in run.limits.items() if name in used}
    for one in budgets:
        if one.place.kind == "account":
            found[f"account.{one.place.name}"] = one.left
        elif one.measure != "failures":  # which are looked up, never counted
            found[f"{one.place.kind}.{one.measure}"] = one.left
    return dict(sorted(found.items(), key=lambda item: item[0].encode("utf-16-be")))
