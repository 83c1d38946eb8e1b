"""Waking those who wait in this process, as soon as something ends that may be in their way.

Only a hint: whoever is woken looks at the ledger, and whoever is not looks again after a while.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from agentgate.core.draft import Plan
from agentgate.states import State

_IN_THE_WAY = frozenset({State.EXECUTING, State.UNKNOWN})


class Turns:
    """Those who wait for a turn on one ledger, in this process."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._waiting: set[threading.Event] = set()

    @contextmanager
    def waiting(self) -> Iterator[threading.Event]:
        """Stand in line while the block runs; the event is set when it may be worth a look."""
        if os.getpid() != self._pid:  # a forked child has none of its parent's threads
            self._reset()
        wake = threading.Event()
        self._waiting.add(wake)
        try:
            yield wake
        finally:
            self._waiting.discard(wake)

    def tell(self, plan: Plan) -> None:
        """Wake everybody up where what was committed moved something out of the way."""
        if not self._waiting or os.getpid() != self._pid:
            return
        freed = any(
            before is not None and before.action.state in _IN_THE_WAY and after.action.state is not before.action.state
            for before, after in plan.files
        )
        if freed or any(b'"type":"switched"' in link.encoded for link in plan.links):
            for wake in tuple(self._waiting):
                wake.set()
