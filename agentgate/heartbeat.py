"""One thread per gate that keeps its leases alive, and tells an effect when its lease is lost.

Leases are renewed at a third of their length. An effect is told how far each renewal reaches, and that its lease is
lost once it is no longer ours; where the database could not be had, its lease ends when the last renewal says. The
thread starts with the first effect that runs and sleeps while there is none.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from agentgate.clock import Clock
from agentgate.effects import Effect
from agentgate.errors import AgentgateError

RENEWALS = 3  # in the length of a lease

Renew = Callable[[tuple[int, ...]], frozenset[int]]
"""Extend these fences' leases; return those that are still ours."""


class Heartbeat:
    """Keep leases alive.

    Args:
        renew: one writing transaction that extends leases.
        lease_us: how long a lease lasts.
        clock: whose monotonic reading says when a lease ends.
    """

    def __init__(self, renew: Renew, *, lease_us: int, clock: Clock) -> None:
        self._renew = renew
        self._lease_us = lease_us
        self._clock = clock
        self._pause_s = lease_us / RENEWALS / 1e6
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        # Weakly: an effect that nobody runs or waits for any more, as after an interruption, is let go with its lease.
        self._beating: WeakValueDictionary[int, Effect] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keeping(self, effect: Effect) -> Iterator[None]:
        """Keep the effect's lease while the block runs."""
        if os.getpid() != self._pid:  # a forked child has neither its parent's leases nor its threads
            self._reset()
        with self._lock:
            self._beating[effect.fence] = effect
            if self._thread is None or not self._thread.is_alive():
                self._start()
        try:
            yield
        finally:
            self.forget(effect.fence)

    def _start(self) -> None:
        """Start the thread; where the system gives none, leases last as long as they last."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="agentgate-heartbeat", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def forget(self, fence: int) -> None:
        """Stop keeping a lease."""
        with self._lock:
            self._beating.pop(fence, None)

    def stop(self) -> None:
        """End the thread; where effects still run, once the last of them has ended: their worker lives."""
        self._stop.set()
        thread = self._thread
        if thread is not None and not self._beating and thread is not threading.current_thread():
            thread.join(timeout=self._pause_s)

    def _beat(self) -> None:
        stop, lull = self._stop, threading.Event()
        while not stop.wait(self._pause_s) or self._beating:
            if stop.is_set():
                lull.wait(self._pause_s)  # nobody sets it
            self._renew_all()

    def _renew_all(self) -> None:
        with self._lock:
            beating = dict(self._beating)
        if not beating:
            return
        until_us = self._clock.monotonic_us() + self._lease_us  # from before it was asked for (design §5, Clocks)
        try:
            kept = self._renew(tuple(beating))
        except AgentgateError:  # the database could not be had: each lease stands until it ends by itself
            return
        for fence, effect in beating.items():
            if fence in kept:
                effect.keep(until_us)
            else:
                effect.lose()
                self.forget(fence)
