"""Following a run's chain from its first link: what each event says, binds, and makes of the state tables.

Pure: links and what lies beside them are handed in, in order; breaks are handed out. The records are folded by the
functions that the writer uses, and a record is let go of as soon as its row was compared, so that a run of any
length is followed in the memory of what is going on in it at once.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentgate.chain import Head, Link, follow, start
from agentgate.core.attempts import took_us
from agentgate.core.binding import (
    Beside,
    Finding,
    SpecSaid,
    check_action,
    check_deduped,
    check_fingerprints,
    check_payloads,
    check_said,
    check_sealed,
    check_told,
    is_fingerprinted,
    legible,
    named_documents,
    open_payloads,
)
from agentgate.core.counting import fold_run
from agentgate.core.fold import fold_action, with_tenant
from agentgate.core.grantbook import GRANT_EVENTS, GrantBook
from agentgate.core.keybook import KEY_EVENTS, KeyBook
from agentgate.core.polling import check_polled
from agentgate.core.records import ActionFile, ActionRecord, RunRecord
from agentgate.core.verification import Break
from agentgate.errors import Damaged
from agentgate.event import Event, decode
from agentgate.sealing import SealingKeys
from agentgate.states import RunState, State

Switch = tuple[str, str, str, str]
Bound = tuple[str, str, str, str, str]


class Follower:
    """A run as its chain tells it, so far.

    Args:
        ledger: the ledger's id.
        run: the run's id.
        until: the place in the chain up to which the run's row and all its actions are followed. Beyond it, where
            others are writing meanwhile, only the links are, and those actions that are still held.
        report: takes a break.
        key: returns a tenant's fingerprint key, None where it has none.
        spec: returns what a spec says, None where it is not stored.
        sealing: the keys that open what is sealed, as far as they are there.
        signed: checks the signature of a vote.
    """

    def __init__(
        self,
        *,
        ledger: str,
        run: str,
        until: int,
        report: Callable[[Break], None],
        key: Callable[[str], bytes | None],
        spec: Callable[[bytes], SpecSaid | None],
        sealing: SealingKeys | None = None,
        signed: Callable[[Event], Iterator[Finding]] = lambda _event: iter(()),
    ) -> None:
        self.run = run
        self.head = start(ledger, run)
        self.record: RunRecord | None = None
        self.files: dict[str, ActionFile] = {}
        self.strangers: dict[str, int] = {}
        self.documents: dict[tuple[str, str], int] = {}
        self.revised: list[ActionRecord] = []
        self.waiting = 0
        self.switches: dict[Switch, tuple[int, int]] = {}
        self.bounds: dict[Bound, tuple[int, int]] = {}
        self.keys = KeyBook()
        self.active: dict[str, tuple[bytes, int]] = {}
        self.grants = GrantBook()
        # Whether the records can still be trusted to be what the events add up to.
        self.folding = True
        self._ledger = ledger
        self._until = until
        self._report = report
        self._key = key
        self._spec = spec
        self._sealing = sealing
        self._signed = signed
        self.sealed = 0
        self._fence = 0

    def broken(self, kind: str, n: int | None, detail: str, *, row: str | None = None) -> None:
        """Report a break of this run."""
        self._report(Break(kind=kind, run=self.run, n=n, row=row, detail=detail))

    def take(self, link: Link, beside: Mapping[str, Beside]) -> str | None:
        """Follow one link.

        Args:
            link: the next that is stored.
            beside: the payloads stored beside it.

        Returns:
            The action that it is about, where the action is followed.
        """
        event = self._linked(link)
        if event is None:
            self.folding = False
            return None
        for named in named_documents(event):
            self.documents.setdefault(named, event.n)
        beside = open_payloads(event, beside, self._sealing)
        self._tell(event, check_payloads(event, beside))
        self._tell(event, check_said(event, ledger=self._ledger))
        self._tell(event, check_told(event, legible(beside)))
        self.sealed += len(beside) - len(legible(beside))
        if event.type == "switched":
            self._switch(event)
        if event.type == "limited":
            self._bound(event)
        if event.type in GRANT_EVENTS:
            self._tell(event, self.grants.take(event))
        if event.type in KEY_EVENTS:
            self._tell(event, self.keys.take(event))
        if event.type == "policy_activated":
            self.active[str(event.body["tenant"])] = (bytes.fromhex(str(event.body["policy"])), event.n)
        return self._folded(event, link.hash, beside) if self.folding else None

    def _linked(self, link: Link) -> Event | None:
        """Check a link; where the chain is broken, go on behind the break with what stands there."""
        before = self.head
        try:
            event, self.head = follow(before, link)
        except Damaged as damaged:
            self.folding = False
            self.broken(damaged.what, link.n, _after_colon(damaged.detail))
        else:
            return event
        self.head = Head(run=self.run, n=link.n + 1, hash=link.hash)
        try:
            event = decode(link.encoded)
        except Damaged:
            return None
        return event if event.run == self.run and event.n == link.n else None

    def _tell(self, event: Event, findings: Iterator[Finding]) -> None:
        for kind, detail in findings:
            self.broken(kind, event.n, f"{event.type}: {detail}")

    def _switch(self, event: Event) -> None:
        body: Mapping[str, Any] = event.body
        scope = body["scope"]
        place = (scope["kind"], scope.get("tenant", ""), scope.get("namespace", ""), scope.get("tool", ""))
        self.switches[place] = (int(body["paused"]), event.n)

    def _bound(self, event: Event) -> None:
        """Let the bounds that the event names take the place of all that were set there."""
        body: Mapping[str, Any] = event.body
        scope, kind = body["scope"], body["scope"]["kind"]
        name = "" if kind == "tenant" else scope.get(kind, "")
        place = (scope["tenant"], kind, scope.get("namespace", ""), name)
        self.bounds = {bound: said for bound, said in self.bounds.items() if bound[:-1] != place}
        self.bounds |= {(*place, measure): (most, event.n) for measure, most in body["limits"].items()}

    def _folded(self, event: Event, hash_: bytes, beside: Mapping[str, Beside]) -> str | None:
        try:
            return self._fold(event, hash_, beside)
        except Damaged as damaged:
            self.folding = False
            self.broken("forbidden", event.n, damaged.detail)
            return None

    def _fold(self, event: Event, hash_: bytes, beside: Mapping[str, Beside]) -> str | None:
        beyond = event.n > self._until
        before = None if event.action is None else self.files.get(event.action)
        if before is None and event.action is not None and (beyond or event.type != "proposed"):
            if not beyond:
                self.strangers.setdefault(event.action, event.n)
                self.folding = False
            return None
        was, after = None, None
        if event.action is not None:
            file = fold_action(before, event)
            if before is None and self.record is not None:
                file = with_tenant(file, self.record.tenant)
            was, after = State.NEW if before is None else before.action.state, file
        if not beyond:
            self._count(event, hash_, was, None if after is None else after.action.state, took_us(before, event))
        if after is not None:
            self._look_at(event, before, after, beside)
            self.files[after.action.id] = after
            return after.action.id
        return None

    def _count(self, event: Event, hash_: bytes, was: State | None, now: State | None, took: int) -> None:
        if self.record is not None and event.at_us < self.record.at_us:
            self.broken("time", event.n, f"{event.type}: it is older than the one before it")
            event = replace(event, at_us=self.record.at_us)
        if self.record is not None and self.record.state is not RunState.OPEN:
            self._tell(event, _begun_too_late(event, now))
        self.record = fold_run(self.record, event, hash_, was=was, now=now, took_us=took)
        self.waiting += (now in _WAITING) - (was in _WAITING)
        if event.n == 0:
            self._tell(event, _check_founding(event, self._ledger))

    def _look_at(
        self, event: Event, before: ActionFile | None, after: ActionFile, beside: Mapping[str, Beside]
    ) -> None:
        """Check an event against its action, as it was before and as it is after it."""
        action = after.action
        self._tell(event, check_action(event, action, ledger=self._ledger))
        self._tell(event, _check_place(event, before, after))
        if before is not None:
            self._tell(event, check_polled(event, before))
        if event.type == "voted" and "signature" in event.body:
            self._tell(event, self._signed(event))
        if event.type == "started":
            if after.action.fence is None or after.action.fence <= self._fence:
                self.broken("fence", event.n, "started: its fence does not grow over those before it")
            self._fence = after.action.fence or self._fence
            self._tell(event, check_deduped(event, None if action.spec is None else self._spec(action.spec)))
        self._tell(event, check_sealed(beside, None if action.spec is None else self._spec(action.spec)))
        if is_fingerprinted(event):
            self._check_fingerprints(event, after, legible(beside))
        if event.type == "proposed":
            self._look_at_proposal(event, action)

    def _look_at_proposal(self, event: Event, action: ActionRecord) -> None:
        said = None if action.spec is None else self._spec(action.spec)
        if said is not None and (said.namespace, said.name) != (action.namespace, action.tool):
            self.broken("digest", event.n, "proposed: its spec is another tool's")
        if action.key.source == "own" and action.key.text != action.id:
            self.broken("forbidden", event.n, "proposed: its own key is not its id")
        if action.revision > 1:
            self.revised.append(action)

    def _check_fingerprints(self, event: Event, file: ActionFile, beside: Mapping[str, Beside]) -> None:
        action = file.action
        key = self._key(action.tenant)
        if key is None:
            self.broken("fingerprint", event.n, f"{event.type}: the tenant's key is gone, and no event says so")
            return
        spec = None if action.spec is None else self._spec(action.spec)
        self._tell(event, check_fingerprints(event, action, key, beside, spec))


_WAITING = frozenset({State.READY, State.HELD})
_REFERRING = frozenset({"held", "refused", "waited", "started"})


def _after_colon(detail: str) -> str:
    """Drop the run's name, which the break carries by itself."""
    return detail.partition(": ")[2] or detail


