"""The state table against design.md §3, written out again here by hand: never made from the code it tests."""

import itertools

import pytest

from agentgate.states import (
    EVENTS,
    MOVES,
    RUN_MOVES,
    STATES,
    STAYS,
    TERMINAL,
    RunState,
    State,
    advance,
    advance_run,
    mermaid,
)

# design §3, "States", row by row: from | event | to.
TABLE = """
    NEW       proposed.allowed        READY
    NEW       proposed.held           HELD
    NEW       proposed.refused        REFUSED
    HELD      approved                READY
    HELD      rejected                REFUSED
    HELD      question_expired        REFUSED
    HELD      cancelled               REFUSED
    HELD      superseded              REFUSED
    HELD      refused                 REFUSED
    HELD      held                    HELD
    READY     held                    HELD
    READY     refused                 REFUSED
    READY     grant_expired           REFUSED
    READY     grant_revoked           REFUSED
    READY     action_expired          REFUSED
    READY     cancelled               REFUSED
    READY     superseded              REFUSED
    READY     started                 EXECUTING
    READY     late                    UNKNOWN
    HELD      late                    UNKNOWN
    FAILED    late                    UNKNOWN
    EXECUTING succeeded               SUCCEEDED
    EXECUTING failed                  FAILED
    EXECUTING failed.unresolved       UNKNOWN
    EXECUTING in_doubt                UNKNOWN
    FAILED    retried                 READY
    FAILED    cancelled               REFUSED
    UNKNOWN   started                 EXECUTING
    UNKNOWN   reconciled.applied      SUCCEEDED
    UNKNOWN   reconciled.not_applied  READY
    UNKNOWN   abandoned               ABANDONED
"""

# The prose around the table: events that are recorded where they change no state.
#   "late marks its attempt unresolved in every state"; a clean NoEffect moves nothing anywhere
#   "reconcile is possible from UNKNOWN and on an attempt that a late reopened" (§5), "it happened" once none runs
#   "An operator's question hangs on the UNKNOWN action and does not move it; its rejection or expiry leaves UNKNOWN"
#   "A vote revoked while HELD moves nothing"; waits "no transition, recorded once per reason" (§8)
#   "confirmed, contradicted, late are further events that change no terminal state"; erasing needs "an action at rest"
PROSE = """
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

EXPECTED = {
    (State(source), event): State(target) for source, event, target in map(str.split, TABLE.strip().splitlines())
}
EXPECTED |= {
    (State(word), event): State(word) for event, *words in map(str.split, PROSE.strip().splitlines()) for word in words
}
ALL_EVENTS = sorted({event for _, event in EXPECTED})


@pytest.mark.parametrize("event", ALL_EVENTS)
@pytest.mark.parametrize("state", list(State))
def test_every_pair_is_a_row_of_the_design_or_is_refused(state: State, event: str) -> None:
    assert advance(state, event) is EXPECTED.get((state, event))


def test_the_table_knows_no_event_beyond_the_designs() -> None:
    assert list(EVENTS) == ALL_EVENTS
    assert all(advance(state, "exploded") is None for state in State)


def test_no_event_both_moves_a_state_and_is_recorded_in_it() -> None:
    both = {(state, event) for event, states in STAYS.items() for state in states} & set(MOVES)
    assert both == set()


def test_the_terminal_states_are_those_without_a_way_out() -> None:
    assert {State.SUCCEEDED, State.REFUSED, State.ABANDONED} == TERMINAL


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_reached_and_leads_to_an_end(state: State) -> None:
    assert state in _reachable(State.NEW)
    assert state in TERMINAL or TERMINAL & _reachable(state)


def _reachable(state: State) -> set[State]:
    found, edge = set[State](), {state}
    while edge:
        edge = {target for (source, _), target in MOVES.items() if source in edge} - found
        found |= edge
    return found


def test_no_way_leads_from_a_possible_effect_to_refused_but_through_not_applied_or_a_known_failure() -> None:
    # "Once an attempt may have happened, REFUSED is reachable only after a recorded 'not applied'."
    known = {"reconciled.not_applied", "failed"}
    edge, found = {State.EXECUTING, State.UNKNOWN}, set[State]()
    while edge:
        found |= edge
        edge = {target for (source, event), target in MOVES.items() if source in edge and event not in known} - found
    assert State.REFUSED not in found


def test_a_new_action_is_no_state_that_is_stored() -> None:
    assert State.NEW not in STATES
    assert not any(target is State.NEW for target in MOVES.values())


RUN_EXPECTED = {
    (RunState.OPEN, "run_halted"): RunState.HALTED,
    (RunState.OPEN, "run_closed"): RunState.CLOSED,
    (RunState.HALTED, "run_closed"): RunState.CLOSED,
}


@pytest.mark.parametrize(
    ("state", "event"), list(itertools.product(RunState, ["run_halted", "run_closed", "run_opened", "charged"]))
)
def test_a_run_is_halted_once_and_closed_once_and_never_opened_again(state: RunState, event: str) -> None:
    assert advance_run(state, event) is RUN_EXPECTED.get((state, event))
    assert set(RUN_MOVES) == set(RUN_EXPECTED)


def test_the_diagram_draws_every_move_and_every_end() -> None:
    lines = mermaid().splitlines()
    assert lines[0] == "stateDiagram-v2"
    drawn = {
        (arrow.split(" --> ")[0].strip(), target, event)
        for line in lines
        if ": " in line
        for arrow, events in [line.split(": ")]
        for target in [arrow.split(" --> ")[1]]
        for event in events.split(", ")
    }
    assert drawn == {("[*]" if s is State.NEW else s.value, t.value, e) for (s, e), t in MOVES.items()}
    assert {line.split(" --> ")[0].strip() for line in lines if line.endswith("--> [*]")} == {
        state.value for state in TERMINAL
    }
