"""Reading a ledger for people and scripts: what stands in it as values, in short snapshots. Nothing is written.

An action is shown only where its row agrees with its last event and its payloads are the ones the events name;
the whole record is checked by `verify`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.engine import Connection

from agentgate.chain import Link
from agentgate.clock import SystemClock, to_datetime
from agentgate.core.claiming import check_row
from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord, AttemptRecord, RunRecord
from agentgate.core.veiling import Veil
from agentgate.digests import document_digest
from agentgate.errors import Damaged, NotFound
from agentgate.event import Event, decode, event_hash
from agentgate.gate.answers import Reader
from agentgate.gate.beside import (
    bytes_beside,
    shown_arguments,
    text_of,
    texts_of,
    unopened,
    value_of,
    values_beside,
    veil_of_action,
)
from agentgate.gate.ledger import Ledger
from agentgate.gate.opening import open_ledger
from agentgate.gate.views import ActionSummary, ActionView, ApprovalView, AttemptView, EventView, RunSummary, Step
from agentgate.observation import Observation
from agentgate.outcome import Done, Failed, Outcome, Refused, Unknown
from agentgate.policy.decision import Decision
from agentgate.sealing import SealingSource
from agentgate.store import actions, events, runs
from agentgate.tools.spec import from_document

_PROPOSED = ("arguments", "supplied", "raw", "provenance", "facts")


@contextmanager
def opened(url: str, *, sealing: SealingSource | None = None) -> Iterator[Ledger]:
    """Open a ledger to read it; what is sealed is read as far as its keys are there.

    Raises:
        WrongSchema: its tables are missing, older or newer than this code's.
        UnsafeStore: there is no such database, or it lies where a ledger must not.
    """
    ledger = open_ledger(url, SystemClock(), read_only=True, sealing=sealing)
    try:
        yield ledger
    finally:
        ledger.database.close()


def list_runs(ledger: Ledger, *, tenant: str | None) -> Iterator[RunSummary]:
    """Read the runs of a tenant, or of all, oldest first; the ledger's own chain is none."""
    after = ""
    while True:
        with ledger.database.read() as connection:
            page = runs.pages(connection, after=after)
            found = [run for run in page if run.id != ledger.id and tenant in (None, run.tenant)]
            summaries = [_run_summary(_reader(ledger, connection), run) for run in found]
        if not page:
            return
        yield from summaries
        after = page[-1].id


def find(ledger: Ledger, what: str, *, tenant: str) -> RunSummary | ActionView:
    """Read what an id or a name stands for: an action's id, a run's id, or a run's name, in this order.

    Raises:
        NotFound: there is neither in this tenant.
        Damaged: the action's row contradicts the record.
    """
    with ledger.database.read() as connection:
        file = actions.file(connection, what)
        if file is not None and file.action.tenant == tenant:
            return _action_view(_reader(ledger, connection), file)
        run = _run(connection, ledger, what, tenant)
        if run is None:
            raise NotFound("action or run", what)
        return _run_summary(_reader(ledger, connection), run)


def find_run(ledger: Ledger, what: str, *, tenant: str) -> RunSummary:
    """Read a run by its id or its name; the ledger's own chain by the ledger's id, in any tenant.

    Raises:
        NotFound: there is none in this tenant.
    """
    with ledger.database.read() as connection:
        run = _run(connection, ledger, what, tenant)
        if run is None:
            raise NotFound("run", what)
        return _run_summary(_reader(ledger, connection), run)


def list_actions(ledger: Ledger, run: str) -> Iterator[ActionSummary]:
    """Read the actions of a run, by its id, oldest first."""
    after = ""
    while True:
        with ledger.database.read() as connection:
            page = actions.of_run(connection, run, after=after)
        if not page:
            return
        yield from map(_action_summary, page)
        after = page[-1].id


def list_events(ledger: Ledger, run: str, *, action: str | None = None) -> Iterator[EventView]:
    """Read a run's chain, or what in it is about one action, in order.

    Args:
        ledger: the record.
        run: the run's id.
        action: the action's id.

    Raises:
        Damaged: an event is not what its hash says.
    """
    start, end = _span(ledger, run, action)
    while True:
        with ledger.database.read() as connection:
            page = events.links(connection, run, start=start)
        for link in page:
            if link.n > end:
                return
            event = _decoded(run, link)
            if action in (None, event.action):
                yield _event_view(event, link)
        if not page:
            return
        start = page[-1].n + 1


def _span(ledger: Ledger, run: str, action: str | None) -> tuple[int, int]:
    """Return the first and the last place in the chain that can matter."""
    with ledger.database.read() as connection:
        record = runs.read(connection, run)
        found = None if action is None else actions.read(connection, action)
    if record is None:
        raise NotFound("run", run)
    return (0, record.n) if found is None else (found.proposed_n, found.last_n)


def _run(connection: Connection, ledger: Ledger, what: str, tenant: str) -> RunRecord | None:
    found = runs.read(connection, what)
    if found is not None and (found.tenant == tenant or found.id == ledger.id):
        return found
    return runs.find(connection, tenant=tenant, name=what)


def _reader(ledger: Ledger, connection: Connection) -> Reader:
    return Reader(connection=connection, sealing=ledger.sealing)


def _run_summary(reader: Reader, run: RunRecord) -> RunSummary:
    stored = events.payload(reader.connection, run.id, 0, "texts")
    if stored is not None and stored.is_sealed:
        stored = reader.readable(run.id, 0, "texts")
    return RunSummary(
        id=run.id,
        tenant=run.tenant,
        name=run.name,
        principal=run.principal,
        goal=None if stored is None else texts_of(value_of(stored.content)).get("goal"),
        state=run.state.value,
        reason=run.reason,
        opened_at=to_datetime(run.opened_at_us),
        last_at=to_datetime(run.at_us),
        events=run.n + 1,
        limits=run.limits,
        counters=run.counters,
    )


