"""What people do about questions, and what is left of it when their process is killed: rows of docs/crashes.md."""

from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

import agentgate
from agentgate import Gate, Held, Keyring, Outcome, Question, Requirement, Run, VoteRefused, sign_addition, sign_vote
from agentgate.testing import ScriptedPolicy
from support import faulty, worlds
from support.crashes import Command, Prepare, call, execute, propose
from support.crashrow import Row
from support.signers import public, signer
from support.worlds import World

TENANT: Any = {"tenant": "acme"}
A_MOMENT = timedelta(microseconds=1)
ADMIN = Keyring([public("admin", trusted_to_add=True)])
VOTES = ("votes", "SELECT count(*) FROM agentgate_votes WHERE counted")
KEYS = ("keys", "SELECT count(*) FROM agentgate_keys")
REVOKED = ("keys revoked", "SELECT count(*) FROM agentgate_revoked_keys")
USES = ("uses", "SELECT coalesce(sum(used), 0) FROM agentgate_budgets")
RULES = """
version: 1
rules:
  - {name: refunds, match: {tool: refund}, outcome: require_approval, reason: ask, standing: true}
"""

NONE = "before its commit"
BEFORE_START = "before `started` is committed"
BETWEEN = "after that, before the effect"
EFFECTED = "after the effect, before its record is committed"
RECORDED = "after its last commit"


def asking(_world: World | None = None, **required: Any) -> ScriptedPolicy:
    """Make a policy that asks for people."""
    return ScriptedPolicy(otherwise=agentgate.require_approval("big", requirement=Requirement(**required)))


def standing(world: World) -> Path:
    """Write a rule file that people have answered in advance, where they have."""
    path = world.folder / "policy.yaml"
    if not path.exists():
        path.write_text(RULES)
    return path


TWO = partial(asking, quorum=2)
SIGNED = partial(asking, quorum=2, signed=True)


def asked(gate: Gate, action: str) -> dict[str, Any]:
    """Read which question hangs on an action, behind the gate's back: what a person has been shown costs it nothing."""
    statement = "SELECT id, lower(hex(digest)) FROM agentgate_approvals WHERE action = ? ORDER BY asked_n DESC LIMIT 1"
    with closing(faulty.REAL.connect(str(gate._shop.ledger.own.path))) as connection:
        ((id_, digest),) = connection.execute(statement, (action,))
    return {"id": id_, "digest": digest, **TENANT}


def waiting(voters: str = "", *, under: Any = None) -> Prepare:
    """Ask, of people whom another policy may name, and have the first of them agree."""

    def prepare(world: World, gate: Gate, run: Run) -> None:
        with closing(gate if under is None else world.gate(policy=under())) as other:
            action = propose(other, run).action
            for name in voters.split():
                say(other, run, action, name=name)

    return prepare


def say(
    gate: Gate, _run: Run, action: str, *, name: str, verdict: Literal["approve", "reject"] = "approve"
) -> Question:
    """Answer with a signature, also where none is asked for."""
    shown, by = asked(gate, action), f"person:{name}"
    signed = sign_vote(signer(name), approval=shown["digest"], verdict=verdict, approver=by)
    return getattr(gate.approvals, verdict)(by=by, signed=signed, **shown)  # type: ignore[no-any-return]


def take_back(gate: Gate, _run: Run, action: str) -> Question:
    return gate.approvals.revoke(by="person:ada", **asked(gate, action))


def come_late(gate: Gate, run: Run, action: str) -> None:
    with pytest.raises(VoteRefused, match="expired"):
        say(gate, run, action, name="ada")


def add_key(gate: Gate, _run: Run, _action: str) -> None:
    added = sign_addition(signer("admin"), public("zoe"), ledger=gate.ledger)
    gate.keys.add(added, keyring=ADMIN, by="ops:ada")


def revoke_key(gate: Gate, _run: Run, _action: str) -> bool:
    return gate.keys.revoke(signer("mia").hash, by="ops:ada")


def give(gate: Gate, _run: Run | None = None, _action: str = "") -> agentgate.StandingGrant:
    where = {"where": [{"path": "/account", "equals": "a1"}, {"path": "/cents", "at_most": 2_000}]}
    given: dict[str, Any] = {"by": "person:ada", "why": "small ones", "uses": 1, "until": timedelta(hours=1)}
    return gate.grants.add(tool="refund", where=where, **given, **TENANT)


def given(_world: World, gate: Gate, _run: Run) -> None:
    give(gate)


def take_the_grant_back(gate: Gate, _run: Run, _action: str) -> agentgate.StandingGrant:
    with closing(faulty.REAL.connect(str(gate._shop.ledger.own.path))) as connection:
        ((id_,),) = connection.execute("SELECT id FROM agentgate_standing")
    return gate.grants.revoke(id_, by="person:ada", **TENANT)


def decided(gate: Gate, outcome: Outcome) -> None:
    """Find what waits in the list, as a process does that knows of nothing, and have as many agree as it asks for."""
    assert isinstance(outcome, Held)
    assert outcome.approval.id in [one.id for one in gate.approvals.list(kind="approval")]
    worlds.grant(gate, outcome)
    (question,) = (one for one in gate.approvals.unused() if one.action == outcome.action)
    assert len([one for one in question.votes if one.counted]) == outcome.approval.requirement.quorum


