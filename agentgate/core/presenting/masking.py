"""Sensitive values taken out before anything is rendered, with a note of where they were."""

from agentgate.canonical import Json
from agentgate.core.presenting.shown import Masked
from agentgate.tools.sensitive import hidden_places, masked, unnamed
from agentgate.tools.spec import ToolSpec


def mask(spec: ToolSpec, arguments: Json) -> Masked:
    """Mask the sensitive values of a tool's arguments, and leave out what may be a misspelt one of them.

    Args:
        spec: says which are sensitive.
        arguments: completed or as supplied.
    """
    return mask_more(Masked(value=arguments), spec)


def mask_more(shown: Masked, spec: ToolSpec) -> Masked:
    """Mask what another spec of the tool calls sensitive too.

    Args:
        shown: arguments, masked already by the spec that they were sent under.
        spec: as the tool is declared now.
    """
    arguments, extra = shown.value, unnamed(spec, shown.value)
    if extra and type(arguments) is dict:
        arguments = {name: value for name, value in arguments.items() if name not in extra}
    return Masked(
        value=masked(spec, arguments),
        hidden=shown.hidden | hidden_places(spec, arguments),
        unnamed=shown.unnamed + len(extra),
    )
