"""What a run's events cannot add up to: whoever folds them refuses the first that does not fit."""

from cases.case import LEDGER, RUN, Case, a_hash, refused
from cases.chains import said
from cases.telling import (
    FIRST,
    NOT_APPLIED,
    OPENED,
    SECOND,
    UNDER_GRANT,
    UNKNOWN_NOW,
    Told,
    allowed,
    approved,
    does,
    ended,
    folding,
    held,
    started,
    voted,
)

TAKEN = [{"account": "refunds", "amount": 1}]
LATE_AFTER_ALL = [*UNKNOWN_NOW, NOT_APPLIED, ended("late")]
TWICE_UNKNOWN = [*UNKNOWN_NOW, started(2), ended("in_doubt", 2)]

# name, events, the position that cannot be
IMPOSSIBLE: list[tuple[str, Told, int]] = [
    ("a run that is not opened", [allowed()], 0),
    ("a run opened twice", [OPENED, OPENED], 1),
    ("a run of a tenant that is the ledger's own", [said("run_opened", tenant="$ledger")], 0),
    ("an event of the ledger's chain in a run's", [OPENED, said("switched")], 1),
    ("time that goes back", [said("run_opened", later=1), said("charged")], 1),
    ("a run closed twice", [OPENED, said("run_closed"), said("run_closed")], 2),
    ("a run halted twice", [OPENED, said("run_halted"), said("run_halted")], 2),
    ("a run closed twice, halted before", [OPENED, said("run_halted"), said("run_closed"), said("run_closed")], 3),
    ("a run halted again, closed meanwhile", [OPENED, said("run_halted"), said("run_closed"), said("run_halted")], 3),
    ("a run halted after it was closed", [OPENED, said("run_closed"), said("run_halted")], 2),
    ("an action that was never proposed", [OPENED, started()], 1),
    ("an action proposed twice", [OPENED, allowed(), allowed()], 2),
    ("a start of what is held", [OPENED, held(), started()], 2),
    ("a start of what has succeeded", [OPENED, allowed(), started(), ended("succeeded"), started(2)], 4),
    ("an attempt out of turn", [OPENED, allowed(), started(2)], 2),
    ("an end of what has not started", [OPENED, allowed(), ended("succeeded")], 2),
    ("an end with another fence", [OPENED, allowed(), started(), ended("succeeded", fence=11)], 3),
    ("an end of another attempt", [OPENED, allowed(), started(), ended("failed", 2)], 3),
    ("a late result of a running attempt", [OPENED, allowed(), started(), ended("late")], 3),
    ("a late result of no attempt", [*UNKNOWN_NOW, ended("late", 2)], 4),
    ("a start in doubt that takes once more", [*UNKNOWN_NOW, started(2, reserves=TAKEN)], 4),
    ("a start in doubt that takes what none took before", [*LATE_AFTER_ALL, started(2, reserves=TAKEN)], 6),
    ("a start under an approval that was not granted", [OPENED, allowed(), started(approval=FIRST)], 2),
    ("a grant used twice", [*UNDER_GRANT, ended("in_doubt"), started(2, approval=FIRST)], 5),
    ("a grant of another question", [OPENED, held(), approved(SECOND)], 2),
    ("a vote on what was not shown", [OPENED, held(), does("voted", approval=FIRST, shown=a_hash("x"))], 2),
    ("a vote on what was decided", [OPENED, held(), does("rejected", approval=FIRST), voted(FIRST, "approve", "v")], 3),
    ("a vote taken back that was never cast", [OPENED, held(), does("vote_revoked", approval=FIRST)], 2),
    ("a reconciliation of another attempt", [*UNKNOWN_NOW, does("reconciled", attempts=[2])], 4),
    ("a reconciliation that leaves a doubt behind", [*TWICE_UNKNOWN, does("reconciled", attempts=[2])], 6),
    ("a reconciliation of what is not in doubt", [OPENED, allowed(), does("reconciled", attempts=[])], 2),
    ("a cancellation of what executes", [OPENED, allowed(), started(), does("cancelled")], 3),
]  # fmt: skip


IN_THE_LEDGERS: list[tuple[str, Told, int]] = [
    ("a run's event in the ledger's chain", [said("ledger_created"), said("run_halted")], 1),
    ("the ledger's first event again", [said("ledger_created"), said("ledger_created")], 1),
    ("a chain of the ledger's that is not begun", [said("switched")], 0),
]


def cases() -> list[Case]:
    """Build the group's second half."""
    told = [(RUN, *one) for one in IMPOSSIBLE] + [(LEDGER, *one) for one in IN_THE_LEDGERS]
    return [
        refused(f"impossible: {name}", "fold", folding(run, events), "damaged", at=at) for run, name, events, at in told
    ]
