"""Running the command line, in this process or as a user does, and looking at every character it writes."""

import io
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgate.cli import main

AGENTGATE = Path(sys.executable).parent / "agentgate"
SECONDS = 60
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document that it wrote."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        """The JSON documents that it wrote, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def ran(*arguments: str) -> Ran:
    """Run a command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return Ran(code=code, out=_written(out), err=_written(err))


def _written(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def typed(*arguments: str, env: Mapping[str, str] | None = None, folder: Path | None = None) -> Ran:
    """Run a command in a process of its own, as it is typed."""
    kept = {name: value for name, value in os.environ.items() if name not in {"AGENTGATE_URL", "NO_COLOR"}}
    done = subprocess.run(
        [AGENTGATE, *arguments],
        env={**kept, **(env or {})},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


def unseen(text: str) -> set[str]:
    """Return what in a text would move a cursor, turn a line or hide; line ends are ours."""
    return {character for character in text if character != "\n" and unicodedata.category(character) in _INVISIBLE}
