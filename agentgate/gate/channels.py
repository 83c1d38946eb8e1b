"""Telling people that they are asked: every new question is handed to every channel, at least once.

The pending questions are the queue: they are written in the transaction that asks, by whatever process that is. A mark
of what was told lies beside them (docs/decisions/0027), so a crash anywhere loses no question: it is told again.
"""

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from agentgate.errors import AgentgateError, Misuse
from agentgate.gate.answers import Reader
from agentgate.gate.ledger import Ledger, log
from agentgate.gate.names import check_name
from agentgate.gate.questions import Question, read_question
from agentgate.store import notices

LOOK_S = 3.0  # how long a question that another process asked may go unnoticed
CLOSING_S = 5.0
# Told by nobody else meanwhile; a process that dies over it is not waited for any longer.
TAKEN_US = 30_000_000
FIRST_PAUSE_US = 2_000_000
LONGEST_PAUSE_US = 300_000_000
_START = (0, "")


class Channel(Protocol):
    """Somewhere to tell people that they are asked.

    ``name`` stands in the ledger beside what was told: gates that share a name share the work, and others tell again.
    """

    @property
    def name(self) -> str:
        """Its name, in clear; the same in every process."""
        ...

    def asked(self, question: Question) -> None:
        """Tell of a new question. Raise where it could not be told: it is then told again, later.

        It may come more than once, and be answered by the time it comes. Nothing in it is more than a page may show.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    approval: str
    action: str
    tries: int
    over_us: int


def check_channels(value: object) -> Mapping[str, Channel]:
    """Return channels by name.

    Raises:
        Misuse: no list of channels, or two of one name.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise Misuse("channels: give a list of channels, each with a name and a method asked(question)")
    found: dict[str, Channel] = {}
    for channel in value:
        name = check_name(getattr(channel, "name", None), "channels: a channel's name")
        if not callable(getattr(channel, "asked", None)):
            raise Misuse(f"channels: {name!r} has no method asked(question)")
        if name in found:
            raise Misuse(f"channels: two are called {name!r}; what was told is marked by the name, so give another")
        found[name] = channel
    return found


def deliver(ledger: Ledger, channel: Channel, *, until: threading.Event | None = None) -> int:
    """Tell a channel of every question that it has to be told of now; return of how many it was.

    Args:
        ledger: the record.
        channel: whom to tell.
        until: stops before the next question once it is set.
    """
    name, count, after = channel.name, 0, _START
    while until is None or not until.is_set():
        taken = _take(ledger, name, after)
        if taken is not None:
            after = (taken.over_us, taken.approval)
            count += _hand(ledger, channel, taken)
        elif after != _START:
            after = _START  # what was asked meanwhile, and is over sooner
        else:
            break
    if count:
        with ledger.database.write() as connection:
            notices.forget(connection, name)
    return count


def _take(ledger: Ledger, name: str, after: tuple[int, str]) -> _Taken | None:
    now_us = ledger.clock.now_us()
    with ledger.database.read() as connection:  # most looks find nothing, and hold no writer up
        if notices.due(connection, name, now_us=now_us, latest_us=now_us + LONGEST_PAUSE_US, after=after) is None:
            return None
    with ledger.database.write() as connection:
        now_us = ledger.clock.now_us()
        found = notices.due(connection, name, now_us=now_us, latest_us=now_us + LONGEST_PAUSE_US, after=after)
        if found is None:  # somebody else was faster
            return None
        taken = _Taken(approval=found[0], action=found[1], tries=(found[2] or 0) + 1, over_us=found[3])
        notices.take(connection, name, taken.approval, tries=taken.tries, again_at_us=now_us + TAKEN_US)
        return taken


def _hand(ledger: Ledger, channel: Channel, taken: _Taken) -> int:
    """Tell one question outside of any transaction, and mark it only then."""
    name = channel.name
    try:
        with ledger.database.read() as connection:
            question = read_question(
                Reader(connection=connection, sealing=ledger.sealing), taken.approval, taken.action
            )
        if question.state != "pending":
            return 0  # it has ended since: nobody is told of what cannot be answered
        channel.asked(question)
    except Exception as error:  # noqa: BLE001 - the caller's own channel, or a question that cannot be read
        log.warning("question not told", channel=name, approval=taken.approval, error=type(error).__name__)
        _put_off(ledger, name, taken)
        return 0
    with ledger.database.write() as connection:
        notices.told(connection, name, taken.approval)
    log.info("question told", channel=name, approval=taken.approval)
    return 1


def _put_off(ledger: Ledger, name: str, taken: _Taken) -> None:
    pause_us = min(FIRST_PAUSE_US << min(taken.tries - 1, 16), LONGEST_PAUSE_US)
    with ledger.database.write() as connection:
        again_at_us = ledger.clock.now_us() + pause_us
        notices.put_off(connection, name, taken.approval, tries=taken.tries, again_at_us=again_at_us)


class Courier:
    """Tell the channels of one gate, each in a thread of its own: one that hangs keeps no other waiting.

    Args:
        ledger: the record.
        channels: whom to tell, by name.
    """

    def __init__(self, ledger: Ledger, channels: Mapping[str, Channel]) -> None:
        self._ledger = ledger
        self._channels = channels
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._wakes = {name: threading.Event() for name in self._channels}
        self._threads: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """Begin, and tell at once of what waits already; in a child that was forked, begin anew."""
        if os.getpid() != self._pid:
            self._reset()
        with self._lock:
            for name, channel in self._channels.items():
                thread = self._threads.get(name)
                if self._stop.is_set() or (thread is not None and thread.is_alive()):
                    continue
                work = partial(self._tell, channel, self._wakes[name], self._stop, self._hurry)
                thread = threading.Thread(target=work, name=f"agentgate-channel-{name}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system gives no thread: the next question tries again
                    continue
                self._threads[name] = thread

    def wake(self) -> None:
        """Say that this process has asked people something."""
        self.start()
        for wake in self._wakes.values():
            wake.set()

    def stop(self) -> None:
        """Tell what there is still to tell, for a short while, and end."""
        if os.getpid() != self._pid:
            return
        self._stop.set()
        for wake in self._wakes.values():
            wake.set()
        until_us = self._ledger.clock.monotonic_us() + int(CLOSING_S * 1e6)
        for thread in self._threads.values():
            if thread is not threading.current_thread():
                left_s = (until_us - self._ledger.clock.monotonic_us()) / 1e6
                thread.join(timeout=min(max(left_s, 0), CLOSING_S))
        self._hurry.set()

    def _tell(self, channel: Channel, wake: threading.Event, stop: threading.Event, hurry: threading.Event) -> None:
        while True:
            last = stop.is_set()
            wake.clear()  # before the look: what is asked from here on is looked for again
            try:
                deliver(self._ledger, channel, until=hurry)
            except AgentgateError as error:  # the database could not be had: looked for again
                log.warning("questions not told", channel=channel.name, error=type(error).__name__)
            if last:
                return
            wake.wait(LOOK_S)
