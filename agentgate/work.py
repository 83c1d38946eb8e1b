"""The work of one attempt: a callable in a thread of its own, a time-out around it, and its end recorded once.

Whoever decides first has the end recorded: the callable's own thread where it has ended, which no signal interrupts;
else the one who waited for it, under a shield. What ends after it was left is handed to ``on_late``. It runs outside
any transaction, and nothing here knows a database. A transactional effect runs where its transaction is, in the thread
of its caller: `run_here`.
"""

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from agentgate.errors import Misuse

T = TypeVar("T")

# How long a process that ends lets those who are recording an end come to theirs.
_FAREWELL_S = 30.0


@dataclass(frozen=True, slots=True)
class Returned:
    """The callable came back with a value."""

    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Raised:
    """The callable raised."""

    error: BaseException = field(repr=False)


@dataclass(frozen=True, slots=True)
class Overran:
    """The time was over first; the callable may still be running."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Whoever waited was interrupted first, or its thread died; the callable may still be running."""


@dataclass(frozen=True, slots=True)
class Unentered:
    """The callable was never entered, and will not be: ``error`` is what came in between."""

    error: BaseException


End = Returned | Raised | Overran | Interrupted | Unentered

# Which work has not come to its end in this process, by the name that its owner gave it.
_at_work: set[Hashable] = set()
_recording: set[threading.Thread] = set()


def is_at_work(name: Hashable) -> bool:
    """Tell whether the work of this name still runs in this process, or what came of it is being recorded."""
    return name in _at_work


class Work(Generic[T]):
    """One callable in its thread, and what is made of its end.

    Args:
        name: no other work of this process has it.
        record: told the end, in a thread that no signal reaches; once, or again where that was interrupted. What it
            returns or raises is the answer of `do`.
        on_late: told, in the callable's own thread, an end that came after it was left.
    """

    def __init__(
        self, name: Hashable, *, record: Callable[[End], T], on_late: Callable[[Returned | Raised], None]
    ) -> None:
        self._name = name
        self._record = record
        self._on_late = on_late
        self._decided = threading.Lock()
        self._recorded = threading.Lock()
        self._ended = threading.Event()
        self._over = threading.Event()
        self._end: End | None = None
        self._entered = False
        self._left = False
        self._answer: T | None = None
        self._told = False
        self._cancel: Callable[[], None] | None = None
        self.failure: BaseException | None = None

    def do(self, call: Callable[[], Any], *, seconds: float) -> T:
        """Run a callable in a thread of its own, with the caller's context variables, and have its end recorded.

        Args:
            call: the effect; a coroutine that it returns is run by a loop of that thread.
            seconds: how long to wait for it.

        Returns:
            What ``record`` made of its end.

        Raises:
            BaseException: what ``record`` raised; what interrupted the wait: call `leave` then, whatever it was; or
                the callable's own interruption (SystemExit), once it is recorded.
        """
        context, other = contextvars.copy_context(), contextvars.copy_context()
        thread = threading.Thread(target=self._work, args=(call, context, other), name="agentgate-effect", daemon=True)
        _at_work.add(self._name)
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no further thread
            self.leave(error)
        else:
            if self._ended.wait(seconds):
                self._over.wait()
            self.leave(None)
        if self.failure is not None:
            raise self.failure
        if isinstance(self._end, Raised) and not isinstance(self._end.error, Exception):
            raise self._end.error
        return self._answer  # type: ignore[return-value]  # `record` gave it

    def leave(self, why: BaseException | None) -> None:
        """Stop waiting, and come back once the end is recorded, whoever does it; it may be said more than once.

        Args:
            why: what interrupted the wait; None where the time was over.

        Raises:
            BaseException: what interrupted this, once the end is recorded.
        """
        mine: End = Overran() if why is None else Interrupted()
        unentered = Unentered(why or TimeoutError())
        with self._decided:
            if self._end is None:
                self._left = True
                self._end = mine if self._entered else unentered
        interruption = None
        if self._left:
            self._stop()
        else:
            interruption = _wait_through(self._over)  # its own thread is at the record
        if not self._told:
            interruption = _shielded(partial(self._tell, last=True)) or interruption
        if interruption is not None:
            raise interruption

    def _work(self, call: Callable[[], Any], context: contextvars.Context, recording: contextvars.Context) -> None:
        try:
            end = self._run(call, context)
            if end is None:
                return
            with self._decided:
                late = self._left
                if not late:
                    self._end = end
            self._ended.set()
            if not late:
                recording.run(self._tell)
            elif not self._is_own_cancellation(end):
                recording.run(_noted, self._on_late, end)
        finally:
            _at_work.discard(self._name)
            self._ended.set()
            self._over.set()

    def _run(self, call: Callable[[], Any], context: contextvars.Context) -> Returned | Raised | None:
        """Run the callable, unless whoever waited has left before it began."""
        with self._decided:
            self._entered = self._end is None
        if not self._entered:
            return None
        try:
            return Returned(context.run(self._whole, call))
        except BaseException as error:  # noqa: BLE001 - whatever the caller's code does is the effect's end
            return Raised(error)

    def _tell(self, *, last: bool = False) -> None:
        """Have the end recorded, once; what interrupts that in the callable's own thread has it told again."""
        with self._recorded:
            if not self._told:
                _noted(self._record_now)
                self._told = last or self.failure is None or isinstance(self.failure, Exception)

    def _record_now(self) -> None:
        assert self._end is not None  # it was decided
        self.failure = None
        try:
            self._answer = self._record(self._end)
        except BaseException as error:  # noqa: BLE001 - raised again to whoever waits
            self.failure = error

    def _is_own_cancellation(self, end: Returned | Raised) -> bool:
        """Tell whether the end is only what the time-out asked for: it says nothing that is not known."""
        return self._cancel is not None and isinstance(end, Raised) and isinstance(end.error, asyncio.CancelledError)

    def _whole(self, call: Callable[[], Any]) -> Any:
        value = call()
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

    def _stop(self) -> None:
        """Cancel a coroutine that nobody waits for any more; a plain function goes on."""
        if not self._entered:
            _at_work.discard(self._name)
        if self._cancel is not None:
            try:
                self._cancel()
            except RuntimeError:  # its loop ended in this very moment
                return


