"""A recheck's report as people see it: the headline first, and nothing in it that moves a cursor."""

from dataclasses import replace
from types import MappingProxyType

from agentgate.core.findings import Difference, NotEvaluated, NowDenied, Recheck
from agentgate.core.tables import tabulate
from agentgate.core.tally import Tally
from agentgate.policy.decision import Decision, Reason, allow, deny

EMPTY = Tally(kept=10).report(policy=bytes(32))
HOSTILE = "evil\x1b[2J\n\u202etool\x9b"


def difference(**changes: object) -> Difference:
    made = Difference(
        run="r",
        run_name="ticket-1",
        tenant="acme",
        action="a-1",
        n=4,
        type="proposed",
        namespace="",
        tool="refund",
        verdict="tightened",
        was=allow(),
        now=deny("too_much", rule="large"),
        same_policy=False,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def found(one: Difference, count: int = 1) -> Recheck:
    executed = NowDenied(run="r", run_name=one.run_name, tenant="acme", action="a-1", attempt=1, n=5, refusal=one)
    return replace(
        EMPTY,
        rechecked=10,
        same=10 - count,
        tightened=count,
        executed=3,
        executed_now_denied=1,
        differences=(one,) * count,
        now_denied=(executed,),
    )


def test_executed_but_would_now_be_denied_comes_first() -> None:
    lines = tabulate(found(difference())).splitlines()
    assert lines[0].endswith("decisions would be different")
    assert lines[2].split() == ["executed,", "would", "now", "be", "denied", "1", "of", "3", "actions"]
    row = next(line for line in lines if "a-1" in line)
    assert row.split() == ["ticket-1", "a-1", "5", "started", "refund", "allow", "deny", "large:", "too_much"]


def test_nothing_found_says_so_and_not_that_it_is_the_same() -> None:
    assert "no decision to ask about" in tabulate(EMPTY)
    assert "same would" not in tabulate(EMPTY)


def test_what_came_from_the_record_moves_no_cursor() -> None:
    now = Decision(outcome="deny", rule="large", reasons=(Reason(code="too_much", text=HOSTILE),))
    gap = NotEvaluated(run="r", action=HOSTILE, n=1, reason=f"fact_not_recorded:{HOSTILE}", detail=HOSTILE)
    hostile = difference(run_name=HOSTILE, tool=HOSTILE, namespace=HOSTILE, now=now)
    report = replace(
        found(hostile),
        not_evaluated=(gap,),
        cannot_evaluate=1,
        reasons=MappingProxyType({gap.reason: 1}),
        policy_failures=MappingProxyType({HOSTILE: 1}),
    )
    text = tabulate(report)
    assert all(line.isprintable() for line in text.splitlines())
    assert "\u202e" not in text
    assert "evil\\x1b" in text or "evil\\u001b" in text


def test_a_long_list_is_cut_and_says_so() -> None:
    text = tabulate(found(difference(), count=9), shown=2)
    assert text.count("4 proposed") == 2
    assert "… 7 more" in text


def test_a_list_that_was_cut_before_says_that_too() -> None:
    text = tabulate(replace(found(difference(), count=9), kept=9), shown=2)
    assert "… 7 more kept; others are only counted" in text


def test_a_run_that_cannot_be_evaluated_is_told_with_what_is_broken() -> None:
    gap = NotEvaluated(run="r-1", action=None, n=7, reason="chain_broken", detail="event 7 is missing")
    text = tabulate(
        replace(EMPTY, cannot_evaluate=5, not_evaluated=(gap,), reasons=MappingProxyType({"chain_broken": 5}))
    )
    assert "not everything could be asked" in text
    assert "chain_broken (event 7 is missing)" in text
    assert "chain_broken 5" in text


def test_a_policy_that_is_not_deterministic_is_called_so() -> None:
    report = replace(found(difference(same_policy=True)), same_policy=10, nondeterministic=1)
    assert "it is not deterministic" in tabulate(report)
