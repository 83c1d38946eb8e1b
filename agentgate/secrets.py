"""Secrets for tools: who provides them, and how they are fetched for one attempt without ever being recorded.

What was handed out is remembered for as long as its attempt lives, so that it can be taken out of whatever the tool
then says (`agentgate.core.veiling`). A message names a secret and never quotes it, nor what its provider said.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeAlias

from agentgate.errors import Misuse
from agentgate.observation import NoEffect, ToolError
from agentgate.policy.deadline import SHARED, Answer, Late, Raised
from agentgate.policy.evaluation import is_awaitable

SecretProvider: TypeAlias = Callable[[str], str | bytes | None]
"""Returns the secret of a name, None where there is none."""

Handed: TypeAlias = dict[str, tuple[str | bytes, ...]]
"""The secrets that an attempt was given so far, by name; its gate takes them out of whatever the tool says."""

MISSING = "secret_missing"
UNAVAILABLE = "secret_unavailable"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_LARGEST = 65_536
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSecrets:
    """Take secrets from variables of the environment: ``stripe-key`` from ``AGENTGATE_SECRET_STRIPE_KEY``.

    Args:
        prefix: what those variables begin with, so that no tool can ask for another one.
    """

    prefix: str = "AGENTGATE_SECRET_"

    def __post_init__(self) -> None:
        if type(self.prefix) is not str or not self.prefix:
            raise Misuse("prefix: give what the variables that hold secrets begin with")

    def __call__(self, name: str) -> str | bytes | None:
        """Read the secret of this name; as bytes where its variable holds no text."""
        value = os.environ.get(self.prefix + re.sub(r"[-.]", "_", name).upper())
        return value if value is None or _is_whole(value) else os.fsencode(value)


def _is_whole(text: str) -> bool:
    """Tell whether a text holds whole characters alone, so that it can be written as bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


@dataclass(frozen=True, slots=True)
class FileSecrets:
    """Take secrets from files of one folder, each named as its secret: as Docker and Kubernetes mount them.

    One line break at a file's end does not belong to it. A file that others than its owner may change, or that lies
    outside the folder, is refused; one that others may read is not, because both mount them so.

    Args:
        folder: where the files lie.
    """

    folder: Path

    def __post_init__(self) -> None:
        try:
            folder = Path(self.folder)
        except TypeError as error:
            raise Misuse("folder: give the path of the folder that holds the secrets") from error
        object.__setattr__(self, "folder", folder)

    def __call__(self, name: str) -> bytes | None:
        """Read the secret of this name.

        Raises:
            Misuse: its file is not one to be trusted, or too large.
        """
        folder = self.folder.resolve()
        path = (folder / name).resolve()  # links within the folder are how Kubernetes changes its secrets
        if not path.is_relative_to(folder):
            raise Misuse(f"secret {name}: its file lies outside its folder")
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode) or mode & _BY_OTHERS:
                    raise Misuse(f"secret {name}: no file, or one that others may change; run: chmod go-w")
                content = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise Misuse(f"secret {name}: a folder, and no file") from None
        if len(content) > _LARGEST:
            raise Misuse(f"secret {name}: its file has more than {_LARGEST} bytes")
        return content.removesuffix(b"\n").removesuffix(b"\r")


def _without_waiting(path: str, flags: int) -> int:
    """Open a file as it is: a pipe that nobody writes to would be waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Fetch secrets for the attempts of one gate.

    Args:
        provider: who has them; None where nobody does.
        within: how long each may take.
    """

    provider: SecretProvider | None = field(repr=False)
    within: timedelta

    def fetch(self, name: object, *, seconds: float) -> str | bytes | ToolError:
        """Fetch a secret, or return what its tool is told instead.

        Args:
            name: as the tool gave it.
            seconds: what is left of the attempt's time.
        """
        if type(name) is not str or not _NAME.fullmatch(name):
            return _failure(MISSING, "a secret is named with letters, digits, dots, dashes and underscores")
        if self.provider is None:
            return _failure(MISSING, f"there is no secret {name!r}: the gate was opened without secrets=")
        within = min(self.within, timedelta(seconds=max(seconds, 0)))
        return _read(name, SHARED.run(partial(_ask, self.provider, name), within=within))


NOBODY = Broker(provider=None, within=timedelta(seconds=5))
"""Has no secrets."""


def _ask(provider: SecretProvider, name: str) -> object:
    try:
        found: object = provider(name)
    except LookupError:  # how a mapping says that it has none
        return None
    return _AWAITABLE if is_awaitable(found) else found


_AWAITABLE = object()


def _read(name: str, answer: Answer) -> str | bytes | ToolError:
    if isinstance(answer, Late):
        return _failure(UNAVAILABLE, f"the secret {name!r} was not to be had in time")
    if isinstance(answer, Raised):
        return _failure(UNAVAILABLE, f"the secret {name!r} was not to be had: its provider raised {answer.name}")
    value = answer.value
    if value is None or value in ("", b""):
        return _failure(MISSING, f"there is no secret {name!r}")
    if value is _AWAITABLE or not (type(value) is bytes or (type(value) is str and _is_whole(value))):
        return _failure(UNAVAILABLE, f"the secret {name!r} is no text: its provider is a function that returns one")
    return value


def _failure(code: str, message: str) -> NoEffect:
    return NoEffect(message, code=code, retryable=code == UNAVAILABLE, suggested_action="ask an operator for it")
