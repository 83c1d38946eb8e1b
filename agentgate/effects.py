"""Running an effect: a thread for it, a time-out around it, and what its end proves.

The effect runs outside any transaction. What comes after its time-out is not lost: the thread goes on, and its
end is handed to ``on_late``. Nothing here knows a database.
"""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from agentgate.clock import Clock
from agentgate.observation import NoEffect, ToolError


class Effect:
    """What a running effect may know of itself; a tool gets it by annotating a parameter with this class.

    Args:
        action_id: the action's id.
        idempotency_key: 64 hex digits, stable over attempts, processes and resumes; hand it downstream.
        attempt: from 1.
        fence: grows over all actions of the ledger; a downstream that remembers the highest per resource can refuse
            a worker that was stopped and woke up late.
        deadline: when the gate stops waiting.
        tenant: the run's tenant.
        principal: on whose behalf.
    """

    __agentgate_effect__: ClassVar[bool] = True

    def __init__(
        self,
        *,
        action_id: str,
        idempotency_key: str,
        attempt: int,
        fence: int,
        deadline: datetime,
        tenant: str,
        principal: str,
        clock: Clock,
        until_us: int,
        lease_until_us: int,
    ) -> None:
        self.action_id = action_id
        self.idempotency_key = idempotency_key
        self.attempt = attempt
        self.fence = fence
        self.deadline = deadline
        self.tenant = tenant
        self.principal = principal
        self._clock = clock
        self._until_us = until_us
        self._lease_until_us = lease_until_us
        self._lost = threading.Event()
        self._sent = False
        self._said: tuple[float, str] | None = None

    def __repr__(self) -> str:
        return f"Effect(action_id={self.action_id!r}, attempt={self.attempt}, fence={self.fence})"

    def check(self) -> None:
        """Stop here if the lease is lost or the time is over; what was done so far stays in doubt.

        Raises:
            ToolError: ``lease_lost`` or ``timeout``, with ``effect="unknown"``.
        """
        over = self._over()
        if over is not None:
            raise ToolError(over[0], over[1], effect="unknown")

    def _over(self) -> tuple[str, str] | None:
        now_us = self._clock.monotonic_us()
        # Its own clock decides, not the heartbeat alone: a process that was stopped wakes up in here first.
        if self._lost.is_set() or now_us >= self._lease_until_us:
            return "lease_lost", "the lease is lost: another worker may have this action"
        if now_us >= self._until_us:
            return "timeout", "the time for this effect is over"
        return None

    def sending(self) -> None:
        """Call this just before the first byte leaves: it checks lease and deadline once more.

        Raises:
            NoEffect: at its first call, where nothing has left yet.
            ToolError: at a later one, as `check`.
        """
        over = self._over()
        if over is not None and not self._sent:
            raise NoEffect(over[1], code=over[0])
        self._sent = True
        self.check()

    def progress(self, fraction: float, note: str = "") -> None:
        """Say how far the effect is, from 0 to 1; kept for whoever asks, never recorded."""
        self._said = (min(max(fraction, 0.0), 1.0), note)

    @property
    def said(self) -> tuple[float, str] | None:
        """What the effect last said of its progress."""
        return self._said

    def lose(self) -> None:
        """Tell the effect that its lease is gone; for the heartbeat."""
        self._lost.set()

    def keep(self, until_us: int) -> None:
        """Tell the effect that its lease was renewed, and until when on the monotonic clock; for the heartbeat."""
        self._lease_until_us = until_us


@dataclass(frozen=True, slots=True)
class Returned:
    """The callable came back with a value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The callable raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Overran:
    """The time was over first; the callable may still be running."""


@dataclass(frozen=True, slots=True)
class Unentered:
    """The callable was never entered, and will not be: ``error`` is what came in between."""

    error: BaseException


End = Returned | Raised | Overran | Unentered


class _Running:
    """One effect in its thread; whoever decides first, its end or its time-out, decides alone."""

    def __init__(self, call: Callable[[], Any], *, on_late: Callable[[Returned | Raised], None]) -> None:
        self._call = call
        self._on_late = on_late
        self._decided = threading.Lock()
        self._done = threading.Event()
        self._end: Returned | Raised | None = None
        self._entered = False
        self._left = False
        self._cancel: Callable[[], None] | None = None

    def work(self, context: contextvars.Context) -> None:
        """Run the callable, in its own thread, unless whoever waited has left before it began."""
        with self._decided:
            self._entered = not self._left
        if not self._entered:
            return
        try:
            end: Returned | Raised = Returned(context.run(self._whole))
        except BaseException as error:  # noqa: BLE001 - whatever the caller's code does is the effect's end
            end = Raised(error)
        with self._decided:
            self._end = end
            late = self._left
        self._done.set()
        if late and not self._is_own_cancellation(end):
            self._on_late(end)

    def _is_own_cancellation(self, end: Returned | Raised) -> bool:
        """Tell whether the end is only what the time-out asked for: it says nothing that is not known."""
        return self._cancel is not None and isinstance(end, Raised) and isinstance(end.error, asyncio.CancelledError)

    def _whole(self) -> Any:
        value = self._call()
        # By its type alone: to ask the value would run the caller's code once more, after the effect.
        return asyncio.run(self._await(value)) if issubclass(type(value), Awaitable) else value

    async def _await(self, awaitable: Any) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        self._cancel = cancel
        if self._left:  # the time was over before there was anything to cancel
            task.cancel()
        return await awaitable

    def wait(self, seconds: float) -> End:
        """Wait for the end; after the time-out its thread is left to itself."""
        self._done.wait(seconds)
        return self.leave()

    def leave(self) -> Returned | Raised | Overran:
        """Stop waiting; return the end where it was faster."""
        with self._decided:
            if self._end is not None:
                return self._end
            self._left = True
        if self._cancel is not None:
            try:
                self._cancel()
            except RuntimeError:  # its loop ended in this very moment
                return Overran()
        return Overran()

    def give_up(self) -> bool:
        """Stop waiting because of an interruption; return whether the callable was entered."""
        self.leave()
        return self._entered


def run(call: Callable[[], Any], *, seconds: float, on_late: Callable[[Returned | Raised], None]) -> End:
    """Run a callable in a thread of its own, with the caller's context variables, and wait for it.

    Args:
        call: the effect; a coroutine it returns is run by a loop of that thread.
        seconds: how long to wait.
        on_late: told the end, in the effect's thread, where it came after the wait.

    Returns:
        How it ended; `Unentered` where there was no thread to be had, or an interruption came before its first line.

    Raises:
        BaseException: what interrupted the wait itself (KeyboardInterrupt); the effect's own exceptions are an end.
    """
    running = _Running(call, on_late=on_late)
    context = contextvars.copy_context()
    thread = threading.Thread(target=running.work, args=(context,), name="agentgate-effect", daemon=True)
    try:
        thread.start()
        return running.wait(seconds)
    except BaseException as error:
        if running.give_up():
            raise
        return Unentered(error)
