"""A vote is good for exactly what was shown: one byte elsewhere and it is refused, unused, good where it belongs."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentgate import Damaged, Gate, Held, NotFound, Refused, Requirement, SignedVote, VoteRefused, require_approval
from agentgate.action import Key, action_digest
from agentgate.approval import approval_digest, requirement_digest
from agentgate.signing import sign_vote
from agentgate.testing import FakeClock, ScriptedPolicy
from support.signers import signer
from support.worlds import World, grant, made, named, opened, vote

ONE: dict[str, Any] = {"account": "a1", "cents": 1250}
SIGNED = Requirement(signed=True)
TENANT: Any = {"tenant": "acme"}
ADA = "person:ada"


def asking(requirement: Requirement = SIGNED) -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=require_approval("big", "look", requirement=requirement))


def signed(held: Held, verdict: Any = "approve") -> SignedVote:
    return sign_vote(signer("ada"), approval=held.approval.digest, verdict=verdict, approver=ADA)


def sent(gate: Gate, held: Held, ballot: SignedVote, *, digest: str | None = None, tenant: str = "acme") -> str:
    """Send a vote to a question; say what became of it."""
    shown = held.approval.digest if digest is None else digest
    try:
        return gate.approvals.approve(held.approval.id, digest=shown, by=ADA, signed=ballot, tenant=tenant).state
    except VoteRefused as error:
        return error.reason


def refund(account: str, cents: int) -> dict[str, int]:
    return {account: cents}


def refunds(account: str, cents: int) -> dict[str, int]:
    """Another description is another spec."""
    return {account: cents}


# --- what one question binds, another one does not --------------------------------------------------------------


class Two:
    """Two held calls that differ in one byte of one thing that is bound."""

    def __init__(self, folder: Path, field: str) -> None:
        self.world, self.field = made(folder), field

    @contextmanager
    def asked(self) -> Iterator[tuple[Gate, Held, Held]]:
        """Hold both in one ledger, as far as one ledger can."""
        tools = [named("refund", refund), named("refunD", refund, namespace="other")]
        first = require_approval("big", "look", requirement=SIGNED)
        second = {
            "requirement": require_approval("big", "look", requirement=Requirement(signed=True, roles=("finance",))),
            "presentation": require_approval("big", "loOk", requirement=SIGNED),
            "expiry": require_approval(
                "big", "look", requirement=Requirement(signed=True, question=timedelta(hours=24, microseconds=1))
            ),
        }.get(self.field, first)
        clock = FakeClock(tick=timedelta(0))
        with self.world.gate(*tools, policy=ScriptedPolicy(first, second), clock=clock) as gate:
            clock.advance(timedelta(seconds=1))
            one = self.hold(gate)
            if self.field == "spec":
                gate.register(named("refund", refunds), replace=True)
            clock.advance(timedelta(milliseconds=1))
            yield gate, one, self.hold(gate, self.field)

    def hold(self, gate: Gate, field: str = "") -> Held:
        tenant = "acmE" if field == "tenant" else "acme"
        run = opened(gate, "ticket-2" if field == "run" else "ticket-1", tenant=tenant)
        arguments = {
            "account": "a2" if field == "argument account" else "a1",
            "cents": 1251 if field == "argument cents" else 1250,
        }
        outcome = gate.call(
            run,
            "refunD" if field == "tool" else "refund",
            arguments,
            key="kez" if field == "key" else "key" if field == "" else f"key {field}",
            namespace="other" if field == "tool" else "",
            principal="agent:Support" if field == "principal" else None,
            provenance={"thread": 8 if field == "provenance" else 7},
        )
        assert isinstance(outcome, Held)
        return outcome


FIELDS = (
    "tenant", "principal", "run", "tool", "spec", "argument account", "argument cents", "provenance", "key",
    "requirement", "presentation", "expiry",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_vote_on_one_call_is_none_on_a_call_with_another_byte(tmp_path: Path, field: str) -> None:
    """By its own digest, or by that of what it was not given on: refused, and as good as before where it belongs."""
    two = Two(tmp_path, field)
    tenant = "acmE" if field == "tenant" else "acme"
    with two.asked() as (gate, one, other):
        ballot = signed(one)
        assert one.approval.digest != other.approval.digest
        assert sent(gate, other, ballot, tenant=tenant) == "other_digest"
        assert sent(gate, other, ballot, digest=one.approval.digest, tenant=tenant) == "other_digest"
        assert sent(gate, one, ballot, digest=other.approval.digest) == "other_digest"
        assert two.world.value("SELECT count(*) FROM agentgate_votes") == 0
        assert sent(gate, one, ballot) == "granted"
        assert two.world.state(other.action) == "HELD"
    assert not two.world.damage()


def test_a_vote_is_none_on_a_later_revision_of_the_same_key(world: World, clock: FakeClock) -> None:
    with world.gate(policy=asking(), clock=clock) as gate:
        run = opened(gate)
        one = gate.call(run, "refund", ONE, key="k")
        assert isinstance(one, Held)
        clock.advance(timedelta(days=1))
        assert isinstance(gate.execute(one.action, **TENANT), Refused)
        other = gate.call(run, "refund", ONE, key="k")
        assert isinstance(other, Held)
        assert sent(gate, other, signed(one)) == "other_digest"
        assert sent(gate, other, signed(one), digest=one.approval.digest) == "other_digest"
        assert sent(gate, one, signed(one)) == "expired"
    assert world.value("SELECT count(*) FROM agentgate_votes") == 0


def test_a_vote_is_none_in_another_ledger_made_alike(tmp_path: Path) -> None:
    """Ids, salts and times are the same in both: the ledgers' own ids alone are not."""
    asked: list[tuple[World, Held]] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        world = made(tmp_path / name)
        with world.gate(policy=asking(), clock=FakeClock()) as gate:
            held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        asked.append((world, held))
    (_, one), (there, other) = asked
    assert (one.approval.id, one.approval.expires_at) == (other.approval.id, other.approval.expires_at)
    with there.gate(policy=asking(), clock=FakeClock()) as gate:
        assert sent(gate, other, signed(one)) == "other_digest"
        assert sent(gate, other, signed(one), digest=one.approval.digest) == "other_digest"
    assert there.value("SELECT count(*) FROM agentgate_votes") == 0


