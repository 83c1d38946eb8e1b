"""A ledger with an action that is held, one that is granted and one that was executed; and what forgers need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import agentgate
from agentgate import Damaged, Held, NotFound, Requirement, require_approval
from agentgate.action import Key, action_digest
from agentgate.approval import approval_digest, requirement_digest, vote_digest
from agentgate.clock import to_us
from agentgate.signing import sign_vote
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.edits import Copy
from support.forging import edited, forge
from support.rewriting import Document, events
from support.signers import signer
from support.worlds import World, made, named, opened, vote

SETTINGS = ("unsigned", "signed", "pinned")
FORMS = ("held", "granted", "used", "other")
YEAR_US = to_us(timedelta(days=365))
NONCE = bytes(range(16))


@dataclass
class Scene:
    """A ledger with an action that is held (one vote of two), one that is granted, and one that was executed.

    Args:
        copy: may be edited, and taken back.
        setting: whether votes must be signed; "pinned" where the gate is pinned to its policy too.
        actions: ids, by form.
        ran: what has run since it was taken back, by form: the arguments.
    """

    copy: Copy
    setting: str
    actions: dict[str, str] = field(default_factory=dict)
    ran: list[tuple[str, int]] = field(default_factory=list)
    later: timedelta = timedelta(0)

    @property
    def world(self) -> World:
        return World(folder=self.copy.path.parent, journal="delete")

    @property
    def policy(self) -> ScriptedPolicy:
        requirement = Requirement(quorum=2, roles=("finance",), signed=self.setting != "unsigned")
        return ScriptedPolicy(otherwise=require_approval("big", requirement=requirement))

    def tool(self) -> AnyTool:
        def pay(account: str, cents: int) -> None:
            self.ran.append((account, cents))

        return named("pay", pay, resource="account:{account}")

    def fresh(self) -> "Scene":
        self.copy.fresh()
        self.ran.clear()
        self.later = timedelta(0)
        return self

    def execute(self, form: str) -> str:
        """Execute an action; say what came of it, or which error."""
        clock = FakeClock(seed=99)
        clock.advance(timedelta(seconds=1) + self.later)
        with self.world.gate(self.tool(), policy=self.policy, clock=clock, pinned=self.setting == "pinned") as gate:
            try:
                outcome = gate.execute(self.actions[form], tenant="acme")
            except (Damaged, NotFound) as error:
                return type(error).__name__
        return outcome.reason if isinstance(outcome, agentgate.Refused) else type(outcome).__name__

    # --- what stands there ------------------------------------------------------------------------

    def run(self) -> str:
        (run,) = (row["id"] for row in self.copy.rows("runs") if row["tenant"] == "acme")
        return str(run)

    def row(self, table: str, form: str) -> dict[str, Any]:
        column = "id" if table == "actions" else "action"
        return next(row for row in self.copy.rows(table) if row[column] == self.actions[form])

    def approval(self, form: str) -> dict[str, Any]:
        return self.row("approvals", form)

    def told(self, form: str, kind: str) -> list[Document]:
        mine = (one for one in events(self.copy, self.run()) if one.get("action") == self.actions[form])
        return [one for one in mine if one["type"] == kind]

    def set(self, table: str, form: str, **cells: object) -> None:
        for column, value in cells.items():
            self.copy.set(table, column, self.row(table, form)["rowid"], value)

    def forge(self, change: Callable[[list[Document]], list[Document]]) -> None:
        forge(self.copy, self.run(), change)


def staged(folder: Path, setting: str) -> Scene:
    """Make the ledger in a folder."""
    for part in ("original", "copy"):
        (folder / part).mkdir()
    world = made(folder / "original", journal="delete")
    scene = Scene(copy=Copy(original=world.path, path=folder / "copy" / world.path.name), setting=setting)
    with world.gate(scene.tool(), policy=scene.policy, clock=FakeClock()) as gate:
        gate.activate_policy(by="person:ada")
        run = opened(gate)
        for n, form in enumerate(FORMS):
            held = gate.call(run, "pay", {"account": form, "cents": n}, key=form)
            assert isinstance(held, Held)
            scene.actions[form] = held.action
            for name in ("ada",) if form == "held" else ("ada", "bob"):
                vote(gate, held, name)
        gate.execute(scene.actions["used"], tenant="acme")
    return scene


# --- what forgeries are made of -----------------------------------------------------------------------


def set_payload(scene: Scene, kind: str, content: bytes) -> bytes:
    """Write other bytes beside the granted action's proposal; return the salt that they stand under."""
    (told,) = scene.told("granted", "proposed")
    place = (told["run"], told["n"], kind)
    row = next(one for one in scene.copy.rows("payloads") if (one["run"], one["n"], one["kind"]) == place)
    scene.copy.set("payloads", "content", row["rowid"], content)
    return bytes(row["salt"])


