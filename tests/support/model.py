"""A model of what the gate owes, written from the design's sentences: no code of the package, no database, no events.

It knows where each key's newest action stands, what is in doubt, what was granted, and how often the effect happened.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

TOOLS = ("once", "keyed")
KEYS = ("k0", "k1", "k2")
SHARED = "k0"
"""Under this key the two tools work on one resource, under the others on their own."""

# As often as they make something happen: a denied key says nothing more, and neither does one that is done.
ANSWERS = (*["allow"] * 6, "deny", *["hold"] * 2)
LATES = ("late", "late_ready", "late_cancelled")
"""The worker loses its lease inside the effect, and answers after all; meanwhile people may have found that it did not
happen, and have cancelled it then."""
ENDS = ("done", *["clean"] * 2, *["lost_before"] * 2, *["lost_after"] * 2, *LATES)
CRASHES = ("crash_before", "crash_after")
SPANS = (timedelta(minutes=7), timedelta(minutes=7), timedelta(minutes=61), timedelta(hours=25))

READY, HOLD, GRANT, WINDOW = timedelta(hours=1), timedelta(hours=24), timedelta(minutes=15), timedelta(hours=2)
LOST = timedelta(minutes=2)
"""Longer than a lease."""
LIMIT, RETRIES = 3, 4
"""Actions that may happen in the run, where six keys want to; and how many failures may be made ready again."""
TAKEN = frozenset({"EXECUTING", "UNKNOWN", "SUCCEEDED", "ABANDONED"})
BOUNDS: tuple[dict[str, int], ...] = ({}, {}, {"actions": 2}, {"parallel": 1}, {"actions": 3, "tokens": 9})
"""What the tenant may be bounded by."""
SCOPES: tuple[dict[str, str], ...] = ({}, {"tenant": "acme"}, {"tool": "once"})
"""What may be paused."""


def resource(tool: str, key: str) -> str:
    return "shared" if key == SHARED else f"{tool}'s {key}"


@dataclass
class Action:
    """The newest action of a key.

    Args:
        tool: ``once`` is never repeated blindly; ``keyed`` is, inside its window.
        key: its name.
        state: where it stands; NONE before there is any.
        until: when READY or HELD is over.
        grant: until when people have agreed to it.
        first: when its first attempt started.
        doubted: how many attempts may have happened, as far as anybody knows.
        final: whether the key opens no further revision.
        happened: whether the effect has happened.
    """

    tool: str
    key: str
    state: str = "NONE"
    until: timedelta = timedelta(0)
    grant: timedelta | None = None
    first: timedelta | None = None
    doubted: int = 0
    final: bool = False
    happened: bool = False

    @property
    def resource(self) -> str:
        return resource(self.tool, self.key)


@dataclass
class Model:
    """The run."""

    now: timedelta = timedelta(0)
    paused: list[dict[str, str]] = field(default_factory=list)
    most: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    retried: int = 0
    actions: dict[tuple[str, str], Action] = field(
        default_factory=lambda: {(tool, key): Action(tool=tool, key=key) for tool in TOOLS for key in KEYS}
    )
    effects: list[str] = field(default_factory=list)

    def newest(self, tool: str, key: str) -> Action:
        return self.actions[tool, key]

    def others(self, action: Action) -> Iterator[Action]:
        return (other for other in self.actions.values() if other is not action)

    # --- commands ------------------------------------------------------------------------------

    def propose(self, tool: str, key: str, answer: str) -> bool:
        """Propose; return whether it made a new action."""
        action = self.newest(tool, key)
        self.expire(action)
        if action.state != "NONE" and (action.state != "REFUSED" or action.final or action.doubted):
            return False
        action = self.actions[tool, key] = Action(tool=tool, key=key)
        if answer == "deny":
            self.refuse(action, final=True)
        else:
            self.rest(action, "HELD" if answer == "hold" else "READY")
        return True

    def call(self, tool: str, key: str, answer: str, end: str, *, retry: bool) -> str:
        """Propose and execute; return what the caller is told."""
        new = self.propose(tool, key, answer)
        action = self.newest(tool, key)
        if new and action.state == "READY":
            self.claim(action, end)
        elif not new:
            self.execute(action, answer, end, retry=retry)
        return self.told(action)

    def execute(self, action: Action, answer: str, end: str, *, retry: bool) -> None:
        """Bring an action as far as it may go."""
        self.take_over(action)
        self.expire(action)
        if action.state == "FAILED" and retry and self.retried < RETRIES:
            self.retried += 1
            self.rest(action, "READY")
            self.expire(action)
        if action.state == "READY":
            self.ask_again(action, answer, end)
        elif action.state == "UNKNOWN" and action.tool == "keyed" and answer == "allow":
            assert action.first is not None
            if self.now < action.first + WINDOW:
                self.claim(action, end)

    def cancel(self, action: Action) -> bool:
        if action.state not in {"READY", "HELD", "FAILED"}:
            return False
        self.refuse(action, final=False)
        return True

    def reconcile(self, action: Action) -> bool:
        """Somebody looks, and says what is true."""
        self.take_over(action)
        if not action.doubted:
            return False
        action.doubted = 0
        if action.state != "UNKNOWN":  # recorded on the attempt: it moves no end, but says what the key stands for
            action.final = action.final or action.happened
        elif action.happened:
            action.state = "SUCCEEDED"
        else:
            self.rest(action, "READY")
        return True

    def abandon(self, action: Action) -> bool:
        """Somebody gives up knowing."""
        self.take_over(action)
        if action.state != "UNKNOWN":
            return False
        action.state = "ABANDONED"
        return True

    def sweep(self) -> tuple[int, int]:
        """Bring everything where it belongs; return how many had dead workers, and how many were over."""
        before = [action.state for action in self.actions.values()]
        for action in self.actions.values():
            self.take_over(action)
            self.expire(action)
        after = [action.state for action in self.actions.values()]
        moved = [was for was, now in zip(before, after, strict=True) if was != now]
        return moved.count("EXECUTING"), len(moved) - moved.count("EXECUTING")

    def used(self) -> dict[str, int]:
        """Count what the tenant has used, of all that it may be bounded by."""
        states = [action.state for action in self.actions.values()]
        taken, executing = sum(state in TAKEN for state in states), states.count("EXECUTING")
        return {"actions": taken, "parallel": executing, "tokens": self.tokens}

    def agree(self, action: Action) -> None:
        """People agree to what is held."""
        self.rest(action, "READY")
        action.until = action.grant = self.now + GRANT

    # --- what follows ----------------------------------------------------------------------------

    def rest(self, action: Action, state: str) -> None:
        action.state = state
        action.until = self.now + (HOLD if state == "HELD" else READY)

    def refuse(self, action: Action, *, final: bool) -> None:
        action.state, action.final, action.grant = "REFUSED", final, None

    def expire(self, action: Action) -> None:
        over = action.until if action.grant is None else min(action.until, action.grant)
        if action.state in {"READY", "HELD"} and self.now >= over:
            self.refuse(action, final=False)

    def take_over(self, action: Action) -> None:
        """Only the dead leave an action executing here."""
        if action.state == "EXECUTING":
            action.state = "UNKNOWN"
            action.doubted += 1

    def ask_again(self, action: Action, answer: str, end: str) -> None:
        """A claim of its own asks the policy once more."""
        if answer == "deny":
            self.refuse(action, final=True)
        elif answer == "hold" and action.grant is None:
            self.rest(action, "HELD")
        else:
            self.claim(action, end)

    def claim(self, action: Action, end: str) -> None:
        """Start, unless something is in the way."""
        if any(action.tool == scope.get("tool", action.tool) for scope in self.paused):
            return
        if self.is_over(action):
            if action.state == "READY":
                self.refuse(action, final=False)
            return
        if self.is_exhausted("parallel") or self.is_blocked(action):
            return
        action.first = action.first or self.now
        granted, action.grant = action.grant, None
        self.end(action, end, granted)

    def is_over(self, action: Action) -> bool:
        """Tell whether a limit ends it; what may have happened is counted already."""
        taking = action.state == "READY" and (self.used()["actions"] >= LIMIT or self.is_exhausted("actions"))
        return taking or self.is_exhausted("tokens")

    def is_exhausted(self, measure: str) -> bool:
        return measure in self.most and self.used()[measure] >= self.most[measure]

    def is_blocked(self, action: Action) -> bool:
        """Tell whether another action holds the resource, or may; a dead one is taken over by whoever it blocks."""
        holders = [other for other in self.others(action) if other.resource == action.resource and _holds(other)]
        for other in holders:
            self.take_over(other)
        return bool(holders)

    def end(self, action: Action, end: str, granted: timedelta | None) -> None:
        """The effect ends, or its process does."""
        if end in LATES:
            self.overtake(action, end)
        if end in {"done", "lost_after", "crash_after", *LATES} and not action.happened:
            action.happened = True  # a downstream that knows our key does it once
            self.effects.append(f"{action.tool} {action.key} {action.resource}")
        if end in LATES:
            action.doubted = max(action.doubted, 1)
            action.state = "UNKNOWN" if action.state == "READY" else action.state
        elif end == "done":
            action.state, action.doubted = "SUCCEEDED", 0
        elif end == "clean":
            action.state = "UNKNOWN" if action.doubted else "FAILED"
            action.grant = granted
        elif end in CRASHES:
            action.state = "EXECUTING"
        else:
            action.state = "UNKNOWN"
            action.doubted += 1

    def overtake(self, action: Action, end: str) -> None:
        """A sweep comes by while the effect is at work, and people, who say what is true."""
        action.state = "EXECUTING"
        self.now += LOST
        self.sweep()
        if end != "late" and not action.happened:
            self.reconcile(action)
            if end == "late_cancelled":
                self.cancel(action)

    def told(self, action: Action) -> str:
        """Name the outcome of where an action stands."""
        if action.state == "READY":
            return "Refused, retryable"
        return {
            "SUCCEEDED": "Done",
            "FAILED": "Failed",
            "HELD": "Held",
            "REFUSED": "Refused",
            "EXECUTING": "Running",
            "UNKNOWN": "Unknown",
            "ABANDONED": "Unknown",
        }[action.state]


def _holds(action: Action) -> bool:
    """Tell whether an action blocks its resource: also where it was refused, and happened after all."""
    return action.state in {"EXECUTING", "UNKNOWN"} or (action.state == "REFUSED" and action.doubted > 0)
