"""The law of batches: what a batch leaves and answers is what proposing its calls one after the other would."""

import shutil
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from gate.test_batches import by_cents

from agentgate import Call, Gate, KeyConflict, Limits, Proposal, Run
from agentgate.canonical import Json
from agentgate.testing import ScriptedPolicy
from support.worlds import World, gates, made, opened

SEEDS = range(40)
PENDING = 3


def answering() -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=by_cents)


def some_calls(random: Random) -> list[Call]:
    """Make calls of which many repeat, supersede, contradict or spoil each other."""
    calls: list[Call] = []
    for _ in range(random.randint(1, 7)):
        arguments: Json = {"account": "a1", "cents": random.choice([1, 1, 2, 7, 7, 8] + [9] * random.randint(0, 1))}
        if random.random() < 0.1:
            arguments = {"account": "a1", "cents": "much"}
        key = random.choice([None, None, "k1", "k2", "k3", "k4"])
        calls.append(Call("refund", arguments, key=key, supersede=random.random() < 0.6))
    return calls


def before(gate: Gate, random: Random) -> None:
    """Let some keys stand for something: waiting here or elsewhere, done, denied, cancelled."""
    for key in ("k1", "k2", "k3"):
        run = random.choice([batch_run(gate), opened(gate, "elsewhere")])
        proposal = gate.propose(run, "refund", {"account": "a1", "cents": random.choice([1, 2, 7, 8])}, key=key)
        match random.randint(0, 3):
            case 0:
                gate.execute(proposal)
            case 1 if proposal.state in {"READY", "HELD"}:
                gate.cancel(proposal, by="ada")


def batch_run(gate: Gate) -> Run:
    return opened(gate, limits=Limits(pending=PENDING))


def one_by_one(gate: Gate, calls: list[Call]) -> list[Proposal]:
    run = batch_run(gate)
    made = [gate.propose(run, call.tool, call.arguments, key=call.key, supersede=call.supersede) for call in calls]
    # As they stand in the end: a batch is answered once all of it is decided.
    return [gate._shop.proposal(one.tenant, one.action, repeated=one.repeated) for one in made]


def told(proposals: list[Proposal]) -> list[tuple[Any, ...]]:
    """Say what was answered, without the ids that are different each time."""
    order = {proposal.action: n for n, proposal in reversed(list(enumerate(proposals)))}
    return [
        (order[one.action], one.state, one.revision, one.repeated, getattr(one.outcome, "reason", None))
        for one in proposals
    ]


def left(world: World) -> list[tuple[Any, ...]]:
    """Say what is on record: every event with what it says, as far as that is the same each time."""
    names: dict[str, int] = {}
    found = []
    for event in world.events():
        body = event.body
        said = {name: body[name] for name in ("outcome", "reason", "revision", "intended_revision") if name in body}
        if "view" in body:
            view: Any = body["view"]
            said |= {"counters": view["counters"], "recent": view["recent"]}
        number = None if event.action is None else names.setdefault(event.action, len(names))
        found.append((event.n, event.type, number, said))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_is_what_its_calls_would_be_one_after_the_other(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    folders = [tmp_path / name for name in ("batch", "single")]
    for folder in folders:
        folder.mkdir()
    batch, single = made(folders[0]), World(folder=folders[1])
    with batch.gate(policy=answering()) as gate:
        before(gate, random)
    for path in batch.folder.iterdir():  # the same fingerprint key, so that views can be compared
        shutil.copy(path, single.folder)
    calls = some_calls(random)
    was = left(batch)
    with batch.gate(policy=answering()) as gate, single.gate(policy=answering()) as other:
        try:
            expected = one_by_one(other, calls)
        except KeyConflict as conflict:
            with pytest.raises(KeyConflict) as raised:
                gate.propose_many(batch_run(gate), calls)
            assert raised.value.key == conflict.key
            assert left(batch) == was
        else:
            assert told(gate.propose_many(batch_run(gate), calls)) == told(expected)
            for one, other_one in zip(left(batch), left(single), strict=True):
                assert one == other_one
    assert not batch.damage()
    assert not single.damage()


def test_batches_of_many_threads_on_one_run_are_all_recorded_and_none_is_sent_away(world: World) -> None:
    found: list[list[Proposal]] = []
    with gates(world, policy=answering()) as pair:
        run = opened(pair[0])

        def work(n: int) -> None:
            calls = [Call("refund", {"account": "a1", "cents": 1}, key=f"{n}/{place}") for place in range(4)]
            # One key that all of them have: one action, whoever is first.
            calls.append(Call("refund", {"account": "a1", "cents": 2}, key="shared"))
            found.append(pair[n % 2].propose_many(run, calls))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 16
    assert len({proposals[-1].action for proposals in found}) == 1
    assert sum(not proposals[-1].repeated for proposals in found) == 1
    assert world.value("SELECT proposed FROM agentgate_runs WHERE name = 'ticket-1'") == 16 * 4 + 1
    assert not world.damage()
