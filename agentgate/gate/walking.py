"""Walking a run's chain in short snapshots, and comparing its rows with what the events add up to.

Others may write meanwhile. Events never change, so a row is compared once the chain was followed as far as the row
says that it goes: the run's own row as it stood in the first snapshot, an action's as soon as its last event was
seen. What began after the first snapshot is left to the next verification.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentgate.chain import Link
from agentgate.core.binding import Beside
from agentgate.core.following import Follower
from agentgate.core.records import ActionFile, ActionRecord
from agentgate.core.verification import Break
from agentgate.errors import Damaged
from agentgate.event import decode
from agentgate.gate.auditing import Audit
from agentgate.states import RunState
from agentgate.store import agreement, inspecting, sweeping
from agentgate.store.inspecting import HIGHEST, LOWEST, Page, Stored
from agentgate.store.schema import actions, runs
from agentgate.store.statements import Row

# Actions looked at in one snapshot once the chain's end was seen; before that, those of a page.
_AT_ONCE = 512
_MOST_DIFFERING = 10_000

_LAST_N = list(actions.columns).index(actions.c.last_n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One snapshot of a run: its row, a page of its chain, and the rows of actions that were due."""

    row: Row | None
    page: Page | None
    stored: dict[str, Stored]
    unrevised: list[ActionRecord]
    switches: list[Row]
    policies: list[Row]
    budgets: list[Row]
    keys: tuple[list[Row], list[Row]]
    grants: list[Row]


