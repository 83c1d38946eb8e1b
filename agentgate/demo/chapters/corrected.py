"""A call that is invalid, and the same call corrected."""

from agentgate.demo.agent import Call, work
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.outcome import Done, Refused

TITLE = "Invalid: told what to correct, the model corrects it"
REFUND = Call(
    tool="refund",
    arguments={"account": "a1", "cents": "42.00"},
    key=f"{TICKET}/dent",
    second_thought={"account": "a1", "cents": 4_200},
)


def play(story: Story, scene: Scene) -> None:
    """Send an amount as text, then as the number that the schema wants."""
    story.say(
        """The kettle has a dent; 42.00 come off. The model writes the amount as text. The tool's schema says no
        before any policy is asked: the answer names the place and what is expected there, never the value. An
        invalid call binds no key, so the corrected one takes the same."""
    )
    with scene.at_work() as (gate, run):
        first, second = work(story, gate, run, [REFUND])
    details = first.error.details if isinstance(first, Refused) else None
    story.expect(
        "it was told that /cents must be an integer",
        so=details == [{"path": "/cents", "keyword": "type", "expected": "integer"}],
    )
    story.expect("the corrected call was done", so=isinstance(second, Done))
    story.expect("the bank moved 42.00 once", so=len(scene.shop.movements(4_200)) == 1)
