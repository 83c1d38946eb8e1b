"""Recheck: recorded decisions asked again of another policy, in flat memory and without writing anything."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from agentgate.clock import SystemClock
from agentgate.core.findings import KEPT, Recheck, RecheckProgress
from agentgate.core.rechecking import Case, Gap, Opened, is_decision, rebuild
from agentgate.core.tally import RunTally, Tally
from agentgate.errors import Damaged, Misuse, NotFound
from agentgate.event import Event
from agentgate.gate import recorded
from agentgate.gate.reading import opened
from agentgate.policy.evaluation import Policy, evaluate
from agentgate.policy.loading import PolicySource, load_policy
from agentgate.sealing import SealingKeys, SealingSource
from agentgate.store import runs
from agentgate.store.engine import Database

WITHIN = timedelta(seconds=5)

# Runs that one job carries, and jobs that wait at once: a report of many runs is never held as futures.
_BATCH = 16
_AHEAD = 32
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, of which runs; it travels to whoever carries the work.

    Args:
        url: the ledger.
        ledger: its id.
        policy: who is asked.
        facts: the names of what it needs.
        tenant: whose runs; None for everybody's.
        run: a run's id or name; None for all.
        kept: how many findings of each kind are held one by one.
        within: how long the policy may think about each.
        sealing: the keys that open what is sealed; they travel too.
    """

    url: str
    ledger: str
    policy: Policy
    facts: tuple[str, ...]
    tenant: str | None
    run: str | None
    kept: int
    within: timedelta
    sealing: SealingKeys | None

    def concerns(self, run: Opened | None) -> bool:
        """Tell whether a run is asked about; one that does not say whose it is concerns everybody."""
        if run is None:
            return True
        return self.tenant in (None, run.tenant) and self.run in (None, run.run, run.name)


def recheck(
    url: str,
    policy: PolicySource,
    *,
    tenant: str | None = None,
    run: str | None = None,
    kept: int = KEPT,
    within: timedelta = WITHIN,
    on_progress: Callable[[RecheckProgress], None] | None = None,
    executor: Executor | None = None,
    sealing: SealingSource | None = None,
) -> Recheck:
    """Ask another policy about every recorded decision, and say what it would have decided otherwise.

    The record alone is read: each request is rebuilt exactly as it was, with the counters and facts of its time,
    from a run's chain as that is verified. Nothing is written, and nothing is authorised by the answers. Of a run
    whose chain is broken no decision is evaluated, also not those before the break: which of its events were
    rewritten cannot be told.

    Args:
        url: ``sqlite:///path/to/agent.db``.
        policy: a rule file's path, a function from `PolicyRequest` to `Decision`, or a `Policy`.
        tenant: whose decisions; everybody's unless given.
        run: the decisions of one run, by its id or name.
        kept: how many findings of each kind the report holds one by one; all of them are counted.
        within: how long the policy may think about each decision.
        on_progress: called after each page of events, with ``executor`` after each batch of runs; what it raises
            ends the recheck.
        executor: who carries the work, in batches of runs; one run is never split. In other processes the policy
            must pickle: a rule file does, and a function that its module names.
        sealing: the keys that open what is sealed; without them a decision on it cannot be evaluated. Whoever carries
            the work is given them.

    Raises:
        NotFound: there is no such run.
        PolicyRefused: the policy cannot be loaded.
        WrongSchema: the tables are missing, older or newer than this code's.
        UnsafeStore: there is no such database, or it lies where a ledger must not.
        Unavailable: the database could not be had.
    """
    if kept < 0 or within <= timedelta(0):
        raise Misuse("kept: give a number from 0; within: give a positive timedelta")
    asked = load_policy(policy)
    with opened(url, sealing=sealing) as ledger:
        question = Question(
            url=url,
            ledger=ledger.id,
            policy=asked,
            facts=asked.facts,
            tenant=tenant,
            run=run,
            kept=kept,
            within=within,
            sealing=ledger.sealing,
        )
        total = _ask_all(question, ledger.own, executor, on_progress or _silent)
    if run is not None and not total.counts["runs"]:
        raise NotFound("run", run)
    return total.report(policy=asked.identity.digest)