# fmt: off
def _started(left: str, *, before: str, votes: str = "") -> tuple[Row, ...]:
    """Make the rows of a command that may start an effect which nobody may run again blindly."""
    return (
        Row(killed=BEFORE_START, commits=0, reached=False, left=before,              next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left=f"EXECUTING{votes}", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left=f"EXECUTING{votes}", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left=f"{left}{votes}",    next="Done",    effects=1),
    )


VERDICTS = (
    Command(name="approve, others must agree as well", policy=TWO, also=VOTES, prepare=waiting(),
            do=partial(say, name="ada"), rows=(
        Row(killed=NONE,         commits=0, left="HELD; votes: 0",             next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="HELD; votes: 1",             next="Held",    effects=0),
    )),
    Command(name="approve, the last who must agree", policy=TWO, also=VOTES, prepare=waiting("ada"),
            do=partial(say, name="bob"), rows=(
        Row(killed=NONE,         commits=0, left="HELD; votes: 1",             next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="READY; votes: 2",            next="Done",    effects=1),
    )),
    Command(name="approve, the last who must sign", policy=SIGNED, also=VOTES, prepare=waiting("ada"),
            do=partial(say, name="bob"), rows=(
        Row(killed=NONE,         commits=0, left="HELD; votes: 1",             next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="READY; votes: 2",            next="Done",    effects=1),
    )),
    Command(name="approve, too late", policy=TWO, also=VOTES,
            prepare=waiting(under=partial(asking, question=A_MOMENT)), do=come_late, rows=(
        Row(killed=NONE,         commits=0, left="HELD; votes: 0",             next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="REFUSED; votes: 0",          next="Held",    effects=0),
    )),
    Command(name="reject", policy=TWO, also=VOTES, prepare=waiting("ada"),
            do=partial(say, name="bob", verdict="reject"), rows=(
        Row(killed=NONE,         commits=0, left="HELD; votes: 1",             next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="REFUSED; votes: 2",          next="Refused", effects=0),
    )),
    Command(name="revoke, a vote", policy=TWO, also=VOTES, prepare=waiting("ada"), do=take_back, rows=(
        Row(killed=NONE,         commits=0, left="HELD; votes: 1",             next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="HELD; votes: 0",             next="Held",    effects=0),
    )),
    Command(name="revoke, what was granted", policy=TWO, also=VOTES, prepare=waiting("ada bob"), do=take_back, rows=(
        Row(killed=NONE,         commits=0, left="READY; votes: 2",            next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1, left="REFUSED; votes: 2",          next="Refused", effects=0),
    )),
    Command(name="execute, the policy now asks for others", policy=TWO, also=VOTES,
            prepare=waiting("ada", under=asking), do=execute, rows=(
        Row(killed=NONE,         commits=0, left="READY; votes: 1",            next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="HELD; votes: 1",             next="Held",    effects=0),
    )),
    Command(name="execute, what was granted is over", policy=TWO, also=VOTES,
            prepare=waiting("ada", under=partial(asking, grant=A_MOMENT)), do=execute, rows=(
        Row(killed=NONE,         commits=0, left="READY; votes: 1",            next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="REFUSED; votes: 1",          next="Held",    effects=0),
    )),
    Command(name="execute, people have approved it", policy=TWO, also=VOTES, prepare=waiting("ada bob"), do=execute,
            rows=_started("SUCCEEDED", before="READY; votes: 2", votes="; votes: 2")),
    Command(name="execute, people have signed for it", policy=SIGNED, also=VOTES, prepare=waiting("ada bob"),
            do=execute, rows=_started("SUCCEEDED", before="READY; votes: 2", votes="; votes: 2")),
    Command(name="add a key", policy=SIGNED, also=KEYS, prepare=waiting("ada"), do=add_key, rows=(
        Row(killed=NONE,         commits=0, left="HELD; keys: 0",              next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="HELD; keys: 1",              next="Held",    effects=0),
    )),
    Command(name="revoke a key", policy=SIGNED, also=REVOKED, prepare=waiting("ada"), do=revoke_key, rows=(
        Row(killed=NONE,         commits=0, left="HELD; keys revoked: 0",      next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="HELD; keys revoked: 1",      next="Held",    effects=0),
    )),
    Command(name="give a standing grant", policy=standing, do=give, rows=(
        Row(killed=NONE,         commits=0, left="nothing",                    next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1, left="nothing",                    next="Done",    effects=1),
    )),
    Command(name="revoke a standing grant", policy=standing, prepare=given, do=take_the_grant_back, rows=(
        Row(killed=NONE,         commits=0, left="nothing",                    next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1, left="nothing",                    next="Held",    effects=0),
    )),
    Command(name="call, a standing grant covers it", policy=standing, also=USES, prepare=given, do=call,
            rows=_started("SUCCEEDED", before="nothing; uses: 0", votes="; uses: 1")),
)
# fmt: on
