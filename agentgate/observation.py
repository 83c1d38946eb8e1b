"""What came of an effect: a result, or a structured error that tells a model what it may do next."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from agentgate.canonical import Json

EffectKnown = Literal["none", "unknown"]

CODES = (
    "invalid_arguments",
    "unknown_tool",
    "policy_denied",
    "precondition_failed",
    "not_found",
    "conflict",
    "rate_limited",
    "transient",
    "timeout",
    "unknown_outcome",
    "limit_exceeded",
    "output_invalid",
    "cancelled",
    "crashed",
    "lease_lost",
    "internal",
    "approval_required",  # these two stand in no record: they tell a loop why it has no result yet
    "executing",
)
# These say that the effect did not happen, unless the tool says otherwise (design §4).
CLEAN_CODES = frozenset({"invalid_arguments", "not_found", "conflict", "rate_limited", "precondition_failed"})
RETRYABLE_CODES = frozenset({"rate_limited", "transient"})


class ToolError(Exception):
    """Raise inside a tool to say what went wrong in words a loop can act on.

    Args:
        code: one of `CODES`, or a word of the tool's own (lower case, digits, underscores).
        message: for the model and the record; never put a secret into it.
        retryable: whether trying the same call again can help; by default it follows the code.
        details: any JSON value.
        suggested_action: what to do instead, in a sentence.
        effect: ``none`` when the world was not touched, ``unknown`` when it may have been. By default the
            codes in `CLEAN_CODES` mean ``none``, every other ``unknown``.
        retry_after: how long to leave it alone (a downstream's Retry-After), as a timedelta or in seconds, where
            nothing happened. What is no such span is ignored: a failure stays one.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool | None = None,
        details: Json = None,
        suggested_action: str | None = None,
        effect: EffectKnown | None = None,
        retry_after: timedelta | float | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.retryable = code in RETRYABLE_CODES if retryable is None else retryable
        self.details = details
        self.suggested_action = suggested_action
        self.effect: EffectKnown = effect or ("none" if code in CLEAN_CODES else "unknown")
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class NoEffect(ToolError):
    """Raise inside a tool when nothing has happened yet: a clean failure, whatever its code."""

    def __init__(
        self,
        message: str = "nothing was done",
        *,
        code: str = "transient",
        retryable: bool = True,
        details: Json = None,
        suggested_action: str | None = None,
        retry_after: timedelta | float | None = None,
    ) -> None:
        super().__init__(
            code,
            message,
            retryable=retryable,
            details=details,
            suggested_action=suggested_action,
            effect="none",
            retry_after=retry_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """A structured error as recorded and handed back; fields as in `ToolError`."""

    code: str
    message: str
    retryable: bool = False
    details: Json = None
    suggested_action: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the error for the observation's payload; what is not set is left out."""
        value: dict[str, Json] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.details is not None:
            value["details"] = self.details
        if self.suggested_action is not None:
            value["suggested_action"] = self.suggested_action
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> "Error":
        """Read an error back from an observation's payload."""
        return cls(**value)  # type: ignore[arg-type]  # a stored payload: its digest was checked, its shape is ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the loop is told.

    Args:
        status: ``ok`` or ``error``.
        value: the tool's result as JSON; cut to a marked preview where it was over the tool's limit.
        error: set when ``status`` is ``error``.
        notes: stable words about the result itself: ``output_invalid``, ``unencodable``, ``capped``, ``scrubbed`` (a
            secret or a sensitive argument was taken out), ``sealed`` (its key is not there), ``not_kept``.
    """

    status: Literal["ok", "error"]
    value: Json = None
    error: Error | None = None
    notes: tuple[str, ...] = field(default=())

    __match_args__ = ("value",)

    def text(self) -> str:
        """Put it into a message for a model: a text as it is, any other value, or the error, as JSON."""
        told = self.value if self.error is None else self.error.to_json()
        return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)

    def to_json(self) -> dict[str, Json]:
        """Return the observation as its payload holds it."""
        body: dict[str, Json] = {"status": self.status, "notes": list(self.notes)}
        if self.error is None:
            body["value"] = self.value
        else:
            body["error"] = self.error.to_json()
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> "Observation":
        """Read an observation back from its payload."""
        error = body.get("error")
        notes = body["notes"]
        return cls(
            status="ok" if error is None else "error",
            value=body.get("value"),
            error=Error.from_json(error) if isinstance(error, dict) else None,
            notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
        )
