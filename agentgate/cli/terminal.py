"""Writing to whoever reads: a terminal, a pipe or a file.

Whatever comes from the record passes `agentgate.printable` before it comes here; what is written here is ours.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TextIO

import click

from agentgate.canonical import Json
from agentgate.clock import SystemClock
from agentgate.printable import printable_json

_EVERY_US = 100_000


class Unwritten(Exception):
    """Stdout takes nothing more, for another reason than that its reader went away."""


def open_closed() -> None:
    """Give a process that was started without stdout or stderr one that leads nowhere."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def prepare(stream: TextIO) -> None:
    """Let a stream write any text: what its encoding lacks is escaped, never an error."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def say(lines: Iterable[str]) -> None:
    """Write lines to stdout."""
    for line in lines:
        _write(line)


def say_json(document: Mapping[str, Json]) -> None:
    """Write one JSON document on one line of printable ASCII."""
    _write(printable_json(dict(document)))


def _write(line: str) -> None:
    try:
        click.echo(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritten(error.strerror) from error


def complain(line: str) -> None:
    """Write a line to stderr, as far as anybody can read it: the exit code says it as well."""
    try:
        click.echo(line, err=True)
    except OSError:
        leave(sys.stderr)


def leave(stream: TextIO) -> None:
    """Let Python's own last flush of a stream end well, where nothing can be written to it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def moves_cursor(stream: TextIO) -> bool:
    """Tell whether a line on ``stream`` can be written over."""
    return stream.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}


def has_colour(stream: TextIO) -> bool:
    """Tell whether ``stream`` shows bold and colours. Source: no-color.org."""
    return moves_cursor(stream) and not os.environ.get("NO_COLOR")


class Told(Protocol):
    """Is told how far a work is."""

    def __call__(self, done: int, of: int | None = None) -> None:
        """Take how much is done, and of how much where that is known."""
        ...


@contextmanager
def progress(what: str) -> Iterator[Told | None]:
    """Show on stderr how far a long work is, where that is a terminal; None elsewhere.

    Args:
        what: the unit, as a plural.
    """
    stream = sys.stderr
    if not moves_cursor(stream):
        yield None
        return
    clock, said_us, width = SystemClock(), 0, 0

    def told(done: int, of: int | None = None) -> None:
        nonlocal said_us, width
        now_us = clock.monotonic_us()
        if now_us - said_us < _EVERY_US:
            return
        line = f"{done:,} {what}" if of is None else f"{done:,} of {of:,} {what}"
        stream.write("\r" + line.ljust(width))
        stream.flush()
        said_us, width = now_us, len(line)

    try:
        yield told
    finally:
        stream.write("\r" + " " * width + "\r")
        stream.flush()
