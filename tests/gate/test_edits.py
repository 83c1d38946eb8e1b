"""An edit by an approver is a new action through everything: checked, judged and asked about, in the old place."""

from datetime import timedelta
from typing import Any

import pytest

from agentgate import (
    Done,
    Failed,
    Gate,
    Held,
    KeyConflict,
    Misuse,
    NoEffect,
    NotFound,
    NotPossible,
    Proposal,
    Refused,
    Requirement,
    allow,
    deny,
    require_approval,
)
from agentgate.errors import VoteRefused
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, grant, named, opened

ONE = {"account": "a1", "cents": 1250}
LESS = {"account": "a1", "cents": 900}
OTHER = {"account": "a2", "cents": 900}
ASK = require_approval("big", "over the limit")
EDITOR = "person:ada"


def edit(gate: Gate, held: Held, arguments: object = LESS, **more: Any) -> Proposal:
    given = {"by": EDITOR, "digest": held.approval.digest, "note": "", "tenant": "acme"} | more
    return gate.approvals.edit(held.approval.id, arguments=arguments, **given)


def ask(gate: Gate, key: str | None = "k", arguments: object = ONE) -> Held:
    outcome = gate.call(opened(gate), "refund", arguments, key=key)
    assert isinstance(outcome, Held), outcome
    return outcome


def test_an_edit_is_a_new_action_linked_to_the_old_which_it_takes_the_place_of(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        made = edit(gate, held, note="enough")
    assert isinstance(made.outcome, Held)
    assert made.action != held.action
    assert (made.key, made.revision, made.edits) == ("k", 2, held.action)
    assert made.outcome.approval.digest != held.approval.digest
    assert "900" in made.outcome.approval.shown
    assert f"edited by  {EDITOR}" in " ".join(made.outcome.approval.shown.splitlines())
    assert world.words(held.action) == ["proposed", "superseded"]
    (event,) = world.events(made.action)
    assert event.body["edits"] == {"action": held.action, "by": EDITOR}
    assert world.sql("SELECT edits, edited_by, principal FROM agentgate_actions WHERE id = ?", made.action) == [
        (held.action, EDITOR, "agent:support")
    ]
    assert not world.damage()


def test_the_editors_note_lies_beside_the_edit_as_a_payload(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, ASK)) as gate:
        made = edit(gate, ask(gate), note="too much")
    notes = world.sql("SELECT content FROM agentgate_payloads WHERE kind = 'texts' ORDER BY n DESC")
    assert notes[0] == (b'{"note":"too much","reasons.0":"over the limit"}',)
    assert b"too much" not in b"".join(row[0] for row in world.sql("SELECT event FROM agentgate_events"))
    assert made.state == "HELD"


def test_a_reviewers_edit_that_turns_the_call_into_a_stricter_one_is_asked_of_its_policy(world: World) -> None:
    strict = require_approval("huge", requirement=Requirement(quorum=2, roles=("finance",)))
    policy = ScriptedPolicy(ASK, strict)
    with world.gate(policy=policy) as gate:
        made = edit(gate, ask(gate), {"account": "vault", "cents": 9})
        assert policy.requests[1].arguments == {"account": "vault", "cents": 9}
        assert isinstance(made.outcome, Held)
        assert made.outcome.approval.requirement.quorum == 2
        assert isinstance(gate.execute(made), Held)


def test_a_policy_that_denies_the_edit_leaves_the_question_as_it_was(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, deny("no_way"), otherwise=ASK)) as gate:
        held = ask(gate)
        made = edit(gate, held)
        assert isinstance(made.outcome, Refused)
        assert made.outcome.reason == "policy_denied"
        assert made.edits == held.action
        assert world.state(held.action) == "HELD"
        again = ask(gate)
        assert (again.action, again.approval) == (held.action, held.approval)
    assert world.words(held.action) == ["proposed"]
    assert not world.damage()


def test_what_the_schema_refuses_takes_nobodys_place(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK)) as gate:
        held = ask(gate)
        made = edit(gate, held, {"account": "a1"}, note="why")
        assert isinstance(made.outcome, Refused)
        assert made.outcome.reason == "invalid_arguments"
        assert world.state(held.action) == "HELD"
    assert not world.damage()


def test_an_edit_that_its_policy_allows_runs_and_the_loop_is_told_that_other_arguments_did(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, otherwise=allow())) as gate:
        edit(gate, ask(gate))
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(outcome, Done)
        assert outcome.observation.value == {"cents": 900}
        assert outcome.observation.notes == ("edited",)
        replayed = gate.call(opened(gate), "refund", ONE, key="k")
        assert isinstance(replayed, Done)
        assert replayed.observation.notes == ("edited",)
    assert len(world.downstream.arrivals) == 1
    assert not world.damage()


