"""The form of a type hint: the schema of its JSON, and how its Python value is built from JSON.

Values that `agentgate.tools.annotations` makes and its neighbours share; no hint is read here.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agentgate.canonical import Json, pointer
from agentgate.errors import SpecRefused
from agentgate.observation import NoEffect

Build: TypeAlias = Callable[[Json, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a hint means.

    Args:
        schema: of the JSON values it accepts.
        build: makes the Python value from JSON that the schema accepted, given its JSON Pointer for a refusal;
            None where the JSON is the value.
    """

    schema: dict[str, Json]
    build: Build | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where in a spec a hint stands.

    Args:
        tool: for refusals.
        path: JSON Pointer into the spec.
        definitions: ``$defs`` of the whole schema, to which pydantic's are added while hints are read.
        within: the types being written around it, so that a recursive one is found.
    """

    tool: str
    path: str
    definitions: dict[str, Json]
    within: tuple[object, ...] = ()

    def at(self, *parts: str) -> "Site":
        """Return the site of a part of this one."""
        return dataclasses.replace(self, path=self.path + pointer(*parts))

    def inside(self, hint: object) -> "Site":
        """Return the site within a type that is being written in place.

        Raises:
            SpecRefused: the type contains itself, so writing it in place would never end.
        """
        if any(hint is outer for outer in self.within):
            raise self.refusal(f"{shown(hint)} contains itself", "flatten it, or write the schema by hand")
        return dataclasses.replace(self, within=(*self.within, hint))

    def refusal(self, problem: str, remedy: str) -> SpecRefused:
        """Make the error that names this site."""
        return SpecRefused(self.tool, self.path, problem, remedy)


def shown(hint: object) -> str:
    """Name a hint for a refusal."""
    return hint.__qualname__ if isinstance(hint, type) else repr(hint)


def unbuildable(path: str, expected: str) -> NoEffect:
    """Make the clean failure of an argument that its hint cannot be built from; the value is never in it."""
    return NoEffect(
        f"argument {path or '/'}: expected {expected}",
        code="invalid_arguments",
        retryable=False,
        details={"path": path, "expected": expected},
        suggested_action="correct the argument and propose the call again",
    )
