"""What actions take, spend and are checked for, how long their attempts last, and what a run is charged."""

from typing import Any

from cases.case import ACTION, RUN, Case
from cases.chains import said
from cases.telling import (
    NOT_APPLIED,
    OPENED,
    OTHER,
    RETRIED,
    UNTIL,
    Told,
    adds_up,
    allowed,
    does,
    ended,
    row,
    started,
    told,
)


def amounts(**spent: int) -> list[dict[str, Any]]:
    """Return amounts as events and rows hold them."""
    return [{"account": account, "amount": amount} for account, amount in spent.items()]


def charged(*charges: dict[str, Any], later: int = 0) -> dict[str, Any]:
    """Say what a loop has spent."""
    return said("charged", later=later, charges=list(charges))


TAKEN = amounts(refunds=1250, eu=3)
RESERVING = [OPENED, allowed(), started(reserves=TAKEN)]
IN_DOUBT = [*RESERVING, ended("in_doubt")]
DONE = [OPENED, allowed(), started(), ended("succeeded")]
UNKNOWN = {"state": "UNKNOWN", "state_n": 3, "reason": "timeout", "attempts": 1, "unresolved": 1}
SUCCEEDED = {"state": "SUCCEEDED", "state_n": 3, "attempts": 1}
HAPPENED = {"proposed": 1, "taken": 1, "succeeded": 1}
ONE_DONE = {"10": ("succeeded", False)}
DOUBTED = {"10": ("in_doubt", True)}
ANSWERED = {"10": ("in_doubt", False)}