class Walk:
    """One run, from its first link to its last.

    Args:
        audit: what it reads, and where it reports.
        run: the run's id.
    """

    def __init__(self, audit: Audit, run: str) -> None:
        self._audit = audit
        self._run = run
        self._first: Row | None = None
        # Actions whose rows say that they go on beyond the page, and where to.
        self._awaited: dict[str, int] = {}
        self._differing: set[str] = set()
        self.follower: Follower | None = None

    def walk(self) -> Follower | None:
        """Follow the run to its end; None where its rows cannot be read."""
        start, due = LOWEST, list[str]()
        while True:
            seen = self._look(start, due)
            if self.follower is None:
                self.follower = self._begin(seen.row)
            if seen.page is None:
                self._audit.broken("unreadable", "a row of its chain holds what no column could", run=self._run)
                return None
            touched = self._take(self.follower, seen.page)
            self._settle(self.follower, seen)
            if seen.page.last and not self._open(self.follower):
                break
            due = self._due(self.follower, seen.page, touched)
            start = self.follower.head.n if seen.page.last else seen.page.end + 1
        self._end(self.follower, seen)
        return self.follower

    def _look(self, start: int, due: list[str]) -> Seen:
        revised = [] if self.follower is None else self.follower.revised
        with self._audit.read() as connection:
            seen = Seen(
                row=inspecting.run(connection, self._run),
                page=inspecting.page(connection, self._run, start=start),
                stored=inspecting.files(connection, due),
                unrevised=[one for one in revised if not inspecting.has_revision(connection, one, one.revision - 1)],
                switches=sweeping.all_switches(connection) if self._run == self._audit.ledger else [],
                policies=sweeping.all_policies(connection) if self._run == self._audit.ledger else [],
                budgets=sweeping.all_budgets(connection) if self._run == self._audit.ledger else [],
                keys=sweeping.all_keys(connection) if self._run == self._audit.ledger else ([], []),
                grants=sweeping.all_grants(connection) if self._run == self._audit.ledger else [],
            )
        revised.clear()
        return seen

    def _begin(self, row: Row | None) -> Follower:
        self._first = row
        until = HIGHEST
        if row is not None:
            n = agreement.named(runs, row)["n"]
            until = n if type(n) is int else HIGHEST
        return Follower(
            ledger=self._audit.ledger,
            run=self._run,
            until=until,
            report=self._audit.findings.add,
            key=self._audit.keys.key,
            spec=self._audit.documents.spec,
            sealing=self._audit.sealing,
            signed=self._audit.signed.check,
        )

    def _take(self, follower: Follower, page: Page) -> set[str]:
        """Follow a page's links; return the actions that they are about."""
        beside: dict[int, dict[str, Beside]] = {}
        for _, n, kind, salt, content, sealed_by in page.payloads:
            beside.setdefault(n, {})[kind] = Beside(salt=salt, content=content, sealed_by=sealed_by)
        touched = set()
        for n, hash_, encoded in page.links:
            action = follower.take(Link(n=n, hash=hash_, encoded=encoded), beside.pop(n, {}))
            if action is not None:
                touched.add(action)
        for n in beside:
            follower.broken("payload", n, "a payload lies where there is no event")
        self._check_documents(follower)
        self._audit.payloads += len(page.payloads)
        self._audit.sealed, follower.sealed = self._audit.sealed + follower.sealed, 0
        self._audit.tell(len(page.links))
        return touched

    def _check_documents(self, follower: Follower) -> None:
        for (kind, digest), n in follower.documents.items():
            if not self._audit.documents.names(kind, bytes.fromhex(digest)):
                follower.broken("document", n, f"the {kind} that it names is not stored", row=digest)
        follower.documents.clear()

    def _open(self, follower: Follower) -> bool:
        """Tell whether something is left whose rows must be looked at again."""
        return bool(follower.strangers) or (follower.folding and follower.files.keys() > self._differing)

    def _due(self, follower: Follower, page: Page, touched: set[str]) -> list[str]:
        """Say whose rows to read with the next page."""
        due = list(follower.strangers)
        if follower.folding and page.last:
            due += follower.files.keys() - self._differing
        elif follower.folding:
            due += [
                id_
                for id_ in touched
                if id_ in follower.files and id_ not in self._differing and self._awaited.get(id_, 0) <= page.end
            ]
        return due[:_AT_ONCE]

    def _settle(self, follower: Follower, seen: Seen) -> None:
        """Compare what was read of actions with what the chain, followed so far, says of them."""
        for one in seen.unrevised:
            follower.broken("forbidden", one.proposed_n, "proposed: no action has its key's revision before it")
        assert seen.page is not None  # the caller looked
        end = follower.head.n - 1 if seen.page.last else seen.page.end
        for id_, stored in seen.stored.items():
            if id_ in follower.strangers:
                self._report_stranger(follower, id_, stored)
            file = follower.files.get(id_)
            if file is None or not follower.folding or id_ in self._differing:
                continue
            last_n = None if stored.action is None else stored.action[_LAST_N]
            if type(last_n) is int and last_n > end and not seen.page.last:
                self._awaited[id_] = last_n
            else:
                self._compare(follower, file, stored)

    def _compare(self, follower: Follower, file: ActionFile, stored: Stored) -> None:
        action = file.action
        said = None if action.spec is None else self._audit.documents.spec(action.spec)
        found = list(agreement.compare_action(file, stored, parallel=said is not None and said.parallel))
        for kind, row, detail in found:
            follower.broken(kind, None, detail, row=row)
        self._awaited.pop(action.id, None)
        if not found:
            del follower.files[action.id]
            return
        # Kept, so that its further events are known to be its own; but damage must not fill the memory.
        self._differing.add(action.id)
        follower.folding = follower.folding and len(self._differing) < _MOST_DIFFERING

    def _report_stranger(self, follower: Follower, id_: str, stored: Stored) -> None:
        n = follower.strangers.pop(id_)
        if stored.action is None:
            follower.broken("forbidden", n, "it is about an action that was not proposed before it", row=id_)
        else:
            follower.broken("action_row", n, "its row says that an event before this one was its last", row=id_)

    def _end(self, follower: Follower, seen: Seen) -> None:
        """Compare the run itself, now that the whole of its chain was followed."""
        for kind, detail in self._contradictions(follower, seen.row):
            self._audit.findings.add(Break(kind=kind, run=self._run, n=None, row=self._run, detail=detail))
        if self._run == self._audit.ledger:
            self._compare_rows("switch_row", follower.switches, {row[:4]: row[4:] for row in seen.switches})
            active = {(tenant,): said for tenant, said in follower.active.items()}
            self._compare_rows("policy_row", active, {row[:1]: row[1:] for row in seen.policies})
            # The bounds; what is used of them is no event's, and summed up once all runs were walked.
            self._compare_rows("budget_row", follower.bounds, {row[:5]: row[5:] for row in seen.budgets})
            self._compare_keys(follower, *seen.keys)
            self._compare_grants(follower, seen.grants)
        if follower.folding and follower.record is not None:
            self._count_actions(follower)
            tenant = follower.record.tenant
            if self._run != self._audit.ledger and not self._audit.keys.knows(tenant):
                self._audit.broken("tenant_row", "the run's tenant has no row", run=self._run, row=tenant)

    def _contradictions(self, follower: Follower, row: Row | None) -> Iterator[tuple[str, str]]:
        if row is None or self._first is None:
            yield "run_row", "it has events, but no row"
            return
        of, head = agreement.named(runs, row), follower.head
        if not inspecting.fits(runs, row):
            yield "unreadable", "its row holds what its columns cannot"
        elif not head.n:
            yield "gap", "it has no events"
        elif of["n"] >= head.n:
            yield "gap", f"its row says that event {of['n']} is its last, the last stored is {head.n - 1}"
        elif (of["n"], of["head"]) != (head.n - 1, head.hash):
            yield "run_row", "not what its events add up to: n, head"
        record = follower.record
        if follower.folding and record is not None:
            yield from ((kind, detail) for kind, _, detail in agreement.compare_run(record, self._first))
            if record.state is not RunState.OPEN and follower.waiting:
                yield "forbidden", "it is not open any more, and some of its actions still wait"

    def _compare_rows(self, kind: str, said: Mapping[Any, tuple[Any, ...]], stored: Mapping[Row, Row]) -> None:
        """Compare rows of the ledger's own chain, by their keys, with what the last event about each says."""
        for place, values in said.items():
            if stored.get(place) != values:
                self._audit.broken(kind, "not what its last event says, or missing", row="/".join(place))
        for place in stored.keys() - said.keys():
            self._audit.broken(kind, "no event made this row", row="/".join(map(str, place)))

    def _compare_grants(self, follower: Follower, rows: list[Row]) -> None:
        stored = {row[0]: row for row in rows}
        for grant in stored.keys() | follower.grants.rows.keys():
            if stored.get(grant) != follower.grants.rows.get(grant):
                self._audit.broken("grant_row", "not what its events say, or made by none", row=grant)
        for grant in follower.grants.misbound(follower.bounds):
            self._audit.broken("forbidden", "a standing grant's uses are bounded by something else", row=grant)

    def _compare_keys(self, follower: Follower, added: list[Row], revoked: list[Row]) -> None:
        for stored, said in ((added, follower.keys.added), (revoked, follower.keys.revoked)):
            rows = {row[0]: row[1:] for row in stored}
            for key in rows.keys() | said.keys():
                if rows.get(key) != said.get(key):
                    row = key.hex() if type(key) is bytes else str(key)
                    self._audit.broken("key_row", "not what its last event says, or made by none", row=row)

    def _count_actions(self, follower: Follower) -> None:
        """Look for rows of actions that the run's events do not tell of; those they tell of were compared."""
        record = follower.record
        assert record is not None  # the caller looked
        counted = 0
        for rows, unmade in self._actions(known_to=record.n):
            counted += sum(1 for _, n in rows if type(n) is int and n <= record.n)
            self._report_unmade(unmade)
        if counted != record.counters.proposed:
            for _, unmade in self._actions(known_to=-1):
                self._report_unmade(unmade)

    def _report_unmade(self, ids: list[str]) -> None:
        for id_ in ids:
            self._audit.broken("action_row", "no event made this row", run=self._run, row=id_)

    def _actions(self, *, known_to: int) -> Iterator[tuple[list[Row], list[str]]]:
        """Read the run's actions in pages, with those of them that begin beyond ``known_to`` and were not proposed."""
        start: str | None = sweeping.FIRST
        while start is not None:
            with self._audit.read() as connection:
                rows = sweeping.actions_of(connection, self._run, start=start)
                new = [(id_, n) for id_, n in rows if type(n) is not int or n > known_to]
                unmade = [id_ for id_, n in new if not _is_proposed(inspecting.event(connection, self._run, n), id_)]
            yield rows, unmade
            start = self._audit.after(rows[-1][0]) if len(rows) == sweeping.PAGE else None


def _is_proposed(encoded: object, action: str) -> bool:
    """Tell whether these are the bytes of an event that proposed the action."""
    if type(encoded) is not bytes:
        return False
    try:
        event = decode(encoded)
    except Damaged:
        return False
    return event.type == "proposed" and event.action == action
