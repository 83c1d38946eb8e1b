"""The chapters, in the order they are told; each plays on the scene that the ones before it left."""

from collections.abc import Callable

from agentgate.demo.chapters import (
    allowed,
    approved,
    corrected,
    denied,
    held,
    keyed,
    killed,
    paused,
    rechecked,
    reconciled,
    recorded,
    repeated,
    together,
    transacted,
)
from agentgate.demo.scene import Scene
from agentgate.demo.story import Story

CHAPTERS: tuple[tuple[str, Callable[[Story, Scene], None]], ...] = tuple(
    (chapter.TITLE, chapter.play)
    for chapter in (
        allowed,
        corrected,
        denied,
        held,
        approved,
        repeated,
        killed,
        reconciled,
        keyed,
        transacted,
        together,
        paused,
        recorded,
        rechecked,
    )
)
