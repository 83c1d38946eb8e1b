"""The n-th statement of any command fails, once or with all that follow: what is left is what a crash may leave.

Each case begins on the same ledger. The rows of docs/crashes.md say what a command may leave behind; an error says
whether anything of it may be there; and once the database is back, the same key comes to the same end as ever.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from agentgate import AgentgateError, Done, Failed, Held, NotPossible, Outcome, Refused, Running, Unavailable, Unknown
from agentgate.testing import FakeClock
from support import faulty
from support.benches import Bench, Moment
from support.crashes import KEY, Command
from support.killings import BY_NAME
from support.verdicts import decided

IO, LOCKED = "disk I/O error", "database is locked"
WORDS = (IO, "database or disk is full", LOCKED)
LEASE = timedelta(seconds=61)
PATIENCE_US = 5_000
STEPWISE = ("sweep", "execute, the policy now asks for others")
"""Each of its steps stands, whatever becomes of the next: an error may follow what is on record."""
ONCE_ELSEWHERE = ("call", "call, the tool is transactional")
"""Their single failures, in all words, are the neighbours' of this file."""
NAMED = [
    BY_NAME[name]
    for name in (
        "propose",
        "propose_many",
        "call",
        "call, the tool is transactional",
        "execute",
        "reconcile, applied",
        "reconcile, not applied",
        "cancel",
        "abandon",
        "sweep",
        "pause",
        "activate_policy",
        "charge",
        "limit",
    )
]
ASKED = [
    BY_NAME[name]
    for name in (
        "approve, others must agree as well",
        "approve, the last who must sign",
        "approve, too late",
        "reject",
        "revoke, what was granted",
        "execute, the policy now asks for others",
        "execute, people have signed for it",
        "add a key",
        "give a standing grant",
        "call, a standing grant covers it",
    )
]
"""What is asked of people: each of their ways to fail is met on one of the two journals."""
Fault = Callable[[], faulty.At | faulty.ForGood]


@pytest.fixture
def bench(tmp_path: Path, command: Command, journal: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    faulty.install(monkeypatch)
    clock = FakeClock()
    bench = Bench(tmp_path, command, journal, clock=clock)
    bench.gate._shop.ledger.own._patience_us = PATIENCE_US  # how long a commit asks again while it is locked
    yield bench
    bench.gate.close()


def faults(command: Command, moment: Moment) -> Iterator[tuple[str, Fault]]:
    """Name the ways to fail at a moment.

    A commit fails as a disk does and as a lock does, which are two things; any other statement in one of three words.
    Where all that follows fails as well, it makes a difference after a commit alone that it had landed.
    """
    for words in (IO, LOCKED) if moment.statement == "COMMIT" else (WORDS[moment.n % len(WORDS)],):
        if command.name not in ONCE_ELSEWHERE:
            yield f"{words}, once", partial(faulty.failed, moment.n, moment.when, words)
        if moment.when == "before" or moment.statement == "COMMIT":
            yield f"{words}, for good", partial(faulty.ForGood, moment.n, moment.when, words)


def chosen(bench: Bench, journal: str) -> Iterator[tuple[Moment, str, Fault]]:
    """Name every way to fail at every moment; of `ASKED` every second one, the others on the other journal."""
    ways = ((moment, *fault) for moment in bench.moments() for fault in faults(bench.command, moment))
    if bench.command not in ASKED:
        yield from ways
        return
    told = (way for way in ways if way[0].when == "before" or way[0].statement == "COMMIT")
    yield from islice(told, journal == "wal", None, 2)


def recorded(bench: Bench) -> int:
    return int(bench.world.value("SELECT count(*) FROM agentgate_events"))


def attempt(bench: Bench) -> object:
    """Do the command; return its answer or the error of our own tree that it became. Any other error is a failure."""
    try:
        return bench.do()
    except AgentgateError as error:
        return error


@pytest.mark.parametrize("journal", faulty.JOURNALS)
@pytest.mark.parametrize("command", [*NAMED, *ASKED], ids=lambda command: command.name.replace(" ", "_"))
def test_wherever_the_database_fails_what_is_left_is_whole_and_goes_on_to_its_end(bench: Bench, journal: str) -> None:
    ways = list(chosen(bench, journal))
    bench.reset()
    before, seen = (bench.effects, recorded(bench)), set()
    for moment, name, fault in ways:
        bench.reset()
        with faulty.during(fault()):
            answer = attempt(bench)
            if name.endswith("for good"):
                assert isinstance(attempt(bench), AgentgateError), moment
        where = (name, moment, answer)
        _check_left(bench, answer, where, effects=before[0], events=before[1])
        left = (bench.command.left(bench.world), recorded(bench), bench.effects)
        again = attempt(bench)
        assert not isinstance(again, AgentgateError) or isinstance(again, NotPossible), (where, again)
        if left not in seen:  # what stands alike goes on alike
            seen.add(left)
            _check_end(bench, where)
    assert len(seen) > 1


def _check_left(bench: Bench, answer: object, where: object, *, effects: int, events: int) -> None:
    command, world = bench.command, bench.world
    left, grown = command.left(world), recorded(bench) > events
    words = world.words(_action(bench))
    assert not world.broken(), where
    assert left in {row.left for row in command.rows} | ({"FAILED"} if command.transactional else set()), where
    if command.transactional:  # what its own statement met is a known failure: the rows are undone, and so it stands
        assert bench.effects == words.count("succeeded"), where
    elif bench.effects > effects:
        assert "started" in words, where
    if isinstance(answer, AgentgateError):
        assert isinstance(answer, Unavailable), where
    if isinstance(answer, Done):
        assert (left.partition(";")[0], bench.effects) == ("SUCCEEDED", 1), where
    if len(command.rows) == 2 and not command.transactional and command.name not in STEPWISE:
        assert left == command.rows[grown].left, where
        assert command.beside(world) == (2 if command.name == "propose_many" and grown else 0), where
        if not isinstance(answer, Unavailable) or answer.reason == "answer":
            assert grown, where
        elif answer.reason != "commit":
            assert not grown, where


def _action(bench: Bench) -> str:
    found = bench.world.sql("SELECT id FROM agentgate_actions WHERE key_text = ? ORDER BY revision LIMIT 1", KEY)
    return str(found[0][0]) if found else ""


def _check_end(bench: Bench, where: object) -> None:
    """Come back with the key until that has an end."""
    outcome: Outcome | None = None
    for _ in range(6):
        outcome = bench.command.again(bench.gate)
        if isinstance(outcome, Running):  # its worker is this very process: only its lease can end it
            assert bench.clock is not None
            bench.clock.advance(LEASE)
        elif isinstance(outcome, Unknown) and not outcome.abandoned:
            applied = bench.effects == 1
            bench.gate.reconcile(outcome.action, applied=applied, by="ada", evidence="looked", tenant="acme")
        elif isinstance(outcome, Refused) and outcome.reason == "paused":
            bench.gate.resume(by="ada")
        elif isinstance(outcome, Failed) and bench.command.transactional:
            bench.gate.execute(outcome.action, tenant="acme", retry=True)
        elif isinstance(outcome, Held):
            decided(bench.gate, outcome)
        else:
            break
    is_refused = bench.command in ASKED and bench.command.rows[-1].next == "Refused"
    expected = Unknown if bench.command.name == "abandon" else Refused if is_refused else Done
    assert isinstance(outcome, expected), (where, outcome)
    assert bench.effects == (0 if is_refused else 1), (where, outcome)
    assert not bench.world.damage(), where
