"""Running a caller's code under a deadline, in a thread that can be left behind.

A thread cannot be stopped from outside, only abandoned: its answer is then nobody's, and it goes on as a daemon
until its code returns. It knows nothing of policies; what came of the code is a value, never an exception.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from datetime import timedelta
from queue import SimpleQueue
from typing import TypeAlias
from weakref import finalize

MAX_ABANDONED = 32
"""How many abandoned threads may still run before no further one is started: code that hangs is refused then."""

Job: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Returned:
    """The code answered in time."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The code raised; ``name`` is the exception's type, because its text may hold arguments."""

    name: str


@dataclass(frozen=True, slots=True)
class Late:
    """The code did not answer in time, or could not be started because too many before it never did."""

    started: bool = True


Answer: TypeAlias = Returned | Raised | Late


def run_here(job: Job) -> Answer:
    """Run code that is bounded by construction in the caller's own thread."""
    try:
        return Returned(job())
    except Exception as error:  # noqa: BLE001 - the caller's code
        return Raised(type(error).__name__)


class Threads:
    """Daemon threads that are kept for the next call, as many as there are calls at once.

    One call costs a handoff, not a thread. After a fork the child starts with none of its parent's threads.
    """

    def __init__(self) -> None:
        self._reset()

    def run(self, job: Job, *, within: timedelta) -> Answer:
        """Run ``job`` with the caller's context variables and wait for it no longer than ``within``."""
        if os.getpid() != self._pid:
            self._reset()
        try:
            worker = self._idle.pop()
        except IndexError:
            started = self._start()
            if started is None:
                return Late(started=False)
            worker = started
        try:
            answer = worker.ask(job, within=within)
        except BaseException:  # an interrupt while waiting: the thread is still busy
            self._abandon(worker)
            raise
        if answer is None:
            self._abandon(worker)
            return Late()
        self._idle.append(worker)
        return answer

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._idle: deque[_Worker] = deque()
        self._abandoned: list[_Worker] = []
        self._lock = threading.Lock()
        finalize(self, _dismiss, self._idle)

    def _start(self) -> "_Worker | None":
        with self._lock:
            self._abandoned = [worker for worker in self._abandoned if worker.is_alive()]
            if len(self._abandoned) >= MAX_ABANDONED:
                return None
        try:
            return _Worker()
        except RuntimeError:  # the system gives no further thread
            return None

    def _abandon(self, worker: "_Worker") -> None:
        worker.dismiss()
        with self._lock:
            self._abandoned.append(worker)


class _Worker:
    """One thread: takes a job, answers, waits for the next."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._answered = threading.Lock()
        self._answered.acquire()
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._serve, name="agentgate-deadline", daemon=True)
        self._thread.start()

    def ask(self, job: Job, *, within: timedelta) -> Answer | None:
        """Hand over ``job``; None when no answer came in time."""
        context = copy_context()
        self._jobs.put(lambda: context.run(job))
        if not self._answered.acquire(timeout=min(max(within.total_seconds(), 0), threading.TIMEOUT_MAX)):
            return None
        answer, self._answer = self._answer, None
        return answer

    def dismiss(self) -> None:
        """End the thread once it is done with what it has."""
        self._jobs.put(None)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._answer = Returned(job())
            except BaseException as error:  # noqa: BLE001 - SystemExit of a caller's code ends nothing here
                self._answer = Raised(type(error).__name__)
            del job  # an idle thread keeps nobody's arguments alive
            self._answered.release()


def _dismiss(idle: deque[_Worker]) -> None:
    for worker in idle:
        worker.dismiss()


SHARED = Threads()
"""The threads of this process, for whoever keeps none of its own."""
