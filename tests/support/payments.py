"""Payments of every recovery class, the workers who make them until they die, and what there is to show for it.

Which class a payment is of follows from its number, so that every worker makes all of them at once.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from sqlalchemy import text

from agentgate import (
    Done,
    Effect,
    Function,
    Gate,
    Keyed,
    NotPossible,
    Operator,
    Outcome,
    Probe,
    Repeat,
    Run,
    Transactional,
    Unknown,
)
from agentgate.testing import Downstream
from agentgate.tools.decorator import AnyTool
from support.worlds import World, named, opened

CLASSES = ("repeat", "keyed", "transactional", "probe", "operator")
SWEEPS = 9
"""After so many payments a worker sweeps; no multiple of the classes, so that it does so after each of them."""


def class_of(n: int) -> str:
    """Tell of which class a payment is."""
    return CLASSES[n % len(CLASSES)]


def _knowing(world: World) -> Downstream:
    """Open the bank that knows our key; the world's own makes a payment as often as it is told to."""
    return Downstream(world.folder / "knowing.db", dedupes=True)


def prepare(world: World) -> None:
    """Make the tables that are the caller's own, in the ledger's database."""
    world.sql("CREATE TABLE payments (n INTEGER)")
    world.sql("CREATE TABLE orders (n INTEGER)")


def tools(world: World) -> list[AnyTool]:
    """Make a tool of each class."""

    def told_twice(n: int, *, effect: Effect) -> int:
        _knowing(world).apply(effect, resource=f"payment-{n}")
        return n

    def written(n: int, *, effect: Effect) -> int:
        effect.connection.execute(text("INSERT INTO payments VALUES (:n)"), {"n": n})
        return n

    def told(n: int, *, effect: Effect) -> int:
        world.downstream.apply(effect, resource=f"payment-{n}")
        return n

    def has_applied(effect: Effect, *_: object) -> bool:
        return world.downstream.has_applied(effect)

    probe = Function(call=has_applied, name="has_applied", version="1")
    return [
        named("repeat", told_twice, resource="payment:{n}", recovery=Repeat()),
        named("keyed", told_twice, resource="payment:{n}", recovery=Keyed(hours=24)),
        named("transactional", written, resource="payment:{n}", recovery=Transactional(), timeout=20),
        named("probe", told, resource="payment:{n}", recovery=Probe(), probe=probe),
        named("operator", told, resource="payment:{n}", recovery=Operator()),
    ]


# --- the workers -----------------------------------------------------------------------------------


def work(world: World, payments: Iterable[int] | None = None) -> None:
    """Make payments, in order, that nobody has been told of: these, or one after the other until it is killed."""
    done = acknowledged(world)
    with world.gate(*tools(world)) as gate:
        run = opened(gate)
        for n in count() if payments is None else payments:
            if n in done:
                continue
            if isinstance(_paid(world, gate, run, n), Done):
                _acknowledge(world, n)
            if n % SWEEPS == 0:
                gate.sweep()


def _paid(world: World, gate: Gate, run: Run, n: int) -> Outcome:
    if class_of(n) == "transactional" and n % 2:
        return _ordered(gate, run, n)
    outcome = _call(gate, run, n)
    if class_of(n) != "operator" or not isinstance(outcome, Unknown):
        return outcome
    applied = n in paid(world)
    with contextlib.suppress(NotPossible):  # the other worker's operator was faster
        gate.reconcile(
            outcome.action,
            applied=applied,
            attempt=outcome.attempt,
            by="ada",
            evidence="the bank's list",
            tenant="acme",
        )
    return _call(gate, run, n)


def _call(gate: Gate, run: Run, n: int, *, connection: object = None) -> Outcome:
    return gate.call(run, class_of(n), {"n": n}, key=str(n), connection=connection)


def _ordered(gate: Gate, run: Run, n: int) -> Outcome:
    """Pay in a transaction of the caller's, which has rows of its own to write."""
    with gate.transaction() as connection:
        outcome = _call(gate, run, n, connection=connection)
        if isinstance(outcome, Done) and outcome.source == "executed":
            connection.execute(text("INSERT INTO orders VALUES (:n)"), {"n": n})
    return outcome


def _acknowledge(world: World, n: int) -> None:
    """Tell the world outside that a payment is done: from here on nobody may forget it."""
    descriptor = os.open(world.folder / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{n}\n".encode())
    os.close(descriptor)


# --- what there is to show -------------------------------------------------------------------------


def acknowledged(world: World) -> set[int]:
    """Read which payments the world was told of."""
    path = world.folder / "acknowledged"
    return set(map(int, path.read_text().split())) if path.exists() else set()


def paid(world: World) -> Counter[int]:
    """Count how often each payment has happened."""
    arrivals = (*world.downstream.arrivals, *_knowing(world).arrivals)
    told = [int(one.resource.removeprefix("payment-")) for one in arrivals if one.verdict == "applied"]
    return Counter([*told, *(n for (n,) in world.sql("SELECT n FROM payments"))])


def succeeded(world: World) -> set[int]:
    """Read which payments the record says have happened."""
    return {int(key) for (key,) in world.sql("SELECT key_text FROM agentgate_actions WHERE state = 'SUCCEEDED'")}


def begun(world: World) -> int:
    """Tell how many payments have been begun: they are begun in order."""
    return 1 + int(world.value("SELECT max(CAST(key_text AS INTEGER)) FROM agentgate_actions") or 0)


def offences(world: World) -> list[str]:
    """Say what is wrong: with the payments, with what is told of them, with the record."""
    happened, ordered = paid(world), Counter(n for (n,) in world.sql("SELECT n FROM orders"))
    wrong = {
        "paid twice": {n for n, times in happened.items() if times > 1},
        "lost": acknowledged(world) - set(happened),
        "SUCCEEDED without an effect": succeeded(world) - set(happened),
        "a payment without its order, or more than one": {
            n for n in {*happened, *ordered} if ordered[n] != (class_of(n) == "transactional" and n % 2)
        },
    }
    return [*(f"{what}: {sorted(which)}" for what, which in wrong.items() if which), *world.damage()]


@dataclass(kw_only=True)
class Figures:
    """What came of the payments of one class."""

    effects: int = 0
    unknown: int = 0
    reconciled: int = 0

    def add(self, world: World, word: str) -> None:
        """Count what one world has to show."""
        self.effects += sum(times for n, times in paid(world).items() if class_of(n) == word)
        of = {id_ for (id_,) in world.sql("SELECT id FROM agentgate_actions WHERE tool = ?", word)}
        types = Counter(event.type for event in world.events() if event.action in of)
        self.unknown += types["in_doubt"]
        self.reconciled += types["reconciled"]
