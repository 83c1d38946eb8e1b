"""An operator stops a tool for everybody, and lets it go again."""

from agentgate.demo.agent import Call, work
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.outcome import Done, Refused

TITLE = "Paused: one switch stops every later effect, and nothing is lost"
REFUND = Call(tool="refund", arguments={"account": "a1", "cents": 200}, key=f"{TICKET}/tape")
LOOKUP = Call(tool="lookup_order", arguments={"order": "o-77"})


def play(story: Story, scene: Scene) -> None:
    """Pause refunds, try one, resume, and try it again."""
    story.say(
        """The bank announces a bad hour. Ada pauses refunds, for every tenant and in every process. Each claim
        reads the switch in its own transaction: once the pause is recorded, no refund begins any more."""
    )
    with scene.at_work() as (gate, run):
        paused = gate.pause(by="ops:ada", reason="the bank has a bad hour", tool="refund")
        story.person("ada", f"pauses {paused.scope}; what executes is reported: {len(paused.executing)}")
        waiting, looked = work(story, gate, run, [REFUND, LOOKUP])
        story.expect(
            "the refund waits", so=isinstance(waiting, Refused) and waiting.retryable and waiting.reason == "paused"
        )
        story.expect("other tools go on", so=isinstance(looked, Done))
        story.expect("the bank moved no 2.00", so=not scene.shop.movements(200))
        resumed = gate.resume(by="ops:ada", reason="the bank is back", tool="refund")
        story.person("ada", f"resumes {resumed.scope}")
        done = work(story, gate, run, [REFUND])[0]
    story.expect("the same call is done now", so=isinstance(done, Done) and done.action == waiting.action)
    story.expect("the bank moved 2.00 once", so=len(scene.shop.movements(200)) == 1)
