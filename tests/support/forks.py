"""Work in forked children that begin at the same moment: a process costs a fork, not a start of Python."""

import os
import pickle
import signal
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

LIMIT_S = 60


def in_children(work: Callable[[int], Any], count: int) -> list[Any]:
    """Run ``work(0)`` … ``work(count - 1)``, each in a child of its own, and return what they returned.

    Raises:
        AssertionError: a child raised or died; with its traceback.
    """
    gate_read, gate_write = os.pipe()
    children = [_fork(work, number, gate_read, gate_write) for number in range(count)]
    os.close(gate_read)
    os.close(gate_write)  # the last writer is gone: every child reads an end of file, and begins
    return [_result(pid, reader) for pid, reader in children]


def _fork(work: Callable[[int], Any], number: int, gate_read: int, gate_write: int) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(gate_write)
        os.read(gate_read, 1)
        _child(work, number, writer)
    os.close(writer)
    return pid, reader


def _child(work: Callable[[int], Any], number: int, writer: int) -> NoReturn:
    signal.alarm(LIMIT_S)
    try:
        told: tuple[bool, Any] = (True, work(number))
    except BaseException:  # noqa: BLE001 - whatever a child raises is told to its parent
        told = (False, traceback.format_exc())
    with os.fdopen(writer, "wb") as pipe:
        pickle.dump(told, pipe)
    os._exit(0)


def _result(pid: int, reader: int) -> Any:
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert told, f"the child died with status {status}"
    fine, result = pickle.loads(told)
    assert fine, result
    return result
