"""Sensitive values taken out before anything is rendered, with a note of where they were."""

from agentgate.canonical import Json
from agentgate.core.presenting.shown import Masked
from agentgate.tools.sensitive import hidden_places, masked, unnamed
from agentgate.tools.spec import ToolSpec


def mask(spec: ToolSpec, arguments: Json) -> Masked:
    """Mask the sensitive values of a spec's arguments, and leave out what may be a misspelt one of them.

    Args:
        spec: the tool's, as it is now: what it calls sensitive today is not shown, whenever it was sent.
        arguments: completed or as supplied.
    """
    extra = unnamed(spec, arguments)
    if extra and type(arguments) is dict:
        arguments = {name: value for name, value in arguments.items() if name not in extra}
    return Masked(value=masked(spec, arguments), hidden=hidden_places(spec, arguments), unnamed=len(extra))
