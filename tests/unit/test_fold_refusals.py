"""What no event may do: each refusal of the fold, and a few walks told step by step."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.chain import Head, start
from agentgate.core.draft import Draft
from agentgate.core.fold import fold_action
from agentgate.core.records import ActionFile, RunRecord
from agentgate.errors import Damaged
from agentgate.event import Event
from agentgate.states import EVENTS, State, advance
from support.bodies import document
from support.ids import ACTION, AT_US, LEDGER, RUN, a_hash, an_id
from support.walking import Walk, walked, walks


@settings(max_examples=30)
@given(walks(), st.data())
def test_an_event_that_the_table_has_no_row_for_is_damage_and_changes_nothing(walk: Walk, data: st.DataObject) -> None:
    for action in walk.models:
        file = walk.file(action)
        kind = data.draw(st.sampled_from([event for event in EVENTS if event.partition(".")[0] != "erased"]))
        if advance(file.action.state, kind) is not None or kind == "failed.unresolved":
            continue
        before = repr(file)
        with pytest.raises(Damaged, match="cannot follow"):
            fold_action(file, _event(kind, action))
        assert repr(file) == before


def _event(kind: str, action: str) -> Event:
    name, _, qualifier = kind.partition(".")
    found = document(name)
    body: Any = found["body"]
    if qualifier:
        body["outcome" if name == "proposed" else "verdict" if name == "reconciled" else "clean"] = (
            qualifier == "clean" or qualifier
        )
    return Event(run=RUN, n=99, prev=bytes(32), type=name, at_us=AT_US, action=action, body=body)


GRANTED = ("proposed.held", "voted", "approved")
UNKNOWN = ("proposed.allowed", "started", "in_doubt")
WAYS: dict[str, tuple[str, ...]] = {
    "READY": ("proposed.allowed",),
    "HELD": ("proposed.held",),
    "REFUSED": ("proposed.refused",),
    "EXECUTING": ("proposed.allowed", "started"),
    "SUCCEEDED": ("proposed.allowed", "started", "succeeded"),
    "FAILED": ("proposed.allowed", "started", "failed"),
    "UNKNOWN": UNKNOWN,
    "ABANDONED": (*UNKNOWN, "abandoned"),
}


@pytest.mark.parametrize("state", list(WAYS))
@pytest.mark.parametrize("kind", [event for event in EVENTS if event not in {"erased", "failed.unresolved"}])
def test_each_event_is_taken_or_refused_as_the_table_says(state: str, kind: str) -> None:
    walk, action = walked(*WAYS[state])
    file = walk.file(action)
    assert file.action.state == state
    if advance(State(state), kind) is None:
        with pytest.raises(Damaged, match="cannot follow"):
            fold_action(file, _event(kind, action))


@pytest.mark.parametrize("kind", [event for event in EVENTS if not event.startswith(("proposed", "erased"))])
def test_nothing_but_a_proposal_begins_an_action(kind: str) -> None:
    with pytest.raises(Damaged, match="cannot follow NEW"):
        fold_action(None, _event(kind, ACTION))


Tampering = Callable[[dict[str, Any]], Any]

# A legal walk, the event that follows, and a change of its body that no writer of ours would make.
TAMPERED: list[tuple[tuple[str, ...], str, Tampering, str]] = [
    (("proposed.allowed",), "started", lambda body: body.update(attempt=2), "out of turn"),
    (("proposed.allowed",), "started", lambda body: body.update(approval=an_id(9)), "no approval"),
    (("proposed.held", "approved"), "started", lambda body: body.update(approval=an_id(9)), "no approval"),
    (("proposed.allowed", "started"), "succeeded", lambda body: body.update(fence=99), "not open"),
    (("proposed.allowed", "started"), "failed", lambda body: body.update(attempt=2), "not open"),
    (("proposed.allowed", "started"), "in_doubt", lambda body: body.update(fence=99), "not open"),
    (UNKNOWN, "started", lambda body: body.update(reserves=[{"account": "a", "amount": 1}]), "reserves twice"),
    (UNKNOWN, "late", lambda body: body.update(fence=99), "has ended"),
    (UNKNOWN, "late", lambda body: body.update(attempt=2), "has ended"),
    (UNKNOWN, "reconciled.applied", lambda body: body.update(attempts=[]), "in doubt"),
    (UNKNOWN, "reconciled.not_applied", lambda body: body.update(attempts=[1, 2]), "in doubt"),
    ((*UNKNOWN, "started", "in_doubt"), "reconciled.not_applied", lambda body: body.update(attempts=[2]), "in doubt"),
    (("proposed.held",), "approved", lambda body: body.update(approval=an_id(9)), "pending"),
    (("proposed.held",), "rejected", lambda body: body.update(approval=an_id(9)), "pending"),
    (("proposed.held",), "question_expired", lambda body: body.update(approval=an_id(9)), "pending"),
    (("proposed.held",), "voted", lambda body: body.update(approval=an_id(9)), "pending"),
    (("proposed.held",), "voted", lambda body: body.update(shown=a_hash("other").hex()), "not asked"),
    (GRANTED, "grant_expired", lambda body: body.update(approval=an_id(9)), "granted"),
    (GRANTED, "grant_revoked", lambda body: body.update(approval=an_id(9)), "granted"),
    (("proposed.held", "voted"), "vote_revoked", lambda body: body.update(vote=a_hash("x").hex()), "not count"),
]


@pytest.mark.parametrize(("way", "word", "tamper", "told"), TAMPERED)
def test_an_event_that_contradicts_what_came_before_is_damage(
    way: tuple[str, ...], word: str, tamper: Tampering, told: str
) -> None:
    walk, action = walked(*way)
    file = walk.file(action)
    walk.take(word, action)
    event = walk.events[-1]
    assert fold_action(file, event).action.last_n == event.n  # as it was written, it follows
    body = dict(event.body)
    tamper(body)
    tampered = Event(**{f.name: getattr(event, f.name) for f in fields(Event) if f.name != "body"}, body=body)
    with pytest.raises(Damaged, match=told):
        fold_action(file, tampered)


TWICE: list[tuple[str, ...]] = [
    (*UNKNOWN, "question_asked", "approved"),
    (*UNKNOWN, "question_asked", "rejected"),
    (*UNKNOWN, "question_asked", "question_expired"),
    (*UNKNOWN, "question_asked", "approved", "grant_expired"),
    (*UNKNOWN, "question_asked", "approved", "grant_revoked"),
    ("proposed.held", "voted", "vote_revoked"),
]


@pytest.mark.parametrize("way", TWICE, ids=lambda way: way[-1])
def test_a_question_is_answered_once_and_ends_once(way: tuple[str, ...]) -> None:
    walk, action = walked(*way)
    with pytest.raises(Damaged, match=r"names no approval|does not count"):
        fold_action(walk.file(action), walk.events[-1])


def test_a_used_grant_starts_nothing_again() -> None:
    walk, action = walked(*GRANTED, "started", "in_doubt")
    began = walk.events[-2]
    again = _event("started", action)
    body = {**again.body, "attempt": 2, "approval": began.body["approval"]}
    event = Event(run=RUN, n=99, prev=bytes(32), type="started", at_us=AT_US, action=action, body=body)
    with pytest.raises(Damaged, match="granted"):
        fold_action(walk.file(action), event)


def test_a_no_about_an_unknown_outcome_leaves_it_unknown_and_counts_as_no_denial() -> None:
    walk, action = walked(*UNKNOWN, "question_asked", "rejected")
    assert walk.file(action).action.state == "UNKNOWN"
    assert walk.draft.run.counters.rejected == 0
    walk.take("rejected", walk.take("proposed.held"))
    assert walk.draft.run.counters.rejected == 1


def test_the_last_result_of_a_running_attempt_is_not_late() -> None:
    walk, action = walked("proposed.allowed", "started")
    fence = walk.models[action].tries[0].fence
    late = _event("late", action)
    body = {**late.body, "fence": fence}
    with pytest.raises(Damaged, match="has ended"):
        fold_action(
            walk.file(action),
            Event(run=RUN, n=99, prev=bytes(32), type="late", at_us=AT_US, action=action, body=body),
        )


def test_a_failure_gives_the_grant_back_and_a_doubt_does_not() -> None:
    walk, action = walked(*GRANTED, "started")
    assert _question(walk, action) == "used"
    walk.take("failed", action)
    assert _question(walk, action) == "granted"
    walk.take("retried", action)
    walk.take("started", action)
    walk.take("in_doubt", action)
    assert _question(walk, action) == "used"


def _question(walk: Walk, action: str) -> str:
    question = walk.file(action).question
    assert question is not None
    return question.state


def test_a_late_result_after_not_applied_reopens_the_doubt_and_voids_what_was_asked() -> None:
    walk, action = walked(*UNKNOWN, "reconciled.not_applied", "held")
    walk.take("late", action)
    assert (walk.file(action).action.state, walk.file(action).action.unresolved) == ("UNKNOWN", 1)
    assert _question(walk, action) == "void"


def test_a_late_result_after_a_failure_voids_the_grant_that_the_failure_gave_back() -> None:
    walk, action = walked(*UNKNOWN, "reconciled.not_applied", "held", "approved", "started", "failed")
    assert _question(walk, action) == "granted"
    walk.take("late", action)
    assert walk.models[action].state == "UNKNOWN"
    assert _question(walk, action) == "void"


def test_a_late_word_that_nothing_happened_moves_nothing_anywhere() -> None:
    for way in ((), ("held",), ("started",), ("started", "succeeded"), ("cancelled",)):
        walk, action = walked(*UNKNOWN, "reconciled.not_applied", *way)
        before = walk.file(action).action
        walk.take("late.clean", action)
        after = walk.file(action).action
        assert (after.state, after.unresolved, after.state_n) == (before.state, 0, before.state_n)


def test_a_failure_beside_an_unresolved_attempt_leaves_the_outcome_unknown() -> None:
    walk, action = walked(*UNKNOWN, "started", "failed")
    assert walk.file(action).action.state == "UNKNOWN"
    assert [attempt.state for attempt in walk.file(action).attempts.values()] == ["in_doubt", "failed"]


def test_each_reason_to_wait_is_remembered_once_until_the_action_moves() -> None:
    walk, action = walked("proposed.allowed", *["waited"] * 6)
    assert sorted(walk.file(action).action.waited) == ["blocked", "busy", "paused"]
    walk.take("started", action)
    assert walk.file(action).action.waited == ()


def test_only_ready_ends_by_itself_and_its_event_says_when() -> None:
    walk, action = walked("proposed.allowed")
    assert walk.file(action).action.expires_at_us is not None
    walk.take("started", action)
    assert walk.file(action).action.expires_at_us is None


# Where an event stands in its chain.


def _folded(run: RunRecord | None, kind: str, **changed: Any) -> None:
    head = start(LEDGER, RUN) if run is None else Head(run=run.id, n=run.n + 1, hash=run.head)
    draft = Draft(head, run, at_us=AT_US)
    body: Any = document(kind)["body"]
    draft.add(kind, body | changed)


def test_a_chain_begins_with_its_opening_and_is_opened_once() -> None:
    opened = Walk().draft.run
    for kind in ("charged", "run_closed", "switched"):
        with pytest.raises(Damaged, match="does not belong"):
            _folded(None, kind)
    for kind in ("run_opened", "ledger_created"):
        with pytest.raises(Damaged, match="does not belong"):
            _folded(opened, kind)


def test_a_run_takes_no_event_of_the_ledgers_chain_nor_the_ledger_one_of_a_run() -> None:
    draft = Draft(start(LEDGER, LEDGER), None, at_us=AT_US)
    draft.add("ledger_created", {"format": 1, "origin": "agentgate/x"})
    assert (draft.run.tenant, draft.run.name) == ("$ledger", "$ledger")
    _folded(draft.run, "policy_activated")
    _folded(Walk().draft.run, "erased")
    _folded(draft.run, "erased")
    with pytest.raises(Damaged, match="does not belong"):
        _folded(draft.run, "run_closed")
    with pytest.raises(Damaged, match="does not belong"):
        _folded(Walk().draft.run, "policy_activated")


def test_no_run_is_opened_under_a_reserved_tenant() -> None:
    with pytest.raises(Damaged, match="does not belong"):
        _folded(None, "run_opened", tenant="$ledger")


# How a run came to its end, where it stands then, and what cannot follow.
ENDED: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (("run_halted",), "HALTED", ("run_halted",)),
    (("run_closed",), "CLOSED", ("run_halted", "run_closed")),
    (("run_halted", "run_closed"), "CLOSED", ("run_halted", "run_closed")),
]


@pytest.mark.parametrize(("ends", "state", "refused"), ENDED, ids=[" ".join(ends) for ends, *_ in ENDED])
def test_a_run_ends_in_each_way_once_and_what_is_closed_is_never_halted(
    ends: tuple[str, ...], state: str, refused: tuple[str, ...]
) -> None:
    walk = Walk()
    for kind in ends:
        walk.draft.add(kind, {"reason": f"{kind} once"})
    assert (walk.draft.run.state, walk.draft.run.reason) == (state, f"{ends[-1]} once")
    for kind in refused:
        with pytest.raises(Damaged, match=f"cannot follow {state}"):
            walk.draft.add(kind, {"reason": "again"})
        assert (walk.draft.run.state, walk.draft.run.reason) == (state, f"{ends[-1]} once")


def test_time_in_a_chain_never_goes_back() -> None:
    walk = Walk()
    run = walk.draft.run
    earlier = Draft(Head(run=RUN, n=1, hash=run.head), run, at_us=AT_US - 1)
    assert earlier.at_us == AT_US  # a writer holds still
    earlier.at_us = AT_US - 1
    with pytest.raises(Damaged, match="older"):
        earlier.add("charged", {"charges": [], "by": "a"})


def test_a_file_is_untouched_by_what_follows_it() -> None:
    walk, action = walked("proposed.held")
    before: ActionFile = walk.file(action)
    shown = repr(before)
    for word in ("voted", "approved", "started", "in_doubt"):
        walk.take(word, action)
    assert repr(before) == shown
