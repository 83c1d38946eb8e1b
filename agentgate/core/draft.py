"""Drafting a transaction: events in order, the records they lead to, and the payloads beside them.

A command appends events to a `Draft`; the store writes its `Plan`, all of it or none. The records are folded
from the events by the same functions that verification uses, so no row can say what no event says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from agentgate.canonical import Bounds, Json, canonical, parse
from agentgate.chain import Head, Link
from agentgate.core.attempts import took_us
from agentgate.core.budgets import Book, Moves, moved
from agentgate.core.counting import fold_run
from agentgate.core.fold import fold_action, with_tenant
from agentgate.core.records import ActionFile, RunRecord
from agentgate.digests import payload_digest
from agentgate.errors import Damaged, Misuse
from agentgate.event import Event, event_hash, offence
from agentgate.jcs import DEEPEST
from agentgate.sealing import SealingKeys, open_sealed
from agentgate.states import State

# What was recorded was bounded when it was sent, by settings that another gate or another day need not share.
RECORDED_BOUNDS = Bounds(max_bytes=2**31, max_depth=DEEPEST, max_nodes=2**31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Bytes that may be personal, to be stored beside the event that names them.

    Args:
        kind: one of `agentgate.digests.PAYLOAD_KINDS`.
        salt: 32 random bytes; ``b""`` where it lies inside a sealed text.
        content: the bytes, or the sealed text that holds them.
        sealed_by: id of the key that sealed it, where it was read sealed; it stays once it is opened.
    """

    kind: str
    salt: bytes = field(repr=False)
    content: bytes = field(repr=False)
    sealed_by: str | None = None

    @property
    def is_sealed(self) -> bool:
        """Whether its content is a sealed text still."""
        return self.sealed_by is not None and not self.salt

    def sealed(self, keys: SealingKeys, *, nonce: bytes) -> "Payload":
        """Return it as it is stored sealed."""
        text = keys.seal(self.salt, self.content, digest=self.digest, nonce=nonce)
        return Payload(kind=self.kind, salt=b"", content=text, sealed_by=keys.current.id)

    def opened(self, keys: SealingKeys | None, *, digest: bytes) -> "Payload":
        """Return it legible.

        Args:
            keys: those at hand.
            digest: as its event names it.

        Raises:
            Sealed: it is sealed by a key that is none of these.
            Damaged: it is sealed, and not what its event names.
        """
        if self.sealed_by is None:
            return self
        if self.salt:
            raise Damaged(f"sealed {self.kind}", "a salt lies beside it, where one that is sealed has none")
        salt, content = open_sealed(keys, self.kind, self.content, digest=digest, by=self.sealed_by)
        return Payload(kind=self.kind, salt=salt, content=content, sealed_by=self.sealed_by)

    @property
    def digest(self) -> bytes:
        """Return what the event names."""
        return payload_digest(self.kind, self.salt, self.content)

    def value(self) -> Json:
        """Parse the content of a kind that holds JSON.

        Raises:
            NotCanonical: it is none.
        """
        return parse(self.content, bounds=RECORDED_BOUNDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPayload:
    """A payload with its place, (run, n, kind), and the action that its event is about."""

    run: str
    n: int
    payload: Payload
    action: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one transaction writes to one run.

    Args:
        before: the run as it was read; None when this transaction opens it.
        after: the run as it will stand.
        files: (before, after) of every action it touches; before is None for a new action.
        links: the new links, in order.
        payloads: the payloads those events name.
        documents: (digest, kind, content) to be stored unless they are there.
    """

    before: RunRecord | None
    after: RunRecord
    files: tuple[tuple[ActionFile | None, ActionFile], ...]
    links: tuple[Link, ...]
    payloads: tuple[StoredPayload, ...]
    documents: tuple[tuple[bytes, str, bytes], ...] = ()


class Draft:
    """A transaction of one run in the making.

    Args:
        head: where the run's chain goes on.
        run: as it was read; None where the first event opens it.
        at_us: the time of what is recorded.
        book: the budgets that it shares with the other drafts of its transaction.
    """

    def __init__(self, head: Head, run: RunRecord | None, *, at_us: int, book: Book | None = None) -> None:
        self._head = head
        self._before = run
        self._run = run
        self._files: dict[str, ActionFile] = {}
        self._read: dict[str, ActionFile | None] = {}
        self._links: list[Link] = []
        self._payloads: list[StoredPayload] = []
        self.book = Book() if book is None else book
        self.book.counts(self._moved)
        # Time never goes back within a run, whatever the host's clock did (design §5, Clocks).
        self.at_us = at_us if run is None else max(at_us, run.at_us)

    @property
    def run(self) -> RunRecord:
        """The run as the events so far leave it."""
        assert self._run is not None  # the first event opens it
        return self._run

    @property
    def next_n(self) -> int:
        """The position of the next event."""
        return self._head.n

    @property
    def is_begun(self) -> bool:
        """Tell whether there is an event to write."""
        return bool(self._links)

    @property
    def files(self) -> Mapping[str, ActionFile]:
        """Every action that was read or made, as the events so far leave it, in the order in which they came."""
        return MappingProxyType(self._files)

    def read(self, file: ActionFile) -> None:
        """Bring in an action as it stands in the database."""
        self._files[file.action.id] = self._read[file.action.id] = file

    def knows(self, action: str) -> bool:
        """Tell whether the action was read into, or made by, this draft."""
        return action in self._files

    def file(self, action: str) -> ActionFile:
        """Return the action as the events so far leave it."""
        return self._files[action]

    def add(
        self, kind: str, body: Mapping[str, Json], *, action: str | None = None, payloads: tuple[Payload, ...] = ()
    ) -> Event:
        """Append an event; its body's ``v`` and ``payloads`` are filled in here.

        Raises:
            Misuse: its readers would refuse it, so it is not written: one such link would end the chain for good.
        """
        named: dict[str, Json] = {payload.kind: payload.digest.hex() for payload in payloads}
        full: dict[str, Json] = {"v": 1, **body}
        if kind not in _WITHOUT_PAYLOADS:
            full["payloads"] = named
        event = Event(
            run=self._head.run,
            n=self._head.n,
            prev=self._head.hash,
            type=kind,
            at_us=self.at_us,
            action=action,
            body=full,
        )
        document = event.document()
        unfit = offence(document)
        if unfit is not None:
            raise Misuse(f"{kind}: {unfit or '/'} is not what an event may hold; nothing was recorded")
        encoded = canonical(document)
        link = Link(n=event.n, hash=event_hash(encoded), encoded=encoded)
        self._links.append(link)
        self._payloads += [
            StoredPayload(run=event.run, n=event.n, payload=payload, action=action) for payload in payloads
        ]
        self._head = Head(run=event.run, n=event.n + 1, hash=link.hash)
        self._fold(event, link.hash)
        return event

    def _fold(self, event: Event, hash_: bytes) -> None:
        was = now = None
        took = 0
        if event.action is not None:
            before = self._files.get(event.action)
            took = took_us(before, event)
            file = fold_action(before, event)
            if before is None:
                file = with_tenant(file, self.run.tenant)
                self._read[event.action] = None
            self._files[event.action] = file
            was, now = State.NEW if before is None else before.action.state, file.action.state
        self._run = fold_run(self._run, event, hash_, was=was, now=now, took_us=took)

    def _moved(self) -> Moves:
        if self._run is None:
            return {}
        return moved(self._before, self._run, ((self._read[id], file) for id, file in self._files.items()))

    def plan(self, *, documents: tuple[tuple[bytes, str, bytes], ...] = ()) -> Plan:
        """Return all that must be written, together."""
        touched = ((self._read[id], file) for id, file in self._files.items())
        return Plan(
            before=self._before,
            after=self.run,
            files=tuple((before, after) for before, after in touched if before is not after),
            links=tuple(self._links),
            payloads=tuple(self._payloads),
            documents=documents,
        )


_WITHOUT_PAYLOADS = frozenset({"ledger_created", "spec_registered"})
