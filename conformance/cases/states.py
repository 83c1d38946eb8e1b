"""Every state of an action and of a run, under every event: where it leads, or that it is refused."""

from cases.case import Case, accepted, refused

# The table, written by hand: from | event | to.
MOVES = """
    NEW        proposed.allowed        READY
    NEW        proposed.held           HELD
    NEW        proposed.refused        REFUSED
    HELD       approved                READY
    HELD       rejected                REFUSED
    HELD       question_expired        REFUSED
    HELD       cancelled               REFUSED
    HELD       superseded              REFUSED
    HELD       refused                 REFUSED
    HELD       held                    HELD
    HELD       late                    UNKNOWN
    READY      held                    HELD
    READY      refused                 REFUSED
    READY      grant_expired           REFUSED
    READY      grant_revoked           REFUSED
    READY      action_expired          REFUSED
    READY      cancelled               REFUSED
    READY      superseded              REFUSED
    READY      started                 EXECUTING
    READY      late                    UNKNOWN
    EXECUTING  succeeded               SUCCEEDED
    EXECUTING  failed                  FAILED
    EXECUTING  failed.unresolved       UNKNOWN
    EXECUTING  in_doubt                UNKNOWN
    FAILED     retried                 READY
    FAILED     cancelled               REFUSED
    FAILED     late                    UNKNOWN
    UNKNOWN    started                 EXECUTING
    UNKNOWN    reconciled.applied      SUCCEEDED
    UNKNOWN    reconciled.not_applied  READY
    UNKNOWN    abandoned               ABANDONED
"""
# Events that are recorded in these states and leave them as they are.
STAYS = """
    voted                   HELD UNKNOWN
    vote_revoked            HELD UNKNOWN
    question_asked          UNKNOWN
    question_expired        UNKNOWN
    approved                UNKNOWN
    rejected                UNKNOWN
    grant_expired           UNKNOWN
    grant_revoked           FAILED UNKNOWN
    waited                  READY HELD FAILED UNKNOWN
    replayed                SUCCEEDED FAILED REFUSED ABANDONED
    late                    EXECUTING SUCCEEDED UNKNOWN REFUSED ABANDONED
    late.clean              READY HELD FAILED EXECUTING SUCCEEDED UNKNOWN REFUSED ABANDONED
    reconciled.applied      SUCCEEDED REFUSED ABANDONED
    reconciled.not_applied  EXECUTING SUCCEEDED REFUSED ABANDONED
    confirmed               SUCCEEDED
    contradicted            SUCCEEDED
"""
STATES = ("NEW", "READY", "HELD", "EXECUTING", "SUCCEEDED", "FAILED", "UNKNOWN", "REFUSED", "ABANDONED")
RUN_MOVES = {
    ("OPEN", "run_halted"): "HALTED",
    ("OPEN", "run_closed"): "CLOSED",
    ("HALTED", "run_closed"): "CLOSED",
}
NO_ROW = "no_row"


def cases() -> list[Case]:
    """Build the group."""
    leads = {(source, event): target for source, event, target in map(str.split, MOVES.strip().splitlines())}
    for event, *states in map(str.split, STAYS.strip().splitlines()):
        leads |= {(state, event): state for state in states}
    events = sorted({event for _, event in leads} | {"exploded", "proposed"})
    found = [_case("state", state, event, leads.get((state, event))) for state in STATES for event in events]
    run_events = ("run_halted", "run_closed", "run_opened", "charged", "proposed")
    pairs = [(state, event) for state in ("OPEN", "HALTED", "CLOSED") for event in run_events]
    return found + [_case("run_state", state, event, RUN_MOVES.get((state, event))) for state, event in pairs]


def _case(op: str, state: str, event: str, target: str | None) -> Case:
    given = {"state": state, "event": event}
    if target is None:
        return refused(f"{state}, {event}: no row", op, given, NO_ROW)
    return accepted(f"{state}, {event}: {target}", op, given, state=target)
