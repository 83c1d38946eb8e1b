"""What lies beside an action's events, as it may be shown: opened where its key is there, sensitive values masked."""

from collections.abc import Iterator

from agentgate.canonical import Json, parse
from agentgate.core.draft import RECORDED_BOUNDS
from agentgate.core.records import ActionRecord
from agentgate.core.veiling import OPEN, Veil, veil_of
from agentgate.errors import NotCanonical, Sealed
from agentgate.gate.answers import Reader
from agentgate.gate.views import EventView
from agentgate.store import events
from agentgate.tools.sensitive import MARK, masked, sensitive_values
from agentgate.tools.spec import ToolSpec, from_document

_ARGUMENTS = frozenset({"arguments", "supplied"})


def unopened(reader: Reader, event: EventView) -> Iterator[str]:
    """Refuse payloads that are not the ones an event names, before anything is read out of them.

    Yields:
        The kinds that cannot be opened.
    """
    named = event.body.get("payloads")
    for kind in named if type(named) is dict else ():
        try:
            reader.kept(event.run, event.n, kind)
        except Sealed:
            yield kind


def veil_of_action(reader: Reader, proposed: EventView) -> Veil:
    """Return what takes an action's sensitive arguments out of whatever is shown of it."""
    spec, arguments = _spec(reader, proposed), bytes_beside(reader, proposed, "arguments")
    if spec is None or arguments is None:
        return OPEN
    return veil_of({}, sensitive_values(spec, value_of(arguments)))


def _spec(reader: Reader, proposed: EventView) -> ToolSpec | None:
    named = proposed.body.get("spec")
    stored = events.document(reader.connection, bytes.fromhex(named)) if type(named) is str else None
    return None if stored is None else from_document(stored[1])


def shown_arguments(reader: Reader, action: ActionRecord, veil: Veil, payloads: dict[str, Json]) -> dict[str, Json]:
    """Mask the sensitive arguments, and raw input whole where nobody can say what in it is sensitive."""
    spec = reader.spec(action)
    shown: dict[str, Json] = {}
    for kind, value in payloads.items():
        if kind == "raw" and (spec is None or spec.sensitive):
            shown[kind] = MARK
        elif kind in _ARGUMENTS and spec is not None:
            shown[kind] = masked(spec, value)
        else:
            shown[kind] = veil.json(value)
    return shown


def values_beside(reader: Reader, event: EventView, kinds: tuple[str, ...]) -> dict[str, Json]:
    """Read what lies beside an event, by kind, as far as it is there and can be opened."""
    found = ((kind, bytes_beside(reader, event, kind)) for kind in kinds)
    return {
        kind: text_of(content) if kind == "raw" else value_of(content) for kind, content in found if content is not None
    }


def bytes_beside(reader: Reader, event: EventView, kind: str) -> bytes | None:
    """Read a payload that an event names; None where it names none, it is gone, or its key is not there."""
    named = event.body.get("payloads")
    if type(named) is not dict or kind not in named:
        return None
    payload = reader.readable(event.run, event.n, kind)
    return None if payload is None else payload.content


def value_of(content: bytes) -> Json:
    """Read stored bytes as JSON; what is none as the text it is."""
    try:
        return parse(content, bounds=RECORDED_BOUNDS)
    except NotCanonical:
        return text_of(content)


def text_of(content: bytes) -> str:
    """Read stored bytes as text, whatever they are."""
    return content.decode("utf-8", "backslashreplace")


def texts_of(value: Json) -> dict[str, str]:
    """Return the texts of a ``texts`` payload by field."""
    return {name: text for name, text in value.items() if type(text) is str} if type(value) is dict else {}
