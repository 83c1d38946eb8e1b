"""Sweeping: what nobody comes back for is brought where it belongs, a page at a time, each change in a transaction.

Attempts whose worker is gone come to UNKNOWN, and tools that can tell are asked what became of theirs; questions,
grants and actions whose time is over end; operators are asked about what nobody else can tell. No effect is run, no
policy asked. Whatever is found is looked at once more in the transaction that changes it, so that any number of sweeps
run beside each other, beside claims and heartbeats.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial, reduce
from itertools import chain
from typing import Protocol

from sqlalchemy.engine import Connection

from agentgate.core.claiming import expire
from agentgate.errors import Damaged, Unavailable
from agentgate.gate import leases
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.lease import Holder
from agentgate.store import overdue
from agentgate.store.statements import Row

# Of one run in one transaction: a writer waits no longer for it than for a claim or two.
AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep found and changed.

    Args:
        looked: attempts that execute, and whatever else might have been over.
        crashed: attempts taken over, because their worker's process had ended.
        lease_lost: attempts taken over, because their lease was over.
        probed: actions in doubt that their tool's probe could tell of.
        questions: questions that nobody answered in time.
        grants: grants that nobody used in time.
        actions: actions that nobody executed in time.
        asked: actions in doubt that operators are asked about from now on.
        moved: actions that others kept changing; the next sweep meets them again.
        damaged: ids of actions whose rows contradict the record: run `verify`.
    """

    looked: int = 0
    crashed: int = 0
    lease_lost: int = 0
    probed: int = 0
    questions: int = 0
    grants: int = 0
    actions: int = 0
    asked: int = 0
    moved: int = 0
    damaged: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """Return how many changes were made."""
        taken = self.crashed + self.lease_lost
        return taken + self.probed + self.questions + self.grants + self.actions + self.asked

    def plus(self, other: "Swept") -> "Swept":
        """Add two reports up."""
        return Swept(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(Swept)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An action that something may be over of, as a page showed it; ``crashed`` where its worker's process ended."""

    run: str
    action: str
    crashed: bool = False


class _Read(Protocol):
    def __call__(self, connection: Connection, *, after: str) -> list[Row]: ...


_ENDED = {"question_expired": "questions", "grant_expired": "grants", "action_expired": "actions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """Sweep one ledger.

    Args:
        ledger: the record.
        holder: names this gate, as its leases do.
        probe: asks the tool of a namespace and a name about an action of a tenant, and tells whether it could say;
            None where it cannot be asked.
        ask: asks operators about an action of a tenant, where they must be; tells whether they were.
    """

    ledger: Ledger
    holder: Callable[[], Holder]
    probe: Callable[[str, str, str, str], bool | None]
    ask: Callable[[str, str], bool]

    def sweep(self, *, on_progress: Callable[[int], object] | None = None) -> Swept:
        """Look through the whole ledger once.

        Raises:
            Unavailable: the database could not be had; what was changed until then is.
        """
        total = Swept()
        # Taking over comes first: what follows meets the actions where it left them.
        for looked, swept in chain(
            self._settled(self._attempts()),
            self._probed(),
            self._settled(chain(self._questions(), self._grants(), self._ready())),
            self._asked(),  # last: what has expired is asked again, what a probe could tell is not
        ):
            total = total.plus(Swept(looked=looked)).plus(swept)
            if on_progress is not None:
                on_progress(total.looked)
        return total

    def _settled(self, pages: Iterable[tuple[int, list[Found]]]) -> Iterator[tuple[int, Swept]]:
        for looked, found in pages:
            yield looked, reduce(Swept.plus, (self._settle(run, ids) for run, ids in _by_run(found)), Swept())

    def _probed(self) -> Iterator[tuple[int, Swept]]:
        """Ask the tools that can be asked about what is in doubt; nothing is run."""
        return self._each(overdue.doubted, self._probe)

    def _asked(self) -> Iterator[tuple[int, Swept]]:
        """Ask operators about what is unknown and was asked of nobody."""
        return self._each(overdue.unasked, lambda action, tenant: Swept(asked=1) if self.ask(tenant, action) else None)

    def _each(self, read: _Read, do: Callable[..., Swept | None]) -> Iterator[tuple[int, Swept]]:
        """Go through actions in doubt, page by page, and report on those that something was done about."""
        after = ""
        while True:
            with self.ledger.database.read() as connection:
                page = read(connection, after=after)
            if not page:
                return
            done = [swept for swept in (_tried(do, row) for row in page) if swept is not None]
            if done:
                yield len(done), reduce(Swept.plus, done)
            after = page[-1][0]

    def _probe(self, action: str, tenant: str, namespace: str, tool: str) -> Swept | None:
        """Ask about one action; None where its tool is not there to be asked."""
        told = self.probe(tenant, action, namespace, tool)
        return None if told is None else Swept(probed=int(told))

    def _attempts(self) -> Iterator[tuple[int, list[Found]]]:
        after = 0
        while True:
            with self.ledger.database.read() as connection:
                page = overdue.open_attempts(connection, after=after)
            if not page:
                return
            now_us = self.ledger.clock.now_us()
            seen = [(run, id_, leases.gone(holder), until_us) for _, run, id_, holder, until_us in page]
            yield (
                len(page),
                [
                    Found(run=run, action=id_, crashed=crashed)
                    for run, id_, crashed, until_us in seen
                    if crashed or until_us <= now_us
                ],
            )
            after = page[-1][0]

    def _questions(self) -> Iterator[tuple[int, list[Found]]]:
        now_us, after = self.ledger.clock.now_us(), (0, "")
        while True:
            with self.ledger.database.read() as connection:
                page = overdue.questions(connection, now_us=now_us, after=after)
            if not page:
                return
            yield len(page), [Found(run=run, action=action) for _, _, run, action in page]
            after = page[-1][:2]

    def _grants(self) -> Iterator[tuple[int, list[Found]]]:
        now_us, after = self.ledger.clock.now_us(), ""
        while True:
            with self.ledger.database.read() as connection:
                page = overdue.grants(connection, now_us=now_us, after=after)
            if not page:
                return
            yield len(page), [Found(run=run, action=id_) for run, id_ in page]
            after = page[-1][1]

    def _ready(self) -> Iterator[tuple[int, list[Found]]]:
        now_us, after = self.ledger.clock.now_us(), ("", "")
        while True:
            with self.ledger.database.read() as connection:
                page = overdue.ready(connection, now_us=now_us, after=after)
            if not page:
                return
            yield len(page), [Found(run=run, action=id_) for run, id_ in page]
            after = page[-1]

    def _settle(self, run: str, found: list[Found]) -> Swept:
        """Change a few actions of a run; where one of them is damaged, each by itself."""
        try:
            return self.ledger.change(run, partial(_settled, found=found, by=str(self.holder())))
        except Damaged:
            if len(found) == 1:
                return Swept(damaged=(found[0].action,))
        except Unavailable as error:
            if error.reason != "moved":
                raise
            return Swept(moved=len(found))
        return reduce(Swept.plus, (self._settle(run, [one]) for one in found))


def _tried(do: Callable[..., Swept | None], row: Row) -> Swept | None:
    """Do something about one action; where its rows are damaged, or others keep changing it, say so."""
    try:
        return do(*row)
    except Damaged:
        return Swept(damaged=(row[0],))
    except Unavailable as error:
        if error.reason != "moved":
            raise
        return Swept(moved=1)


def _by_run(found: list[Found]) -> Iterator[tuple[str, list[Found]]]:
    runs: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        runs[one.run].append(one)
    for run, its in runs.items():
        for start in range(0, len(its), AT_ONCE):
            yield run, its[start : start + AT_ONCE]


def _settled(transaction: Transaction, *, found: list[Found], by: str) -> Swept:
    counted: dict[str, int] = defaultdict(int)
    for one in found:
        file = transaction.file(one.action)
        if leases.settle(transaction, file, crashed=one.crashed, by=by):
            counted["crashed" if one.crashed else "lease_lost"] += 1
            continue
        ended = expire(transaction.draft, file)
        if ended is not None:
            counted[_ENDED[ended]] += 1
    return Swept(
        crashed=counted["crashed"],
        lease_lost=counted["lease_lost"],
        questions=counted["questions"],
        grants=counted["grants"],
        actions=counted["actions"],
    )
