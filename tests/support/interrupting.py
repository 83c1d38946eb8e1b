"""An interruption at a chosen moment of our own code, in the thread that calls: as a signal, but every time there.

Python looks for signals as it enters a function, after a call and where a loop goes back; so does this.
"""

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import agentgate

HOME = agentgate.__path__[0]
_LOOKS = {dis.opmap[name] for name in ("RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD") if name in dis.opmap}

Trace = Callable[[FrameType, str, Any], Any]


class Moments:
    """Count the places at which this thread may be interrupted in agentgate, each once, and raise at one of them.

    Args:
        at: the place to raise at, from 0; None only counts.
        under: count only in and below calls of the function of this qualified name; None counts all.
        within: count only in these files, named as below the package; none counts in all.
    """

    def __init__(self, at: int | None, *, under: str | None = None, within: tuple[str, ...] = ()) -> None:
        self._at = at
        self._files = {f"{HOME}/{name}" for name in within}
        self._under = under
        self._depth = 0
        self._met: set[tuple[object, int]] = set()
        self.count = 0
        self.raised_at: str | None = None

    def enter(self, frame: FrameType, event: str, _argument: Any) -> Trace | None:
        if event != "call" or not frame.f_code.co_filename.startswith(HOME):
            return None
        if self._files and frame.f_code.co_filename not in self._files:
            return None
        is_outer = self._under == frame.f_code.co_qualname
        if self._under is not None and not is_outer and not self._depth:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._depth += is_outer
        before: list[int] = []

        def step(frame: FrameType, event: str, _argument: Any) -> Trace:
            if event == "return":
                self._depth -= is_outer
            if event == "opcode":
                if before and before[0] in _LOOKS:
                    self._look(frame)
                before[:] = [frame.f_code.co_code[frame.f_lasti]]
            return step

        return step

    def _look(self, frame: FrameType) -> None:
        place = (frame.f_code, frame.f_lasti)
        if place in self._met:
            return
        self._met.add(place)
        self.count += 1
        if self.count - 1 == self._at:
            self.raised_at = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            raise KeyboardInterrupt(self.raised_at)


@contextmanager
def interrupting(at: int | None, *, under: str | None = None, within: tuple[str, ...] = ()) -> Iterator[Moments]:
    """Raise KeyboardInterrupt at the place of this number that comes in the block; it must come out of the block."""
    moments, before = Moments(at, under=under, within=within), sys.gettrace()
    sys.settrace(moments.enter)
    came: str | None = None
    try:
        yield moments
    except KeyboardInterrupt as interruption:
        came = str(interruption)
    finally:
        sys.settrace(before)
    assert came == moments.raised_at