def _action_summary(action: ActionRecord) -> ActionSummary:
    return ActionSummary(
        id=action.id,
        run=action.run,
        namespace=action.namespace,
        tool=action.tool,
        key=action.key,
        revision=action.revision,
        state=action.state.value,
        reason=action.reason,
        attempts=action.attempts,
        proposed_at=to_datetime(action.proposed_at_us),
    )


def _action_view(reader: Reader, file: ActionFile) -> ActionView:
    action, connection = file.action, reader.connection
    check_row(action, events.link(connection, action.run, action.state_n))
    run = runs.read(connection, action.run)
    if run is None:
        raise Damaged(f"action {action.id}", "its run is missing")
    told = {n: _read_event(connection, action.run, n) for n in _milestones(file)}
    sealed = [kind for event in told.values() for kind in unopened(reader, event)]
    proposed = told[action.proposed_n]
    veil = veil_of_action(reader, proposed)
    return ActionView(
        summary=_action_summary(action),
        run=_run_summary(reader, run),
        principal=action.principal,
        digest=action.digest.hex(),
        risk=_risk(connection, action),
        expires_at=None if action.expires_at_us is None else to_datetime(action.expires_at_us),
        waited=action.waited,
        unresolved=action.unresolved,
        proposed=shown_arguments(reader, action, veil, values_beside(reader, proposed, _PROPOSED)),
        sealed=tuple(dict.fromkeys(sealed)),
        observation=_observed(reader.outcome(file)),
        attempts=tuple(_attempt_view(reader, told, action, attempt) for _, attempt in sorted(file.attempts.items())),
        approvals=tuple(
            _approval_view(reader, told, approval)
            for approval in sorted(file.approvals.values(), key=lambda one: one.asked_n)
        ),
        steps=tuple(_step(reader, veil, event) for _, event in sorted(told.items())),
    )


def _risk(connection: Connection, action: ActionRecord) -> str | None:
    stored = None if action.spec is None else events.document(connection, action.spec)
    if stored is None:
        return None
    if stored[0] != "spec" or document_digest("spec", stored[1]) != action.spec:
        raise Damaged(f"action {action.id}", "its spec is not what its digest says")
    return from_document(stored[1]).risk


def _observed(outcome: Outcome | None) -> Observation | None:
    if isinstance(outcome, Done):
        return outcome.observation
    if isinstance(outcome, Failed | Refused | Unknown):
        return Observation(status="error", error=outcome.error)
    return None


def _milestones(file: ActionFile) -> frozenset[int]:
    """Return where in the chain an action's own turning points lie; the cost of a look does not grow with the run."""
    action = file.action
    places = {action.proposed_n, action.state_n, action.last_n, action.result_n, *file.votes}
    for attempt in file.attempts.values():
        places |= {attempt.started_n, attempt.ended_n, attempt.late_n}
    for approval in file.approvals.values():
        places |= {approval.asked_n, approval.state_n}
    return frozenset(place for place in places if place is not None)


def _attempt_view(
    reader: Reader, told: Mapping[int, EventView], action: ActionRecord, attempt: AttemptRecord
) -> AttemptView:
    ended = None if attempt.ended_n is None else told[attempt.ended_n].at
    return AttemptView(
        number=attempt.number,
        fence=attempt.fence,
        state=attempt.state,
        unresolved=attempt.unresolved,
        holder=attempt.holder,
        started_at=told[attempt.started_n].at,
        ended_at=ended,
        lease_until=to_datetime(attempt.lease_until_us),
        late=reader.late(action, attempt),
    )


def _approval_view(reader: Reader, told: Mapping[int, EventView], approval: ApprovalRecord) -> ApprovalView:
    shown = bytes_beside(reader, told[approval.asked_n], "presentation")
    return ApprovalView(
        id=approval.id,
        kind=approval.kind,
        state=approval.state,
        digest=approval.digest.hex(),
        asked_at=to_datetime(approval.asked_at_us),
        expires_at=to_datetime(approval.expires_at_us),
        shown=None if shown is None else text_of(shown),
    )


def _step(reader: Reader, veil: Veil, event: EventView) -> Step:
    found = {kind: veil.json(value) for kind, value in values_beside(reader, event, ("texts", "evidence")).items()}
    texts = texts_of(found.get("texts"))
    decided = event.body.get("decision")
    return Step(
        event=event,
        decision=None if decided is None else Decision.from_json(decided, texts),
        texts={name: text for name, text in texts.items() if not name.startswith("reasons.")},
        evidence=found.get("evidence"),
    )


def _read_event(connection: Connection, run: str, n: int) -> EventView:
    link = events.link(connection, run, n)
    if link is None:
        raise Damaged(f"run {run}", f"its event {n} is missing")
    return _event_view(_decoded(run, link), link)


def _decoded(run: str, link: Link) -> Event:
    event = decode(link.encoded)
    if event_hash(link.encoded) != link.hash or event.run != run or event.n != link.n:
        raise Damaged(f"run {run}", f"its event {link.n} is not what its hash says")
    return event


def _event_view(event: Event, link: Link) -> EventView:
    document = value_of(link.encoded)
    assert type(document) is dict  # it was decoded as an event
    return EventView(
        run=event.run,
        n=event.n,
        type=event.type,
        at=to_datetime(event.at_us),
        action=event.action,
        hash=link.hash.hex(),
        document=document,
    )
