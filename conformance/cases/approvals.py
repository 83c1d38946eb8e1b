"""What events add up to where people are asked: stories of approvals, votes and questions, their ends by hand."""

from typing import Any

from cases.bodies import FULLY_DECIDED
from cases.case import Case, a_hash
from cases.telling import (
    FIRST,
    OPENED,
    SECOND,
    UNDER_GRANT,
    UNKNOWN_NOW,
    UNTIL,
    Told,
    approved,
    asked,
    does,
    ended,
    held,
    questioned,
    started,
    told,
    voted,
)

# name, events, run {state, reason?}, counters that are not 0, actions, attempts, approvals, votes
STORIES: list[tuple[str, Told, dict[str, Any]]] = [
    (
        "held, with a vote taken back",
        [OPENED, held(), voted(FIRST, "approve", "one"), does("vote_revoked", approval=FIRST, vote=a_hash("one"))],
        {
            "counters": {"proposed": 1, "pending": 1},
            "action": {"state": "HELD", "state_n": 1},
            "approvals": {FIRST: "pending"},
            "votes": {"2": False},
        },
    ),
    (
        "approved",
        [OPENED, held(), voted(FIRST, "approve", "one"), approved()],
        {
            "counters": {"proposed": 1},
            "action": {"state": "READY", "state_n": 3, "expires_at_us": UNTIL + 5},
            "approvals": {FIRST: "granted"},
            "votes": {"2": True},
        },
    ),
    (
        "a grant in use",
        UNDER_GRANT,
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 3, "attempts": 1},
            "attempts": {"10": ("open", False)},
            "approvals": {FIRST: "used"},
        },
    ),
    (
        "a known failure gives the grant back",
        [*UNDER_GRANT, ended("failed")],
        {
            "counters": {"proposed": 1, "failed": 1, "failures": 1},
            "action": {"state": "FAILED", "state_n": 4, "reason": "not_found", "attempts": 1},
            "attempts": {"10": ("failed", False)},
            "approvals": {FIRST: "granted"},
        },
    ),
    (
        "a doubt does not",
        [*UNDER_GRANT, ended("in_doubt", code="crashed")],
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1},
            "action": {"state": "UNKNOWN", "state_n": 4, "reason": "crashed", "attempts": 1, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True)},
            "approvals": {FIRST: "used"},
        },
    ),
    (
        "a policy that asks for something else voids the grant",
        [OPENED, held(), approved(), does("held", **FULLY_DECIDED, approval=asked(SECOND))],
        {
            "counters": {"proposed": 1, "pending": 1},
            "action": {"state": "HELD", "state_n": 3},
            "approvals": {FIRST: "void", SECOND: "pending"},
        },
    ),
    (
        "rejected",
        [OPENED, held(), voted(FIRST, "reject", "one"), does("rejected", approval=FIRST)],
        {
            "counters": {"proposed": 1, "refused": 1, "rejected": 1},
            "action": {"state": "REFUSED", "state_n": 3, "reason": "rejected"},
            "approvals": {FIRST: "rejected"},
            "votes": {"2": True},
        },
    ),
    (
        "nobody answered",
        [OPENED, held(), does("question_expired", approval=FIRST)],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 2, "reason": "question_expired"},
            "approvals": {FIRST: "expired"},
        },
    ),
    (
        "a grant that expired",
        [OPENED, held(), approved(), does("grant_expired", approval=FIRST)],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 3, "reason": "grant_expired"},
            "approvals": {FIRST: "expired"},
        },
    ),
    (
        "a grant that was taken back",
        [OPENED, held(), approved(), does("grant_revoked", approval=FIRST)],
        {
            "counters": {"proposed": 1, "refused": 1},
            "action": {"state": "REFUSED", "state_n": 3, "reason": "grant_revoked"},
            "approvals": {FIRST: "revoked"},
        },
    ),
    (
        "an operator's question about an unknown outcome, answered: run it again",
        [
            *UNKNOWN_NOW, questioned(FIRST, attempt=1), voted(FIRST, "again", "one"),
            approved(), started(2, approval=FIRST), ended("succeeded", 2),
        ],
        {
            "counters": {"proposed": 1, "taken": 1, "succeeded": 1},
            "action": {"state": "SUCCEEDED", "state_n": 8, "attempts": 2},
            "attempts": {"10": ("in_doubt", False), "20": ("succeeded", False)},
            "approvals": {FIRST: "used"},
            "votes": {"5": True},
        },
    ),
    (
        "a question that was rejected leaves the outcome unknown",
        [*UNKNOWN_NOW, questioned(FIRST, attempt=1), does("rejected", approval=FIRST)],
        {
            "counters": {"proposed": 1, "unknown": 1, "taken": 1},
            "action": {"state": "UNKNOWN", "state_n": 3, "reason": "timeout", "attempts": 1, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True)},
            "approvals": {FIRST: "rejected"},
        },
    ),
    (
        "what a policy asks for before another attempt hangs on the unknown outcome",
        [*UNKNOWN_NOW, questioned(FIRST), approved(), started(2, approval=FIRST)],
        {
            "counters": {"proposed": 1, "executing": 1, "taken": 1},
            "action": {"state": "EXECUTING", "state_n": 6, "attempts": 2, "unresolved": 1},
            "attempts": {"10": ("in_doubt", True), "20": ("open", False)},
            "approvals": {FIRST: "used"},
        },
    ),
]  # fmt: skip


def cases() -> list[Case]:
    """Build the group's part about people."""
    return [told(name, events, **end) for name, events, end in STORIES]