def test_the_loop_that_comes_back_with_its_first_arguments_gets_what_became_of_edits_of_edits(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, ASK, ASK, otherwise=allow())) as gate:
        held = ask(gate)
        second = edit(gate, held)
        assert isinstance(second.outcome, Held)
        third = edit(gate, second.outcome, OTHER, by="person:bob")
        for arguments in (ONE, LESS, OTHER):
            proposal = gate.propose(opened(gate), "refund", arguments, key="k")
            assert (proposal.action, proposal.repeated) == (third.action, True)
        with pytest.raises(KeyConflict):
            gate.propose(opened(gate), "refund", {"account": "a9", "cents": 1}, key="k")
        batch = gate.propose_many(opened(gate), [])
        assert batch == []


def test_an_edit_that_nobody_answered_lets_the_loop_ask_again_with_its_own_arguments(
    world: World, clock: FakeClock
) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        made = edit(gate, ask(gate))
        clock.advance(timedelta(days=2))
        again = gate.propose(opened(gate), "refund", ONE, key="k")
        assert (again.revision, again.edits) == (3, None)
        assert isinstance(again.outcome, Held)
        assert "1250" in again.outcome.approval.shown
    assert world.state(made.action) == "REFUSED"


def test_the_old_action_says_which_took_its_place(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        made = edit(gate, held)
        outcome = gate.execute(held.action, tenant="acme")
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.error.details) == ("superseded", {"action": made.action})


def test_a_call_without_a_key_is_edited_into_one_without_a_key(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate, None)
        made = edit(gate, held)
        assert (made.key, made.revision, made.edits) == (made.action, 1, held.action)
        assert world.state(held.action) == "REFUSED"
    assert not world.damage()


def test_the_digest_that_was_shown_is_compared_in_the_deciding_transaction(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        with pytest.raises(VoteRefused) as refused:
            edit(gate, held, digest="0" * 64)
        assert refused.value.reason == "other_digest"
        with pytest.raises(Misuse, match="digest"):
            edit(gate, held, digest="abc")
    assert world.words(held.action) == ["proposed"]


def test_what_the_policy_was_thinking_about_when_the_question_ended_takes_no_place(world: World) -> None:
    with world.gate() as other:

        def meanwhile(_request: object) -> Any:
            other.cancel(held.action, by="ops", tenant="acme")
            return ASK

        with world.gate(policy=ScriptedPolicy(ASK, meanwhile)) as gate:
            held = ask(gate)
            with pytest.raises(VoteRefused) as refused:
                edit(gate, held)
    assert refused.value.reason == "void"
    assert world.words(held.action) == ["proposed", "cancelled"]


def test_a_late_edit_records_that_the_question_is_over_and_is_refused(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        held = ask(gate)
        clock.advance(timedelta(days=1))
        with pytest.raises(VoteRefused) as refused:
            edit(gate, held)
    assert refused.value.reason == "expired"
    assert world.words(held.action) == ["proposed", "question_expired"]


def test_a_question_that_was_answered_is_not_edited(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        grant(gate, held)
        with pytest.raises(VoteRefused) as refused:
            edit(gate, held)
        assert refused.value.reason == "granted"


def test_an_edit_that_changes_nothing_is_no_edit(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate, pytest.raises(Misuse, match="arguments"):
        edit(gate, ask(gate), ONE)


def test_another_tenants_question_is_not_found(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        with pytest.raises(NotFound):
            edit(gate, held, tenant="other")


def test_nothing_is_edited_once_a_call_under_its_key_has_started(world: World, clock: FakeClock) -> None:
    def fails(account: str, cents: int) -> None:
        raise NoEffect(f"no {cents} for {account}: the bank was closed")

    with world.gate(named("refund", fails), policy=ScriptedPolicy(allow(), otherwise=ASK), clock=clock) as gate:
        assert isinstance(gate.call(opened(gate), "refund", ONE, key="k"), Failed)
        failed = gate.propose(opened(gate), "refund", ONE, key="k")
        gate.cancel(failed, by="ops")
        held = ask(gate)
        assert isinstance(held, Held)
        with pytest.raises(NotPossible, match="started"):
            edit(gate, held)
    assert world.words(held.action) == ["proposed"]


def test_a_tool_that_is_gone_or_declared_otherwise_is_edited_by_nobody(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
    with world.gate(world.refund(timeout=timedelta(seconds=9))) as gate, pytest.raises(NotPossible, match="declared"):
        edit(gate, held)
    with world.gate(named("other", lambda: None)) as gate, pytest.raises(NotPossible, match="no tool"):
        edit(gate, held)
    assert world.words(held.action) == ["proposed"]
