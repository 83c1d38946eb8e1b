"""What starts, ends, checks and charges leave in the rows, told step by step: amounts, times, a check's last word."""

import pytest

from agentgate.canonical import Json
from agentgate.core.records import Counters
from support.ids import AT_US
from support.steps import amounts
from support.walking import Walk, walked

TAKEN = amounts(refunds=1250, eu=3)
RESERVED = (("refunds", 1250), ("eu", 3))


def reserving() -> tuple[Walk, str]:
    """Walk to a start that takes of two accounts."""
    walk, action = walked("proposed.allowed")
    walk.take("started", action, reserves=TAKEN)
    return walk, action


def _reserved(walk: Walk, action: str) -> tuple[tuple[str, int], ...]:
    return walk.file(action).action.reserved


# --- what an action takes, and what it spent in the end -------------------------------------------------------


def test_nothing_is_reserved_before_a_start_and_nothing_where_a_start_takes_nothing() -> None:
    walk, action = walked("proposed.allowed")
    assert _reserved(walk, action) == ()
    walk.take("started", action, reserves=None)
    assert _reserved(walk, action) == ()


def test_what_was_reserved_stands_through_doubt_and_through_attempts_that_are_made_in_doubt() -> None:
    walk, action = reserving()
    assert _reserved(walk, action) == RESERVED
    for word in ("in_doubt", "waited", "started", "in_doubt", "started", "failed", "question_asked", "rejected"):
        walk.take(word, action)
        assert _reserved(walk, action) == RESERVED, word
    walk.take("reconciled.applied", action, settled=[])
    assert _reserved(walk, action) == RESERVED
    assert walk.file(action).action.state == "SUCCEEDED"


@pytest.mark.parametrize(
    "way", [("succeeded",), ("in_doubt", "reconciled.applied"), ("in_doubt", "started", "succeeded")]
)
def test_what_was_settled_replaces_what_was_reserved_account_by_account(way: tuple[str, ...]) -> None:
    walk, action = reserving()
    *before, last = way
    for word in before:
        walk.take(word, action)
    walk.take(last, action, settled=amounts(fees=7, refunds=1000))
    assert _reserved(walk, action) == (("refunds", 1000), ("eu", 3), ("fees", 7))


def test_what_nothing_was_reserved_for_is_spent_all_the_same() -> None:
    walk, action = walked("proposed.allowed")
    walk.take("started", action, reserves=None)
    walk.take("succeeded", action, settled=amounts(fees=7))
    assert _reserved(walk, action) == (("fees", 7),)


def test_an_answer_about_what_succeeded_says_what_was_spent_beside_it() -> None:
    walk, action = reserving()
    for word in ("in_doubt", "started"):
        walk.take(word, action)
    walk.take("succeeded", action, settled=amounts(refunds=1000))
    walk.take("late", action, attempt=1, fence=walk.models[action].tries[0].fence)  # it happened twice
    assert (walk.file(action).action.state, walk.file(action).action.unresolved) == ("SUCCEEDED", 1)
    walk.take("reconciled.applied", action, settled=amounts(refunds=2000))
    assert _reserved(walk, action) == (("refunds", 2000), ("eu", 3))


@pytest.mark.parametrize("way", [("failed", "retried"), ("in_doubt", "reconciled.not_applied")])
@pytest.mark.parametrize(("taken", "stands"), [(amounts(us=4), (("us", 4),)), (None, ()), ([], ())])
def test_a_start_from_ready_takes_anew_and_what_it_took_before_is_let_go(
    way: tuple[str, ...], taken: list[Json] | None, stands: tuple[tuple[str, int], ...]
) -> None:
    walk, action = reserving()
    for word in way:
        walk.take(word, action, settled=[] if word in {"failed", "reconciled.not_applied"} else None)
    assert _reserved(walk, action) == RESERVED  # the row remembers it; READY and FAILED are not counted
    walk.take("started", action, reserves=taken)
    assert _reserved(walk, action) == stands


def test_a_late_result_brings_back_into_count_what_was_reserved() -> None:
    walk, action = reserving()
    walk.take("in_doubt", action)
    walk.take("reconciled.not_applied", action, settled=[])
    assert walk.draft.run.counters.taken == 0
    walk.take("late", action)
    assert (walk.draft.run.counters.taken, _reserved(walk, action)) == (1, RESERVED)


