"""Threads that begin together."""

import threading
from collections.abc import Callable


def at_once(count: int, work: Callable[[int], object]) -> None:
    """Call ``work`` with each number below ``count``, each in a thread of its own, all at the same moment.

    What one of them raises is raised here: a thread that dies alone tells nobody.
    """
    barrier, wrong = threading.Barrier(count), list[BaseException]()

    def begin(n: int) -> None:
        barrier.wait()
        try:
            work(n)
        except BaseException as error:  # noqa: BLE001 - raised below
            wrong.append(error)

    threads = [threading.Thread(target=begin, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
