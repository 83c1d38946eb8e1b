"""A process is killed inside an effect that its downstream can be asked for again."""

import json
import signal

from agentgate.demo.agent import Call
from agentgate.demo.killing import is_inside, kill, once_the_lease_is_over, worker
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.outcome import Done
from agentgate.printable import printable

TITLE = "Keyed: where the other side knows the key, trying again is safe"
CALL = Call(tool="send_email", arguments={"to": "a1@example.com", "text": "It is all settled."}, key=f"{TICKET}/bye")


def play(story: Story, scene: Scene) -> None:
    """Kill a worker between the mail and the server's answer, and let the next one send it again."""
    story.say(
        """Not every crash needs a person. The mail server delivers nothing twice under one key, so the tool says
        recovery=Keyed(hours=24). A worker is killed as it sends: the mail is out, the server's answer is not back."""
    )
    with worker(scene, "keyed") as process, scene.at_work() as (gate, run):
        inside = is_inside(process)
        story.person("worker", "is inside the sending; the mail is out")
        ended = kill(process)
        story.person("system", f"the worker ended with signal {ended} (SIGKILL)")
        story.expect("it was killed inside its effect", so=inside and ended == signal.SIGKILL)
        story.say("The next loop proposes the same. It is sent again, with a new fence, and under the same key:")
        done = once_the_lease_is_over(story, gate, run, CALL)
    story.expect("it is done, and nobody was asked", so=isinstance(done, Done) and done.source == "executed")
    story.say("The mail server's own book:")
    asked = scene.shop.posted(str(CALL.arguments["text"]))
    story.show(printable(line) for line in asked)
    keys = [json.loads(line)["key"] for line in asked]
    story.expect("it was asked twice, under one key", so=keys == keys[:1] * 2)
    story.expect("one mail was delivered", so=sum("It is all settled." in mail for mail in scene.shop.outbox) == 1)
