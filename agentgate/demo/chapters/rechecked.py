"""The recorded decisions are asked again of a stricter policy."""

import agentgate
from agentgate.core.tables import tabulate
from agentgate.demo.scene import POLICIES, Scene
from agentgate.demo.story import Story

EXECUTED_NOW_DENIED = 3  # 42.00, 649.50 and 26.00
ASKED_OF_FINANCE = 3  # two questions, and the claim of what was granted
TITLE = "Rechecked: what would a stricter policy have said?"


def play(story: Story, scene: Scene) -> None:
    """Recheck under the same policy, and under the stricter one."""
    story.say(
        """The record holds all that the policy was asked. The same policy must answer the same. A stricter one,
        stricter.yaml, ends refunds at 20.00; what would it have stopped?"""
    )
    same = agentgate.recheck(scene.url, scene.folder / POLICIES[0])
    story.person("recheck", f"policy.yaml: {same.rechecked} decisions asked again, {same.same} the same")
    story.expect("the same policy answers the same", so=same.verdict == "same")
    stricter = agentgate.recheck(scene.url, scene.folder / POLICIES[1])
    story.person("recheck", "stricter.yaml:")
    story.show(tabulate(stricter).splitlines())
    executed, found = stricter.executed_now_denied, (stricter.tightened, stricter.loosened, stricter.cannot_evaluate)
    story.expect("three refunds were executed that would now be denied", so=executed == EXECUTED_NOW_DENIED)
    story.expect(
        "they and what finance was asked are all that is different",
        so=found == (EXECUTED_NOW_DENIED + ASKED_OF_FINANCE, 0, 0),
    )
