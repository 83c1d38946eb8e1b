"""Children that die: work done in a forked process, which is killed in the middle or ends by itself."""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

KILLED = -signal.SIGKILL


def die() -> NoReturn:
    """End this process as a power cut for it alone: nothing is flushed, closed or cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def start(work: Callable[[], object]) -> int:
    """Fork a child that does ``work`` and ends; return its pid."""
    with warnings.catch_warnings():
        # Python 3.12 warns of threads: agentgate's own are made for it, and pytest has none.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child must end here, whatever happened
        traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    os._exit(0)


def end(pid: int) -> int:
    """Wait for a child; return its exit code, negative for the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run(work: Callable[[], object]) -> int:
    """Do ``work`` in a child; return how it ended."""
    return end(start(work))
