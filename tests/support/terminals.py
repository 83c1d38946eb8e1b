"""A terminal with nobody before it: what a command writes to one, byte for byte."""

import os
import pty
import select
import subprocess
from collections.abc import Mapping

from support.commands import AGENTGATE, SECONDS


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
