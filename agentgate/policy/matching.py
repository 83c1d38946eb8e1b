"""What a rule matches: names, words and a schema over the arguments, all of them at once.

Linear by construction: a name matches whole or by its beginning, and that is all there is of patterns.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from agentgate.policy.request import PolicyRequest
from agentgate.tools.validation import CheckedSchema

WILDCARD = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Any of some names, and any of some beginnings.

    Args:
        whole: names compared exactly, by code point.
        beginnings: what a name may begin with; ``""`` matches every name.
    """

    whole: frozenset[str]
    beginnings: tuple[str, ...] = ()

    def cover(self, name: str) -> bool:
        """Tell whether one of them is ``name``."""
        return name in self.whole or name.startswith(self.beginnings)

    def cover_any(self, names: Iterable[str]) -> bool:
        """Tell whether one of them is one of ``names``."""
        return any(map(self.cover, names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What must hold of a request; None asks nothing.

    Args:
        namespace: the tool's namespace.
        tool: the tool's name.
        risk: the spec's risk.
        tags: at least one of the spec's tags.
        tenant: the run's tenant.
        principal: on whose behalf.
        arguments: a schema that the arguments must satisfy; not looked at by `covers`, which is the cheap part.
    """

    namespace: Names | None = None
    tool: Names | None = None
    risk: frozenset[str] | None = None
    tags: Names | None = None
    tenant: Names | None = None
    principal: Names | None = None
    arguments: CheckedSchema | None = None

    def covers_tool(self, namespace: str, tool: str) -> bool:
        """Tell whether the tool's own name is matched, whatever else is asked."""
        return (self.tool is None or self.tool.cover(tool)) and (
            self.namespace is None or self.namespace.cover(namespace)
        )

    def covers(self, request: PolicyRequest) -> bool:
        """Tell whether everything but the arguments is matched."""
        return (
            self.covers_tool(request.namespace, request.tool)
            and (self.risk is None or request.spec.risk in self.risk)
            and (self.tenant is None or self.tenant.cover(request.tenant))
            and (self.principal is None or self.principal.cover(request.principal))
            and (self.tags is None or self.tags.cover_any(request.spec.tags))
        )