_BOUND: dict[str, Any] = {
    "ledger": "l1", "run": "r1", "tenant": "acme", "principal": "agent:a", "namespace": "s", "tool": "refund",
    "spec": hashlib.sha256(b"spec").digest(), "arguments": hashlib.sha256(b"arguments").digest(),
    "key": Key(source="caller", text="k"), "revision": 1, "provenance": hashlib.sha256(b"provenance").digest(),
}  # fmt: skip
_OTHERWISE: dict[str, Any] = {
    "ledger": "l2", "run": "r2", "tenant": "acmf", "principal": "agent:b", "namespace": "t", "tool": "refune",
    "spec": hashlib.sha256(b"sped").digest(), "arguments": hashlib.sha256(b"argumentt").digest(),
    "key": Key(source="caller", text="l"), "revision": 2, "provenance": None,
}  # fmt: skip


def _shown(requirement: Requirement = SIGNED, **changed: Any) -> bytes:
    asked: dict[str, Any] = {"ledger": changed.get("ledger", "l1"), "id": "q", "presentation": bytes(32)}
    asked |= {"expires_at_us": 9} | {
        name: changed.pop(name) for name in ("presentation", "expires_at_us", "id") if name in changed
    }
    action = action_digest(**_BOUND | changed)
    return approval_digest(**asked, requirement=requirement_digest(requirement, action=action))


def test_every_single_thing_that_is_bound_changes_what_a_vote_must_name() -> None:
    whole = [_shown(), *(_shown(**{name: value}) for name, value in _OTHERWISE.items())]
    whole += [_shown(presentation=bytes(31) + b"\1"), _shown(expires_at_us=10), _shown(id="r")]
    changed = ({"quorum": 2}, {"roles": ("a",)}, {"proposer": True}, {"signed": False}, {"obligations": ("x",)})
    whole += [_shown(Requirement(**{"signed": True} | one)) for one in changed]
    assert len(set(whole)) == len(whole)