# --- checks, and until when another call is the same ----------------------------------------------------------


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ((), None),
        (("confirmed",), "yes"),
        (("contradicted",), "no"),
        (("confirmed", "contradicted"), "no"),
        (("contradicted", "confirmed"), "yes"),
        (("contradicted", "confirmed", "replayed", "late"), "yes"),
    ],
)
def test_the_last_check_counts(checks: tuple[str, ...], said: str | None) -> None:
    walk, action = walked("proposed.allowed", "started", "succeeded", *checks)
    assert walk.file(action).action.confirmed == said
    assert walk.file(action).action.state == "SUCCEEDED"


def test_the_latest_start_says_until_when_another_call_is_the_same() -> None:
    walk, action = walked("proposed.allowed")
    said = [AT_US + 60, AT_US + 90, None, AT_US + 120]
    for until in said:
        walk.take("started", action, dedupe_until_us=until)
        assert walk.file(action).action.dedupe_until_us == until
        walk.take("in_doubt", action)
        assert walk.file(action).action.dedupe_until_us == until
    walk.take("reconciled.applied", action)
    assert walk.file(action).action.dedupe_until_us == said[-1]


# --- what the run adds up to ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["succeeded", "failed", "in_doubt"])
def test_an_attempt_is_active_from_its_start_to_its_end(end: str) -> None:
    walk, action = walked("proposed.allowed")
    walk.take("started", action, later=1_000)
    began = walk.draft.at_us
    walk.take("charged", later=5)
    assert walk.draft.run.counters.active_us == 0  # as long as it is open, nothing is said of it
    walk.take(end, action, later=7)
    attempt = walk.file(action).attempts[1]
    assert (attempt.started_at_us, walk.draft.at_us - began) == (began, 12)
    assert walk.draft.run.counters.active_us == 12
    walk.take("charged", later=1_000)
    assert walk.draft.run.counters.active_us == 12


def test_the_attempts_of_all_actions_add_up_even_where_they_overlap() -> None:
    walk = Walk()
    one, other = walk.take("proposed.allowed"), walk.take("proposed.allowed")
    walk.take("started", one, later=10)
    walk.take("started", other, later=10)
    walk.take("in_doubt", one, later=10)  # after 20
    walk.take("started", one, later=10)
    walk.take("succeeded", other, later=10)  # after 30
    walk.take("failed", one, later=10)  # after 20
    assert walk.draft.run.counters.active_us == 20 + 30 + 20
    began = [attempt.started_at_us for attempt in walk.file(one).attempts.values()]
    assert began[1] - began[0] == 30
    assert walk.file(one).action.first_started_us == began[0]


@pytest.mark.parametrize("after", ["late", "late.clean", "reconciled.applied", "reconciled.not_applied", "abandoned"])
def test_what_is_heard_of_an_attempt_that_has_ended_makes_it_last_no_longer(after: str) -> None:
    walk, action = walked("proposed.allowed")
    walk.take("started", action, later=10)
    walk.take("in_doubt", action, later=10)
    walk.take(after, action, later=10)
    assert walk.draft.run.counters.active_us == 10


def test_charges_of_tokens_and_money_add_up_and_other_accounts_are_none_of_the_runs() -> None:
    walk, action = walked("proposed.allowed", "started")
    before = walk.draft.run.counters
    walk.take("charged", charges=[*amounts(tokens=100, money=7, stamps=3), *amounts(tokens=20)])
    walk.take("charged", charges=amounts(money=-2))
    walk.take("charged", charges=[])
    counters = walk.draft.run.counters
    assert (counters.tokens, counters.money) == (120, 5)
    walk.take("failed", action)
    walk.take("retried", action)
    assert (walk.draft.run.counters.tokens, walk.draft.run.counters.money) == (120, 5)
    assert before.tokens == before.money == 0


def test_charging_moves_no_other_counter() -> None:
    walk, _ = walked("proposed.allowed", "started")
    before = walk.draft.run.counters
    walk.take("charged", charges=amounts(tokens=1))
    after = walk.draft.run.counters
    changed = {name for name in Counters.__dataclass_fields__ if getattr(before, name) != getattr(after, name)}
    assert changed == {"tokens"}


@pytest.mark.parametrize("end", ["run_halted", "run_closed"])
def test_what_a_run_spends_after_its_end_is_added_all_the_same(end: str) -> None:
    walk = Walk()
    walk.draft.add(end, {"reason": "enough"})
    walk.take("charged", charges=amounts(tokens=9))
    assert walk.draft.run.counters.tokens == 9


def test_every_retry_is_counted_and_nothing_else_that_makes_an_action_ready_again() -> None:
    walk, action = walked("proposed.allowed", "started", "failed", "retried", "started", "failed", "retried")
    assert walk.draft.run.counters.retried == 2
    for word in ("started", "in_doubt", "reconciled.not_applied", "started", "succeeded"):
        walk.take(word, action)
    assert walk.draft.run.counters.retried == 2
