"""A caller's code runs under a deadline in a thread that is kept, or left behind."""

import os
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta

import pytest

from agentgate.policy.deadline import MAX_ABANDONED, Answer, Late, Raised, Returned, Threads

SOON = timedelta(milliseconds=20)
LONG = timedelta(seconds=10)
TENANT: ContextVar[str] = ContextVar("TENANT", default="nobody")


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """Something to wait on for as long as the test lasts."""
    event = threading.Event()
    yield event
    event.set()


def test_an_answer_comes_back_from_a_daemon_thread_of_its_own() -> None:
    answer = Threads().run(lambda: (threading.current_thread().daemon, threading.get_ident()), within=LONG)

    assert isinstance(answer, Returned)
    assert answer.value != (True, threading.get_ident())


def test_the_next_call_takes_the_same_thread() -> None:
    threads = Threads()
    assert len({threads.run(threading.get_ident, within=LONG) for _ in range(20)}) == 1


def test_the_callers_context_variables_are_visible_and_what_is_set_does_not_leak() -> None:
    threads = Threads()
    token = TENANT.set("acme")
    try:
        assert threads.run(TENANT.get, within=LONG) == Returned("acme")
        threads.run(lambda: TENANT.set("other"), within=LONG)
        assert threads.run(TENANT.get, within=LONG) == Returned("acme")
    finally:
        TENANT.reset(token)
    assert threads.run(TENANT.get, within=LONG) == Returned("nobody")


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, RecursionError])
def test_whatever_is_raised_is_named_by_its_type_alone(error: type[BaseException]) -> None:
    def job() -> None:
        raise error("the secret argument")

    threads = Threads()
    assert threads.run(job, within=LONG) == Raised(error.__name__)
    assert threads.run(lambda: 1, within=LONG) == Returned(1)


def test_a_late_thread_is_left_behind_and_the_next_call_is_served(hang: threading.Event) -> None:
    threads = Threads()
    assert threads.run(hang.wait, within=SOON) == Late()
    assert threads.run(lambda: "next", within=LONG) == Returned("next")


def test_a_late_answer_is_nobodys(hang: threading.Event) -> None:
    threads = Threads()
    assert threads.run(lambda: hang.wait() and "late", within=SOON) == Late()
    hang.set()
    assert threads.run(lambda: "mine", within=LONG) == Returned("mine")


def test_a_left_thread_ends_once_its_code_returns(hang: threading.Event) -> None:
    seen: list[threading.Thread] = []
    started = threading.Event()

    def job() -> None:
        seen.append(threading.current_thread())
        started.set()
        hang.wait()

    assert Threads().run(job, within=SOON) == Late()
    assert started.wait(5)
    hang.set()
    seen[0].join(5)
    assert not seen[0].is_alive()


def test_code_that_hangs_for_ever_costs_a_bounded_number_of_threads(hang: threading.Event) -> None:
    threads = Threads()
    before = threading.active_count()
    answers = [threads.run(hang.wait, within=timedelta(0)) for _ in range(MAX_ABANDONED + 5)]

    assert answers == [Late()] * MAX_ABANDONED + [Late(started=False)] * 5
    assert threading.active_count() <= before + MAX_ABANDONED

    hang.set()
    until = time.monotonic() + 5
    while isinstance(threads.run(lambda: 1, within=LONG), Late) and time.monotonic() < until:
        time.sleep(0.01)
    assert threads.run(lambda: 1, within=LONG) == Returned(1)


def test_calls_at_once_do_not_wait_for_one_another() -> None:
    threads, together, answers = Threads(), threading.Barrier(4), list[Answer]()

    def caller() -> None:
        answers.append(threads.run(lambda: together.wait(5) >= 0, within=LONG))

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert answers == [Returned(True)] * 4


def test_an_idle_thread_keeps_no_argument_alive() -> None:
    class Argument:
        pass

    gone = threading.Event()
    argument = Argument()
    import weakref

    weakref.finalize(argument, gone.set)
    threads = Threads()
    threads.run(lambda held=argument: held is None, within=LONG)  # type: ignore[misc]
    del argument
    assert gone.wait(5)


def test_the_threads_end_with_who_kept_them() -> None:
    threads = Threads()
    answer = threads.run(threading.current_thread, within=LONG)
    assert isinstance(answer, Returned)
    thread = answer.value
    assert isinstance(thread, threading.Thread)
    del threads, answer
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_served_though_its_parents_threads_are_not_there() -> None:
    threads = Threads()
    threads.run(lambda: 1, within=LONG)
    child = os.fork()
    if child == 0:
        served = threads.run(lambda: 2, within=timedelta(seconds=2)) == Returned(2)
        os._exit(0 if served else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert threads.run(lambda: 3, within=LONG) == Returned(3)