# --- a byte changed in the database -----------------------------------------------------------------------------

_ACTION = ("tenant", "principal", "tool", "spec", "key_text", "run", "digest", "namespace", "revision")
_ASKED = ("requirement", "presentation", "digest", "expires_at_us", "demands", "grant_us", "kind", "attempt")
EDITS: dict[str, tuple[str, Any]] = {
    **{f"actions.{name}": ("agentgate_actions", name) for name in _ACTION},
    **{f"approvals.{name}": ("agentgate_approvals", name) for name in _ASKED},
}


def _changed(value: Any, column: str) -> Any:
    if column == "kind":
        return "question"
    if value is None:
        return 1
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        other = value.replace(b'"quorum":1', b'"quorum":2')
        return other if other != value else value[:-1] + bytes([value[-1] ^ 1])
    return value[:-1] + ("z" if value[-1:] != "z" else "y")


@pytest.mark.parametrize("edit", EDITS)
def test_a_byte_changed_in_a_row_is_damage_and_the_vote_is_not_used_up(world: World, edit: str) -> None:
    table, column = EDITS[edit]
    with world.gate(policy=asking()) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k", provenance={"thread": 7})
        assert isinstance(held, Held)
        was = world.value(f"SELECT {column} FROM {table}")
        world.sql(f"UPDATE {table} SET {column} = ?", _changed(was, column))
        ballot = signed(held)
        # Another tenant's, another run's: there is no such question, and nothing more is said.
        with pytest.raises(NotFound if edit in {"actions.tenant", "actions.run"} else Damaged):
            gate.approvals.approve(held.approval.id, digest=held.approval.digest, by=ADA, signed=ballot, **TENANT)
        assert world.value("SELECT count(*) FROM agentgate_votes") == 0
        world.sql(f"UPDATE {table} SET {column} = ?", was)
        assert sent(gate, held, ballot) == "granted"
    assert not world.damage()


@pytest.mark.parametrize("kind", ["presentation", "arguments"])
def test_a_byte_changed_in_what_people_see_or_what_would_run_is_damage(world: World, kind: str) -> None:
    with world.gate(policy=asking()) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        where = "FROM agentgate_payloads WHERE kind = ?"
        (content,) = world.sql(f"SELECT content {where}", kind)[0]
        world.sql(
            "UPDATE agentgate_payloads SET content = ? WHERE kind = ?", bytes(content).replace(b"a1", b"a2"), kind
        )
        with pytest.raises(Damaged):
            gate.approvals.approve(held.approval.id, digest=held.approval.digest, by=ADA, signed=signed(held), **TENANT)
        world.sql("UPDATE agentgate_payloads SET content = ? WHERE kind = ?", content, kind)
        assert sent(gate, held, signed(held)) == "granted"


def test_a_vote_that_somebody_wrote_beside_the_gate_helps_nobody(world: World) -> None:
    two = Requirement(quorum=2)
    with world.gate(policy=asking(two)) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        vote(gate, held, "ada")
        copied = "approval, n + 1, run, digest, verdict, 'person:eve', key, nonce, signature, counted, at_us, roles"
        world.sql(f"INSERT INTO agentgate_votes SELECT {copied} FROM agentgate_votes")
        with pytest.raises(Damaged):
            vote(gate, held, "bob")
        assert world.state(held.action) == "HELD"
        world.sql("DELETE FROM agentgate_votes WHERE approver = 'person:eve'")
        world.sql("UPDATE agentgate_votes SET approver = 'person:mia'")
        with pytest.raises(Damaged):
            vote(gate, held, "bob")
        world.sql("UPDATE agentgate_votes SET approver = 'person:ada'")
        assert vote(gate, held, "bob").state == "granted"


# --- the same vote, sent again, later or elsewhere --------------------------------------------------------------