def granted(scene: Scene, form: str, votes: list[str]) -> Document:
    last_us = events(scene.copy, scene.run())[-1]["at_us"]
    body = {"v": 1, "approval": scene.approval(form)["id"], "votes": votes, "payloads": {}}
    return {"type": "approved", "action": scene.actions[form], "body": body | {"until_us": last_us + 900_000_000}}


def voted(scene: Scene, form: str, name: str, *, signs: bool = False) -> Document:
    """A vote as it would stand there; of a signed setting under the person's key, with a signature of nobody."""
    asked, key = scene.approval(form), signer(name)
    body: dict[str, Any] = {"v": 1, "approval": asked["id"], "shown": asked["digest"].hex(), "verdict": "approve"}
    body |= {"approver": f"person:{name}", "roles": ["finance"], "payloads": {}, "nonce": NONCE.hex()}
    if signs:
        vote = sign_vote(key, approval=asked["digest"], verdict="approve", approver=f"person:{name}")
        body |= {"nonce": vote.nonce.hex(), "key": key.hash.hex(), "signature": vote.signature.hex()}
    elif scene.setting != "unsigned":
        body |= {"key": key.hash.hex(), "signature": bytes(64).hex()}
    bound: bytes | None = bytes.fromhex(body["key"]) if "key" in body else None
    body["vote"] = vote_digest(
        approval=asked["digest"], verdict="approve", approver=body["approver"], key=bound,
        nonce=bytes.fromhex(body["nonce"]),
    ).hex()  # fmt: skip
    return {"type": "voted", "action": scene.actions[form], "body": body}


def action_of(scene: Scene, told: Document) -> bytes:
    body = told["body"]
    return action_digest(
        ledger=str(scene.copy.rows("ledger")[0]["id"]),
        run=told["run"],
        tenant="acme",
        principal=body["principal"],
        namespace=body["namespace"],
        tool=body["tool"],
        spec=bytes.fromhex(body["spec"]),
        arguments=bytes.fromhex(body["payloads"]["arguments"]),
        key=Key(**body["key"]),
        revision=body["revision"],
        provenance=None,
    )


def asked_anew(scene: Scene, form: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Edit a proposal that asks, make every digest on it anew, and let the votes be on what it is then."""
    action, ledger = scene.actions[form], str(scene.copy.rows("ledger")[0]["id"])
    shown: dict[str, bytes] = {}

    def ask(told: Document) -> None:
        body = told["body"]
        change(body)
        digest, asked = action_of(scene, told), body["approval"]
        required = Requirement.from_json(body["decision"]["requirement"])
        bound = requirement_digest(required, action=digest)
        body["digest"], asked["requirement"] = digest.hex(), bound.hex()
        shown["digest"] = approval_digest(
            ledger=ledger,
            id=asked["id"],
            requirement=bound,
            presentation=bytes.fromhex(asked["presentation"]),
            expires_at_us=asked["expires_at_us"],
        )
        asked["digest"] = shown["digest"].hex()

    renamed: dict[str, str] = {}

    def on_it(told: Document) -> None:
        body = told["body"]
        body["shown"], was = shown["digest"].hex(), body["vote"]
        body["vote"] = vote_digest(
            approval=shown["digest"],
            verdict=body["verdict"],
            approver=body["approver"],
            key=bytes.fromhex(body["key"]) if "key" in body else None,
            nonce=bytes.fromhex(body["nonce"]),
        ).hex()
        renamed[was] = body["vote"]

    def named_by(told: Document) -> None:
        told["body"]["votes"] = [renamed[one] for one in told["body"]["votes"]]

    def changed(documents: list[Document]) -> list[Document]:
        for kind, edit in (("proposed", ask), ("voted", on_it), ("approved", named_by)):
            documents = edited(kind, edit, action=action)(documents)
        return documents

    scene.forge(changed)