def run_here(call: Callable[[], Any]) -> Returned | Raised:
    """Run a callable in this thread, in a copy of its context variables; a coroutine it returns has a loop of its own.

    Returns:
        How it ended.

    Raises:
        BaseException: what interrupts (KeyboardInterrupt, SystemExit, CancelledError): it is nobody's answer.
    """
    try:
        return Returned(contextvars.copy_context().run(_whole_here, call))
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the caller's code does is the effect's end
        return Raised(error)


def _whole_here(call: Callable[[], Any]) -> Any:
    value = call()
    if not issubclass(type(value), Awaitable):
        return value
    if _has_loop():
        if issubclass(type(value), Coroutine):  # one that nobody awaits would be warned of
            value.close()
        raise Misuse("a coroutine cannot run in this thread, whose loop is at work: make the tool a plain function")
    return asyncio.run(_awaited(value))


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _noted(work: Callable[..., None], *args: Any) -> None:
    """Do a piece of recording that a process which ends waits for."""
    me = threading.current_thread()
    _recording.add(me)
    try:
        work(*args)
    finally:
        _recording.discard(me)


def _shielded(work: Callable[[], None]) -> BaseException | None:
    """Do work that raises nothing in a thread of its own, which no signal reaches; return what interrupted the wait."""
    context, over = contextvars.copy_context(), threading.Event()

    def do() -> None:
        try:
            context.run(work)
        finally:
            over.set()

    try:
        threading.Thread(target=do, name="agentgate-record", daemon=True).start()
    except RuntimeError:  # the system gives no further thread: here, then, and as safe as it is here
        do()
        return None
    return _wait_through(over)


def _wait_through(over: threading.Event) -> BaseException | None:
    """Wait, whatever interrupts; return the first interruption."""
    first: BaseException | None = None
    while not over.is_set():
        try:
            over.wait()
        except BaseException as error:  # noqa: BLE001 - handed back, to go on once what is waited for is done
            first = first or error
    return first


def _forget() -> None:
    """Take nothing for at work in a child whose effects run in its parent: there the leases tell."""
    _at_work.clear()
    _recording.clear()


os.register_at_fork(after_in_child=_forget)


@atexit.register
def _let_record() -> None:
    """Let an end that is being recorded as its process ends come into the record."""
    for thread in tuple(_recording):
        if thread is not threading.current_thread():
            thread.join(_FAREWELL_S)
