"""Small files that one owner keeps: read only where nobody else may read or change them, written whole or not at all.

Each function is told the ``field`` that the file was named by, so that an error says what to look at.
"""

import os
import stat
from pathlib import Path
from typing import Final

from agentgate.errors import Misuse

OTHERS_READ: Final = stat.S_IRWXG | stat.S_IRWXO
"""Bits of a file that somebody else may read, change or run."""
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
"""Bits of a file that somebody else may change."""

_LARGEST = 1_048_576


def read_private(path: Path, field: str) -> bytes:
    """Read a file that its owner alone may read or change.

    Raises:
        Misuse: it is not there, or is not that.
    """
    return _read(path, field, OTHERS_READ, f"others may read or change {path}; run: chmod 600 {path}")


def read_unchanged(path: Path, field: str) -> bytes:
    """Read a file that its owner alone may change; that others may read it is no harm.

    Raises:
        Misuse: it is not there, or is not that.
    """
    return _read(path, field, OTHERS_WRITE, f"others may change {path}; run: chmod go-w {path}")


def _read(path: Path, field: str, forbidden: int, problem: str) -> bytes:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise Misuse(f"{field}: {path} is no file")
            if mode & forbidden:
                raise Misuse(f"{field}: {problem}")
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise Misuse(f"{field}: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:  # NUL, or what the file system's encoding lacks
        raise Misuse(f"{field}: {str(path)!a} is no path that a file can have") from error
    if len(content) > _LARGEST:
        raise Misuse(f"{field}: {path} is too large; at most {_LARGEST} bytes are read")
    return content


def _without_waiting(path: str, flags: int) -> int:
    """Open a file as it is: a pipe that nobody writes to would be waited for."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def write_private(path: Path, content: bytes, field: str) -> None:
    """Write a new file that its owner alone may read; there is all of it or none.

    Raises:
        Misuse: there is such a file already, or it cannot be made.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise Misuse(f"{field}: {path} exists; a key that is overwritten is lost: name a new file") from error
    except OSError as error:
        raise Misuse(f"{field}: {path} cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Misuse(f"{field}: {path} cannot be written ({error.strerror})") from error
