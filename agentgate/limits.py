"""What a run may spend. Values only: the counters live on the run's row, and the claim takes from them."""

from dataclasses import dataclass, fields
from datetime import timedelta

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.errors import Misuse
from agentgate.jcs import LARGEST_INTEGER

_TIMES = frozenset({"active", "wall"})
_LONGEST = timedelta(days=LARGEST_INTEGER // 86_400_000_000)  # what an event can hold, in microseconds
# The same outcome is looked for among the run's last 16 actions: one more than a warning must still fit in there.
FEWEST_REPEATS, MOST_REPEATS = 2, 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run; None is unbounded.

    Args:
        actions: effects that happened or may have happened. Taken when an action starts, given back when it is
            known that it did not happen.
        failures: consecutive failed attempts; at the limit further actions are refused.
        no_progress: how often the same request may come to the same outcome, from 2 to 15, among the run's last 16
            actions. At the limit the outcome's observation carries the note ``no_progress``; once more, and the run
            is halted.
        parallel: actions executing at once. A wait, not an end.
        pending: actions held for a person at once.
        rejections: actions that people refuse when they are asked; at the limit, one at the least, the run is halted.
        retries: failed actions that are made ready again, over the whole run; at the limit a failure stays one.
        wall: time from the run's opening in which actions may start; then the run is halted.
        active: time that its attempts may last, one added to the other as they end; then the run is halted.
        tokens: charged by the loop with `Run.charge`; at the limit further actions are refused.
        money: as tokens, in the smallest unit of the operator's choice.
    """

    actions: int | None = None
    failures: int | None = None
    no_progress: int | None = None
    parallel: int | None = None
    pending: int | None = None
    rejections: int | None = None
    retries: int | None = None
    wall: timedelta | None = None
    active: timedelta | None = None
    tokens: int | None = None
    money: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if field.name in _TIMES:
                if not isinstance(value, timedelta) or not timedelta(0) < value <= _LONGEST:
                    raise Misuse(
                        f"limits.{field.name}: give a positive timedelta of at most {_LONGEST.days} days, or None for "
                        "no bound"
                    )
            elif field.name == "no_progress":
                if type(value) is not int or not FEWEST_REPEATS <= value <= MOST_REPEATS:
                    raise Misuse(
                        f"limits.no_progress: give a whole number from {FEWEST_REPEATS} to {MOST_REPEATS}, or None for "
                        "no bound"
                    )
            elif type(value) is not int or not 0 <= value <= LARGEST_INTEGER:
                raise Misuse(f"limits.{field.name}: give a whole number from 0 to 2**53 - 1, or None for no bound")

    def to_json(self) -> dict[str, Json]:
        """Return the bounds that are set, as `run_opened` records them; times in microseconds."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            f"{name}_us" if name in _TIMES else name: to_us(value) if name in _TIMES else value
            for name, value in given.items()
            if value is not None
        }
