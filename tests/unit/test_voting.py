"""Whose votes count and what they decide: the laws of design §7, on values alone."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.action import Key
from agentgate.approval import Requirement
from agentgate.canonical import canonical
from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord, VoteRecord
from agentgate.core.voting import counted, demanded, fitting, may_vote, reached, unanswerable, voted_before
from agentgate.errors import Damaged
from agentgate.states import State

ACTION = ActionRecord(
    id="a", run="r", tenant="acme", principal="agent:support", namespace="", tool="refund",
    key=Key(source="own", text="a"), revision=1, spec=None, digest=bytes(32), request=None, resource=None,
    proposed_n=1, proposed_at_us=1, state=State.HELD, reason=None, state_n=1, last_n=1, approval="q",
)  # fmt: skip
TWO = Requirement(quorum=2)
OPS = Requirement(roles=("ops", "lead"))
ASKED = Requirement(kind="question", quorum=2)


def vote(approver: str, verdict: str = "approve", n: int = 1, **fields: Any) -> VoteRecord:
    given: dict[str, Any] = {
        "approval": "q", "n": n, "run": "r", "digest": n.to_bytes(32, "big"), "verdict": verdict,
        "approver": approver, "key": None, "nonce": bytes(16), "signature": None, "counted": True, "at_us": n,
        "roles": (),
    }  # fmt: skip
    return VoteRecord(**given | fields)


def question(state: str = "pending", requirement: Requirement = TWO) -> ApprovalRecord:
    fields: dict[str, Any] = {
        "id": "q", "run": "r", "action": "a", "kind": "approval", "attempt": None, "requirement": bytes(32),
        "presentation": bytes(32), "digest": bytes(32), "state": state, "asked_n": 1, "state_n": 1, "asked_at_us": 1,
        "expires_at_us": 9, "until_us": None, "demands": canonical(requirement.to_json()), "grant_us": 5,
    }  # fmt: skip
    return ApprovalRecord(**fields)


def file(*votes: VoteRecord, state: str = "pending") -> ActionFile:
    by_n = MappingProxyType({one.n: one for one in votes})
    return ActionFile(action=ACTION, approvals=MappingProxyType({"q": question(state)}), votes=by_n)


@given(st.lists(st.tuples(st.sampled_from(["ada", "bob", "eve"]), st.booleans()), max_size=8), st.integers(1, 4))
def test_quorum_counts_distinct_approvers_whose_votes_stand(given: list[tuple[str, bool]], quorum: int) -> None:
    votes = [vote(name, n=n, counted=stands) for n, (name, stands) in enumerate(given, 1)]
    distinct = {name for name, stands in given if stands}
    assert (reached(Requirement(quorum=quorum), votes) == "approve") is (len(distinct) >= quorum)


def test_one_no_ends_a_question_whatever_was_said_before() -> None:
    assert reached(TWO, [vote("ada"), vote("bob", "reject", 2)]) == "reject"
    assert reached(ASKED, [vote("ada", "again"), vote("bob", "reject", 2)]) == "reject"
    assert reached(TWO, [vote("ada"), vote("bob", "reject", 2, counted=False)]) is None


def test_each_verdict_of_a_question_needs_the_quorum_of_that_same_verdict() -> None:
    mixed = [vote("ada", "applied", 1), vote("bob", "not_applied", 2), vote("eve", "again", 3)]
    assert reached(ASKED, mixed) is None
    assert reached(ASKED, [*mixed, vote("mia", "applied", 4)]) == "applied"
    assert reached(ASKED, [*mixed, vote("mia", "applied", 4), vote("tom", "again", 5)]) is None
    assert reached(ASKED, [vote("ada", "approve", 1), vote("bob", "approve", 2)]) is None


@pytest.mark.parametrize("name", ["agent:support", "cafe\u0301"])
def test_the_proposer_may_deny_their_own_and_approve_it_only_where_that_is_said(name: str) -> None:
    action = replace(ACTION, principal=name)
    composed = {"agent:support": "agent:support", "cafe\u0301": "caf\u00e9"}[name]
    assert may_vote(OPS, action, composed, (), "reject") is None
    assert may_vote(Requirement(), action, composed, (), "approve") == "own_request"
    assert may_vote(Requirement(proposer=True), action, composed, (), "approve") is None
    assert may_vote(Requirement(proposer=True, roles=("ops",)), action, composed, (), "approve") == "no_role"


def test_who_wrote_the_arguments_is_a_proposer_too() -> None:
    edited = replace(ACTION, edited_by="ada")
    assert may_vote(Requirement(), edited, "ada", (), "approve") == "own_request"
    assert may_vote(Requirement(), edited, "agent:support", (), "approve") == "own_request"
    assert may_vote(Requirement(), edited, "bob", (), "approve") is None


def test_any_of_the_roles_is_enough_and_none_is_not() -> None:
    assert may_vote(OPS, ACTION, "ada", ("lead", "dba"), "approve") is None
    assert may_vote(OPS, ACTION, "ada", ("dba",), "reject") == "no_role"
    assert may_vote(OPS, ACTION, "ada", (), "approve") == "no_role"


def test_votes_that_a_row_holds_and_no_gate_would_take_fill_no_quorum() -> None:
    signed = Requirement(quorum=1, signed=True)
    assert fitting(signed, ACTION, [vote("ada")]) == ()
    assert fitting(Requirement(), ACTION, [vote("agent:support")]) == ()
    assert fitting(OPS, ACTION, [vote("ada", roles=("dba",))]) == ()
    good = vote("ada", key=bytes(32), signature=bytes(64))
    assert fitting(signed, ACTION, [good]) == (good,)


def test_only_votes_on_the_question_that_hangs_count() -> None:
    other = vote("bob", n=2, approval="another")
    taken_back = vote("eve", n=3, counted=False)
    assert counted(file(vote("ada"), other, taken_back)) == (vote("ada"),)
    assert counted(ActionFile(action=replace(ACTION, approval=None))) == ()
    assert voted_before(file(vote("ada"), taken_back), question(), "eve") is None


@pytest.mark.parametrize(
    ("state", "before", "verdict", "why"),
    [
        ("pending", None, "approve", None),
        ("pending", "approve", "approve", None),
        ("pending", "approve", "reject", "contrary"),
        ("pending", "again", "applied", "contrary"),
        ("granted", "approve", "approve", None),
        ("granted", "approve", "reject", "granted"),
        ("granted", None, "approve", "granted"),
        ("rejected", "reject", "reject", None),
        ("rejected", "approve", "approve", "rejected"),
        ("rejected", None, "reject", "rejected"),
        ("used", "approve", "approve", "used"),
        ("expired", "approve", "approve", "expired"),
        ("revoked", "approve", "approve", "revoked"),
        ("void", None, "approve", "void"),
    ],
)
def test_the_same_vote_is_one_and_every_other_one_too_late_says_why(
    state: str, before: str | None, verdict: str, why: str | None
) -> None:
    given = None if before is None else vote("ada", before)
    assert unanswerable(question(state), given, verdict) == why


def test_a_row_that_says_nobody_who_must_agree_is_damage() -> None:
    assert demanded(question()) == TWO
    for demands in (b"{", b"[]", b"{}", b'{"quorum":0}'):
        with pytest.raises(Damaged):
            demanded(replace(question(), demands=demands))
