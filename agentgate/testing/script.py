"""A policy that answers from a script and remembers what it was asked."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from agentgate.policy.decision import Decision, allow
from agentgate.policy.identity import PolicyIdentity, stated
from agentgate.policy.request import PolicyRequest

Answer: TypeAlias = Decision | Exception | Callable[[PolicyRequest], Decision]
"""What to say next: a decision, an exception to raise, or a function of the request."""


class ScriptedPolicy:
    """A `Policy` for tests: each question takes the next answer of the script, then ``otherwise``.

    Args:
        answers: in the order they will be given.
        otherwise: the answer once the script is over.
        name: its identity is made of this; two scripts that must count as two policies take two names.
        facts: the names of the facts that it declares; each request shows them.
    """

    def __init__(
        self,
        *answers: Answer,
        otherwise: Answer | None = None,
        name: str = "scripted",
        facts: Iterable[str] = (),
    ) -> None:
        self._script = deque(answers)
        self._otherwise = allow("scripted") if otherwise is None else otherwise
        self._requests: list[PolicyRequest] = []
        self._identity = stated(name)
        self._facts = tuple(facts)
        self._lock = threading.Lock()

    @property
    def identity(self) -> PolicyIdentity:
        return self._identity

    @property
    def facts(self) -> tuple[str, ...]:
        return self._facts

    @property
    def requests(self) -> tuple[PolicyRequest, ...]:
        """What it was asked so far, first to last."""
        with self._lock:
            return tuple(self._requests)

    @property
    def left(self) -> int:
        """How many answers of the script nobody has asked for yet."""
        with self._lock:
            return len(self._script)

    def say(self, *answers: Answer) -> None:
        """Put further answers at the script's end."""
        with self._lock:
            self._script.extend(answers)

    def decide(self, request: PolicyRequest) -> Decision:
        """Give the next answer.

        Raises:
            Exception: the script says so.
        """
        with self._lock:
            self._requests.append(request)
            answer = self._script.popleft() if self._script else self._otherwise
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Decision) else answer(request)
