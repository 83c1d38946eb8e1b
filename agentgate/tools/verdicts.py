"""What a tool's own functions answer: a probe whether it happened, a confirm whether the world is as it should be.

Values only: who asks, and what follows, is the gate's. True and False do for both where there is nothing to show, and
None says that the function cannot tell.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A probe's answer: it has happened.

    Args:
        result: what the loop is told, in the place of the result that was lost.
        evidence: what shows it; kept beside the record. Never put a secret into it.
    """

    result: Any = field(default=None, repr=False)
    evidence: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplied:
    """A probe's answer: it has not happened, and no longer can by the attempt that was asked about.

    Args:
        evidence: what shows it; kept beside the record. Never put a secret into it.
    """

    evidence: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A confirm's answer, with what shows it.

    Args:
        ok: whether the world is as it should be; None where that cannot be told.
        evidence: what shows it; kept beside the record. Never put a secret into it.
    """

    ok: bool | None
    evidence: Any = field(default=None, repr=False)
