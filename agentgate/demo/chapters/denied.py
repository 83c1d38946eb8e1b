"""A call that the policy denies."""

from agentgate.demo.agent import Call, work
from agentgate.demo.scene import Scene
from agentgate.demo.story import Story
from agentgate.outcome import Refused

TITLE = "Denied: a refusal is an answer, and it is on record"


def play(story: Story, scene: Scene) -> None:
    """Try to delete an account, and misspell a tool."""
    story.say(
        """The customer is angry; the model has the idea of deleting the account, and then asks for a tool that
        does not exist. Neither runs. The loop is told why, in words it can act on, and goes on."""
    )
    with scene.at_work() as (gate, run):
        calls = [
            Call(tool="delete_account", arguments={"account": "a1"}),
            Call(tool="refunds", arguments={"account": "a1", "cents": 100}),
            Call(tool="send_email", arguments={"to": "a1@example.com", "text": "We gave 54.50 back. Sorry!"}),
        ]
        deleted, misspelt, mailed = work(story, gate, run, calls)
    story.expect("the policy denied it", so=isinstance(deleted, Refused) and deleted.reason == "policy_denied")
    story.expect("nothing was deleted", so=not (scene.folder / "deleted.txt").exists())
    story.expect("an unknown tool is no tool", so=isinstance(misspelt, Refused) and misspelt.reason == "unknown_tool")
    story.expect("the loop went on and sent its mail", so=len(scene.shop.outbox) == 1 and mailed.reason == "succeeded")
