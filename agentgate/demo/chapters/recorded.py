"""The log of all this is shown and verified, and then forged."""

import shutil
from collections.abc import Iterator

import agentgate
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.gate import reading
from agentgate.gate.views import EventView
from agentgate.printable import clipped, printable

TITLE = "Recorded: every step is a link of a chain, and a forged one is found"
_LONGEST = 110


def play(story: Story, scene: Scene) -> None:
    """List the run's events, verify the ledger, and verify a copy that somebody edited."""
    story.say("This is what was recorded of the ticket, each line hashed over the one before it:")
    with reading.opened(scene.url) as ledger:
        run = reading.find_run(ledger, TICKET, tenant="default")
        story.show(_lines(reading.list_events(ledger, run.id)))
    whole = agentgate.verify(scene.url)
    story.person("verify", f"{whole.events} events, {whole.payloads} payloads: {'ok' if whole.ok else 'BROKEN'}")
    story.expect("the record verifies", so=whole.ok)
    story.say(
        """Somebody with an editor makes a copy in which the first refund was 92.50 instead of 12.50, and leaves
        every hash as it was:"""
    )
    copy = scene.folder / "forged.db"
    forged = _forge(scene, copy.name)
    broken = agentgate.verify(f"sqlite:///{copy}")
    story.show(printable(f"{one.kind} of event {one.n}: {one.detail}") for one in broken.breaks)
    story.expect("the forged copy does not verify", so=forged and not broken.ok)


def _lines(events: Iterator[EventView]) -> Iterator[str]:
    for event in events:
        told = " ".join(f"{name}={printable(value)}" for name, value in event.facts())
        yield f"{event.n:>3} {event.type:<12} {clipped(told, _LONGEST)}"


def _forge(scene: Scene, name: str) -> bool:
    """Copy the ledger's file and edit a payload in it, byte by byte; no gate has it open."""
    copy = scene.folder / name
    shutil.copy(scene.folder / "agent.db", copy)
    before = copy.read_bytes()
    after = before.replace(b'"cents":1250', b'"cents":9250')
    copy.write_bytes(after)
    return after != before
