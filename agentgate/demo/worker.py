"""A worker of the shop in a process of its own: it begins a chapter's call, and is killed inside it.

Run as ``python -m agentgate.demo.worker FOLDER CHAPTER``. It says ``inside`` once the effect has reached the world, and
then waits for an answer that never comes.
"""

import sys
from pathlib import Path

from agentgate.demo.chapters import keyed, killed, transacted
from agentgate.demo.scene import at
from agentgate.demo.shop import Shop

CALLS = {"killed": killed.CALL, "keyed": keyed.CALL, "transacted": transacted.CALL}


def _never_answers() -> None:
    sys.stdout.write("inside\n")
    sys.stdout.flush()
    sys.stdin.read()  # ends when whoever started us is gone, so that nobody is left behind


def main(folder: str, chapter: str) -> None:
    """Call the tool as any worker would."""
    place, call = Path(folder), CALLS[chapter]
    scene = at(place, shop=Shop(folder=place, answers=_never_answers))
    with scene.at_work() as (gate, run):
        gate.call(run, call.tool, call.arguments, key=call.key)


if __name__ == "__main__":
    main(*sys.argv[1:])
