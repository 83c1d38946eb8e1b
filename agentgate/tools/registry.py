"""The tools a gate knows: one spec for a (namespace, name), and none that a person would take for another.

A `ToolSet` is a value: adding gives another one, so a gate reads it from many threads without a lock. Names are
looked up exactly as they are; what is unknown may be named to a model only as a suggestion, never taken instead.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from agentgate.errors import SpecRefused
from agentgate.tools.decorator import AnyTool, Tool
from agentgate.tools.names import MAX_NAME, folded

_SUGGESTIONS = 3
_CLOSE = 0.75


class ToolSet:
    """An unchangeable set of tools.

    Args:
        tools: made by `tool` or `gated`.

    Raises:
        SpecRefused: no tool, two of one (namespace, name), or names of a namespace that look alike.
    """

    __slots__ = ("_alike", "_tools")

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        taken: dict[tuple[str, str], AnyTool] = {}
        alike: dict[tuple[str, str], str] = {}
        for each in tools:
            _take(taken, alike, each, replace=False)
        self._tools: Mapping[tuple[str, str], AnyTool] = MappingProxyType(taken)
        self._alike: Mapping[tuple[str, str], str] = MappingProxyType(alike)

    def added(self, tool: AnyTool, *, replace: bool = False) -> "ToolSet":
        """Return a set with one tool more.

        Args:
            tool: the new one.
            replace: take the place of the tool of exactly this namespace and name, on purpose.

        Raises:
            SpecRefused: as when a set is made; with ``replace``, also when there is nothing to replace.
        """
        taken, alike = dict(self._tools), dict(self._alike)
        _take(taken, alike, tool, replace=replace)
        grown = ToolSet()
        grown._tools, grown._alike = MappingProxyType(taken), MappingProxyType(alike)
        return grown

    def lookup(self, namespace: str, name: str) -> AnyTool | None:
        """Return the tool of exactly this name, or None."""
        return self._tools.get((namespace, name))

    def near(self, namespace: str, name: str) -> tuple[str, ...]:
        """Return a few registered names that an unknown one may have meant, for the error that a model reads.

        Args:
            namespace: suggestions come from it alone.
            name: as the model wrote it; may be anything.
        """
        if len(name) > MAX_NAME:
            return ()
        wanted = folded(name)
        alike = self._alike.get((namespace, wanted))
        if alike is not None:
            return (alike,)
        known = {shape: own for (space, shape), own in self._alike.items() if space == namespace}
        close = difflib.get_close_matches(wanted, known, n=_SUGGESTIONS, cutoff=_CLOSE)
        return tuple(known[shape] for shape in close)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"ToolSet({len(self)} tools)"


def _take(
    taken: dict[tuple[str, str], AnyTool], alike: dict[tuple[str, str], str], tool: object, *, replace: bool
) -> None:
    """Put a tool in its place, or refuse it before anything is changed."""
    if not isinstance(tool, Tool):
        name = getattr(tool, "__name__", type(tool).__name__)
        raise SpecRefused(str(name), "", "no tool", "decorate it with @agentgate.tool, or give its spec to gated()")
    space, name = tool.spec.namespace, tool.spec.name
    if ((space, name) in taken) != replace:
        problem = "there is none of this name to replace" if replace else "another tool has this name"
        remedy = "add it without replace" if replace else "rename one, or replace it on purpose"
        raise SpecRefused(name, "/name", problem, remedy)
    other = alike.setdefault((space, folded(name)), name)
    if other != name:
        raise SpecRefused(name, "/name", f"looks like {other!r}", "rename one of them")
    taken[space, name] = tool