def _check_founding(event: Event, ledger: str) -> Iterator[Finding]:
    """Check the first event of a chain: whether it is the ledger's own."""
    if (event.type == "ledger_created") != (event.run == ledger):
        yield "forbidden", "the ledger's own chain, and no other, begins with ledger_created"
    if event.type == "ledger_created" and event.body["origin"] != f"agentgate/{ledger}":
        yield "forbidden", "its origin is not this ledger's"


def _begun_too_late(event: Event, now: State | None) -> Iterator[Finding]:
    """Check that a halted or closed run begins nothing (design §3)."""
    begins = now in {State.EXECUTING, State.HELD} or (now is State.READY and event.type != "reconciled")
    if begins and event.type in {"proposed", "held", "approved", "retried", "started"}:
        yield "forbidden", "the run was not open any more"


def _check_place(event: Event, before: ActionFile | None, after: ActionFile) -> Iterator[Finding]:
    """Check what an event says of times and places against the action it is about."""
    body: Mapping[str, Any] = event.body
    if event.type in _REFERRING and body["proposed"] != after.action.proposed_n:
        yield "forbidden", "it names another event as its proposal"
    asked = body.get("approval")
    ends = [asked["expires_at_us"]] if type(asked) is dict else []
    ends += [body[name] for name in ("lease_until_us", "deadline_us", "expires_at_us", "until_us") if name in body]
    if event.type == "retried":
        ends = []  # under a grant that was given back, which ends when it always would have
    if any(end <= event.at_us for end in ends):
        yield "time", "it ends before it begins"
    if before is None:
        return
    expires_at_us = before.action.expires_at_us
    if event.type == "started" and expires_at_us is not None and expires_at_us <= event.at_us:
        yield "time", "the action had expired"
    question = before.question
    until_us = {
        "action_expired": expires_at_us,
        "question_expired": None if question is None else question.expires_at_us,
        "grant_expired": None if question is None else question.until_us,
    }.get(event.type)
    if until_us is not None and until_us > event.at_us:
        yield "time", "it had not expired yet"
