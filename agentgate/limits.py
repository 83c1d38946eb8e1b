"""What a run may spend. Values only: the counters live on the run's row, and the claim takes from them."""

from dataclasses import dataclass, fields
from datetime import timedelta

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.errors import Misuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run; None is unbounded.

    Args:
        actions: effects that happened or may have happened. Taken when an action starts, given back when it is
            known that it did not happen.
        failures: consecutive failed attempts; at the limit further actions are refused.
        parallel: actions executing at once. A wait, not an end.
        pending: actions held for a person at once.
        wall: time from the run's opening in which actions may start.
    """

    actions: int | None = None
    failures: int | None = None
    parallel: int | None = None
    pending: int | None = None
    wall: timedelta | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if field.name == "wall":
                if not isinstance(value, timedelta) or value <= timedelta(0):
                    raise Misuse("limits.wall: give a positive timedelta, or None for no bound")
            elif type(value) is not int or value < 0:
                raise Misuse(f"limits.{field.name}: give a whole number from 0, or None for no bound")

    def to_json(self) -> dict[str, Json]:
        """Return the bounds that are set, as `run_opened` records them; times in microseconds."""
        set_: dict[str, Json] = {
            name: value
            for name in ("actions", "failures", "parallel", "pending")
            if (value := getattr(self, name)) is not None
        }
        if self.wall is not None:
            set_["wall_us"] = to_us(self.wall)
        return set_
