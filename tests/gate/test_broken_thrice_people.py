"""Who says yes to their own: under a name that looks the same, by an edit, by a yes in advance, by others' edits."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentgate import Damaged, Gate, Held, Misuse, Proposal, Requirement, recheck, require_approval
from agentgate.errors import VoteRefused
from agentgate.testing import ScriptedPolicy
from support.worlds import World, kinds, opened

ONE: dict[str, Any] = {"account": "a1", "cents": 5}
ASK = require_approval("big", requirement=Requirement(quorum=2))
STANDING = """
version: 1
rules:
  - {name: refunds, match: {tool: "*"}, outcome: require_approval, standing: true}
"""
ANY = {"where": [], "rest": "any"}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(STANDING)
    return path


def ask(gate: Gate) -> Held:
    outcome = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Held)
    return outcome


def edit(gate: Gate, held: Any, arguments: object, by: str) -> Proposal:
    asked = held.approval
    return gate.approvals.edit(asked.id, digest=asked.digest, arguments=arguments, by=by, tenant="acme")


def approve(gate: Gate, held: Any, by: str) -> str:
    asked = held.approval
    return gate.approvals.approve(asked.id, digest=asked.digest, by=by, tenant="acme").state


def give(gate: Gate, by: str) -> None:
    gate.grants.add(tool="refund", where=ANY, tenant="acme", by=by, why="sale", uses=3, until=timedelta(hours=1))


@pytest.mark.parametrize(
    "name", ["person:ada ", " person:ada", "person:ada\u200b", "\u202eperson:ada", "person:a\u3164da"]
)
def test_one_person_is_not_two_under_a_name_that_looks_the_same(world: World, name: str) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        assert approve(gate, held, "person:ada") == "pending"
        with pytest.raises(Misuse, match=r"by: .*look like another name"):
            approve(gate, held, name)


@pytest.mark.parametrize("principal", ["agent:x\u200b", "agent:x ", "agent:\u2060x"])
def test_a_principal_does_not_approve_its_own_call_under_a_name_that_looks_the_same(
    world: World, principal: str
) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = gate.call(gate.run("r", principal=principal, tenant="acme"), "refund", ONE)
        with pytest.raises(VoteRefused) as refused:
            approve(gate, held, "agent:x")
    assert refused.value.reason == "own_request"


@pytest.mark.parametrize(("principal", "by"), [("agent:e\u0301", "agent:\u00e9"), ("agent:x\u200b", "agent:x")])
def test_nor_is_it_covered_by_its_own_standing_grant_so(world: World, rules: Path, principal: str, by: str) -> None:
    with world.gate(policy=rules) as gate:
        give(gate, by)
        assert kinds([gate.call(gate.run("r", principal=principal, tenant="acme"), "refund", ONE)]) == ["Held"]
        with pytest.raises(Misuse, match="by: "):
            give(gate, "agent:e\u0301")


def test_an_editor_has_not_said_yes_in_advance_to_what_they_write(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        held = ask(gate)
        give(gate, "person:bob")
        made = edit(gate, held, ONE | {"account": "bobs"}, "person:bob")
        assert kinds([made.outcome, gate.execute(made)]) == ["Held", "Held"]
        assert approve(gate, made.outcome, "person:ada") == "granted"
    assert not world.damage()
    report = recheck(world.url, policy=rules)
    assert (report.same, report.nondeterministic) == (report.rechecked, 0)


def test_another_persons_edit_is_covered_by_what_somebody_else_has_said(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        held = ask(gate)
        give(gate, "person:bob")
        assert kinds([gate.execute(edit(gate, held, ONE | {"cents": 4}, "person:ada"))]) == ["Done"]
    report = recheck(world.url, policy=rules)
    assert (report.same, report.nondeterministic) == (report.rechecked, 0)


def test_nobody_approves_what_they_wrote_because_somebody_edited_it_after_them(world: World) -> None:
    one = require_approval("big", requirement=Requirement())
    with world.gate(policy=ScriptedPolicy(otherwise=one)) as gate:
        first = edit(gate, ask(gate), {"account": "bobs", "cents": 5}, "person:bob")
        second = edit(gate, first.outcome, {"account": "bobs", "cents": 6}, "person:eve")
        for by in ("person:bob", "person:eve"):
            with pytest.raises(VoteRefused) as refused:
                approve(gate, second.outcome, by)
            assert refused.value.reason == "own_request"
        assert approve(gate, second.outcome, "person:ada") == "granted"
        assert kinds([gate.execute(second)]) == ["Done"]
    assert not world.damage()


def test_a_vote_of_an_earlier_editor_that_came_into_the_record_carries_no_claim(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = require_approval("big", requirement=Requirement())
    with world.gate(policy=ScriptedPolicy(otherwise=one)) as gate:
        first = edit(gate, ask(gate), {"account": "bobs", "cents": 5}, "person:bob")
        second = edit(gate, first.outcome, {"account": "bobs", "cents": 6}, "person:eve")
        with monkeypatch.context() as patched:
            patched.setattr("agentgate.gate.voting.editors_before", lambda *_: frozenset())
            assert approve(gate, second.outcome, "person:bob") == "granted"
        with pytest.raises(Damaged, match="not those of enough people"):
            gate.execute(second)
