"""A worker of the shop in a process of its own, to be killed inside its effect; and who comes after it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agentgate.demo.agent import Call
from agentgate.demo.scene import Scene
from agentgate.demo.story import Story
from agentgate.gate.face import Gate
from agentgate.gate.opening import Run
from agentgate.outcome import Outcome, Running

_PAUSE_S = 0.2
_LOOKS = 100


@contextmanager
def worker(scene: Scene, chapter: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a worker that begins a chapter's call; it goes on when its stdin ends, or when it is killed."""
    command = [sys.executable, "-P", "-m", "agentgate.demo.worker", str(scene.folder), chapter]
    with subprocess.Popen(  # noqa: S603 - all of it ours
        # A session of its own: an interrupt is ours alone, and the worker ends when its stdin does.
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        yield process


def is_inside(process: "subprocess.Popen[bytes]") -> bool:
    """Wait until the worker says that it is inside its effect."""
    assert process.stdout is not None  # it is a pipe
    return process.stdout.readline().strip() == b"inside"


def kill(process: "subprocess.Popen[bytes]") -> int:
    """Kill the worker, and return the signal that it ended with."""
    process.kill()
    process.wait()
    return -process.returncode


def once_the_lease_is_over(story: Story, gate: Gate, run: Run, call: Call) -> Outcome:
    """Propose until the dead worker's lease is over: at once where the host knows that its process is gone."""
    story.agent(call.tool, call.arguments, call.key)
    outcome = gate.call(run, call.tool, call.arguments, key=call.key)
    for _ in range(_LOOKS):
        if not isinstance(outcome, Running):
            break
        time.sleep(_PAUSE_S)
        outcome = gate.call(run, call.tool, call.arguments, key=call.key)
    story.gate(outcome)
    return outcome
