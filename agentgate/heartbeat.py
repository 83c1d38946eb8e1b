"""One thread per gate that keeps its leases alive, and tells an effect when its lease is lost.

Leases are renewed at a third of their length; an effect whose lease two renewals in a row could not reach is
told that it is lost. The thread starts with the first effect that runs and sleeps while there is none.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agentgate.effects import Effect
from agentgate.errors import AgentgateError

Renew = Callable[[tuple[int, ...]], frozenset[int]]
"""Extend these fences' leases; return those that are still ours."""

_MISSES_TO_LOSE = 2


class Heartbeat:
    """Keep leases alive.

    Args:
        renew: one writing transaction that extends leases.
        lease_us: how long a lease lasts.
    """

    def __init__(self, renew: Renew, *, lease_us: int) -> None:
        self._renew = renew
        self._pause_s = lease_us / 3e6
        self._beating: dict[int, Effect] = {}
        self._misses: dict[int, int] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keeping(self, effect: Effect) -> Iterator[None]:
        """Keep the effect's lease while the block runs."""
        with self._lock:
            self._beating[effect.fence] = effect
            if self._thread is None or not self._thread.is_alive():  # a forked child has no thread of its parent's
                self._thread = self._started()
        try:
            yield
        finally:
            self.forget(effect.fence)

    def _started(self) -> threading.Thread | None:
        """Start the thread; where the system gives none, leases last as long as they last."""
        self._stop = threading.Event()
        thread = threading.Thread(target=self._beat, name="agentgate-heartbeat", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return None
        return thread

    def forget(self, fence: int) -> None:
        """Stop keeping a lease."""
        with self._lock:
            self._beating.pop(fence, None)
            self._misses.pop(fence, None)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join(timeout=self._pause_s)

    def _beat(self) -> None:
        stop = self._stop
        while not stop.wait(self._pause_s):
            with self._lock:
                beating = dict(self._beating)
            if beating:
                self._renew_all(beating)

    def _renew_all(self, beating: dict[int, Effect]) -> None:
        try:
            kept = self._renew(tuple(beating))
        except AgentgateError:  # the database could not be had: the lease still stands until it expires
            kept = frozenset()
            lost_now = frozenset[int]()
        else:
            lost_now = frozenset(beating) - kept
        for fence, effect in beating.items():
            self._misses[fence] = 0 if fence in kept else self._misses.get(fence, 0) + 1
            if fence in lost_now or self._misses[fence] >= _MISSES_TO_LOSE:
                effect.lose()
