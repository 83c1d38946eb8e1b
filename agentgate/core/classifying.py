"""What an effect's end proves: that it happened, that it did not, or neither."""

import asyncio
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

from agentgate.canonical import Bounds, Json, canonical, keep
from agentgate.clock import to_us
from agentgate.core.recording import Ended
from agentgate.core.veiling import OPEN, Veil
from agentgate.encoding import describe
from agentgate.observation import Error, Observation, ToolError
from agentgate.tools.recovery import LONGEST_SPAN
from agentgate.tools.spec import ToolSpec
from agentgate.tools.validation import check

# The whole result is kept as a payload up to here; what is larger is described, never stored.
RESULT_BOUNDS = Bounds(max_bytes=16_777_216, max_depth=100, max_nodes=1_000_000)
# What an error tells a loop is not cut when it is read, as a result is: it is bounded from the start.
DETAILS_BOUNDS = Bounds(max_bytes=65_536)
_LONGEST_MESSAGE = 2_000
_PREVIEW = 1_000


def returned(value: object, spec: ToolSpec, veil: Veil = OPEN) -> Ended:
    """Read a tool's result: the effect succeeded, whatever is wrong with what it returned.

    Args:
        value: what the callable returned.
        spec: its output schema is checked here.
        veil: takes secrets and sensitive arguments out of what is kept.
    """
    kept = keep(value, bounds=RESULT_BOUNDS)
    notes: tuple[str, ...] = ("unencodable",) if kept.lost else ()
    if spec.checked_output is not None and check(spec.checked_output, kept.value):
        notes = (*notes, "output_invalid")
    observation = Observation(status="ok", value=kept.value, notes=notes)
    return Ended(known="succeeded", observation=veil.observation(observation))


def unread(value: object) -> Ended:
    """Read a tool's result that interrupted its own reading: the effect succeeded, and its value is only described."""
    observation = Observation(status="ok", value=dict(describe(value)), notes=("unencodable",))
    return Ended(known="succeeded", observation=observation)


def raised(error: BaseException, spec: ToolSpec, veil: Veil = OPEN) -> Ended:
    """Read a tool's exception (design §4, errors).

    Args:
        error: what the callable raised.
        spec: whether its own exceptions prove that nothing happened.
        veil: takes secrets and sensitive arguments out of what is kept.
    """
    try:
        return _said(error, spec, veil)
    except Exception:  # noqa: BLE001 - a class of the caller's own: what it cannot say proves nothing
        told = Error(code="internal", message="an exception that could not be read")
        return Ended(known="in_doubt", observation=Observation(status="error", error=told), code="internal")


def _said(error: BaseException, spec: ToolSpec, veil: Veil) -> Ended:
    if isinstance(error, ToolError):
        return _told(error, veil)
    code = "cancelled" if _interrupts(error) else "internal"
    observation = _plain(error, code, veil)
    clean = spec.risk == "read_only" or spec.errors == "no_effect"
    if isinstance(error, Exception) and clean and code == "internal":
        return Ended(known="failed", observation=observation, code=code)
    return Ended(known="in_doubt", observation=observation, code=code)


def _plain(error: BaseException, code: str, veil: Veil) -> Observation:
    return _marked(Error(code=code, message=_spoken(error)), veil)


def _marked(error: Error, veil: Veil) -> Observation:
    """Veil an error, then cut it: a value that the cut would leave half of would not be found any more."""
    observation = veil.observation(Observation(status="error", error=error))
    assert observation.error is not None
    action = observation.error.suggested_action
    cut = replace(
        observation.error,
        message=observation.error.message[:_LONGEST_MESSAGE],
        suggested_action=None if action is None else action[:_LONGEST_MESSAGE],
    )
    return replace(observation, error=cut)


def overran() -> Ended:
    """Read a time-out: the thread may still be at it."""
    return Ended(known="in_doubt", observation=None, code="timeout")


def interrupted() -> Ended:
    """Read an interruption of the one who waited."""
    return Ended(known="in_doubt", observation=None, code="cancelled")


def undone(ended: Ended) -> Ended:
    """Read an end whose writes are all taken back: it did not happen, whatever the end itself could not tell."""
    return replace(ended, known="failed")


def too_late(error: ToolError) -> Ended:
    """Read the return of a transactional effect after its time: nothing of it stays, so trying again is safe."""
    message = f"{_text(error.message)}; what it wrote was undone"
    told = Error(code=_word(error.code), message=message, retryable=True)
    return Ended(
        known="failed", observation=Observation(status="error", error=told), code=told.code, retryable=told.retryable
    )


def _told(error: ToolError, veil: Veil) -> Ended:
    details = keep(error.details, bounds=DETAILS_BOUNDS).value if error.details is not None else None
    told = Error(
        code=_word(error.code),
        message=_text(error.message),
        retryable=bool(error.retryable),
        details=details,
        suggested_action=None if error.suggested_action is None else _text(error.suggested_action),
    )
    known = "failed" if error.effect == "none" else "in_doubt"
    observation = _marked(told, veil)
    assert observation.error is not None
    return Ended(
        known=known,
        observation=observation,
        code=observation.error.code,
        retryable=told.retryable,
        retry_after_us=_span_us(error.retry_after) if known == "failed" else None,
    )


def _span_us(value: object) -> int | None:
    """Read how long a tool asks to be left alone; nothing where it is no span.

    One that no calendar has is the longest there is: who asks to be left alone for ever is not called again at once.
    """
    if type(value) in (int, float):
        seconds: Any = value
        is_span = 0 <= seconds < math.inf
        value = timedelta(seconds=min(seconds, LONGEST_SPAN.total_seconds())) if is_span else None
    return to_us(min(value, LONGEST_SPAN)) if type(value) is timedelta and value >= timedelta(0) else None


def _interrupts(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception)


def _spoken(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the caller's own class
        text = ""
    return _text(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _text(text: object) -> str:
    """Keep what a tool says encodable."""
    plain = str(text) if isinstance(text, str) else type(text).__name__
    return plain.encode("utf-8", "backslashreplace").decode()


def _word(code: object) -> str:
    """Return a code fit for an event, where it stands in clear."""
    text = code if type(code) is str else ""
    fits = 0 < len(text) <= _LONGEST_CODE and text.isascii() and text.replace("_", "").isalnum()
    return text if fits else "internal"


_LONGEST_CODE = 64


def shown(observation: Observation, *, limit: int) -> Observation:
    """Cut what a loop is shown; the whole stays in the record.

    Args:
        observation: as recorded.
        limit: the tool's ``max_output_bytes``.
    """
    if observation.error is not None:
        return observation
    whole = canonical(observation.value)
    if len(whole) <= limit:
        return observation
    preview = whole[: min(limit, _PREVIEW)].decode("utf-8", "ignore")
    cut: dict[str, Json] = {"$cut": {"bytes": len(whole), "limit": limit, "preview": preview}}
    return replace(observation, value=cut, notes=(*observation.notes, "capped"))
