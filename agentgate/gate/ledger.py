"""A ledger as a gate uses it: one transaction per change of a run, retried, read back, and logged once committed."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import structlog
from sqlalchemy.engine import Connection

from agentgate.chain import Head
from agentgate.clock import Clock
from agentgate.core.budgets import Book, Budget, Place
from agentgate.core.draft import Draft, Payload, Plan, StoredPayload
from agentgate.core.records import ActionFile, RunRecord
from agentgate.errors import AgentgateError, Damaged, Misuse, NotFound, Sealed, Unavailable
from agentgate.event import decode
from agentgate.gate.turns import Turns
from agentgate.sealing import NONCE_BYTES, SealingKeys
from agentgate.store import actions, budgets, committing, events, runs
from agentgate.store.borrowing import Borrowed
from agentgate.store.engine import Database, is_refused
from agentgate.tools.spec import ToolSpec, from_document

T = TypeVar("T")

TRIES = 3
SALT_BYTES = 32

# Goes to the standard library's logger "agentgate", which is silent until the application says otherwise.
_logger = logging.getLogger("agentgate")
_logger.addHandler(logging.NullHandler())  # else Python's last resort would print warnings of a silent application
_lines = structlog.wrap_logger(
    _logger,
    processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
)


class _Log:
    """Write lines of log. A filter or handler of the application that raises changes nothing of what was committed."""

    def info(self, line: str, **fields: object) -> None:
        """Say what happened."""
        self._say("info", line, fields)

    def warning(self, line: str, **fields: object) -> None:
        """Say what somebody should look at."""
        self._say("warning", line, fields)

    def _say(self, level: str, line: str, fields: Mapping[str, object]) -> None:
        try:
            getattr(_lines, level)(line, **fields)
        except Exception:  # noqa: BLE001 - the application's code: where its log is broken there is nowhere to say so
            return


log = _Log()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One open transaction on one run: its connection, and the draft of what it will write.

    Args:
        connection: in the transaction.
        draft: of the run.
        asked_us: the monotonic clock just before the draft's own time was read.
        waited_us: how long it waited for its turn: others may wait behind it.
        drafts: of every run that this transaction changes, by id.
    """

    connection: Connection
    draft: Draft
    asked_us: int
    waited_us: int
    drafts: dict[str, Draft]

    def beside(self, run: str) -> Self:
        """Return this same transaction on another run, whose chain it then also writes to.

        Raises:
            NotFound: there is no such run of this tenant.
        """
        if run not in self.drafts:
            tenant = self.draft.run.tenant
            book = self.draft.book
            self.drafts[run] = drafted(self.connection, run, tenant=tenant, at_us=self.draft.at_us, book=book)
        return replace(self, draft=self.drafts[run])

    def file(self, action: str) -> ActionFile:
        """Read an action as it stands now, ready to be changed; once read, it stands as this transaction leaves it.

        Raises:
            NotFound: there is none of that id in this run.
        """
        if self.draft.knows(action):
            return self.draft.file(action)
        found = actions.file(self.connection, action)
        if found is None or found.action.run != self.draft.run.id:
            raise NotFound("action", action)
        self.draft.read(found)
        return found

    def budgets(self, *places: Place) -> tuple[Budget, ...]:
        """Return what is bounded at these places, as the transaction leaves it; each is read once."""
        self.bind(*places)
        return self.draft.book.left(*places)

    def bind(self, *places: Place) -> None:
        """Take in the budgets of these places, as far as any are set."""
        run, book = self.draft.run, self.draft.book
        unread = book.unread(places) if run.budgeted else ()
        if unread:
            book.enter(unread, budgets.read(self.connection, tenant=run.tenant, places=unread))


