"""A process is killed inside an effect, and another one takes the action up."""

import signal

from agentgate.demo.agent import Call, work
from agentgate.demo.killing import is_inside, kill, once_the_lease_is_over, worker
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.gate.face import Gate
from agentgate.gate.opening import Run
from agentgate.outcome import Refused, Running, Unknown

TITLE = "Killed: whether it happened is unknown, so it is not run again"
CALL = Call(tool="refund", arguments={"account": "a1", "cents": 2_600}, key=f"{TICKET}/voucher")
NEXT = Call(tool="refund", arguments={"account": "a1", "cents": 300}, key=f"{TICKET}/stamp")


def play(story: Story, scene: Scene) -> None:
    """Start a worker, kill it between the money and the answer, and look what is left."""
    story.say(
        """A worker in a process of its own refunds a voucher of 26.00. The money moves; before the bank's answer
        is back, the process is killed, with the SIGKILL that no program can catch."""
    )
    with worker(scene, "killed") as process, scene.at_work() as stage:
        inside = is_inside(process)
        story.person("worker", "is inside the refund; the money has moved")
        story.expect("the worker was inside its effect", so=inside)
        running = work(story, *stage, [CALL])[0]
        story.expect("while it lives nobody else runs it", so=isinstance(running, Running))
        ended = kill(process)
        story.person("system", f"the worker ended with signal {ended} (SIGKILL)")
        story.expect("it was killed", so=ended == signal.SIGKILL)
        story.say("The next loop proposes the same under the same key, and takes over from the dead:")
        _take_over(story, scene, *stage)


def _take_over(story: Story, scene: Scene, gate: Gate, run: Run) -> None:
    taken = once_the_lease_is_over(story, gate, run, CALL)
    story.expect(
        "the outcome is unknown, and is called so", so=isinstance(taken, Unknown) and taken.reason == "crashed"
    )
    story.expect("the bank moved 26.00 once: nothing was run again", so=len(scene.shop.movements(2_600)) == 1)
    story.say("Until somebody knows, other refunds to that account wait: they may rest on this one.")
    blocked = work(story, gate, run, [NEXT])[0]
    story.expect("the next refund waits for it", so=isinstance(blocked, Refused) and blocked.blocking == taken.action)
    story.expect("the bank moved no 3.00", so=not scene.shop.movements(300))
