"""Which ledgers this thread is writing to: a second transaction of the thread would wait for the first for ever."""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from agentgate.errors import Misuse


class _Here(threading.local):
    """What this thread is inside of."""

    def __init__(self) -> None:
        self.ledgers: set[Hashable] = set()


_here = _Here()


def check(ledger: Hashable) -> None:
    """Refuse a transaction that would wait for its own thread.

    Raises:
        Misuse: this thread is inside a writing transaction of the ledger.
    """
    if ledger in _here.ledgers:
        raise Misuse(
            "this thread is inside a transaction of this ledger, and another one would wait for it for ever; "
            "end it first, or give execute and call its connection (connection=...)"
        )


@contextmanager
def inside(ledger: Hashable) -> Iterator[None]:
    """Be inside a writing transaction of a ledger, in this thread.

    Raises:
        Misuse: this thread is inside one already.
    """
    check(ledger)
    try:
        _here.ledgers.add(ledger)
        yield
    finally:
        _here.ledgers.discard(ledger)
