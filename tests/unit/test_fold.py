"""What events add up to: laws over random legal walks, which are made without asking the state table."""

from collections import Counter
from typing import Any

from hypothesis import given

from agentgate.chain import start
from agentgate.core.draft import Draft
from agentgate.core.records import Counters
from agentgate.event import Event, decode
from support.ids import AT_US, LEDGER, RUN
from support.walking import Walk, walks

MAY_HAVE_HAPPENED = {"EXECUTING", "UNKNOWN", "SUCCEEDED", "ABANDONED"}


def _recount(walk: Walk) -> Counters:
    """Count again from the events and where the model says that the actions stand."""
    states = Counter(model.state for model in walk.models.values())
    types = Counter(event.type for event in walk.events)
    ends = [event.type for event in walk.events if event.type in {"failed", "succeeded"}]
    since = ends[::-1].index("succeeded") if "succeeded" in ends else len(ends)
    return Counters(
        proposed=types["proposed"],
        refused=states["REFUSED"],
        pending=states["HELD"],
        executing=states["EXECUTING"],
        unknown=states["UNKNOWN"],
        taken=sum(states[word] for word in MAY_HAVE_HAPPENED),
        succeeded=types["succeeded"],
        failed=types["failed"],
        failures=since,
        rejected=walk.noes,
        retried=types["retried"],
        active_us=_lasted_us(walk),
        tokens=_charged(walk, "tokens"),
        money=_charged(walk, "money"),
    )


def _lasted_us(walk: Walk) -> int:
    """Add up how long the attempts lasted that have ended."""
    began, lasted = {}, 0
    for event in walk.events:
        attempt = (event.action, event.body.get("attempt"))
        if event.type == "started":
            began[attempt] = event.at_us
        elif event.type in {"succeeded", "failed", "in_doubt"}:
            lasted += event.at_us - began.pop(attempt)
    return lasted


def _charged(walk: Walk, account: str) -> int:
    return sum(
        amount
        for event in walk.events
        if event.type == "charged"
        for named, amount in _amounts(event)
        if named == account
    )


def _amounts(event: Event) -> list[tuple[str, int]]:
    charges: Any = event.body["charges"]
    return [(one["account"], one["amount"]) for one in charges]


@given(walks())
def test_the_runs_counters_equal_a_recount(walk: Walk) -> None:
    assert walk.draft.run.counters == _recount(walk)


@given(walks())
def test_an_action_stands_where_the_model_says_and_its_row_names_the_event_that_said_so(walk: Walk) -> None:
    for action, model in walk.models.items():
        row = walk.file(action).action
        assert row.state == model.state
        assert row.attempts == len(model.tries)
        said = walk.events[row.state_n]
        assert said.action == action
        assert walk.events[row.last_n].action == action
        assert not [event for event in walk.events[row.last_n + 1 :] if event.action == action]


@given(walks())
def test_an_actions_row_repeats_what_its_events_said(walk: Walk) -> None:
    for action in walk.models:
        row = walk.file(action).action
        own = [event for event in walk.events if event.action == action]
        starts = [event for event in own if event.type == "started"]
        asked = [event for event in own if "approval" in event.body and type(event.body["approval"]) is dict]
        held = [event for event in asked if event.type != "question_asked"]
        assert (row.proposed_n, row.proposed_at_us) == (own[0].n, own[0].at_us)
        assert row.first_started_us == (starts[0].at_us if starts else None)
        assert row.fence == (starts[-1].body["fence"] if starts else None)
        assert row.approval == (_asked(asked[-1])["id"] if asked else None)
        assert row.requirement == (bytes.fromhex(_asked(held[-1])["requirement"]) if held else None)
        assert row.asked == len(held)
        assert {number: attempt.started_at_us for number, attempt in walk.file(action).attempts.items()} == {
            event.body["attempt"]: event.at_us for event in starts
        }


@given(walks())
def test_an_action_takes_spends_and_is_checked_as_the_model_says(walk: Walk) -> None:
    for action, model in walk.models.items():
        row = walk.file(action).action
        assert list(row.reserved) == list(model.reserved.items())
        assert row.dedupe_until_us == model.dedupe_until_us
        assert row.confirmed == model.confirmed


def _asked(event: Event) -> dict[str, str]:
    found: Any = event.body["approval"]
    return dict(found)


@given(walks())
def test_nothing_but_the_question_that_hangs_on_an_action_can_still_be_answered_or_used(walk: Walk) -> None:
    for action in walk.models:
        file = walk.file(action)
        alive = {id_ for id_, approval in file.approvals.items() if approval.state in {"pending", "granted"}}
        assert alive <= {file.action.approval}


@given(walks())
def test_unresolved_is_the_number_of_attempts_in_doubt(walk: Walk) -> None:
    for action, model in walk.models.items():
        file = walk.file(action)
        doubted = [number for number, attempt in sorted(file.attempts.items()) if attempt.unresolved]
        assert doubted == model.doubted
        assert file.action.unresolved == len(doubted)


@given(walks())
def test_what_is_unknown_or_given_up_has_an_attempt_in_doubt_and_what_may_start_has_none(walk: Walk) -> None:
    # READY, HELD and FAILED block nothing, so no doubt may be left in them.
    for action in walk.models:
        row = walk.file(action).action
        if row.state == "UNKNOWN":
            assert row.unresolved > 0
        if row.state in {"READY", "HELD", "FAILED"}:
            assert row.unresolved == 0


@given(walks())
def test_a_grant_is_used_once_unless_its_attempt_is_known_to_have_done_nothing(walk: Walk) -> None:
    assert max(Counter(walk.granted_uses).values(), default=0) <= 1
    for action, model in walk.models.items():
        file = walk.file(action)
        used = {id_ for id_, approval in file.approvals.items() if approval.state == "used"}
        assert used <= set(walk.granted_uses)
        question = file.question
        said = "none" if question is None else question.state
        assert {"expired": "ended", "rejected": "ended", "revoked": "ended", "void": "ended"}.get(said, said) == (
            model.question
        )


@given(walks())
def test_at_most_one_attempt_is_open_and_only_while_executing(walk: Walk) -> None:
    for action in walk.models:
        file = walk.file(action)
        opened = [number for number, attempt in file.attempts.items() if attempt.state == "open"]
        assert opened == ([file.action.attempts] if file.action.state == "EXECUTING" else [])


@given(walks())
def test_folding_the_stored_bytes_again_gives_the_same_records(walk: Walk) -> None:
    again = Draft(start(LEDGER, RUN), None, at_us=AT_US)
    for link in walk.draft.plan().links:
        again._fold(decode(link.encoded), link.hash)  # and every link is well-formed, or this would raise
    assert again.run == walk.draft.run
    assert {action: again.file(action) for action in walk.models} == {a: walk.file(a) for a in walk.models}
