"""A call that the policy allows."""

from agentgate.demo.agent import Call, work
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.outcome import Done

TITLE = "Allowed: the gate runs it, and nobody else does"
REFUND = Call(tool="refund", arguments={"account": "a1", "cents": 1_250}, key=f"{TICKET}/shipping")


def play(story: Story, scene: Scene) -> None:
    """Look an order up and refund its shipping."""
    story.say(
        """A customer writes: the kettle came late. The agent looks the order up and gives the shipping back. It
        proposes; policy.yaml allows reads and refunds up to 50.00; the gate records that it starts, runs the tool,
        and records what came of it."""
    )
    with scene.at_work() as (gate, run):
        lookup = Call(tool="lookup_order", arguments={"order": "o-77"})
        outcomes = work(story, gate, run, [lookup, REFUND])
    story.expect("both were done", so=all(isinstance(outcome, Done) for outcome in outcomes))
    story.expect("the bank moved 12.50 once", so=len(scene.shop.movements(1_250)) == 1)
