"""Signed votes are judged by a keyring from outside the database, at the moment they come (design §7)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentgate import Gate, Held, Keyring, Misuse, Requirement, SignedVote, VoteRefused, require_approval
from agentgate.errors import KeyringRefused
from agentgate.signing import sign_vote
from agentgate.testing import FakeClock, ScriptedPolicy
from support.signers import entry, keyring_file, public, signer
from support.worlds import World, opened

FINANCE = Requirement(signed=True, roles=("finance",))
TENANT: Any = {"tenant": "acme"}
NOW_US = 1_893_456_000_000_000  # where FakeClock begins


@pytest.fixture
def gate(world: World, clock: FakeClock) -> Iterator[Gate]:
    ring = Keyring(
        [
            public("ada", roles=("finance",)),
            public("bob", roles=("ops",)),
            public("eve", roles=("finance",), from_us=NOW_US + 3_600_000_000),
            public("mia", roles=("finance",), until_us=NOW_US),
            public("tom", roles=("finance",), revoked_us=NOW_US),
        ]
    )
    policy = ScriptedPolicy(otherwise=require_approval("big", requirement=FINANCE))
    with world.gate(policy=policy, clock=clock, keyring=ring) as opened_:
        yield opened_


def held(gate: Gate) -> Held:
    outcome = gate.call(opened(gate), "refund", {"account": "a1", "cents": 1}, key="k")
    assert isinstance(outcome, Held)
    return outcome


def said(gate: Gate, asked: Held, name: str, **changed: Any) -> str:
    """Vote as somebody, with a signature unless another one is given; say what became of it."""
    by = changed.pop("by", f"person:{name}")
    given: dict[str, Any] = {
        "signed": sign_vote(signer(name), approval=asked.approval.digest, verdict="approve", approver=by)
    }
    try:
        return gate.approvals.approve(
            asked.approval.id, digest=asked.approval.digest, by=by, **TENANT, **given | changed
        ).state
    except VoteRefused as error:
        return error.reason


def test_a_signed_vote_counts_with_the_roles_of_its_key(gate: Gate, world: World) -> None:
    asked = held(gate)
    assert said(gate, asked, "ada", roles=["whatever the surface says"]) == "granted"
    (voted,) = (event for event in world.events(asked.action) if event.type == "voted")
    assert voted.body["roles"] == ["finance"]
    assert voted.body["key"] == signer("ada").hash.hex()
    assert not world.damage()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bob", "no_role"), ("eve", "key_not_yet_valid"), ("mia", "key_expired"), ("tom", "key_revoked"),
        ("stranger", "unknown_key"),
    ],
)  # fmt: skip
def test_a_key_that_may_not_is_refused_and_its_roles_are_never_the_surfaces(
    gate: Gate, world: World, name: str, reason: str
) -> None:
    asked = held(gate)
    assert said(gate, asked, name, roles=["finance"]) == reason
    assert world.value("SELECT count(*) FROM agentgate_votes") == 0
    assert said(gate, asked, "ada") == "granted"


def test_a_key_is_judged_by_when_its_vote_comes(gate: Gate, clock: FakeClock) -> None:
    asked = held(gate)
    assert said(gate, asked, "eve") == "key_not_yet_valid"
    clock.advance(timedelta(hours=1))
    assert said(gate, asked, "eve") == "granted"


def test_without_a_signature_under_anothers_name_or_with_another_verdict_it_counts_for_nothing(
    gate: Gate, world: World
) -> None:
    asked = held(gate)
    digest = asked.approval.digest
    assert said(gate, asked, "ada", signed=None) == "unsigned"
    assert said(gate, asked, "ada", by="person:bob") == "wrong_approver"
    assert (
        said(
            gate,
            asked,
            "bob",
            signed=sign_vote(signer("ada"), approval=digest, verdict="approve", approver="person:ada"),
            by="person:bob",
        )
        == "wrong_approver"
    )
    no = sign_vote(signer("ada"), approval=digest, verdict="reject", approver="person:ada")
    assert said(gate, asked, "ada", signed=no) == "wrong_verdict"
    assert world.value("SELECT count(*) FROM agentgate_votes") == 0


@pytest.mark.parametrize("field", ["nonce", "signature", "key"])
def test_a_changed_byte_of_a_signed_vote_is_refused(gate: Gate, world: World, field: str) -> None:
    asked = held(gate)
    good = sign_vote(signer("ada"), approval=asked.approval.digest, verdict="approve", approver="person:ada")
    fields = {name: getattr(good, name) for name in ("approval", "verdict", "approver", "key", "nonce", "signature")}
    was = fields[field]
    bad = SignedVote(**fields | {field: bytes([was[0] ^ 1]) + was[1:]})
    assert said(gate, asked, "ada", signed=bad) == ("unknown_key" if field == "key" else "bad_signature")
    assert world.value("SELECT count(*) FROM agentgate_votes") == 0
    assert said(gate, asked, "ada", signed=good) == "granted"


def test_a_revocation_in_the_ledger_takes_a_key_of_the_file_at_once(gate: Gate) -> None:
    asked = held(gate)
    gate.keys.revoke(signer("ada").hash, by="ops")
    assert said(gate, asked, "ada") == "key_revoked"


def test_a_gate_without_a_keyring_takes_no_signed_vote(world: World, gate: Gate) -> None:
    asked = held(gate)
    with world.gate(policy=ScriptedPolicy(), keyring=None) as without:
        assert said(without, asked, "ada") == "no_keyring"
        assert said(without, asked, "ada", signed=None) == "unsigned"
    assert said(gate, asked, "ada") == "granted"


def test_a_gate_takes_a_keyring_or_the_file_that_holds_one(world: World, tmp_path: Path) -> None:
    policy = ScriptedPolicy(otherwise=require_approval("big", requirement=FINANCE))
    file = keyring_file(tmp_path / "keys.json", entry("ada"))
    with world.gate(policy=policy, keyring=file) as gate:
        assert said(gate, held(gate), "ada") == "granted"
    with pytest.raises(Misuse, match="keyring: give a Keyring, or the path of its file"):
        world.gate(policy=policy, keyring=7)
    with pytest.raises(KeyringRefused):
        world.gate(policy=policy, keyring=keyring_file(tmp_path / "bad.json", {"public": "00"}))


def test_a_refused_vote_leaves_a_line_and_no_event(gate: Gate, world: World, caplog: pytest.LogCaptureFixture) -> None:
    asked = held(gate)
    before = len(world.events())
    with caplog.at_level("WARNING", "agentgate"):
        said(gate, asked, "bob", note="personal")
    (line,) = caplog.records
    assert (line.getMessage(), line.approval, line.reason) == ("vote refused", asked.approval.id, "no_role")  # type: ignore[attr-defined]
    assert "personal" not in str(line.__dict__)
    assert len(world.events()) == before