# name, events, run {state, reason?}, counters that are not 0, actions, attempts
STORIES: list[tuple[str, Told, dict[str, Any]]] = [
    (
        "a start takes of two accounts",
        RESERVING,
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 2, "attempts": 1, "reserved": TAKEN},
            "attempts": {"10": ("open", False)},
        },
    ),
    (
        "what was taken stands while nobody knows",
        IN_DOUBT,
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1},
            "action": {**UNKNOWN, "reserved": TAKEN},
            "attempts": DOUBTED,
        },
    ),
    (
        "tried again while nobody knows, it stands",
        [*IN_DOUBT, started(2), ended("failed", 2)],
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1, "failed": 1, "failures": 1},
            "action": {**UNKNOWN, "state_n": 5, "reason": "not_found", "attempts": 2, "reserved": TAKEN},
            "attempts": {**DOUBTED, "20": ("failed", False)},
        },
    ),
    (
        "given up, it stands",
        [*IN_DOUBT, does("abandoned")],
        {
            "counters": {"proposed": 1, "taken": 1},
            "action": {**UNKNOWN, "state": "ABANDONED", "state_n": 4, "reason": "abandoned", "reserved": TAKEN},
            "attempts": DOUBTED,
        },
    ),
    (
        "done, and nothing said of what it spent",
        [*RESERVING, ended("succeeded")],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "reserved": TAKEN}, "attempts": ONE_DONE},
    ),
    (
        "done, and less spent than taken of one account, and something of a third",
        [*RESERVING, ended("succeeded", settled=amounts(fees=7, refunds=1000))],
        {
            "counters": HAPPENED,
            "action": {**SUCCEEDED, "reserved": amounts(refunds=1000, eu=3, fees=7)},
            "attempts": ONE_DONE,
        },
    ),
    (
        "done, and spent of what nothing was taken of",
        [OPENED, allowed(), started(), ended("succeeded", settled=amounts(fees=7))],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "reserved": amounts(fees=7)}, "attempts": ONE_DONE},
    ),
    (
        "reconciled: it happened, and nothing was spent of one account",
        [*IN_DOUBT, does("reconciled", verdict="applied", attempts=[1], settled=amounts(eu=0))],
        {
            "counters": {"proposed": 1, "taken": 1},
            "action": {
                **SUCCEEDED, "state_n": 4, "reason": "reconciled", "reserved": amounts(refunds=1250, eu=0),
            },
            "attempts": ANSWERED,
        },
    ),
    (
        "known to have failed: the row remembers what was taken",
        [*RESERVING, ended("failed")],
        {
            "counters": {"proposed": 1, "failed": 1, "failures": 1},
            "action": {"state": "FAILED", "state_n": 3, "reason": "not_found", "attempts": 1, "reserved": TAKEN},
            "attempts": {"10": ("failed", False)},
        },
    ),
    (
        "tried again after a failure, it takes anew",
        [*RESERVING, ended("failed"), RETRIED, started(2, reserves=amounts(us=4))],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1, "failed": 1, "failures": 1, "retried": 1},
            "action": {"state": "EXECUTING", "state_n": 5, "attempts": 2, "reserved": amounts(us=4)},
            "attempts": {"10": ("failed", False), "20": ("open", False)},
        },
    ),
    (
        "tried again after it is known not to have happened, it takes nothing",
        [*IN_DOUBT, NOT_APPLIED, started(2)],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 5, "attempts": 2},
            "attempts": {**ANSWERED, "20": ("open", False)},
        },
    ),
    (
        "a late result after that finds what was taken before",
        [*IN_DOUBT, NOT_APPLIED, ended("late")],
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1},
            "action": {**UNKNOWN, "state_n": 5, "reason": "late", "reserved": TAKEN},
            "attempts": DOUBTED,
        },
    ),
    (
        "a check that the world is as it should be",
        [*DONE, does("confirmed")],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "confirmed": "yes"}, "attempts": ONE_DONE},
    ),
    (
        "a check that it is not",
        [*DONE, does("contradicted")],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "confirmed": "no"}, "attempts": ONE_DONE},
    ),
    (
        "checked again, and the last check counts: no",
        [*DONE, does("confirmed"), does("contradicted"), does("replayed")],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "confirmed": "no"}, "attempts": ONE_DONE},
    ),
    (
        "checked again, and the last check counts: yes",
        [*DONE, does("contradicted"), does("confirmed")],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "confirmed": "yes"}, "attempts": ONE_DONE},
    ),
    (
        "until when another call is taken for the same",
        [OPENED, allowed(), started(dedupe_until_us=UNTIL), ended("succeeded")],
        {"counters": HAPPENED, "action": {**SUCCEEDED, "dedupe_until_us": UNTIL}, "attempts": ONE_DONE},
    ),
    (
        "the next start says until when",
        [OPENED, allowed(), started(dedupe_until_us=UNTIL), ended("in_doubt"), started(2, dedupe_until_us=UNTIL + 1)],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {
                "state": "EXECUTING", "state_n": 4, "attempts": 2, "unresolved": 1, "dedupe_until_us": UNTIL + 1,
            },
            "attempts": {**DOUBTED, "20": ("open", False)},
        },
    ),
    (
        "the next start says nothing of it",
        [OPENED, allowed(), started(dedupe_until_us=UNTIL), ended("in_doubt"), started(2)],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 4, "attempts": 2, "unresolved": 1},
            "attempts": {**DOUBTED, "20": ("open", False)},
        },
    ),
    (
        "attempts are active from their start to their end, and not between them",
        [
            OPENED, allowed(), started(later=100), ended("failed", later=107),
            does("retried", until_us=UNTIL, later=200), started(2, later=300), ended("in_doubt", 2, later=350),
            ended("late", 2, later=900),
        ],
        {
            "counters": {
                "proposed": 1, "unknown": 1, "taken": 1, "failed": 1, "failures": 1, "retried": 1, "active_us": 57,
            },
            "action": {"state": "UNKNOWN", "state_n": 6, "reason": "timeout", "attempts": 2, "unresolved": 1},
            "attempts": {"10": ("failed", False), "20": ("in_doubt", True)},
        },
    ),
    (
        "an attempt that is open has not been active yet",
        [OPENED, allowed(), started(later=100), charged(later=900)],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 2, "attempts": 1},
            "attempts": {"10": ("open", False)},
        },
    ),
    (
        "tokens and money are added up, other accounts are not the run's",
        [
            OPENED, charged(*amounts(tokens=100, money=7, stamps=3), *amounts(tokens=20)),
            charged(*amounts(money=-2)), charged(), allowed(),
        ],
        {
            "counters": {"proposed": 1, "tokens": 120, "money": 5},
            "action": {"state": "READY", "state_n": 4, "expires_at_us": UNTIL},
        },
    ),
    (
        "a halted run is charged all the same",
        [OPENED, charged(*amounts(tokens=1)), said("run_halted", reason="tokens"), charged(*amounts(tokens=2))],
        {"run": {"state": "HALTED", "reason": "tokens"}, "counters": {"tokens": 3}},
    ),
]  # fmt: skip


def cases() -> list[Case]:
    """Build these cases of the group."""
    return [*(told(name, events, **end) for name, events, end in STORIES), _overlapping()]


def _overlapping() -> Case:
    """Two actions at work at once: each attempt lasts by itself."""
    events = [
        OPENED, allowed(), allowed(OTHER), started(later=10),
        does("started", action=OTHER, attempt=1, fence=11, later=20, reserves=TAKEN),
        ended("succeeded", later=40), does("succeeded", action=OTHER, attempt=1, fence=11, later=70),
    ]  # fmt: skip
    return adds_up(
        "two attempts at once last each by itself",
        RUN,
        events,
        counters={"proposed": 2, "taken": 2, "succeeded": 2, "active_us": 30 + 50},
        actions={
            ACTION: row(state="SUCCEEDED", state_n=5, attempts=1),
            OTHER: row(state="SUCCEEDED", state_n=6, attempts=1, reserved=TAKEN),
        },
        attempts={"10": ("succeeded", False), "11": ("succeeded", False)},
    )
