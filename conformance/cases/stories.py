"""What a run's events add up to: stories told event by event, their ends written by hand."""

from typing import Any

from cases.case import ACTION, LEDGER, RUN, Case, a_hash
from cases.chains import said
from cases.telling import (
    BUSY,
    NOT_APPLIED,
    OPENED,
    OTHER,
    PAUSED,
    RETRIED,
    UNKNOWN_NOW,
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

# name, events, run {state, reason?}, counters that are not 0, actions, attempts, approvals, votes
STORIES: list[tuple[str, Told, dict[str, Any]]] = [
    ("an opened run", [OPENED], {}),
    (
        "allowed and not yet run",
        [OPENED, allowed()],
        {"counters": {"proposed": 1}, "action": {"state": "READY", "state_n": 1, "expires_at_us": UNTIL}},
    ),
    (
        "refused as it was proposed",
        [OPENED, does("proposed", outcome="refused", reason="policy_denied")],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 1, "reason": "policy_denied"},
        },
    ),
    (
        "executing",
        [OPENED, allowed(), started()],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 2, "attempts": 1},
            "attempts": {"10": ("open", False)},
        },
    ),
    (
        "done, and told again",
        [OPENED, allowed(), started(), ended("succeeded", payloads={"result": a_hash("r")}), does("replayed")],
        {
            "counters": {"proposed": 1, "taken": 1, "succeeded": 1},
            "action": {"state": "SUCCEEDED", "state_n": 3, "attempts": 1, "result_n": 3},
            "attempts": {"10": ("succeeded", False)},
        },
    ),
    (
        "failed twice in a row",
        [OPENED, allowed(), started(), ended("failed"), RETRIED, started(2), ended("failed", 2, code="x")],
        {
            "counters": {"proposed": 1, "failed": 2, "failures": 2, "retried": 1},
            "action": {"state": "FAILED", "state_n": 6, "reason": "x", "attempts": 2},
            "attempts": {"10": ("failed", False), "20": ("failed", False)},
        },
    ),
    (
        "a success ends a row of failures",
        [OPENED, allowed(), started(), ended("failed"), RETRIED, started(2), ended("succeeded", 2)],
        {
            "counters": {"proposed": 1, "taken": 1, "failed": 1, "succeeded": 1, "retried": 1},
            "action": {"state": "SUCCEEDED", "state_n": 6, "attempts": 2},
            "attempts": {"10": ("failed", False), "20": ("succeeded", False)},
        },
    ),
    (
        "in doubt",
        UNKNOWN_NOW,
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1},
            "action": {"state": "UNKNOWN", "state_n": 3, "reason": "timeout", "attempts": 1, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True)},
        },
    ),
    (
        "tried again while in doubt, and this time it is known not to have happened",
        [*UNKNOWN_NOW, started(2), ended("failed", 2)],
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1, "failed": 1, "failures": 1},
            "action": {"state": "UNKNOWN", "state_n": 5, "reason": "not_found", "attempts": 2, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True), "20": ("failed", False)},
        },
    ),
    (
        "tried again while in doubt, and done: no doubt is left",
        [*UNKNOWN_NOW, started(2), ended("succeeded", 2)],
        {
            "counters": {"proposed": 1, "taken": 1, "succeeded": 1},
            "action": {"state": "SUCCEEDED", "state_n": 5, "attempts": 2},
            "attempts": {"10": ("in_doubt", False), "20": ("succeeded", False)},
        },
    ),
    (
        "reconciled: it happened",
        [*UNKNOWN_NOW, does("reconciled", verdict="applied", attempts=[1], payloads={"result": a_hash("r")})],
        {
            "counters": {"proposed": 1, "taken": 1},
            "action": {"state": "SUCCEEDED", "state_n": 4, "reason": "reconciled", "attempts": 1, "result_n": 4},
            "attempts": {"10": ("in_doubt", False)},
        },
    ),
    (
        "reconciled: it did not, and may run again",
        [*UNKNOWN_NOW, NOT_APPLIED],
        {
            "counters": {"proposed": 1},
            "action": {"state": "READY", "state_n": 4, "attempts": 1, "expires_at_us": UNTIL},
            "attempts": {"10": ("in_doubt", False)},
        },
    ),
    (
        "a late result after that puts it in doubt again",
        [*UNKNOWN_NOW, NOT_APPLIED, ended("late")],
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1},
            "action": {"state": "UNKNOWN", "state_n": 5, "reason": "late", "attempts": 1, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True)},
        },
    ),
    (
        "a late result that proves that nothing happened moves nothing",
        [*UNKNOWN_NOW, NOT_APPLIED, ended("late", clean=True)],
        {
            "counters": {"proposed": 1},
            "action": {"state": "READY", "state_n": 4, "attempts": 1, "expires_at_us": UNTIL},
            "attempts": {"10": ("in_doubt", False)},
        },
    ),
    (
        "a late result on what was refused meanwhile is kept as a doubt",
        [*UNKNOWN_NOW, NOT_APPLIED, does("cancelled"), ended("late")],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 5, "reason": "cancelled", "attempts": 1, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True)},
        },
    ),
    (
        "cancelled after it had not happened, and it had",
        [
            *UNKNOWN_NOW, NOT_APPLIED, does("cancelled"), ended("late"),
            does("reconciled", verdict="applied", attempts=[1]),
        ],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 5, "reason": "happened", "attempts": 1},
            "attempts": {"10": ("in_doubt", False)},
        },
    ),
    (
        "given up",
        [*UNKNOWN_NOW, does("abandoned")],
        {
            "counters": {"proposed": 1, "taken": 1},
            "action": {"state": "ABANDONED", "state_n": 4, "reason": "abandoned", "attempts": 1, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True)},
        },
    ),
    (
        "not executed in time",
        [OPENED, allowed(), does("action_expired")],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 2, "reason": "action_expired"},
        },
    ),
    (
        "waits, each reason once, until it moves",
        [
            OPENED, allowed(), PAUSED, BUSY, PAUSED,
            started(), ended("failed"), PAUSED,
        ],
        {
            "counters": {"proposed": 1, "failed": 1, "failures": 1},
            "action": {"state": "FAILED", "state_n": 6, "reason": "not_found", "attempts": 1, "waited": ["paused"]},
            "attempts": {"10": ("failed", False)},
        },
    ),
    (
        "what executes when its run is halted ends all the same",
        [OPENED, allowed(), started(), said("run_halted"), ended("succeeded")],
        {
            "run": {"state": "HALTED", "reason": "aborted"},
            "counters": {"proposed": 1, "taken": 1, "succeeded": 1},
            "action": {"state": "SUCCEEDED", "state_n": 4, "attempts": 1},
            "attempts": {"10": ("succeeded", False)},
        },
    ),
    (
        "a halted run is closed",
        [OPENED, allowed(), said("run_halted", reason="aborted"), said("run_closed", reason="done")],
        {
            "run": {"state": "CLOSED", "reason": "done"},
            "counters": {"proposed": 1},
            "action": {"state": "READY", "state_n": 1, "expires_at_us": UNTIL},
        },
    ),
    (
        "a run closed with an outcome that is unknown, reconciled afterwards",
        [*UNKNOWN_NOW, said("run_closed"), NOT_APPLIED, does("refused", reason="run_closed")],
        {
            "run": {"state": "CLOSED", "reason": "closed"},
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 6, "reason": "run_closed", "attempts": 1},
            "attempts": {"10": ("in_doubt", False)},
        },
    ),
]  # fmt: skip


def cases() -> list[Case]:
    """Build the group."""
    found = [told(name, events, **end) for name, events, end in STORIES]
    return [*found, *_several(), _ledgers_own()]


def _several() -> list[Case]:
    """Two actions of one run, one of which takes the other's place."""
    both = [
        OPENED, allowed(), does("superseded", successor=OTHER), allowed(OTHER),
        does("started", action=OTHER, attempt=1, fence=11), said("charged"), said("run_halted", reason="aborted"),
    ]  # fmt: skip
    actions = {
        ACTION: row(state="REFUSED", state_n=2, reason="superseded"),
        OTHER: row(state="EXECUTING", state_n=4, attempts=1),
    }
    return [
        adds_up(
            "two actions, one in the place of the other, in a halted run",
            RUN,
            both,
            run={"state": "HALTED", "reason": "aborted"},
            counters={"proposed": 2, "refused": 1, "executing": 1, "taken": 1},
            actions=actions,
            attempts={"11": ("open", False)},
        )
    ]


def _ledgers_own() -> Case:
    kinds = ("ledger_created", "spec_registered", "policy_activated", "switched", "limited", "erased", "restored")
    return adds_up("the ledger's own chain", LEDGER, [said(kind) for kind in kinds])
