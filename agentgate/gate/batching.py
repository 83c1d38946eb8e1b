"""Proposing a batch: its calls decided in order, each on what those before it leave, and written in one commit.

One walk through the calls, gone twice by the same code: first on drafts that nobody writes, where the policy is asked
with what each call would find; then on those of the transaction, with the answers. It gives what proposing one after
the other would give (docs/decisions/0017).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

from sqlalchemy.engine import Connection

from agentgate.action import Key
from agentgate.core.budgets import TENANT, Book, Budget, Place, left, tool
from agentgate.core.claiming import expire, outdate, refuse
from agentgate.core.draft import Draft
from agentgate.core.proposing import Chance, Thought, Waiting, propose
from agentgate.core.records import ActionFile, ActionRecord, RunRecord, counted
from agentgate.core.sameness import same_arguments
from agentgate.errors import Damaged, KeyConflict, NotFound, Unavailable
from agentgate.gate.closing import refuse_waiting
from agentgate.gate.executing import REPLAYED
from agentgate.gate.ledger import TRIES, Ledger, Transaction, draft_of
from agentgate.gate.proposing import asks, bounds_of, chance, recent_of, seen_as
from agentgate.gate.settings import Settings
from agentgate.gate.standing import Known, Standing, asked, check_principal, is_revisable, known, newest, stand
from agentgate.gate.thinking import Intent, Mind
from agentgate.policy.request import RECENT, Recent, View
from agentgate.sealing import SealingKeys
from agentgate.states import RunState, State
from agentgate.store import actions, runs
from agentgate.store.rejections import was_rejected


class Moved(Exception):
    """What the answers rest on is not as it was when they were given: all of it must be thought again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A call of a batch on its way.

    Args:
        thought: with the policy's answer, once it was asked.
        supersede: whether it may take a waiting action's place.
        chance: drawn once, so that both walks tell of the same approval.
        known: what its key stood for before the batch.
        revision: the one that the policy was asked about; None where it was not asked.
    """

    thought: Thought
    supersede: bool
    chance: Chance
    known: Known | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a batch looked at before the policy was asked: one snapshot.

    Args:
        run: the run's row.
        recent: its last actions by id, newest first.
        bounds: the budgets that a policy is shown, of the tools of all calls.
        items: with what their keys stood for.
        files: the actions that those are, with the rows of their runs.
        at_us: when that was.
    """

    run: RunRecord
    recent: dict[str, Recent]
    bounds: tuple[Budget, ...]
    items: tuple[Item, ...]
    files: tuple[tuple[ActionFile, RunRecord], ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A call's place in the record."""

    action: str
    repeated: bool


@dataclass(slots=True, kw_only=True)
class Walk:
    """How far a batch has come.

    Args:
        draft: of its run.
        reach: brings in an action of any run, with its run's draft.
        halted: refuses what waits in the run, once it is not open any more.
        rejected: tells whether people have said no, in this run, to the same request.
        newest: the batch's own actions, the last one under each key.
        entries: one for each call so far.
    """

    draft: Draft
    reach: Callable[[ActionRecord], Draft]
    halted: Callable[[], None]
    rejected: Callable[[bytes | None], bool]
    newest: dict[tuple[str, str, Key], Thought] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batcher:
    """Propose batches of one gate.

    Args:
        ledger: where they are recorded.
        settings: times to live.
    """

    ledger: Ledger
    settings: Settings

    def propose(
        self, mind: Mind, run: str, intents: tuple[Intent, ...], *, tenant: str, fingerprint_key: bytes | None
    ) -> list[Entry]:
        """Record a batch, all of it in one commit.

        Args:
            mind: what to think with.
            run: the run's id.
            intents: what was asked for, in order.
            tenant: whose run it must be.
            fingerprint_key: the tenant's.

        Raises:
            KeyConflict: a call's key stands for another call; it says which, and nothing was recorded of any.
            Unavailable: the database could not be had, or what the answers rest on moved each time.
        """
        items = tuple(
            Item(
                thought=mind.think(intent, fingerprint_key),
                supersede=intent.supersede,
                chance=chance(self.ledger, self.settings),
            )
            for intent in intents
        )
        for _ in range(TRIES):
            seen = self._look(run, tenant, items)
            answered = _ask(mind, seen, self._rejected)
            try:
                return self.ledger.change(run, partial(_write, seen=seen, items=answered), documents=mind.documents)
            except Moved:
                continue
        raise Unavailable("moved", f"the run or a key changed {TRIES} times while the policy was asked; try again")

    def _rejected(self, run: str, request: bytes | None) -> bool:
        with self.ledger.database.read() as connection:
            return was_rejected(connection, run, request)

    def _look(self, run: str, tenant: str, items: tuple[Item, ...]) -> Seen:
        with self.ledger.database.read() as connection:
            record = runs.read(connection, run)
            if record is None or record.tenant != tenant:
                raise NotFound("run", run)
            compared = _compared(connection, tenant, items, self.ledger.sealing)
            return Seen(
                run=record,
                recent=recent_of(connection, record),
                bounds=tuple(bounds_of(connection, record, sorted(_tools(items)))),
                items=compared,
                files=_files(connection, compared),
                at_us=self.ledger.clock.now_us(),
            )


def _compared(
    connection: Connection, tenant: str, items: tuple[Item, ...], sealing: SealingKeys | None
) -> tuple[Item, ...]:
    """Look up what each call's key stands for, and find every conflict before anybody is asked anything."""
    before: dict[tuple[str, str, Key], Thought] = {}
    compared: list[Item] = []
    for n, item in enumerate(items):
        thought = item.thought
        try:
            found = known(connection, tenant, thought, supersede=item.supersede, sealing=sealing)
            _check(thought, found, before.get(_address(thought)), supersede=item.supersede)
        except KeyConflict as conflict:
            raise KeyConflict(conflict.tool, conflict.key, n) from conflict
        before[_address(thought)] = thought
        compared.append(replace(item, known=found))
    return tuple(compared)


def _check(thought: Thought, found: Known | None, earlier: Thought | None, *, supersede: bool) -> None:
    """Compare with the newest call under the key: an earlier one of this batch, or else what is on record.

    Raises:
        KeyConflict: another intent, or another principal's.
    """
    attempted = found is not None and found.attempted
    if earlier is not None:
        check_principal(earlier.principal, thought)
        if not same_arguments(asked(thought), asked(earlier)) and (attempted or not supersede):
            raise KeyConflict(thought.tool, thought.key.text)
    elif found is not None:
        stand(found.action, thought, same=found.same, attempted=attempted, supersede=supersede)


def _address(thought: Thought) -> tuple[str, str, Key]:
    return thought.namespace, thought.tool, thought.key


def _files(connection: Connection, items: Iterable[Item]) -> tuple[tuple[ActionFile, RunRecord], ...]:
    """Read the actions that the batch's keys stand for, each once."""
    wanted = {item.known.action.id: item.known.action for item in items if item.known is not None}
    found: list[tuple[ActionFile, RunRecord]] = []
    for id_, action in wanted.items():
        file, run = actions.file(connection, id_), runs.read(connection, action.run)
        if file is None or run is None:
            raise Damaged(f"action {id_}", "its run is missing")
        found.append((file, run))
    return tuple(found)


def _ask(mind: Mind, seen: Seen, rejected: Callable[[str, bytes | None], bool]) -> tuple[Item, ...]:
    """Ask the policy about each call, on what those before it would leave; nothing is written, and nothing is open."""
    book = Book()
    book.enter({TENANT, *_tools(seen.items), *(one.place for one in seen.bounds)}, seen.bounds)
    drafts = {seen.run.id: draft_of(seen.run, at_us=seen.at_us, book=book)}
    for file, run in seen.files:
        if run.id not in drafts:
            drafts[run.id] = draft_of(run, at_us=seen.at_us, book=book)
        drafts[run.id].read(file)
    draft = drafts[seen.run.id]
    walk = Walk(
        draft=draft,
        reach=lambda action: drafts[action.run],
        halted=partial(_refuse_drafted, draft),
        rejected=partial(rejected, seen.run.id),
    )
    answered: list[Item] = []

    def judged(item: Item, revision: int) -> Item:
        if item.thought.refusal is None and draft.run.state is RunState.OPEN:
            judgement = mind.judge(item.thought, draft.run, _view(walk, seen, item.thought), revision=revision)
            item = replace(item, thought=replace(item.thought, judgement=judgement), revision=revision)
        answered[-1] = item
        return item

    for n, item in enumerate(seen.items):
        answered.append(item)
        _step(walk, n, item, judged)
    return tuple(answered)


def _tools(items: Iterable[Item]) -> set[Place]:
    return {tool(item.thought.namespace, item.thought.tool) for item in items}


def _view(walk: Walk, seen: Seen, thought: Thought) -> View:
    """Show the run as it was read, and on top of it what the batch's earlier calls leave."""
    files = walk.draft.files
    made = (entry.action for entry in reversed(walk.entries) if not entry.repeated)
    ids = islice(chain(made, seen.recent), RECENT)
    recent = tuple(seen_as(files[id_].action) if id_ in files else seen.recent[id_] for id_ in ids)
    run, accounts = walk.draft.run, sorted(one.place for one in seen.bounds if one.place.kind == "account")
    bounds = walk.draft.book.left(TENANT, tool(thought.namespace, thought.tool), *accounts)
    counters = dict(sorted(counted(run.counters).items()))
    return View(n=seen.run.n, counters=counters, budgets=left(run, bounds), recent=recent)


def _refuse_drafted(draft: Draft) -> None:
    """Refuse what the batch itself left waiting; what else waits in the run matters to nobody who is asked."""
    for id_, file in list(draft.files.items()):
        if file.action.state in {State.HELD, State.READY}:
            refuse(draft, draft.file(id_), "run_halted")


def _write(transaction: Transaction, *, seen: Seen, items: tuple[Item, ...]) -> list[Entry]:
    """Write what was decided.

    Raises:
        Moved: something that it rests on is another by now.
    """
    draft = transaction.draft
    if draft.run.state is not seen.run.state:
        raise Moved
    for item in items:
        found = newest(transaction.connection, draft.run.tenant, item.thought)
        was = None if item.known is None else item.known.action
        if (found and (found.id, found.last_n)) != (was and (was.id, was.last_n)):
            raise Moved

    def reach(action: ActionRecord) -> Draft:
        its_run = transaction.beside(action.run)
        its_run.file(action.id)
        return its_run.draft

    transaction.bind(TENANT, *_tools(items))
    said_no = partial(was_rejected, transaction.connection, draft.run.id)
    walk = Walk(draft=draft, reach=reach, halted=partial(refuse_waiting, transaction), rejected=said_no)
    for n, item in enumerate(items):
        _step(walk, n, item, _judged)
    return walk.entries


def _judged(item: Item, revision: int) -> Item:
    """Take the answer that was given about exactly this; a call that another walk led elsewhere has none."""
    if item.thought.refusal is None and item.revision not in {None, revision}:
        raise Moved
    return item


def _step(walk: Walk, n: int, item: Item, judged: Callable[[Item, int], Item]) -> None:
    """Decide the n-th call on what those before it left."""
    draft = walk.draft
    try:
        standing = _standing(walk, item)
    except KeyConflict as conflict:
        raise KeyConflict(conflict.tool, conflict.key, n) from conflict
    if standing.repeat is not None:
        _repeat(walk, item, standing.repeat)
        return
    thought = judged(item, standing.revision).thought
    if thought.refusal is None and thought.judgement is None and draft.run.state is RunState.OPEN:
        raise Moved  # nobody was asked: the first walk found it to be a repeat
    supersedes = standing.supersedes
    waiting = None if supersedes is None else Waiting(draft=walk.reach(supersedes), action=supersedes)
    was_open = draft.run.state is RunState.OPEN
    rejected = asks(thought) and walk.rejected(thought.request)
    propose(draft, thought, item.chance, revision=standing.revision, supersedes=waiting, rejected=rejected)
    walk.newest[_address(item.thought)] = item.thought
    walk.entries.append(Entry(action=thought.id, repeated=False))
    if was_open and draft.run.state is not RunState.OPEN:
        walk.halted()


def _standing(walk: Walk, item: Item) -> Standing:
    """Tell what a call's key stands for after those before it."""
    thought, found = item.thought, item.known
    attempted = found is not None and found.attempted
    mine = walk.newest.get(_address(thought))
    if mine is not None:
        action, same = walk.draft.file(mine.id).action, same_arguments(asked(thought), asked(mine))
        if action.key == thought.key:
            return stand(action, thought, same=same, attempted=attempted, supersede=item.supersede)
        if same and not is_revisable(action):
            return Standing(repeat=action)
        # It was refused the place that it asked for: the key stands for what it stood for before.
    if found is None:
        return Standing()
    draft = walk.reach(found.action)
    if expire(draft, draft.file(found.action.id)) is None and found.same:
        outdate(draft, draft.file(found.action.id), thought.spec)
    action = draft.file(found.action.id).action
    return stand(action, thought, same=found.same, attempted=attempted, supersede=item.supersede)


def _repeat(walk: Walk, item: Item, action: ActionRecord) -> None:
    """Record that an outcome was handed back, where the call repeats an action at rest."""
    if action.state in REPLAYED:
        walk.reach(action).add("replayed", {"principal": item.thought.principal}, action=action.id)
    walk.entries.append(Entry(action=action.id, repeated=True))
