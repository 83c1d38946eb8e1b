"""The same call again, and another call under the same key."""

from agentgate.demo.agent import Call, work
from agentgate.demo.chapters.allowed import REFUND
from agentgate.demo.scene import Scene
from agentgate.demo.story import Story
from agentgate.errors import KeyConflict
from agentgate.outcome import Done

TITLE = "Repeated: the same key is the same action, in any process, for ever"


def play(story: Story, scene: Scene) -> None:
    """Replay the first refund, then misuse its key."""
    story.say(
        """The framework restarts the loop from its first step, as frameworks do. The refund's key is known: the
        outcome comes from the record, and the tool is not run."""
    )
    with scene.at_work() as (gate, run):
        replayed = work(story, gate, run, [REFUND])[0]
        story.expect("the outcome was replayed", so=isinstance(replayed, Done) and replayed.source == "replayed")
        story.expect("the bank still moved 12.50 once", so=len(scene.shop.movements(1_250)) == 1)
        story.say("Another amount under that key is no repeat but a mistake, and is told so:")
        other = Call(tool="refund", arguments={"account": "a1", "cents": 1_300}, key=REFUND.key)
        try:
            work(story, gate, run, [other])
        except KeyConflict as conflict:
            story.person("gate", f"KeyConflict: {conflict}")
            story.expect("it was refused as a conflict", so=True)
        else:
            story.expect("it was refused as a conflict", so=False)
    story.expect("the bank moved no 13.00", so=not scene.shop.movements(1_300))
