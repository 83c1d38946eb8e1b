"""Several calls of one message: one of them ends in doubt, one waits for it, and one is not concerned."""

from agentgate.demo.scene import TICKET, Scene, at
from agentgate.demo.shop import Shop
from agentgate.demo.story import Story
from agentgate.gate.calls import Call
from agentgate.gate.face import Gate
from agentgate.gate.opening import Run
from agentgate.outcome import Done, Outcome, Refused, Unknown

TITLE = "Together: three calls of one message, and a sibling that is blocked"
REFUNDS = (("a2", 700, f"{TICKET}/a2-first"), ("a2", 450, f"{TICKET}/a2-second"), ("a3", 500, f"{TICKET}/a3"))
FIRST = 700


def play(story: Story, scene: Scene) -> None:
    """Let the bank hang up on the first of three refunds, and look what the others do."""
    story.say(
        """The model answers with three calls at once. They are proposed in one commit, each decided on what those
        before it leave, and executed one by one. At the first the bank hangs up, and nobody knows what it did."""
    )
    hung_up = at(scene.folder, shop=Shop(folder=scene.folder, bank_listens=_hang_up))
    with hung_up.at_work() as stage:
        doubted, blocked, done = _work(story, *stage)
    story.expect("the outcome of the first is unknown", so=isinstance(doubted, Unknown))
    story.expect(
        "its sibling on the same account waits for it, by name",
        so=isinstance(blocked, Refused) and blocked.retryable and blocked.blocking == doubted.action,
    )
    story.expect("the refund to another account was done", so=isinstance(done, Done) and _moved(scene) == [0, 0, 1])
    story.say("Ada opens the bank's book: there is no movement of 7.00. It did not happen, and she says so.")
    with scene.at_work() as stage:
        story.person("ada", f"agentgate reconcile {doubted.action} --not-applied --by ops:ada --evidence @bank.txt")
        evidence = "\n".join(scene.shop.bank)
        freed = stage[0].reconcile(doubted.action, applied=False, by="ops:ada", evidence=evidence)
        story.expect("the action is ready again", so=freed.state == "READY")
        story.say("The loop comes back with the same three calls, under the same keys:")
        outcomes = _work(story, *stage)
    sources = [outcome.source for outcome in outcomes if isinstance(outcome, Done)]
    story.expect("two were done now, one was done before", so=sources == ["executed", "executed", "replayed"])
    story.expect("the bank moved each amount once", so=_moved(scene) == [1, 1, 1])


def _work(story: Story, gate: Gate, run: Run) -> list[Outcome]:
    """Propose all three, then execute each, as any loop does whose model calls several tools at once."""
    calls = [Call("refund", {"account": account, "cents": cents}, key=key) for account, cents, key in REFUNDS]
    for account, cents, key in REFUNDS:
        story.agent("refund", {"account": account, "cents": cents}, key)
    proposals = gate.propose_many(run, calls)
    outcomes = [gate.execute(proposal) for proposal in proposals]
    for outcome in outcomes:
        story.gate(outcome)
    return outcomes


def _hang_up(cents: int) -> None:
    if cents == FIRST:
        raise ConnectionError("the bank hung up")


def _moved(scene: Scene) -> list[int]:
    """Count the bank's movements of each amount."""
    return [len(scene.shop.movements(cents)) for _, cents, _ in REFUNDS]
