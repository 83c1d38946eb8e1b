"""One line of the table of docs/crashes.md."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table.

    Args:
        killed: when, in words.
        commits: how many of the command's commits had landed by then.
        reached: whether the effect had reached the world; None where the command runs none.
        left: what the record says of the action (of the run, where the command opens one).
        next: what the next call with the same key says.
        effects: how many effects there are in the world then, in all.
    """

    killed: str
    commits: int
    reached: bool | None = None
    left: str
    next: str
    effects: int