def _end(how: str, gate: Gate, held: Held, clock: FakeClock) -> None:
    """Let a question come to its end."""
    if how in {"used", "grant revoked", "grant over"}:
        grant(gate, held)
    match how:
        case "used":
            gate.execute(held.action, **TENANT)
        case "grant revoked":
            gate.approvals.revoke(held.approval.id, digest=held.approval.digest, by="person:bob", **TENANT)
        case "grant over":
            clock.advance(timedelta(minutes=15))
        case "question over":
            clock.advance(timedelta(days=1))
        case "rejected":
            vote(gate, held, "bob", "reject")
        case "cancelled":
            gate.cancel(held.action, by="person:bob", **TENANT)
        case "closed":
            gate.close_run(opened(gate), by="person:bob")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("used", "used"), ("grant revoked", "revoked"), ("grant over", "expired"), ("question over", "expired"),
        ("rejected", "rejected"), ("cancelled", "void"), ("closed", "void"),
    ],
)  # fmt: skip
def test_a_signed_vote_kept_and_sent_later_is_refused(world: World, clock: FakeClock, how: str, reason: str) -> None:
    with world.gate(policy=asking(), clock=clock) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        ballot = signed(held)
        _end(how, gate, held, clock)
        votes = world.value("SELECT count(*) FROM agentgate_votes")
        assert sent(gate, held, ballot) == reason
        assert sent(gate, held, ballot) == reason
        assert world.value("SELECT count(*) FROM agentgate_votes") == votes
        effects = world.downstream.total
        gate.execute(held.action, **TENANT)
        assert world.downstream.total == effects
    assert not world.damage()


def test_a_signed_vote_sent_again_is_the_same_vote(world: World) -> None:
    with world.gate(policy=asking(Requirement(quorum=2, signed=True))) as gate:
        held = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(held, Held)
        ballot = signed(held)
        assert [sent(gate, held, ballot) for _ in range(5)] == ["pending"] * 5
        assert sent(gate, held, signed(held)) == "pending"  # signed anew, by the same person: the same
    assert world.value("SELECT count(*) FROM agentgate_votes") == 1


def test_a_signed_vote_that_was_taken_back_counts_no_more_whoever_sends_it(world: World) -> None:
    two = asking(Requirement(quorum=2, signed=True))
    with world.gate(policy=two) as gate:
        asked = gate.call(opened(gate), "refund", ONE, key="two")
        assert isinstance(asked, Held)
        ballot = signed(asked)
        assert sent(gate, asked, ballot) == "pending"
        gate.approvals.revoke(asked.approval.id, digest=asked.approval.digest, by=ADA, **TENANT)
        assert sent(gate, asked, ballot) == "revoked"
        assert sent(gate, asked, signed(asked)) == "pending"
        assert vote(gate, asked, "bob").state == "granted"
    assert not world.damage()


def test_a_policy_that_goes_to_another_question_and_back_asks_anew(world: World) -> None:
    """A, B, A: what was granted to the first A is not granted to the second."""
    a = require_approval("big", requirement=SIGNED)
    b = require_approval("big", requirement=Requirement(signed=True, quorum=2))
    with world.gate(policy=ScriptedPolicy(a, b, a, a)) as gate:
        first = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(first, Held)
        ballot = signed(first)
        assert sent(gate, first, ballot) == "granted"
        second = gate.execute(first.action, **TENANT)
        assert isinstance(second, Held)
        assert sent(gate, second, ballot, digest=first.approval.digest) == "other_digest"
        grant(gate, second)
        third = gate.execute(first.action, **TENANT)
        assert isinstance(third, Held)
        assert third.approval.digest not in {first.approval.digest, second.approval.digest}
        assert sent(gate, third, ballot) == "other_digest"
        assert sent(gate, first, ballot) == "void"
        assert world.downstream.total == 0
        assert sent(gate, third, signed(third)) == "granted"
        gate.execute(first.action, **TENANT)
    assert world.downstream.total == 1
    assert not world.damage()
