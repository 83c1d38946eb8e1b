"""A ledger in which an action of each kind may start, to be edited behind everybody's back before it does."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agentgate
from agentgate import Damaged, NoEffect, NotFound, Repeat, Requirement, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.edits import Copy
from support.worlds import World, grant, made, named, opened

ASK = require_approval("big", requirement=Requirement())
FORMS = ("allowed", "granted", "failed", "unknown")


@dataclass
class Stage:
    """The ledger, and what became of its actions.

    Args:
        copy: may be edited, and taken back.
        actions: ids, by form.
        ran: what has run since it was taken back.
    """

    copy: Copy
    actions: dict[str, str]
    ran: list[str] = field(default_factory=list)
    well: bool = False

    @property
    def world(self) -> World:
        return World(folder=self.copy.path.parent, journal="delete")

    def tools(self) -> list[AnyTool]:
        def act(what: str) -> None:
            self.ran.append(what)

        def fails() -> None:
            if not self.well:
                raise NoEffect("not yet")
            self.ran.append("failed")

        def doubts() -> None:
            if not self.well:
                raise ConnectionResetError
            self.ran.append("unknown")

        resource: dict[str, Any] = {"resource": "thing:{what}"}
        return [named("act", act, **resource), named("fails", fails), named("doubts", doubts, recovery=Repeat())]

    def fresh(self) -> "Stage":
        """Take it back to what it was; whatever comes now does its work."""
        self.copy.fresh()
        self.ran.clear()
        self.well = True
        return self

    def execute(self, form: str) -> str:
        """Execute an action; say what it came to, or which error."""
        with self.world.gate(*self.tools(), policy=policy(form), clock=FakeClock(seed=99)) as gate:
            try:
                outcome = gate.execute(self.actions[form], tenant="acme", retry=form == "failed")
            except (Damaged, NotFound) as error:
                return type(error).__name__
        return type(outcome).__name__

    def row(self, table: str, form: str) -> tuple[int, dict[str, Any]]:
        """Return a row of an action, and its rowid."""
        column = "id" if table == "actions" else "action"
        row = next(row for row in self.copy.rows(table) if row[column] == self.actions[form])
        return row["rowid"], row


def staged(folder: Path) -> Stage:
    """Make the ledger in a folder."""
    for part in ("original", "copy"):
        (folder / part).mkdir()
    world = made(folder / "original", journal="delete")
    stage = Stage(copy=Copy(original=world.path, path=folder / "copy" / world.path.name), actions={})
    for seed, form in enumerate(FORMS):
        with world.gate(*stage.tools(), policy=policy(form), clock=FakeClock(seed=seed)) as gate:
            stage.actions[form] = _prepare(gate, form)
    return stage


def policy(form: str) -> ScriptedPolicy:
    """Return a policy that asks people about those that were granted, and allows the others."""
    return ScriptedPolicy(otherwise=ASK if form in {"granted", "failed"} else agentgate.allow())


def _prepare(gate: agentgate.Gate, form: str) -> str:
    run = opened(gate)
    tool = {"failed": "fails", "unknown": "doubts"}.get(form, "act")
    given = {"what": form} if tool == "act" else {}
    if form == "allowed":
        return gate.propose(run, tool, given, key=form).action
    outcome = gate.call(run, tool, given, key=form)
    if isinstance(outcome, agentgate.Held):
        grant(gate, outcome)
        if form == "failed":
            assert isinstance(gate.execute(outcome.action, tenant="acme"), agentgate.Failed)
    return outcome.action
