"""A channel that keeps what it is told."""

import threading
from collections import deque

from agentgate.gate.questions import Question


class CollectingChannel:
    """A `Channel` for tests: keeps every question that it is told of, in the order in which they come.

    Args:
        name: what it is marked by in the ledger.
        failures: raised one after the other, each instead of taking a question.
    """

    def __init__(self, name: str = "collecting", *failures: Exception) -> None:
        self._name = name
        self._failures = deque(failures)
        self._questions: list[Question] = []
        self._changed = threading.Condition()

    @property
    def name(self) -> str:
        return self._name

    @property
    def questions(self) -> tuple[Question, ...]:
        """What it was told so far."""
        with self._changed:
            return tuple(self._questions)

    def asked(self, question: Question) -> None:
        """Keep a question.

        Raises:
            Exception: one of its failures is left.
        """
        with self._changed:
            if self._failures:
                raise self._failures.popleft()
            self._questions.append(question)
            self._changed.notify_all()

    def wait_for(self, count: int, *, within: float = 30) -> tuple[Question, ...]:
        """Wait until it was told so many; return what it was told by then, or when the seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._questions) >= count, within)
            return tuple(self._questions)
