"""The state table of an action, and of a run. Nothing else changes a state.

The diagram in docs/states.md, the ``CHECK`` of the actions table and the conformance vectors are drawn from
here. An event that has no row in a state is refused and changes nothing; `STAYS` lists the events that are
recorded in a state without moving it.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where an action stands; ``NEW`` is before its first event and is never stored."""

    NEW = "NEW"
    READY = "READY"
    HELD = "HELD"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    REFUSED = "REFUSED"
    ABANDONED = "ABANDONED"


class RunState(StrEnum):
    """Where a run stands."""

    OPEN = "OPEN"
    HALTED = "HALTED"
    CLOSED = "CLOSED"


NEW, READY, HELD, EXECUTING = State.NEW, State.READY, State.HELD, State.EXECUTING
SUCCEEDED, FAILED, UNKNOWN = State.SUCCEEDED, State.FAILED, State.UNKNOWN
REFUSED, ABANDONED = State.REFUSED, State.ABANDONED

# A word after the dot is a field of the event's body (`proposed.outcome`, `reconciled.verdict`, `late` with
# `clean`), or, for `failed.unresolved`, that an earlier attempt of the same action may still have happened.
# fmt: off
MOVES: Mapping[tuple[State, str], State] = MappingProxyType({
    (NEW,       "proposed.allowed"):       READY,
    (NEW,       "proposed.held"):          HELD,
    (NEW,       "proposed.refused"):       REFUSED,

    (HELD,      "approved"):               READY,
    (HELD,      "rejected"):               REFUSED,
    (HELD,      "question_expired"):       REFUSED,
    (HELD,      "cancelled"):              REFUSED,
    (HELD,      "superseded"):             REFUSED,
    (HELD,      "refused"):                REFUSED,
    (HELD,      "held"):                   HELD,
    (HELD,      "late"):                   UNKNOWN,

    (READY,     "held"):                   HELD,
    (READY,     "refused"):                REFUSED,
    (READY,     "grant_expired"):          REFUSED,
    (READY,     "grant_revoked"):          REFUSED,
    (READY,     "action_expired"):         REFUSED,
    (READY,     "cancelled"):              REFUSED,
    (READY,     "superseded"):             REFUSED,
    (READY,     "started"):                EXECUTING,
    (READY,     "late"):                   UNKNOWN,

    (EXECUTING, "succeeded"):              SUCCEEDED,
    (EXECUTING, "failed"):                 FAILED,
    (EXECUTING, "failed.unresolved"):      UNKNOWN,
    (EXECUTING, "in_doubt"):               UNKNOWN,

    (FAILED,    "retried"):                READY,
    (FAILED,    "cancelled"):              REFUSED,
    (FAILED,    "late"):                   UNKNOWN,

    (UNKNOWN,   "started"):                EXECUTING,
    (UNKNOWN,   "reconciled.applied"):     SUCCEEDED,
    (UNKNOWN,   "reconciled.not_applied"): READY,
    (UNKNOWN,   "abandoned"):              ABANDONED,
})

STAYS: Mapping[str, frozenset[State]] = MappingProxyType({
    "voted":                  frozenset({HELD, UNKNOWN}),
    "vote_revoked":           frozenset({HELD, UNKNOWN}),
    "question_asked":         frozenset({UNKNOWN}),
    "question_expired":       frozenset({UNKNOWN}),
    "approved":               frozenset({UNKNOWN}),
    "rejected":               frozenset({UNKNOWN}),
    "grant_expired":          frozenset({UNKNOWN}),
    "grant_revoked":          frozenset({FAILED, UNKNOWN}),
    "waited":                 frozenset({READY, HELD, FAILED, UNKNOWN}),
    "replayed":               frozenset({SUCCEEDED, FAILED, REFUSED, ABANDONED}),
    "late":                   frozenset({EXECUTING, SUCCEEDED, UNKNOWN, REFUSED, ABANDONED}),
    "late.clean":             frozenset({READY, HELD, FAILED, EXECUTING, SUCCEEDED, UNKNOWN, REFUSED, ABANDONED}),
    "reconciled.applied":     frozenset({SUCCEEDED, REFUSED, ABANDONED}),
    "reconciled.not_applied": frozenset({EXECUTING, SUCCEEDED, REFUSED, ABANDONED}),
    "confirmed":              frozenset({SUCCEEDED}),
    "contradicted":           frozenset({SUCCEEDED}),
})

RUN_MOVES: Mapping[tuple[RunState, str], RunState] = MappingProxyType({
    (RunState.OPEN,   "run_halted"): RunState.HALTED,
    (RunState.OPEN,   "run_closed"): RunState.CLOSED,
    (RunState.HALTED, "run_closed"): RunState.CLOSED,
})
# fmt: on

STATES = tuple(state for state in State if state is not NEW)
EVENTS = tuple(sorted({event for _, event in MOVES} | set(STAYS)))
TERMINAL = frozenset(state for state in STATES if not any(source is state for source, _ in MOVES))
WAITING_FOR_A_PERSON = frozenset({HELD, UNKNOWN})


def advance(state: State, event: str) -> State | None:
    """Return where ``event`` leads from ``state``, or None where the table has no row for it.

    Args:
        state: where the action stands.
        event: an event's type, with its qualifier where the table names one (``reconciled.applied``).
    """
    moved = MOVES.get((state, event))
    if moved is not None:
        return moved
    return state if state in STAYS.get(event, frozenset()) else None


def advance_run(state: RunState, event: str) -> RunState | None:
    """Return where ``event`` leads a run, or None where it does not apply."""
    return RUN_MOVES.get((state, event))


def mermaid() -> str:
    """Draw the action's table as a Mermaid state diagram, one arrow per pair of states."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (source, event), target in MOVES.items():
        arrows.setdefault((source, target), []).append(event)
    lines = ["stateDiagram-v2"]
    for (source, target), events in arrows.items():
        start = "[*]" if source is NEW else source.value
        lines.append(f"    {start} --> {target.value}: {', '.join(events)}")
    lines += [f"    {state.value} --> [*]" for state in STATES if state in TERMINAL]
    return "\n".join(lines)
