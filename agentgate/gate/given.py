"""What a gate is opened with, and what its calls are told beside their names: checked at once, each by its name."""

import os
from collections.abc import Iterable, Mapping

from agentgate.canonical import Json, snapshot
from agentgate.errors import Misuse, NotCanonical
from agentgate.gate.settings import Settings
from agentgate.keyring import Keyring
from agentgate.limits import Limits
from agentgate.policy.facts import FactProvider
from agentgate.policy.grants import FACT
from agentgate.tools.decorator import AnyTool, Tool


def check_tools(value: object) -> tuple[AnyTool, ...]:
    """Return the tools of a list; what is in it, the `ToolSet` says.

    Raises:
        Misuse: it is no list of anything.
    """
    if isinstance(value, Tool):
        raise Misuse("tools: give a list of tools, [refund], also of one")
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise Misuse("tools: give a list of tools, made by agentgate.tool or agentgate.gated")
    return tuple(value)


def check_facts(value: object) -> dict[str, FactProvider]:
    """Return who tells a policy its facts, by name; nobody where nothing was given.

    Raises:
        Misuse: no mapping, a name that is no text, or a provider that cannot be called.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Misuse("facts: give a mapping from each fact's name to the function that fetches it")
    if FACT in value:
        raise Misuse(f"facts[{FACT!r}]: every gate provides this one itself, from its ledger; use another name")
    for name, provider in value.items():
        if type(name) is not str or not name:
            raise Misuse("facts: each name is a text; it is what the policy declares to need")
        if not callable(provider):
            raise Misuse(f"facts[{name!r}]: give a function that takes a PolicyRequest and returns a JSON value")
    return dict(value)


def check_settings(value: object) -> Settings:
    """Return settings; those that hold by themselves where none were given.

    Raises:
        Misuse: they are none.
    """
    if value is None:
        return Settings()
    if type(value) is not Settings:
        raise Misuse("settings: give agentgate.Settings(...)")
    return value


def check_keyring(value: object) -> Keyring | None:
    """Return the keys of people whose signatures count; None where none were given.

    Raises:
        KeyringRefused: the file holds no keyring.
        Misuse: neither a keyring nor a file that holds one.
    """
    if value is None or type(value) is Keyring:
        return value
    if not isinstance(value, str | os.PathLike):
        raise Misuse("keyring: give a Keyring, or the path of its file")
    return Keyring.load(value)


def check_limits(value: object) -> Limits | None:
    """Return a run's limits; None where none were given.

    Raises:
        Misuse: they are none.
    """
    if value is not None and type(value) is not Limits:
        raise Misuse("limits: give agentgate.Limits(...)")
    return value


def check_flag(value: object, field: str) -> bool:
    """Return an answer to a question that has two.

    Raises:
        Misuse: it is neither True nor False.
    """
    if type(value) is not bool:
        raise Misuse(f"{field}: say True or False")
    return value


def plain(value: object, field: str) -> Json:
    """Copy a JSON value that a person gave; what is wrong with it is said under the field's name."""
    try:
        return snapshot(value)
    except NotCanonical as error:
        raise NotCanonical(f"/{field}{error.path}", error.reason, error.remedy) from None
