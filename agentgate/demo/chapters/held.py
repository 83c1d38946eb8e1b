"""A call that people must approve: the question is stored, and found again."""

from agentgate.demo.agent import Call, work
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.outcome import Held, Outcome

TITLE = "Held: a question to people outlives the process that asked"
REFUND = Call(tool="refund", arguments={"account": "a1", "cents": 129_900}, key=f"{TICKET}/everything")


def play(story: Story, scene: Scene) -> None:
    """Ask for the whole price back, come back in a new process, and have a person withdraw it."""
    story.say(
        """The model wants to give the whole price back. Over 50.00 the policy wants two people from finance, so
        nothing runs: a question is stored, with this text made from exactly the bytes that would run."""
    )
    with scene.at_work() as (gate, run):
        asked = work(story, gate, run, [REFUND])[0]
        story.show(asked.approval.shown.split("\n") if isinstance(asked, Held) else ())
    story.say("The loop ends. Another one comes up later and proposes the same, under the same key:")
    with scene.at_work() as (gate, run):
        again = work(story, gate, run, [REFUND])[0]
        story.expect("it is held", so=isinstance(asked, Held))
        story.expect("the second loop found the same question", so=_approval(asked) == _approval(again))
        story.say("The customer changes their mind before anybody from finance looks, so ada cancels it.")
        story.person("ada", f"agentgate cancel {asked.action} --by ops:ada --note 'the customer keeps it'")
        cancelled = gate.cancel(asked.action, by="ops:ada", note="the customer keeps it")
    story.expect(
        "it is refused, as cancelled", so=cancelled.outcome is not None and cancelled.outcome.reason == "cancelled"
    )
    story.expect("the bank moved nothing for it", so=not scene.shop.movements(129_900))


def _approval(outcome: Outcome) -> str | None:
    return outcome.approval.id if isinstance(outcome, Held) else None