class Ledger:
    """The one way to change a run.

    Args:
        database: where it lies; or one transaction on it, which somebody else commits.
        clock: the ledger clock, read inside the transaction.
        id: the ledger's id.
        sealing: the keys that seal and open payloads; None where there are none.
        tell: what to do with a plan that was written; without it, what was committed is logged.
    """

    def __init__(
        self,
        database: Database | Borrowed,
        *,
        clock: Clock,
        id: str,
        sealing: SealingKeys | None = None,
        tell: Callable[[Plan], None] | None = None,
    ) -> None:
        self.database = database
        self.clock = clock
        self.id = id
        self.sealing = sealing
        self._tell = tell or report
        self.turns = Turns()
        self._stored: set[bytes] = set()
        self._sensitive: dict[bytes, bool] = {}

    @property
    def own(self) -> Database:
        """The database itself, of a ledger that is not inside somebody else's transaction."""
        assert isinstance(self.database, Database)
        return self.database

    def inside(self, transaction: Borrowed) -> "Ledger":
        """Return this ledger as one transaction on it sees and changes it; it remembers nothing of this one."""
        return Ledger(transaction, clock=self.clock, id=self.id, sealing=self.sealing, tell=transaction.tell)

    def salt(self) -> bytes:
        """Draw a payload's salt."""
        return self.clock.random(SALT_BYTES)

    def payload(self, kind: str, content: bytes) -> Payload:
        """Make a payload with a salt of its own."""
        return Payload(kind=kind, salt=self.salt(), content=content)

    def change(
        self,
        run: str,
        work: Callable[[Transaction], T],
        *,
        tenant: str | None = None,
        documents: tuple[tuple[bytes, str, bytes], ...] = (),
    ) -> T:
        """Change a run in one transaction, all of it or nothing.

        Args:
            run: the run's id.
            work: reads, decides and drafts; called again where another transaction was faster.
            tenant: whose run it must be, where the id came from a caller.
            documents: those that an event of this change names are stored, unless they are there.

        Raises:
            NotFound: there is no such run, or it is another tenant's.
            Unavailable: the database could not be had; nothing of this was written.
            Misuse: what an effect wrote broke a deferred foreign key; nothing of this was written.
        """
        for _ in range(TRIES):
            try:
                return self._once(run, work, tenant, documents)
            except committing.Moved:
                continue
        raise Unavailable("moved", f"run {run} was changed by others {TRIES} times while this was decided; try again")

    def _once(
        self,
        run: str,
        work: Callable[[Transaction], T],
        tenant: str | None,
        documents: tuple[tuple[bytes, str, bytes], ...],
    ) -> T:
        done: tuple[T, list[Plan]] | None = None
        came_us = self.clock.monotonic_us()
        try:
            with self.database.write() as connection:
                transaction = self._begin(connection, run, tenant, came_us)
                result = work(transaction)
                begun = (draft for draft in transaction.drafts.values() if draft.is_begun)
                plans = [self.sealed(connection, self._plan(draft, documents)) for draft in begun]
                for plan in plans:
                    committing.write(connection, plan)
                if plans:
                    _spend(transaction)
                done = result, plans
        except Unavailable as error:
            self.explain(error)
            if error.reason != "commit" or done is None or not done[1] or not self.landed(done[1][0]):
                raise
        assert done is not None  # the block ended well, or its commit was found in the database
        result, plans = done
        for plan in plans:
            self._stored.update(digest for digest, _, _ in plan.documents)
            self.turns.tell(plan)
            self._tell(plan)
        return result

    def _plan(self, draft: Draft, documents: tuple[tuple[bytes, str, bytes], ...]) -> Plan:
        """Return what the draft writes, with the documents that its events name and this process has not stored yet.

        A document that no event names is on no record, and `verify` asks where it comes from.
        """
        plan = draft.plan()
        unstored = (one for one in documents if one[0] not in self._stored)
        named = (one for one in unstored if any(one[0].hex().encode() in link.encoded for link in plan.links))
        return replace(plan, documents=tuple(named))

    def sealed(self, connection: Connection, plan: Plan) -> Plan:
        """Return the plan as it may lie in the database: what has to be sealed is.

        Decided here for every payload of every event, so that no command can forget it: what belongs to an action
        whose spec has sensitive pointers; and, where there is a key, raw input, what belongs to a tool that is
        unknown (it may be a misspelt one) and what belongs to no action.

        Raises:
            Sealed: the action's spec has sensitive pointers, and there is no key.
        """
        specs = {after.action.id: after.action.spec for _, after in plan.files}
        payloads = tuple(
            replace(one, payload=self._seal(one.payload)) if self._is_sensitive(connection, one, specs) else one
            for one in plan.payloads
        )
        return replace(plan, payloads=payloads)

    def _is_sensitive(self, connection: Connection, stored: StoredPayload, specs: Mapping[str, bytes | None]) -> bool:
        spec = None if stored.action is None else specs[stored.action]
        if spec is not None and self._has_sensitive(connection, spec):
            return True
        return self.sealing is not None and (spec is None or stored.payload.kind == "raw")

    def _seal(self, payload: Payload) -> Payload:
        if self.sealing is None:
            raise Sealed(payload.kind, "", ())
        return payload.sealed(self.sealing, nonce=self.clock.random(NONCE_BYTES))

    def _has_sensitive(self, connection: Connection, spec: bytes) -> bool:
        if spec not in self._sensitive:
            stored = events.document(connection, spec)
            if stored is None:
                raise Damaged(f"spec {spec.hex()}", "it is not stored")
            self._sensitive[spec] = bool(from_document(stored[1]).sensitive)
        return self._sensitive[spec]

    def knows(self, spec: ToolSpec) -> None:
        """Remember a spec of this gate's own, so that no transaction has to read it."""
        self._sensitive[spec.digest] = bool(spec.sensitive)

    def _begin(self, connection: Connection, run: str, tenant: str | None, came_us: int) -> Transaction:
        asked_us = self.clock.monotonic_us()
        at_us = self.clock.now_us()  # after BEGIN IMMEDIATE: the order of times is the order of commits
        draft = drafted(connection, run, tenant=tenant, at_us=at_us)
        waited_us = asked_us - came_us
        return Transaction(
            connection=connection, draft=draft, asked_us=asked_us, waited_us=waited_us, drafts={run: draft}
        )

    def explain(self, error: Unavailable) -> None:
        """Say of a commit whose failure is nobody's absence what it is.

        Raises:
            Misuse: a deferred foreign key of a table beside the ledger's was broken.
        """
        if is_refused(error):
            raise Misuse(f"at the commit: {error.detail}; nothing of the transaction was written") from error

    def landed(self, plan: Plan) -> bool:
        """Tell, after an error at COMMIT, whether the transaction is in the database all the same."""
        try:
            with self.database.read() as connection:
                found = events.link(connection, plan.after.id, plan.links[0].n)
        except AgentgateError:
            return False
        return found is not None and found.hash == plan.links[0].hash


