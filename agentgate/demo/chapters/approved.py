"""A call that two people sign for, and one that somebody wrote an approval for into the database."""

import shutil
import sqlite3
from contextlib import closing

import agentgate
from agentgate.clock import SystemClock
from agentgate.demo.agent import Call, work
from agentgate.demo.scene import KEYRING, TICKET, Scene
from agentgate.demo.story import Story
from agentgate.errors import Damaged
from agentgate.gate.face import Gate
from agentgate.keyfile import add_key
from agentgate.outcome import Done, Held, Outcome, Proposal
from agentgate.printable import printable
from agentgate.publickeys import ApproverKey
from agentgate.signing import SigningKey, sign_vote

TITLE = "Approved: two people sign for what they were shown, and it runs once"
REFUND = Call(tool="refund", arguments={"account": "a1", "cents": 64_950}, key=f"{TICKET}/half")
FORGED = Call(tool="refund", arguments={"account": "a1", "cents": 90_000}, key=f"{TICKET}/more")
PEOPLE = ("ada", "bob")
CLOCK = SystemClock()
COPY = "approved-by-nobody.db"
FORGING = (
    "UPDATE agentgate_approvals SET state = 'granted' WHERE action = ?",
    "UPDATE agentgate_actions SET state = 'READY' WHERE id = ?",
)


def play(story: Story, scene: Scene) -> None:
    """Approve a refund by two signatures, execute it, and forge the approval of another one."""
    story.say(
        """They settle on half the price. Whose signatures count is said by keyring.json, which lies outside the
        database; each private key stays with its owner. Ada and bob read the question and sign the digest of what
        they were shown: no other call, amount or run fits it."""
    )
    keys = {name: _key_of(scene, name) for name in PEOPLE}
    with scene.at_work() as (gate, run):
        asked = work(story, gate, run, [REFUND])[0]
        for name, key in keys.items():
            _approve(story, gate, asked, name, key)
        story.say("The loop comes back with the same key, twice:")
        done, again = work(story, gate, run, [REFUND, REFUND])
    story.expect("it was done once two had signed", so=isinstance(done, Done) and done.source == "executed")
    story.expect("the grant is used up: the second time is a replay", so=again.reason == done.reason)
    story.expect("the bank moved 649.50 once", so=len(scene.shop.movements(64_950)) == 1)
    _forge(story, scene)


def _key_of(scene: Scene, name: str) -> SigningKey:
    """Make a person's key, and put its public half into the keyring."""
    key = SigningKey.new()
    key.save(scene.folder / f"{name}.pem")
    add_key(
        scene.folder / KEYRING, ApproverKey(public=key.public, name=name, roles=("finance",), from_us=0), clock=CLOCK
    )
    return key


def _approve(story: Story, gate: Gate, asked: Outcome, name: str, key: SigningKey) -> None:
    if not isinstance(asked, Held):
        story.expect("it is held", so=False)
        return
    approval = asked.approval
    story.person(name, f"agentgate approve {approval.id} --by {name} --key {name}.pem --keyring {KEYRING}")
    signed = sign_vote(key, approval=approval.digest, verdict="approve", approver=name)
    question = gate.approvals.approve(approval.id, digest=approval.digest, by=name, signed=signed)
    story.person("gate", f"{len(question.votes)} of {approval.requirement.quorum} have signed: {question.state}")


def _forge(story: Story, scene: Scene) -> None:
    story.say(
        """The model asks for another 900.00. Nobody signs. Somebody who can write the database (a copy of it here)
        makes the rows say that finance has agreed:"""
    )
    with scene.at_work() as (gate, run):
        asked = work(story, gate, run, [FORGED])[0]
    shutil.copy(scene.folder / "agent.db", scene.folder / COPY)  # no gate has it open
    with closing(sqlite3.connect(scene.folder / COPY)) as database, database:
        for statement in FORGING:
            story.person("mallory", statement)
            database.execute(statement, (asked.action,))
    with scene.at_work(ledger=COPY) as (gate, _):
        story.expect("a claim does not believe the rows: damaged, and nothing runs", so=_is_damaged(gate, asked))
    broken = agentgate.verify(f"sqlite:///{scene.folder / COPY}")
    story.show(printable(f"{one.kind}: {one.detail}") for one in broken.breaks)
    story.expect("verify names both rows", so={one.kind for one in broken.breaks} >= {"action_row", "approval_row"})
    story.person("bob", f"agentgate reject {_id(asked)} --by bob --key bob.pem --keyring {KEYRING}")
    with scene.at_work() as (gate, _):
        rejected = _reject(scene, gate, asked)
    story.expect("in the shop's own ledger bob says no, for good", so=rejected.state == "REFUSED")
    story.expect("the bank moved no 900.00", so=not scene.shop.movements(90_000))


def _is_damaged(gate: Gate, asked: Outcome) -> bool:
    try:
        gate.execute(asked.action)
    except Damaged:
        return True
    return False


def _reject(scene: Scene, gate: Gate, asked: Outcome) -> Proposal:
    assert isinstance(asked, Held)  # its rows were forged by that
    approval, key = asked.approval, SigningKey.load(scene.folder / "bob.pem")
    signed = sign_vote(key, approval=approval.digest, verdict="reject", approver="bob")
    gate.approvals.reject(approval.id, digest=approval.digest, by="bob", signed=signed)
    return gate.wait(asked.action, timeout=0)


def _id(outcome: Outcome) -> str:
    return outcome.approval.id if isinstance(outcome, Held) else outcome.action
