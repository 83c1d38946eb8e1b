"""A ledger file with a downstream beside it, for tests that go through the public face and look behind it."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import agentgate
from agentgate import Effect, Gate, Held, Limits, Question, Run
from agentgate.clock import Clock
from agentgate.event import Event, decode
from agentgate.keyring import Keyring
from agentgate.policy.facts import FactProvider
from agentgate.policy.loading import PolicySource
from agentgate.signing import sign_vote
from agentgate.store import actions, sqlite
from agentgate.testing import Downstream, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import chains
from support.signers import public, signer

PRINCIPAL = "agent:support"


@dataclass(frozen=True, kw_only=True)
class World:
    """A migrated ledger, and what its tools reach."""

    folder: Path
    journal: str | None = None

    @property
    def path(self) -> Path:
        return self.folder / "agent.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}" + ("" if self.journal is None else f"?journal={self.journal}")

    @property
    def downstream(self) -> Downstream:
        return Downstream(self.folder / "downstream.db")

    def gate(
        self,
        *tools: AnyTool,
        policy: PolicySource | None = None,
        clock: Clock | None = None,
        facts: Mapping[str, FactProvider] | None = None,
        settings: agentgate.Settings | None = None,
        **kept: Any,
    ) -> Gate:
        """Open a gate; without a policy it allows everything, without tools it has `refund`.

        ``kept`` are ``secrets``, ``sealing``, and ``keyring``: without one, that of `VOTERS`.
        """
        kept.setdefault("keyring", RING)
        return Gate.open(
            self.url,
            policy=ScriptedPolicy() if policy is None else policy,
            tools=tools or (self.refund(),),
            facts=facts,
            settings=settings,
            clock=clock,
            **kept,
        )

    def refund(self, **declared: Any) -> AnyTool:
        """Make a tool that reaches the downstream once per call, on the account's resource."""

        def refund(account: str, cents: int, *, effect: Effect) -> dict[str, int]:
            self.downstream.apply(effect, resource=account)
            return {"cents": cents}

        return agentgate.tool(**{"risk": "external", "resource": "account:{account}"} | declared)(refund)

    # --- behind the face ---------------------------------------------------------------------

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Read or write the file as somebody else would, in a transaction of its own."""
        with closing(self.connect()) as connection:
            return connection.execute(statement, values).fetchall()

    def broken(self) -> list[str]:
        """Say what is wrong with the record, by the standard library alone."""
        with closing(self.connect()) as connection:
            return chains.broken(connection)

    def damage(self) -> list[str]:
        """Say what is wrong with the record, by the standard library and by the ledger's own `verify`."""
        return [*self.broken(), *map(str, agentgate.verify(self.url).breaks)]

    def connect(self) -> sqlite3.Connection:
        """Open the file beside the gates.

        With the library that they use: two of them in one process drop each other's locks, and the one that is
        closed first takes the other's write-ahead log away.
        """
        connection: sqlite3.Connection = sqlite.module().connect(str(self.path), timeout=10, isolation_level=None)
        return connection

    def value(self, statement: str, *values: object) -> Any:
        """Read one value of one row."""
        (row,) = self.sql(statement, *values)
        return row[0]

    def events(self, action: str | None = None) -> list[Event]:
        """Read the events of an action, or of every run, in the order of (run, n)."""
        rows = self.sql("SELECT event FROM agentgate_events ORDER BY run, n")
        found = [decode(encoded) for (encoded,) in rows]
        return [event for event in found if action is None or event.action == action]

    def words(self, action: str) -> list[str]:
        """Name the events of an action in order."""
        return [event.type for event in self.events(action)]

    def state(self, action: str) -> str:
        return str(self.value("SELECT state FROM agentgate_actions WHERE id = ?", action))

    def pause(self, *, paused: bool = True) -> None:
        """Throw the switch for everything, as an operator's command will."""
        self.sql("INSERT OR REPLACE INTO agentgate_switches VALUES ('all', '', '', '', ?, 0)", int(paused))


def made(folder: Path, *, journal: str | None = None) -> World:
    """Make a world in a folder of its own."""
    world = World(folder=folder, journal=journal)
    agentgate.migrate(world.url)
    return world


def opened(gate: Gate, name: str = "ticket-1", *, tenant: str = "acme", limits: Limits | None = None) -> Run:
    """Open a run, or attach to it."""
    return gate.run(name, principal=PRINCIPAL, tenant=tenant, limits=limits)


def named(name: str, function: Any, **declared: Any) -> AnyTool:
    """Make a tool of a function under a name of its own, external unless said otherwise."""
    return agentgate.tool(**{"name": name, "risk": "external"} | declared)(function)


def slow() -> agentgate.Settings:
    """The longest patience with policies: a loaded machine is no finding."""
    return agentgate.Settings(policy_within=timedelta(minutes=1), fact_within=timedelta(minutes=1))


@contextmanager
def gates(world: World, *tools: AnyTool, count: int = 2, **options: Any) -> Iterator[tuple[Gate, ...]]:
    """Open several gates on one file."""
    many = [world.gate(*tools, **options) for _ in range(count)]
    try:
        yield tuple(many)
    finally:
        for gate in many:
            gate.close()


VOTERS = ("ada", "bob", "eve", "mia")
RING = Keyring(public(name, roles=("auditor", "finance", "ops")) for name in VOTERS)


def vote(gate: Gate, held: Held, name: str, verdict: str = "approve", **given: Any) -> Question:
    """Answer a held action's question as one of `VOTERS`, with what it asks for: roles, and a signature."""
    asked = held.approval
    with gate._shop.ledger.database.read() as connection:
        action = actions.read(connection, held.action)
    assert action is not None
    usual: dict[str, Any] = {"digest": asked.digest, "by": f"person:{name}", "roles": asked.requirement.roles}
    if asked.requirement.signed:
        word: Any = verdict
        usual["signed"] = sign_vote(signer(name), approval=asked.digest, verdict=word, approver=f"person:{name}")
    say = gate.approvals.approve if verdict == "approve" else gate.approvals.reject
    return say(asked.id, **usual | {"tenant": action.tenant} | given)


def grant(gate: Gate, held: Held) -> None:
    """Approve what is held, with as many votes as it asks for."""
    said = [vote(gate, held, name) for name in VOTERS[: held.approval.requirement.quorum]]
    assert said[-1].state == "granted"


def kinds(outcomes: Iterable[object]) -> list[str]:
    """Name the classes of outcomes."""
    return [type(outcome).__name__ for outcome in outcomes]
