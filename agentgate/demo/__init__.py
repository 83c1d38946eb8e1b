"""`agentgate demo`: one support ticket, told from the first call to the recheck, on a real ledger.

A hand-written loop with a scripted model, tools that change files, one process killed for real. The story asserts
itself: whatever does not come out as told is said, and ends the command with 1. One module per chapter.
"""

from pathlib import Path
from typing import TextIO

from agentgate.clock import SystemClock
from agentgate.demo.chapters import CHAPTERS
from agentgate.demo.scene import prepare
from agentgate.demo.story import Story


def tell(folder: Path | None, *, write: TextIO | None, colour: bool = False) -> Story:
    """Play every chapter.

    Args:
        folder: where the files go, new or empty; None for a fresh temporary one, which is left behind.
        write: where the story is told as it happens; None to keep it.
        colour: whether ``write`` shows bold and colours.

    Returns:
        The story, with everything it expected and what came of it.
    """
    clock = SystemClock()
    began_us = clock.monotonic_us()
    scene = prepare(folder)
    story = Story(folder=scene.folder, url=scene.url, write=write, colour=colour)
    story.open()
    for title, play in CHAPTERS:
        story.chapter(title)
        play(story, scene)
    story.close(seconds=(clock.monotonic_us() - began_us) / 1e6)
    return story
