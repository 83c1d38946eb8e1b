"""A person finds out what happened, and says so on record."""

from typing import Any

from agentgate.demo.agent import work
from agentgate.demo.chapters.killed import CALL, NEXT
from agentgate.demo.scene import Scene
from agentgate.demo.story import Story
from agentgate.outcome import Done, Unknown
from agentgate.printable import printable

TITLE = "Reconciled: somebody looks, and says what happened"


def play(story: Story, scene: Scene) -> None:
    """Read the bank's own book, reconcile, and let what was waiting go on."""
    story.say("Ada opens the bank's book and finds the movement, under the key that the gate handed to the bank:")
    story.show(printable(line) for line in scene.shop.movements(2_600))
    with scene.at_work() as (gate, run):
        proposal = gate.propose(run, CALL.tool, CALL.arguments, key=CALL.key)
        question = proposal.outcome.question if isinstance(proposal.outcome, Unknown) else None
        story.expect("the gate asks its operators: once more, did it happen, did it not?", so=question is not None)
        if question is not None:
            story.person("ada", f"agentgate answer {question.id} --applied --by ops:ada --evidence @bank.txt")
            said: dict[str, Any] = {"by": "ops:ada", "evidence": "\n".join(scene.shop.bank)}
            gate.approvals.answer(question.id, digest=question.digest, verdict="applied", **said)
        settled = gate.wait(proposal, timeout=0)
        story.expect("the action has succeeded", so=settled.state == "SUCCEEDED")
        story.say("Both calls are proposed again. One is known now, the other may go on:")
        known, freed = work(story, gate, run, [CALL, NEXT])
    story.expect("the first is answered from the record", so=isinstance(known, Done) and known.source != "executed")
    story.expect("the second was done", so=isinstance(freed, Done) and freed.source == "executed")
    story.expect("the bank moved 26.00 once and 3.00 once", so=_once(scene, 2_600) and _once(scene, 300))


def _once(scene: Scene, cents: int) -> bool:
    return len(scene.shop.movements(cents)) == 1
