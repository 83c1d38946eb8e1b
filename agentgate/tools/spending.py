"""What one check may cost: an allowance that every keyword, loop and pattern search draws on.

Time is not measured: the same value against the same schema costs the same number on every machine, so whether it is
"too costly" is as repeatable as the verdict. Not a limit on a schema's size; that is set where it is admitted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_KEYWORDS: Final = 20_000  # the most that a real call took is 211

KEYWORD: Final = 64  # units of one keyword evaluation; cheaper work counts in fractions of it
VISIT: Final = 8  # entering a subschema, which costs time even where it holds no keyword
STEP: Final = 8  # one step along a reference
SCOPE: Final = 32  # one scope to look for a dynamic anchor in


class TooCostly(Exception):
    """The allowance is used up; whoever opened it refuses."""


class _Account(threading.local):
    def __init__(self) -> None:
        self.left = 0
        self.keys: dict[int, str | bytes] = {}


_ACCOUNT = _Account()


@contextmanager
def allowance(keywords: int = MOST_KEYWORDS) -> Iterator[None]:
    """Open an allowance for this thread; what is spent inside draws on it, outside nothing can be spent.

    Args:
        keywords: how many keyword evaluations it is worth.
    """
    before = _ACCOUNT.left, _ACCOUNT.keys
    _ACCOUNT.left, _ACCOUNT.keys = keywords * KEYWORD, {}
    try:
        yield
    finally:
        _ACCOUNT.left, _ACCOUNT.keys = before


def spend(units: int) -> None:
    """Draw on the open allowance.

    Raises:
        TooCostly: there is not that much left.
    """
    _ACCOUNT.left -= units
    if _ACCOUNT.left < 0:
        raise TooCostly


def remembered() -> dict[int, str | bytes]:
    """Return the open allowance's memory of equality keys, by the identity of a value that outlives it."""
    return _ACCOUNT.keys