def _spend(transaction: Transaction) -> None:
    """Write what the transaction does to the budgets of its tenant: last, as these are the rows that runs share."""
    draft = transaction.draft
    if draft.run.budgeted:
        transaction.bind(*draft.book.touched())
        committing.spend(transaction.connection, draft.run.tenant, draft.book.moves())


def drafted(connection: Connection, run: str, *, tenant: str | None, at_us: int, book: Book | None = None) -> Draft:
    """Begin a draft of a run as it stands.

    Args:
        connection: where it is read.
        run: its id.
        tenant: whose it must be; None where that was asked before.
        at_us: the time of what it will record.
        book: the budgets that it shares with other drafts.

    Raises:
        NotFound: there is no such run, or it is another tenant's.
    """
    record = runs.read(connection, run)
    if record is None or tenant not in (None, record.tenant):
        raise NotFound("run", run)
    return draft_of(record, at_us=at_us, book=book)


def draft_of(run: RunRecord, *, at_us: int, book: Book | None = None) -> Draft:
    """Begin a draft after the last event of a run."""
    return Draft(Head(run=run.id, n=run.n + 1, hash=run.head), run, at_us=at_us, book=book)


def report(plan: Plan) -> None:
    """Log what was committed: words, ids and digests, never an argument."""
    if not _logger.isEnabledFor(logging.INFO):
        return
    for link in plan.links:
        event = decode(link.encoded)
        log.info("committed", type=event.type, run=event.run, n=event.n, action=event.action, hash=link.hash.hex())
