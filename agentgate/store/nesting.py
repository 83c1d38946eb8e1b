"""Which ledgers this thread is writing to: a second transaction of the thread would wait for the first for ever."""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from agentgate.errors import Misuse

# (thread, ledger); not a thread's own, as what a thread has entered another one may have to leave.
_inside: set[tuple[int, Hashable]] = set()


def check(ledger: Hashable) -> None:
    """Refuse a transaction that would wait for its own thread.

    Raises:
        Misuse: this thread is inside a writing transaction of the ledger.
    """
    if (threading.get_ident(), ledger) in _inside:
        raise Misuse(
            "this thread is inside a transaction of this ledger, and another one would wait for it for ever; "
            "end it first, or give execute and call its connection (connection=...)"
        )


@contextmanager
def inside(ledger: Hashable) -> Iterator[None]:
    """Be inside a writing transaction of a ledger, in this thread, until it is left: in this one or in another.

    Raises:
        Misuse: this thread is inside one already.
    """
    check(ledger)
    mine = threading.get_ident(), ledger
    try:
        _inside.add(mine)
        yield
    finally:
        _inside.discard(mine)
