"""A process is killed between an effect in the ledger's own database and its record."""

import signal

from agentgate.demo.agent import Call, work
from agentgate.demo.killing import is_inside, kill, worker
from agentgate.demo.scene import TICKET, Scene
from agentgate.demo.story import Story
from agentgate.gate.face import Gate
from agentgate.outcome import Done

TITLE = "Transacted: an effect in the ledger's own database happens once, with its record"
CALL = Call(tool="give_credit", arguments={"account": "a1", "cents": 500}, key=f"{TICKET}/credit")


def play(story: Story, scene: Scene) -> None:
    """Kill a worker between the row that it wrote and the record of it, and let the next one write it."""
    story.say(
        """Shop credit is a row in a table beside the ledger's, so the tool says recovery=Transactional() and writes
        it through the gate: claim, effect and record are one transaction. A worker is killed once it has written the
        row, before the record."""
    )
    with scene.at_work() as (gate, _), gate.transaction() as connection:
        connection.exec_driver_sql("CREATE TABLE credits (account TEXT NOT NULL, cents INTEGER NOT NULL)")
    with worker(scene, "transacted") as process:
        inside = is_inside(process)
        story.person("worker", "has written the row; its transaction is open")
        ended = kill(process)
        story.person("system", f"the worker ended with signal {ended} (SIGKILL)")
        story.expect("it was killed between the write and the record", so=inside and ended == signal.SIGKILL)
    with scene.at_work() as (gate, run):
        story.expect("the row went with its transaction: there is no credit", so=_credits(gate) == [])
        story.say("Nothing is in doubt, and nobody has to look. The next loop proposes the same:")
        done, again = work(story, gate, run, [CALL, CALL])
        story.expect("it is done", so=isinstance(done, Done) and done.source == "executed")
        story.expect(
            "once more, it is answered from the record", so=isinstance(again, Done) and again.source == "replayed"
        )
        story.expect("there is one credit of 5.00", so=_credits(gate) == [("a1", 500)])


def _credits(gate: Gate) -> list[tuple[str, int]]:
    """Read the shop's credits, in a transaction as any code of the shop has."""
    with gate.transaction() as connection:
        rows = connection.exec_driver_sql("SELECT account, cents FROM credits").fetchall()
    return [(str(account), int(cents)) for account, cents in rows]
