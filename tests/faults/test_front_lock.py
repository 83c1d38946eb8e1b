"""The door of a ledger: nobody starves at it, nobody waits for ever, and no dead process stands in it."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentgate.clock import SystemClock
from agentgate.errors import Unavailable
from agentgate.store import front
from agentgate.store.front import FrontLock
from support import forking

SHORT_US = 300_000
LONG_US = 30_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db.lock"


def door(path: Path, *, patience_us: int = LONG_US) -> FrontLock:
    return FrontLock(path, clock=SystemClock(), patience_us=patience_us)


@contextmanager
def held_by_somebody_else(path: Path) -> Iterator[int]:
    """Hold the lock on a descriptor that is not the product's."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield descriptor
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child may have it open as well
        os.close(descriptor)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
def test_whoever_waits_longer_than_its_patience_is_told_to_try_again(path: Path, kind: str) -> None:
    impatient = door(path, patience_us=SHORT_US)
    with held_by_somebody_else(path), pytest.raises(Unavailable) as raised, getattr(impatient, kind)():
        pytest.fail("it was let in")
    assert raised.value.reason == "locked"


def test_a_place_in_the_queue_that_was_given_up_gives_back_what_it_gets(path: Path) -> None:
    before = descriptors()
    with held_by_somebody_else(path):
        for _ in range(3):
            with pytest.raises(Unavailable), door(path, patience_us=SHORT_US // 3).exclusive():
                pytest.fail("it was let in")
    for _ in range(3):
        with door(path).exclusive():
            pass
    over = time.monotonic() + 20
    while descriptors() > before:
        assert time.monotonic() < over
        time.sleep(0.01)
    assert not front._descriptors


def test_whoever_comes_while_it_is_held_is_let_in_when_it_is_free(path: Path) -> None:
    let_in = threading.Event()

    def enter() -> None:
        with door(path).exclusive():
            let_in.set()

    with held_by_somebody_else(path):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not let_in.wait(0.2)
    thread.join()
    assert let_in.is_set()


def test_a_process_that_waits_is_served_before_one_that_comes_again_and_again(path: Path) -> None:
    """Two processes that hold the lock nearly all the time, and a third that wants it: it is not starved."""

    def greedy() -> None:
        until = time.monotonic() + 10
        mine = door(path)
        while time.monotonic() < until and os.getppid() != 1:
            with mine.exclusive():
                time.sleep(0.003)

    children = [forking.start(greedy) for _ in range(2)]
    try:
        waits = []
        for _ in range(20):
            began = time.monotonic()
            with door(path).exclusive():
                waits.append(time.monotonic() - began)
            time.sleep(0.01)
    finally:
        for child in children:
            os.kill(child, 9)
            forking.end(child)
    assert max(waits) < 2


def test_a_child_does_not_keep_the_lock_of_a_parent_that_was_killed(path: Path, tmp_path: Path) -> None:
    """Forked while a thread of the parent waits at the door; the parent is then let in, and killed."""
    ready = tmp_path / "child-lives"

    def live() -> None:
        ready.write_text(str(os.getpid()))
        time.sleep(60)

    def parent() -> None:
        entered = threading.Event()

        def enter() -> None:
            with door(path).exclusive():
                entered.set()
                time.sleep(60)

        thread = threading.Thread(target=enter, daemon=True)
        with held_by_somebody_else(path):
            thread.start()
            time.sleep(0.1)
            forking.start(live)
            while not ready.exists():
                time.sleep(0.01)
        assert entered.wait(20)
        forking.die()

    assert forking.run(parent) == forking.KILLED
    try:
        with door(path, patience_us=2_000_000).exclusive():
            pass
    finally:
        os.kill(int(ready.read_text()), 9)
