"""A worker of the shop in a process of its own: it begins one refund, and is killed inside it.

Run as ``python -m agentgate.demo.worker FOLDER``. It says ``inside`` once the money has moved, and then waits for a
bank whose answer never comes.
"""

import sys
from pathlib import Path

from agentgate.demo.chapters.killed import CALL
from agentgate.demo.scene import at
from agentgate.demo.shop import Shop


def _bank_answers() -> None:
    sys.stdout.write("inside\n")
    sys.stdout.flush()
    sys.stdin.read()  # ends when whoever started us is gone, so that nobody is left behind


def main(folder: str) -> None:
    """Call the tool as any worker would."""
    place = Path(folder)
    scene = at(place, shop=Shop(folder=place, bank_answers=_bank_answers))
    with scene.at_work() as (gate, run):
        gate.call(run, CALL.tool, CALL.arguments, key=CALL.key)


if __name__ == "__main__":
    main(sys.argv[1])
