"""The rules of a run's hash chain: what the next link must be, and whether stored bytes are it."""

from dataclasses import dataclass
from hmac import compare_digest

from agentgate.errors import Damaged
from agentgate.event import Event, decode, event_hash, genesis


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A stored link: the event's bytes with the hash that stands beside them."""

    n: int
    hash: bytes
    encoded: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a chain stands: the next position and what the next link must name as its predecessor."""

    run: str
    n: int
    hash: bytes


def start(ledger: str, run: str) -> Head:
    """Return the head of a chain that has no link yet."""
    return Head(run=run, n=0, hash=genesis(ledger, run))


def follow(head: Head, link: Link) -> tuple[Event, Head]:
    """Check that ``link`` is the next of its chain, and return its event and the new head.

    Raises:
        Damaged: ``what`` is a stable word (``gap``, ``hash``, ``event``, ``prev``, ``run``, ``position``).
    """
    if link.n != head.n:
        raise Damaged("gap", f"run {head.run}: event {head.n} is missing, the next stored is {link.n}")
    if not compare_digest(event_hash(link.encoded), link.hash):
        raise Damaged("hash", f"run {head.run}: event {link.n} is not what its hash says")
    event = decode(link.encoded)
    if event.run != head.run:
        raise Damaged("run", f"run {head.run}: event {link.n} belongs to run {event.run}")
    if event.n != link.n:
        raise Damaged("position", f"run {head.run}: event {link.n} says it is {event.n}")
    if not compare_digest(event.prev, head.hash):
        raise Damaged("prev", f"run {head.run}: event {link.n} does not follow the one before it")
    return event, Head(run=head.run, n=link.n + 1, hash=link.hash)
