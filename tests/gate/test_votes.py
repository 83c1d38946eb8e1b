"""Votes name the approval and the digest that was shown, and are decided in one transaction (design §7)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agentgate import (
    Done,
    Failed,
    Gate,
    Held,
    Misuse,
    NoEffect,
    NotFound,
    NotPossible,
    Question,
    Refused,
    Requirement,
    VoteRefused,
    require_approval,
)
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import PRINCIPAL, World, gates, grant, named, opened, vote

ONE = {"account": "a1", "cents": 1}
TENANT: Any = {"tenant": "acme"}


def asking(requirement: Requirement) -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=require_approval("big", requirement=requirement))


ASK = asking(Requirement())
TWO = asking(Requirement(quorum=2))


def held(gate: Gate, *, key: str = "k", tool: str = "refund", tenant: str = "acme") -> Held:
    outcome = gate.call(opened(gate, tenant=tenant), tool, ONE if tool == "refund" else {}, key=key)
    assert isinstance(outcome, Held)
    return outcome


def refused(work: Callable[[], object], world: World) -> str:
    """Say why a vote is refused; whatever was refused left no vote behind."""
    before = world.value("SELECT count(*) FROM agentgate_votes")
    with pytest.raises(VoteRefused) as error:
        work()
    assert world.value("SELECT count(*) FROM agentgate_votes") == before
    assert error.value.remedy
    return error.value.reason


# --- what is asked, said and decided ---------------------------------------------------------------------------


def test_what_is_shown_is_approved_by_two_and_runs_once(world: World) -> None:
    with world.gate(policy=TWO) as gate:
        asked = held(gate)
        shown = gate.approvals.show(asked.approval.id, **TENANT)
        assert (shown.id, shown.digest, shown.shown) == (asked.approval.id, asked.approval.digest, asked.approval.shown)
        assert (shown.action, shown.run_name, shown.principal, shown.tool) == (
            asked.action,
            "ticket-1",
            PRINCIPAL,
            "refund",
        )
        first = gate.approvals.approve(
            shown.id, digest=shown.digest, by="ada", roles=["lead"], note="called the customer", **TENANT
        )
        assert (first.state, [one.approver for one in first.votes]) == ("pending", ["ada"])
        assert isinstance(gate.execute(asked.action, **TENANT), Held)
        second = gate.approvals.approve(shown.id, digest=shown.digest, by="bob", **TENANT)
        assert (second.state, second.votes[0].roles) == ("granted", ("lead",))
        assert second.until is not None
        assert [one.id for one in gate.approvals.unused()] == [shown.id]
        assert isinstance(gate.execute(asked.action, **TENANT), Done)
        assert gate.approvals.show(shown.id, **TENANT).state == "used"
        assert list(gate.approvals.unused()) == []
    assert world.words(asked.action) == ["proposed", "voted", "voted", "approved", "started", "succeeded"]
    assert world.downstream.total == 1
    assert b"called the customer" in bytes(
        world.value("SELECT content FROM agentgate_payloads WHERE kind = 'texts' AND content LIKE '%called%'")
    )
    assert not world.damage()


def test_approved_names_the_votes_that_count_and_ends_when_the_requirement_says(world: World) -> None:
    with world.gate(policy=asking(Requirement(quorum=2, grant=timedelta(minutes=3)))) as gate:
        asked = held(gate)
        vote(gate, asked, "eve")
        gate.approvals.revoke(asked.approval.id, digest=asked.approval.digest, by="person:eve", **TENANT)
        grant(gate, asked)
    events = {event.type: event for event in world.events(asked.action)}
    votes = [event.body["vote"] for event in world.events(asked.action) if event.type == "voted"]
    assert events["approved"].body["votes"] == votes[1:]
    assert events["approved"].body["until_us"] == events["approved"].at_us + 180_000_000
    assert not world.damage()


def test_one_no_ends_it_for_good(world: World) -> None:
    with world.gate(policy=TWO) as gate:
        asked = held(gate)
        vote(gate, asked, "ada")
        assert vote(gate, asked, "bob", "reject").state == "rejected"
        assert refused(lambda: vote(gate, asked, "eve"), world) == "rejected"
        again = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(again, Refused)
        assert again.reason == "rejected"
    (no,) = (event for event in world.events(asked.action) if event.type == "rejected")
    assert (no.body["by"], no.body["vote"]) == ("person:bob", world.events(asked.action)[2].body["vote"])
    assert world.downstream.total == 0
    assert not world.damage()


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_the_same_vote_again_is_one_before_and_after_it_decides(world: World, verdict: str) -> None:
    with world.gate(policy=asking(Requirement(quorum=2 if verdict == "approve" else 1))) as gate:
        asked = held(gate)
        once = vote(gate, asked, "ada", verdict)
        assert vote(gate, asked, "ada", verdict) == once
        if verdict == "approve":
            granted = vote(gate, asked, "bob")
            assert granted.state == "granted"
            assert vote(gate, asked, "ada") == granted
            assert refused(lambda: vote(gate, asked, "eve"), world) == "granted"
    assert world.words(asked.action).count("voted") == (2 if verdict == "approve" else 1)


def test_a_contrary_vote_is_an_error_until_the_first_is_taken_back(world: World) -> None:
    with world.gate(policy=TWO) as gate:
        asked = held(gate)
        vote(gate, asked, "ada")
        assert refused(lambda: vote(gate, asked, "ada", "reject"), world) == "contrary"
        gate.approvals.revoke(asked.approval.id, digest=asked.approval.digest, by="person:ada", **TENANT)
        assert vote(gate, asked, "ada", "reject").state == "rejected"
    assert not world.damage()


def test_what_was_taken_back_counts_no_more_and_may_be_given_again(world: World) -> None:
    with world.gate(policy=TWO) as gate:
        asked = held(gate)
        vote(gate, asked, "ada")
        back = gate.approvals.revoke(
            asked.approval.id, digest=asked.approval.digest, by="person:ada", note="hm", **TENANT
        )
        assert (back.state, [one.counted for one in back.votes]) == ("pending", [False])
        assert vote(gate, asked, "bob").state == "pending"
        assert vote(gate, asked, "ada").state == "granted"
        with pytest.raises(VoteRefused, match="other_digest"):
            gate.approvals.revoke(asked.approval.id, digest="0" * 64, by="person:ada", **TENANT)
    assert not world.damage()


def test_who_has_no_vote_takes_none_back(world: World) -> None:
    with world.gate(policy=TWO) as gate:
        asked = held(gate)
        vote(gate, asked, "ada")
        with pytest.raises(NotPossible, match="has no vote on it; to end it, reject it"):
            gate.approvals.revoke(asked.approval.id, digest=asked.approval.digest, by="person:bob", **TENANT)


# --- who may ---------------------------------------------------------------------------------------------------


def test_the_proposer_does_not_approve_its_own_and_may_deny_it(world: World) -> None:
    with world.gate(policy=asking(Requirement(roles=("finance",)))) as gate:
        asked = held(gate)
        say: dict[str, Any] = {"digest": asked.approval.digest, "by": PRINCIPAL, **TENANT}
        assert refused(lambda: gate.approvals.approve(asked.approval.id, roles=["finance"], **say), world) == (
            "own_request"
        )
        assert gate.approvals.reject(asked.approval.id, **say).state == "rejected"


def test_the_proposer_may_approve_where_the_requirement_says_so(world: World) -> None:
    with world.gate(policy=asking(Requirement(proposer=True))) as gate:
        asked = held(gate)
        said = gate.approvals.approve(asked.approval.id, digest=asked.approval.digest, by=PRINCIPAL, **TENANT)
        assert said.state == "granted"
    assert not world.damage()


def test_only_those_with_one_of_the_roles_are_heard(world: World) -> None:
    with world.gate(policy=asking(Requirement(roles=("finance", "lead")))) as gate:
        asked = held(gate)
        assert refused(lambda: vote(gate, asked, "ada", "approve", roles=["ops"]), world) == "no_role"
        assert refused(lambda: vote(gate, asked, "ada", "reject", roles=["ops"]), world) == "no_role"
        assert vote(gate, asked, "ada", roles=["ops", "lead"]).state == "granted"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"by": ""}, "by: give a text"),
        ({"by": "cafe\u0301"}, "by: it is not in Unicode's composed form"),
        ({"by": "a\nb"}, "by: it holds control characters"),
        ({"digest": "00"}, "digest: give the 64 hex digits"),
        ({"digest": b"0" * 32}, "digest: give the 64 hex digits"),
        ({"roles": "finance"}, "roles: give a list"),
        ({"roles": [1]}, "roles: give a text"),
        ({"signed": object()}, "signed: give what agentgate.sign_vote returned"),
        ({"note": 7}, "note: give a text"),
        ({"tenant": "$ledger"}, "tenant: names that begin with"),
    ],
)
def test_what_is_no_vote_says_which_field_and_why(world: World, given: dict[str, Any], what: str) -> None:
    with world.gate(policy=ASK) as gate:
        asked = held(gate)
        with pytest.raises(Misuse, match=what):
            gate.approvals.approve(
                asked.approval.id, **{"digest": asked.approval.digest, "by": "ada", **TENANT} | given
            )
        assert vote(gate, asked, "ada").state == "granted"


def test_another_tenants_question_and_one_that_never_was_are_not_found(world: World) -> None:
    with world.gate(policy=ASK) as gate:
        asked = held(gate)
        for id_, tenant in ((asked.approval.id, "umbrella"), (asked.action, "acme"), ("0", "acme")):
            with pytest.raises(NotFound):
                gate.approvals.show(id_, tenant=tenant)
            for work in (gate.approvals.approve, gate.approvals.reject, gate.approvals.revoke):
                with pytest.raises(NotFound):
                    work(id_, tenant=tenant, digest=asked.approval.digest, by="ada")
    assert world.words(asked.action) == ["proposed"]


# --- taking a grant back ---------------------------------------------------------------------------------------


def _revoked(gate: Gate, asked: Held, by: str = "person:eve") -> Question:
    return gate.approvals.revoke(asked.approval.id, digest=asked.approval.digest, by=by, **TENANT)


def test_a_grant_revoked_before_the_claim_stops_it_for_good(world: World) -> None:
    with gates(world, policy=ASK) as (one, other):
        asked = held(one)
        grant(one, asked)
        assert _revoked(other, asked).state == "revoked"
        assert _revoked(one, asked).state == "revoked"
        outcome = one.call(opened(one), "refund", ONE, key="k")
        assert isinstance(outcome, Refused)
        assert outcome.reason == "grant_revoked"
        assert refused(lambda: vote(one, asked, "ada"), world) == "revoked"
    assert world.words(asked.action).count("grant_revoked") == 1
    assert world.downstream.total == 0
    assert not world.damage()


def test_a_grant_that_was_used_is_never_said_to_be_revoked(world: World) -> None:
    seen: list[str] = []

    def act() -> None:
        with pytest.raises(VoteRefused) as error:
            _revoked(gate, asked)
        seen.append(error.value.reason)

    with world.gate(named("act", act), policy=ASK) as gate:
        asked = held(gate, tool="act")
        grant(gate, asked)
        assert isinstance(gate.execute(asked.action, **TENANT), Done)
        assert refused(lambda: _revoked(gate, asked), world) == "used"
    assert seen == ["used"]
    assert "grant_revoked" not in world.words(asked.action)


def test_a_grant_that_a_failure_gave_back_can_be_taken_back_and_the_failure_stays(world: World) -> None:
    def act() -> None:
        raise NoEffect("not yet")

    with world.gate(named("act", act), policy=ASK) as gate:
        asked = held(gate, tool="act")
        grant(gate, asked)
        assert isinstance(gate.execute(asked.action, **TENANT), Failed)
        assert _revoked(gate, asked).state == "revoked"
        assert world.state(asked.action) == "FAILED"
        again = gate.execute(asked.action, retry=True, **TENANT)
        assert isinstance(again, Held)
        assert again.approval.id != asked.approval.id
    assert not world.damage()


def test_what_is_asked_anew_voids_what_was_granted_and_votes_on_it(world: World) -> None:
    other = require_approval("bigger", requirement=Requirement(quorum=3))
    first = require_approval("big", requirement=Requirement(quorum=2))
    with world.gate(policy=ScriptedPolicy(first, other)) as gate:
        asked = held(gate)
        grant(gate, asked)
        again = gate.execute(asked.action, **TENANT)
        assert isinstance(again, Held)
        assert refused(lambda: vote(gate, asked, "eve"), world) == "void"
        assert refused(lambda: _revoked(gate, asked), world) == "void"
        assert gate.approvals.show(asked.approval.id, **TENANT).state == "void"
        assert len(gate.approvals.show(asked.approval.id, **TENANT).votes) == 2  # they remain as history
        assert gate.approvals.show(again.approval.id, **TENANT).votes == ()


def test_a_cancelled_action_takes_no_votes(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ASK, clock=clock) as gate:
        asked = held(gate)
        gate.cancel(asked.action, by="ada", **TENANT)
        assert refused(lambda: vote(gate, asked, "ada"), world) == "void"
