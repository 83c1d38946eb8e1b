"""Waiting for people: until a question has been answered or has ended, however long they take and wherever they are.

Who waits looks into short snapshots and holds nothing meanwhile. An answer given in this process wakes them up; one
from elsewhere is noticed by looking again, ever more seldom. What they wait for is in the ledger, not here: killed
while it waits, a process has lost nothing, and any other may wait on.
"""

from dataclasses import dataclass

from agentgate.core.claiming import expire
from agentgate.core.records import ApprovalRecord
from agentgate.errors import NotFound
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.states import State
from agentgate.store import actions, nesting, runs

_FIRST_PAUSE_US = 50_000
_LONGEST_PAUSE_US = 1_000_000
_ASKED = frozenset({State.HELD, State.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A question that can be answered still, or whose end nobody has recorded yet."""

    run: str
    question: ApprovalRecord
    at_us: int

    @property
    def is_over(self) -> bool:
        return self.question.expires_at_us <= self.at_us


def wait_for_people(ledger: Ledger, tenant: str, action: str, *, timeout_us: int | None) -> None:
    """Return once an action's question was answered or has ended, or the time is over.

    Args:
        ledger: the record.
        tenant: whose action it must be.
        action: its id.
        timeout_us: how long to wait; None for as long as the question can be answered.

    Raises:
        NotFound: no such action in this tenant.
        Misuse: this thread is inside a transaction of the ledger, beside which nobody can answer.
    """
    nesting.check(ledger.own.place)
    clock = ledger.clock
    until_us = None if timeout_us is None else clock.monotonic_us() + timeout_us
    pause_us = _FIRST_PAUSE_US
    with ledger.turns.answering() as wake:
        while (asked := _look(ledger, tenant, action)) is not None:
            if asked.is_over:
                _expire(ledger, asked.run, action)
                continue  # at a question that the action may hang on instead
            left_us = _LONGEST_PAUSE_US if until_us is None else until_us - clock.monotonic_us()
            if left_us <= 0:
                return
            clock.sleep(min(pause_us, left_us, asked.question.expires_at_us - asked.at_us), wake=wake)
            pause_us = _FIRST_PAUSE_US if wake.is_set() else min(pause_us * 2, _LONGEST_PAUSE_US)
            wake.clear()  # before the look: what is answered from here on wakes us up again


def _look(ledger: Ledger, tenant: str, action: str) -> _Asked | None:
    with ledger.database.read() as connection:
        file = actions.file(connection, action)
        if file is None or file.action.tenant != tenant:
            raise NotFound("action", action)
        question = file.question
        if question is None or question.state != "pending" or file.action.state not in _ASKED:
            return None
        run = runs.read(connection, file.action.run)
        # Time never goes back within a run: what one of its events has seen expired, is (design §5, Clocks).
        at_us = max(ledger.clock.now_us(), 0 if run is None else run.at_us)
        return _Asked(run=file.action.run, question=question, at_us=at_us)


def _expire(ledger: Ledger, run: str, action: str) -> None:
    def expired(transaction: Transaction) -> None:
        expire(transaction.draft, transaction.file(action))

    ledger.change(run, expired)
