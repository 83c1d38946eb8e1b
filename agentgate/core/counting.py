"""What an event does to its run's row: head, state and counters."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from agentgate.bodies import ACTION_TYPES, LEDGER_TYPES, RUN_TYPES
from agentgate.core.records import TAKEN, Counters, RunRecord
from agentgate.errors import Damaged
from agentgate.event import Event
from agentgate.states import RunState, State, advance_run

LEDGER = "$ledger"  # the tenant, and the name, of the chain that belongs to no run
_FIRST = frozenset({"ledger_created", "run_opened"})
_OF_LEDGER = LEDGER_TYPES - _FIRST
_OF_RUN = (ACTION_TYPES | RUN_TYPES) - _FIRST


def fold_run(
    run: RunRecord | None, event: Event, head: bytes, *, was: State | None, now: State | None, took_us: int = 0
) -> RunRecord:
    """Return a run's record after ``event``.

    Args:
        run: the record before; None for the chain's first event.
        event: the next link.
        head: its hash, the chain's new head.
        was: the action's state before, None where the event is about no action.
        now: the action's state after.
        took_us: how long the attempt that it ends has lasted.

    Raises:
        Damaged: the run cannot take this event, or time went back.
    """
    _check_place(run, event)
    if run is None:
        return _opened(event, head)
    if event.at_us < run.at_us:
        raise Damaged(f"run {run.id}", f"event {event.n} is older than the one before it")
    state, reason = run.state, run.reason
    if event.type in {"run_halted", "run_closed"}:
        moved = advance_run(run.state, event.type)
        if moved is None:
            raise Damaged(f"run {run.id}", f"event {event.n} ({event.type}) cannot follow {run.state}")
        state, reason = moved, str(event.body["reason"])
    return replace(
        run,
        state=state,
        reason=reason,
        n=event.n,
        head=head,
        at_us=event.at_us,
        counters=_counted(run.counters, event, was, now, took_us),
    )


def _check_place(run: RunRecord | None, event: Event) -> None:
    """Refuse an event that stands in another kind of chain, or at another place, than its type belongs to."""
    if run is None:
        fits = event.type == "ledger_created" or (
            event.type == "run_opened" and not str(event.body["tenant"]).startswith("$")
        )
    else:
        fits = event.type in (_OF_LEDGER if run.tenant == LEDGER else _OF_RUN)
    if not fits:
        raise Damaged(f"run {event.run}", f"event {event.n} ({event.type}) does not belong there")


def _opened(event: Event, head: bytes) -> RunRecord:
    body: Mapping[str, Any] = event.body
    return RunRecord(
        id=event.run,
        tenant=body.get("tenant", LEDGER),
        name=body.get("name", LEDGER),
        principal=body.get("principal", LEDGER),
        limits=MappingProxyType(dict(body.get("limits", {}))),
        opened_at_us=event.at_us,
        state=RunState.OPEN,
        reason=None,
        n=event.n,
        head=head,
        at_us=event.at_us,
        counters=Counters(),
    )


def _counted(counters: Counters, event: Event, was: State | None, now: State | None, took_us: int) -> Counters:
    if event.type == "charged":
        return _charged(counters, event.body)
    if was is None or now is None:
        return counters
    failed, succeeded = event.type == "failed", event.type == "succeeded"

    def step(state: State) -> int:
        return (now is state) - (was is state)

    return Counters(
        proposed=counters.proposed + (was is State.NEW),
        refused=counters.refused + step(State.REFUSED),
        pending=counters.pending + step(State.HELD),
        executing=counters.executing + step(State.EXECUTING),
        unknown=counters.unknown + step(State.UNKNOWN),
        taken=counters.taken + (now in TAKEN) - (was in TAKEN),
        succeeded=counters.succeeded + succeeded,
        failed=counters.failed + failed,
        failures=0 if succeeded else counters.failures + failed,
        rejected=counters.rejected + (event.type == "rejected" and was is State.HELD),
        retried=counters.retried + (event.type == "retried"),
        active_us=counters.active_us + took_us,
        tokens=counters.tokens,
        money=counters.money,
    )


def _charged(counters: Counters, body: Mapping[str, Any]) -> Counters:
    """Add what a loop says that it has spent; other accounts than these two are kept elsewhere."""
    spent = {"tokens": 0, "money": 0}
    for one in body["charges"]:
        if one["account"] in spent:
            spent[one["account"]] += one["amount"]
    return replace(counters, tokens=counters.tokens + spent["tokens"], money=counters.money + spent["money"])