def _ask_all(
    question: Question, database: Database, executor: Executor | None, tell: Callable[[RecheckProgress], None]
) -> Tally:
    total, every = Tally(kept=question.kept), _runs(database, question.ledger)
    if executor is None:
        for run in every:
            _add(total, _ask_run(question, database, run, _telling(total, tell)), tell)
        return total
    with closing(_spread(executor, question, every)) as found:
        for tally in found:
            _add(total, tally, tell)
    return total


def _silent(_progress: RecheckProgress) -> None:
    """Tell nobody."""


def _telling(total: Tally, tell: Callable[[RecheckProgress], None]) -> Callable[[int], None]:
    """Make what tells of a run while it is read."""
    return lambda decisions: tell(RecheckProgress(runs=total.counts["runs"], decisions=total.decisions + decisions))


def _add(total: Tally, tally: Tally | None, tell: Callable[[RecheckProgress], None]) -> None:
    if tally is not None:
        total.add(tally)
        tell(RecheckProgress(runs=total.counts["runs"], decisions=total.decisions))


def _runs(database: Database, ledger: str) -> Iterator[str]:
    """Read the ids of all runs, oldest first; the ledger's own chain holds no decisions."""
    after = ""
    while True:
        with database.read() as connection:
            page = runs.ids(connection, after=after)
        if not page:
            return
        yield from (run for run in page if run != ledger)
        after = page[-1]


def _spread(executor: Executor, question: Question, every: Iterator[str]) -> Generator[Tally, None, None]:
    """Have batches of runs carried elsewhere, a few ahead, and return what is found in the runs' order."""
    waiting: deque[Future[Tally]] = deque()
    try:
        while True:
            while len(waiting) < _AHEAD and (batch := tuple(islice(every, _BATCH))):
                waiting.append(executor.submit(_ask_runs, question, batch))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _ask_runs(question: Question, batch: tuple[str, ...]) -> Tally:
    """Recheck some runs, wherever this is carried to."""
    total = Tally(kept=question.kept)
    with opened(question.url) as ledger:
        for run in batch:
            tally = _ask_run(question, ledger.own, run, lambda _decisions: None)
            if tally is not None:
                total.add(tally)
    return total


def _ask_run(question: Question, database: Database, run: str, tell: Callable[[int], None]) -> Tally | None:
    """Recheck one run; None where it is not asked about."""
    said = recorded.first(database, question.ledger, run)
    if not question.concerns(said):
        return None
    who = said or Opened(run=run, name="", tenant="")
    tally = RunTally(who, policy=question.policy.identity.digest, kept=question.kept)
    pages, read = recorded.followed(database, question.ledger, run), 0
    while True:
        try:
            page = _next(pages, said)
        except Damaged as error:
            rest = recorded.rest(database, run, after=read)
            return tally.broken(n=read, detail=error.detail, rest=rest)
        if page is None:
            return tally.end()
        _ask_page(question, who, tally, page, recorded.cases(database, page, question.sealing))
        read = page[-1].n + 1
        tell(tally.decisions)


def _next(pages: Iterator[tuple[Event, ...]], said: Opened | None) -> tuple[Event, ...] | None:
    page = next(pages, None)
    if said is None and page is not None:
        raise Damaged("event", f"run {page[0].run}: event 0 opens no run")
    return page


def _ask_page(question: Question, who: Opened, tally: RunTally, page: tuple[Event, ...], cases: Iterator[Case]) -> None:
    for event in page:
        if is_decision(event):
            _ask(question, who, tally, next(cases))
        if event.type == "started":
            tally.started(event)


def _ask(question: Question, who: Opened, tally: RunTally, case: Case) -> None:
    try:
        request = rebuild(who, case, facts=question.facts)
        tally.answered(case, evaluate(question.policy, request, within=question.within, clock=_CLOCK))
    except Gap as gap:
        tally.unanswered(case.event, gap.reason)
