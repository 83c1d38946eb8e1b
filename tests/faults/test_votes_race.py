"""However many people, scripts and workers come at once: one grant, one effect, every vote once."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agentgate import Done, Gate, Held, Refused, Requirement, Running, VoteRefused, require_approval
from agentgate.testing import ScriptedPolicy
from support import forking
from support.racing import at_once
from support.worlds import World, gates, grant, made, opened

THREADS = 50
PROCESSES = 8
ONE = {"account": "a1", "cents": 1}


def asking(quorum: int = 1) -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement(quorum=quorum)))


def held(gate: Gate) -> Held:
    outcome = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Held)
    return outcome


def approve(gate: Gate, asked: Held, by: str) -> str:
    """Approve; say what the question is then, or why it takes no vote."""
    approval = asked.approval
    try:
        return gate.approvals.approve(approval.id, digest=approval.digest, by=by, tenant="acme").state
    except VoteRefused as error:
        return error.reason


def in_processes(world: World, quorum: int, work: Callable[[Gate, int], object]) -> None:
    """Do it in eight processes at once, each with a gate of its own."""

    def child(n: int) -> None:
        with world.gate(policy=asking(quorum)) as gate:
            work(gate, n)

    children = [forking.start(partial(child, n)) for n in range(PROCESSES)]
    assert [forking.end(pid) for pid in children] == [0] * PROCESSES


def check(world: World, asked: Held, *, votes: int, effects: int) -> None:
    words = Counter(world.words(asked.action))
    assert (words["voted"], words["approved"]) == (votes, 1)
    assert world.value("SELECT count(*) FROM agentgate_votes") == votes
    assert world.downstream.total == effects
    assert not world.damage()


@pytest.mark.parametrize(("people", "quorum"), [(THREADS, 1), (THREADS, 3), (1, 1)])
def test_fifty_approvals_at_once_are_one_grant(tmp_path: Path, people: int, quorum: int) -> None:
    world = made(tmp_path)
    said: list[str] = []
    with gates(world, policy=asking(quorum), count=5) as many:
        asked = held(many[0])
        at_once(THREADS, lambda n: said.append(approve(many[n % 5], asked, f"person:{n % people}")))
        assert many[0].approvals.show(asked.approval.id, tenant="acme").state == "granted"
    assert len(said) == THREADS
    assert set(said) <= {"pending", "granted"}  # the word of a state, or of a vote that came behind it
    check(world, asked, votes=quorum, effects=0)


def test_eight_processes_that_approve_at_once_make_one_grant(tmp_path: Path) -> None:
    world = made(tmp_path)
    with world.gate(policy=asking(3)) as gate:
        asked = held(gate)
    in_processes(world, 3, lambda gate, n: approve(gate, asked, f"person:{n}"))
    check(world, asked, votes=3, effects=0)


def test_eight_processes_that_race_for_one_grant_make_one_effect(tmp_path: Path) -> None:
    world = made(tmp_path)
    with world.gate(policy=asking()) as gate:
        asked = held(gate)
        grant(gate, asked)

    def work(gate: Gate, _n: int) -> None:
        outcome = gate.execute(asked.action, tenant="acme")
        assert isinstance(outcome, Done | Running), outcome

    in_processes(world, 1, work)
    check(world, asked, votes=1, effects=1)
    assert world.words(asked.action).count("started") == 1
    assert world.value("SELECT state FROM agentgate_approvals") == "used"


def test_eight_processes_that_each_approve_and_execute_make_one_grant_and_one_effect(tmp_path: Path) -> None:
    world = made(tmp_path)
    with world.gate(policy=asking(2)) as gate:
        asked = held(gate)

    def work(gate: Gate, n: int) -> None:
        assert approve(gate, asked, f"person:{n}") in {"pending", "granted", "used"}
        gate.execute(asked.action, tenant="acme")

    in_processes(world, 2, work)
    with world.gate(policy=asking(2)) as gate:
        assert isinstance(gate.execute(asked.action, tenant="acme"), Done)
    check(world, asked, votes=2, effects=1)


def test_a_revocation_that_races_claims_stops_the_effect_or_says_that_it_cannot(tmp_path: Path) -> None:
    for n in range(6):
        folder = tmp_path / str(n)
        folder.mkdir()
        world = made(folder)
        with world.gate(policy=asking()) as gate:
            asked = held(gate)
            grant(gate, asked)

        def work(gate: Gate, n: int, asked: Held = asked, world: World = world) -> None:
            if n:
                assert isinstance(gate.execute(asked.action, tenant="acme"), Done | Running | Refused)
                return
            approval = asked.approval
            try:
                gate.approvals.revoke(approval.id, digest=approval.digest, by="person:eve", tenant="acme")
            except VoteRefused as error:
                assert error.reason == "used"
                assert "started" in world.words(asked.action)
            else:
                assert "started" not in world.words(asked.action)

        in_processes(world, 1, work)
        check(world, asked, votes=1, effects=world.words(asked.action).count("started"))
