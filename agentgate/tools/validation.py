"""Checking a value against an admitted schema: what to correct, never what the value holds, and never an exception.

Not where schemas are admitted (`schemas`), nor where keywords are evaluated (`keywords`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError

from agentgate.canonical import Json, pointer
from agentgate.tools.dialects import Dialect
from agentgate.tools.evaluation import failures
from agentgate.tools.expectations import expectation
from agentgate.tools.keywords import MOST_FAILURES
from agentgate.tools.patterns import Pattern
from agentgate.tools.positions import Position
from agentgate.tools.spending import MOST_KEYWORDS, TooCostly, allowance

VALIDATOR: tuple[str, str]  # the library that decides and its version, as events record them

_LONGEST_PATH = 512  # characters; property names are written by whoever calls


def __getattr__(name: str) -> tuple[str, str]:
    """Read `VALIDATOR` when it is first wanted: looking a version up takes longer than importing this package."""
    if name != "VALIDATOR":
        raise AttributeError(name)
    return ("jsonschema", version("jsonschema"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing to correct.

    Args:
        path: JSON Pointer into the value; of a value nested under very long names, to what contains it.
        keyword: the schema's keyword that failed; ``$cost`` when checking would take too long, ``$internal`` when the
            validator itself failed, which refuses as well.
        expected: what the schema wants there, as the end of "expected …", at most 200 characters.
    """

    path: str
    keyword: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedSchema:
    """A schema that `agentgate.tools.schemas.admit` has found checkable: the private, prepared copy of it.

    Args:
        dialect: that it is written in.
        root: its prepared form; not JSON any more, and nobody else's.
        resolver: finds what it refers to, inside the document.
        positions: its places by identity.
        merged: for each place those whose properties count as its own when defaults are filled in.
        fills: for each place with properties, the defaults that may be filled in, by name.
        refused_defaults: pointers to the defaults that their own subschema refuses.
        names: the argument names it declares at its root.
        name_patterns: patterns that declare further ones.
        open: whether every name is declared, by an explicit additionalProperties.
    """

    dialect: Dialect
    root: dict[str, Any] = field(repr=False)
    resolver: Any = field(repr=False)
    positions: Mapping[int, Position] = field(repr=False)
    merged: Mapping[int, tuple[int, ...]] = field(repr=False)
    fills: Mapping[int, tuple[tuple[str, bytes], ...]] = field(repr=False)
    refused_defaults: tuple[str, ...] = field(repr=False)
    names: frozenset[str] = field(repr=False)
    name_patterns: tuple[Pattern, ...] = field(repr=False)
    open: bool = field(repr=False)


def check(schema: CheckedSchema, value: Json) -> tuple[Violation, ...]:
    """Tell what is wrong with a value; nothing is, when the answer is empty.

    Args:
        schema: as admitted.
        value: made by `agentgate.canonical.parse` or `snapshot`; its numbers and depth are within I-JSON's bounds.

    Returns:
        At most 20 violations, in order of path and keyword, the same for the same schema and value. Formats are not
        asserted. Never raises: what cannot be decided within the allowance, or makes the validator fail, is refused.
    """
    try:
        with allowance():
            found = list(islice(failures(schema.dialect, value, schema.root, schema.resolver), MOST_FAILURES))
            told = {_violation(failure) for failure in found}
    except TooCostly:
        limit = f"{MOST_KEYWORDS:,}"
        return (Violation(path="", keyword="$cost", expected=f"a value that {limit} keyword evaluations can check"),)
    except Exception:  # noqa: BLE001 - design §4: at the call any exception of the validator is a refusal
        return (Violation(path="", keyword="$internal", expected="a value that the validator can check"),)
    return tuple(sorted(told, key=lambda each: (each.path, each.keyword, each.expected)))


def _violation(failure: ValidationError) -> Violation:
    keyword = failure.validator if isinstance(failure.validator, str) else "not"
    return Violation(path=_path(failure), keyword=keyword, expected=expectation(failure))


def _path(failure: ValidationError) -> str:
    parts = list(failure.relative_path)
    while len(text := pointer(*parts)) > _LONGEST_PATH:
        parts.pop()
    return text
