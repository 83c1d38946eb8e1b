"""Reading one run's chain for a recheck: events as their links are verified, and what stands beside decisions.

Short snapshots: decoding, rebuilding and asking happen between them, so that no writer waits and no caller's code
runs while a transaction is open. A chain only grows, so each snapshot sees what the one before it saw.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hmac import compare_digest

from sqlalchemy.engine import Connection

from agentgate.chain import follow, start
from agentgate.core.draft import Payload
from agentgate.core.rechecking import Case, Opened, is_decision, named_inputs, opened_by, proposal_n
from agentgate.core.tally import Rest
from agentgate.errors import Damaged, Sealed
from agentgate.event import Event, decode, event_hash
from agentgate.sealing import SealingKeys
from agentgate.store import events, runs
from agentgate.store.engine import Database

# What one snapshot reads of payloads before it ends: inputs may have 256 KiB each.
MOST_BYTES = 4_194_304


def first(database: Database, ledger: str, run: str) -> Opened | None:
    """Read what a run says of itself; None where its first event is not to be trusted."""
    with database.read() as connection:
        link = events.link(connection, run, 0)
    if link is None:
        return None
    try:
        event, _ = follow(start(ledger, run), link)
    except Damaged:
        return None
    return opened_by(event)


def followed(database: Database, ledger: str, run: str) -> Iterator[tuple[Event, ...]]:
    """Read a run's events, page by page, as far as its row says, each checked to follow the one before it.

    Raises:
        Damaged: the chain is broken, or does not end where the row says; pages before it were good links.
    """
    last_n, last_hash = _end(database, run)
    head = start(ledger, run)
    while head.n <= last_n:
        with database.read() as connection:
            links = events.links(connection, run, start=head.n, size=min(events.PAGE, last_n + 1 - head.n))
        if not links:
            raise Damaged("gap", f"run {run}: event {head.n} is missing, and all after it")
        page: list[Event] = []
        for link in links:
            event, head = follow(head, link)
            page.append(event)
        yield tuple(page)
    if not compare_digest(head.hash, last_hash):
        raise Damaged("head", f"run {run}: event {last_n} is not the one that its row names")


def _end(database: Database, run: str) -> tuple[int, bytes]:
    with database.read() as connection:
        end = runs.head(connection, run)
        more = None if end is None else events.link(connection, run, end[0] + 1)
    if end is None:
        raise Damaged("head", f"run {run}: its row is missing")
    if more is not None:
        raise Damaged("head", f"run {run}: there are events after the last that its row names")
    return end


def rest(database: Database, run: str, *, after: int) -> Rest:
    """Count what stands behind a break, without trusting any of it."""
    decisions = started = 0
    while True:
        with database.read() as connection:
            links = events.links(connection, run, start=after)
        if not links:
            return Rest(decisions=decisions, started=started)
        for link in links:
            event = _decoded(link.encoded)
            if event is not None:
                decisions += is_decision(event)
                started += event.type == "started" and event.body["attempt"] == 1
        after = links[-1].n + 1


def cases(database: Database, page: Iterable[Event], sealing: SealingKeys | None) -> Iterator[Case]:
    """Read what stands beside each decision of a page, in order, a few at a time.

    Args:
        database: the ledger's.
        page: events whose chain was followed.
        sealing: the keys that open what is sealed; what they do not open stays as it is stored.
    """
    known = {event.n: event for event in page}
    left = deque(event for event in known.values() if is_decision(event))
    while left:
        read: list[Case] = []
        size = 0
        with database.read() as connection:
            while left and size < MOST_BYTES:
                case = _case(connection, left.popleft(), known, sealing)
                size += _size(case)
                read.append(case)
        yield from read


def _case(connection: Connection, event: Event, known: dict[int, Event], sealing: SealingKeys | None) -> Case:
    proposed = _proposal(connection, event, known)
    payloads: dict[str, Payload] = {}
    for kind in () if proposed is None else named_inputs(proposed):
        payload = None if proposed is None else _payload(connection, proposed, kind, sealing)
        if payload is not None:
            payloads[kind] = payload
    return Case(
        event=event,
        proposed=proposed,
        payloads=payloads,
        facts=_payload(connection, event, "facts", sealing),
        spec=events.document(connection, bytes.fromhex(str(event.body["spec"]))),
    )


def _payload(connection: Connection, event: Event, kind: str, sealing: SealingKeys | None) -> Payload | None:
    """Read a payload of an event, opened where it is sealed; whether it is what the event names is asked later."""
    payload, named = events.payload(connection, event.run, event.n, kind), event.body["payloads"]
    if payload is None or not payload.is_sealed or type(named) is not dict or kind not in named:
        return payload
    try:
        return payload.opened(sealing, digest=bytes.fromhex(str(named[kind])))
    except Sealed:
        return payload
    except Damaged:
        return replace(payload, sealed_by=None)  # without a salt it is not what its event names


def _proposal(connection: Connection, event: Event, known: dict[int, Event]) -> Event | None:
    n = proposal_n(event)
    if n is None or n in known:
        return None if n is None else known[n]
    link = events.link(connection, event.run, n)
    if link is None or not compare_digest(event_hash(link.encoded), link.hash):
        return None
    return _decoded(link.encoded)


def _decoded(encoded: bytes) -> Event | None:
    try:
        return decode(encoded)
    except Damaged:
        return None


def _size(case: Case) -> int:
    payloads = (*case.payloads.values(), *(() if case.facts is None else (case.facts,)))
    return sum(len(payload.content) for payload in payloads)
