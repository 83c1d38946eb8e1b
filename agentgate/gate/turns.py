"""Waking those who wait in this process, as soon as something ends that may be in their way, or is answered.

Only a hint: whoever is woken looks at the ledger, and whoever is not looks again after a while.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agentgate.core.draft import Plan
from agentgate.core.records import ActionFile
from agentgate.states import State

_IN_THE_WAY = frozenset({State.EXECUTING, State.UNKNOWN})


class Turns:
    """Those who wait on one ledger, in this process: for a turn, for an answer, or for questions to pass on.

    ``on_question`` is called after each commit that asked people something.
    """

    def __init__(self) -> None:
        self.on_question: Callable[[], None] | None = None
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._waiting: set[threading.Event] = set()
        self._answering: set[threading.Event] = set()

    @contextmanager
    def waiting(self) -> Iterator[threading.Event]:
        """Stand in line while the block runs; the event is set when it may be worth a look."""
        self._check()
        with _among(self._waiting) as wake:
            yield wake

    @contextmanager
    def answering(self) -> Iterator[threading.Event]:
        """Wait for people while the block runs; the event is set when a question has been answered, or has ended."""
        self._check()
        with _among(self._answering) as wake:
            yield wake

    def _check(self) -> None:
        if os.getpid() != self._pid:  # a forked child has none of its parent's threads
            self._reset()

    def tell(self, plan: Plan) -> None:
        """Wake those up for whom what was committed may be worth a look."""
        if self.on_question is not None and any(_asks(before, after) for before, after in plan.files):
            self.on_question()
        if not (self._waiting or self._answering) or os.getpid() != self._pid:
            return
        freed = any(
            before is not None and before.action.state in _IN_THE_WAY and after.action.state is not before.action.state
            for before, after in plan.files
        )
        if freed or any(b'"type":"switched"' in link.encoded for link in plan.links):
            _wake(self._waiting)
        if any(before is not None and _pending(before) - _pending(after) for before, after in plan.files):
            _wake(self._answering)


@contextmanager
def _among(those: set[threading.Event]) -> Iterator[threading.Event]:
    wake = threading.Event()
    those.add(wake)
    try:
        yield wake
    finally:
        those.discard(wake)


def _wake(those: set[threading.Event]) -> None:
    for wake in tuple(those):
        wake.set()


def _asks(before: ActionFile | None, after: ActionFile) -> bool:
    return bool(_pending(after) - (set() if before is None else _pending(before)))


def _pending(file: ActionFile) -> set[str]:
    return {id_ for id_, question in file.approvals.items() if question.state == "pending"}
