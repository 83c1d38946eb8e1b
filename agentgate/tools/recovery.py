"""What an unknown outcome of a tool means, how a known failure is tried again, and what a function is called.

Values of a spec only: who acts on them is the gate. Spans are timedeltas here and microseconds in the document.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, TypeAlias

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.errors import SpecRefused
from agentgate.tools.names import check_name

LONGEST_SPAN = timedelta(days=3_660)
MOST_ATTEMPTS = 100


def check_span(value: object, *, tool: str, path: str, least: timedelta = timedelta(microseconds=1)) -> timedelta:
    """Return a span of whole microseconds inside the bounds that any spec may state.

    Raises:
        SpecRefused: no timedelta, under ``least`` or over ten years.
    """
    if not isinstance(value, timedelta):
        raise SpecRefused(tool, path, "no timedelta", "give a datetime.timedelta")
    if not least <= value <= LONGEST_SPAN:
        raise SpecRefused(tool, path, "out of bounds", f"give a span from {least} to {LONGEST_SPAN.days} days")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Running again is safe, whatever came of the last attempt: the default of read-only tools."""

    word: ClassVar[str] = "repeat"


@dataclass(frozen=True, slots=True, init=False)
class Keyed:
    """The downstream dedupes on our idempotency key inside a window, counted from the action's first start.

    Args:
        window: how long it remembers a key; or say it in days, hours and minutes.
        days: added to the window.
        hours: added to the window.
        minutes: added to the window.

    Raises:
        SpecRefused: the window is empty or out of bounds.
    """

    word: ClassVar[str] = "keyed"
    window: timedelta

    def __init__(
        self, *, window: timedelta = timedelta(0), days: float = 0, hours: float = 0, minutes: float = 0
    ) -> None:
        if not isinstance(window, timedelta):
            raise SpecRefused("", "/recovery/window_us", "no timedelta", "write Keyed(hours=24), or a timedelta")
        whole = window + timedelta(days=days, hours=hours, minutes=minutes)
        object.__setattr__(self, "window", check_span(whole, tool="", path="/recovery/window_us"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactional:
    """The effect writes through the gate's own transaction: it and its record happen together or not at all."""

    word: ClassVar[str] = "transactional"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A function of the tool can tell whether it happened; the spec names it as ``probe``."""

    word: ClassVar[str] = "probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A person decides: the default of every tool that is not read-only."""

    word: ClassVar[str] = "operator"


Recovery: TypeAlias = Repeat | Keyed | Transactional | Probe | Operator
RECOVERIES = (Repeat, Keyed, Transactional, Probe, Operator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How a known, retryable failure is tried again; an unknown outcome never is.

    Args:
        attempts: in all, the first one included; 1 is no retry.
        wait: before the second attempt, doubled for each further one.
        longest_wait: the doubling stops here.
        within: no further attempt begins this long after the first.
    """

    attempts: int = 1
    wait: timedelta = timedelta(seconds=1)
    longest_wait: timedelta = timedelta(minutes=1)
    within: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise SpecRefused("", "/retry/attempts", "out of bounds", f"give a whole number from 1 to {MOST_ATTEMPTS}")
        check_span(self.wait, tool="", path="/retry/wait_us", least=timedelta(0))
        check_span(self.longest_wait, tool="", path="/retry/longest_wait_us", least=self.wait)
        check_span(self.within, tool="", path="/retry/within_us")

    def to_json(self) -> dict[str, Json]:
        """Return it as the spec document holds it."""
        return {
            "attempts": self.attempts,
            "wait_us": to_us(self.wait),
            "longest_wait_us": to_us(self.longest_wait),
            "within_us": to_us(self.within),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionName:
    """What a confirm or probe function is called in the record: its code is never hashed, so raise the version.

    Args:
        name: stable over refactorings.
        version: another one whenever it may answer otherwise.
    """

    name: str
    version: str

    def __post_init__(self) -> None:
        check_name(self.name, tool="", path="/name")
        check_name(self.version, tool="", path="/version")

    def to_json(self) -> dict[str, Json]:
        """Return it as the spec document holds it."""
        return {"name": self.name, "version": self.version}


def recovery_to_json(recovery: Recovery) -> dict[str, Json]:
    """Return ``{class, window_us?}`` as the spec document holds it."""
    if isinstance(recovery, Keyed):
        return {"class": recovery.word, "window_us": to_us(recovery.window)}
    return {"class": recovery.word}


def recovery_from_json(value: Mapping[str, Json]) -> Recovery:
    """Read a recovery whose shape was checked back from a spec document.

    Raises:
        SpecRefused: a window beside another class than ``keyed``, or ``keyed`` without one.
    """
    word, window = value["class"], value.get("window_us")
    if (word == Keyed.word) != isinstance(window, int):
        raise SpecRefused("", "/recovery/window_us", "goes with keyed, and keyed with it", "read the bytes as stored")
    if isinstance(window, int):
        return Keyed(window=timedelta(microseconds=window))
    return next(each() for each in (Repeat, Transactional, Probe, Operator) if each.word == word)


def retry_from_json(value: Mapping[str, Json]) -> Retry:
    """Read a retry whose shape was checked back from a spec document."""
    attempts = value["attempts"]
    assert isinstance(attempts, int)
    wait, longest, within = (_span(value[name]) for name in ("wait_us", "longest_wait_us", "within_us"))
    return Retry(attempts=attempts, wait=wait, longest_wait=longest, within=within)


def _span(value: Json) -> timedelta:
    assert isinstance(value, int)
    return timedelta(microseconds=value)
