"""Terminals: one with nobody before it, and one that is typed on."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Mapping

from support.commands import AGENTGATE, SECONDS

# Makes the terminal the one that an interrupt comes from, which a new session alone has not, and becomes the command.
_CONTROLLED = (
    sys.executable,
    "-c",
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)


def on_a_terminal(*arguments: str, env: Mapping[str, str]) -> bytes:
    """Run a command whose stdin, stdout and stderr are one terminal, and return all it wrote."""
    own, theirs = pty.openpty()
    with subprocess.Popen(
        [AGENTGATE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **env}
    ) as process:
        os.close(theirs)
        written = b""
        while select.select([own], [], [], SECONDS)[0]:
            try:
                read = os.read(own, 65_536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            written += read
            if not read:
                break
        assert process.wait(SECONDS) == 0
    os.close(own)
    return written


def answered(
    *arguments: str, answers: Mapping[bytes, bytes | Callable[[], bytes]], before: bytes = b""
) -> tuple[int, bytes]:
    """Run a command whose terminal is typed on: each answer once its question stands there.

    An answer that is a function is called when its question stands there, and returns what is typed then.
    What is typed ``before`` is typed before the command begins.
    """
    own, theirs = pty.openpty()
    os.write(own, before)
    process = subprocess.Popen(
        [*_CONTROLLED, AGENTGATE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    written, left = b"", dict(answers)
    while select.select([own], [], [], SECONDS)[0]:
        try:
            written += os.read(own, 65_536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        for question in [asked for asked in left if asked in written]:
            answer = left.pop(question)
            os.write(own, answer if isinstance(answer, bytes) else answer())
    code = process.wait(SECONDS)
    os.close(own)
    return code, written
