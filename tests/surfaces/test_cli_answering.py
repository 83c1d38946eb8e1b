"""answer: what operators say of an unknown outcome from the command line, bound to what they were shown."""

from pathlib import Path

import pytest

from agentgate import Done
from agentgate.testing import ScriptedPolicy
from support.commands import ran
from support.operators import asked, call, grants, lost
from support.terminals import answered
from support.worlds import World, made

ADA = ("--tenant", "acme", "--by", "ops:ada")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def doubted(world: World) -> tuple[str, str]:
    """Lose an answer; return the question's id and the action's."""
    with world.gate(lost(world), policy=ScriptedPolicy()) as gate:
        outcome = call(gate)
    return asked(outcome).id, outcome.action


def test_an_operator_says_that_it_happened_and_the_loop_is_told(world: World) -> None:
    question, action = doubted(world)
    (listed,) = ran("approvals", world.url, "--kind", "question", "--json").documents
    assert (listed["id"], listed["action"], listed["kind"]) == (question, action, "question")
    options = ("--applied", "--evidence", "bank line 17", "--result", '{"cents": 1250}', "--yes")
    done = ran("answer", question, world.url, *ADA, *options)
    assert (done.code, done.err) == (0, "")
    assert listed["shown"] in done.out
    assert done.out.endswith("answered 'applied' by ops:ada; it is used now\n")
    assert world.state(action) == "SUCCEEDED"
    with world.gate(lost(world), policy=ScriptedPolicy()) as gate:
        told = call(gate)
    assert isinstance(told, Done)
    assert told.observation.value == {"cents": 1250}
    assert world.downstream.total == 1
    assert not world.damage()


def test_an_operator_lets_it_run_once_more(world: World) -> None:
    question, action = doubted(world)
    answers = {b"Type yes to answer 'again' to: ": b"yes\n"}
    code, shown = answered("answer", question, world.url, *ADA, "--again", answers=answers)
    assert (code, b"it is granted now, until " in shown) == (0, True), shown
    with world.gate(lost(world, times=0), policy=ScriptedPolicy()) as gate:
        assert isinstance(call(gate), Done)
    assert grants(world, action) == [("question", "used")]
    assert world.downstream.total == 2


def test_an_operator_says_that_it_did_not_happen(world: World) -> None:
    question, action = doubted(world)
    done = ran("answer", question, world.url, *ADA, "--not-applied", "--worker-known-dead", "--yes", "--json")
    assert (done.code, done.document["state"], world.state(action)) == (0, "used", "READY")


def test_each_kind_of_question_takes_its_own_answers(world: World) -> None:
    question, action = doubted(world)
    wrong = ran("approve", question, world.url, *ADA, "--yes", "--json")
    assert (wrong.code, wrong.document["error"]["reason"]) == (1, "wrong_verdict")
    assert world.state(action) == "UNKNOWN"
    assert ran("reject", question, world.url, *ADA, "--yes").code == 0
    assert world.state(action) == "UNKNOWN"
