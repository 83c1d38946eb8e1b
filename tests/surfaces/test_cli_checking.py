"""verify and recheck: what they find is told, and ends the command with 1."""

from pathlib import Path

import pytest

from agentgate.core.verification import KINDS
from support.commands import ran, unseen
from support.rechecks import tell
from support.worlds import World, made, opened

ALLOW = "version: 1\nrules: [{name: all, match: {}, outcome: allow}]\n"
DENY = 'version: 1\nrules: [{name: "none", match: {}, outcome: deny}]\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = made(tmp_path)
    with world.gate() as gate:
        gate.call(opened(gate), "refund", {"account": "a1", "cents": 1_250}, key="k-1")
    return world


def _policy(world: World, text: str) -> str:
    path = world.folder / "policy.yaml"
    path.write_text(text, "utf-8")
    return str(path)


def test_a_record_that_holds_is_verified(world: World) -> None:
    told, document = ran("verify", world.url), ran("verify", world.url, "--json").document
    assert (told.code, told.err) == (0, "")
    assert told.out == f"verified: 2 runs, {document['events']} events, 2 payloads, {document['documents']} documents\n"
    assert (document["ok"], document["breaks"]) == (True, [])


def test_every_break_is_told_with_its_place_and_ends_with_1(world: World) -> None:
    world.sql("UPDATE agentgate_payloads SET content = ? WHERE kind = 'arguments'", b"\x1b[2J")
    world.sql("UPDATE agentgate_actions SET state = 'REFUSED', principal = ?", "\x1b[2J\u202e")
    told, verified = ran("verify", world.url), ran("verify", world.url, "--json")
    assert (told.code, verified.code) == (1, 1)
    kinds = [one["kind"] for one in verified.document["breaks"]]
    assert {"payload", "action_row"} <= set(kinds)
    assert told.out.count("BROKEN") == len(kinds)
    assert all(KINDS[kind] in told.out for kind in kinds)
    assert "NOT VERIFIED" in told.out
    assert not unseen(told.out + verified.out)


def test_a_recheck_that_finds_the_same_ends_with_0(world: World) -> None:
    done = ran("recheck", _policy(world, ALLOW), world.url, "--json")
    assert (done.code, done.document["verdict"], done.document["rechecked"]) == (0, "same", 1)


def test_a_recheck_that_finds_a_difference_tells_the_headline_and_ends_with_1(world: World) -> None:
    told = ran("recheck", _policy(world, DENY), world.url)
    assert told.code == 1
    assert "executed, would now be denied" in told.out
    document = ran("recheck", _policy(world, DENY), world.url, "--json").document
    assert (document["verdict"], document["executed_now_denied"]) == ("different", 1)


def test_a_recheck_of_nothing_is_not_the_same(world: World) -> None:
    done = ran("recheck", _policy(world, ALLOW), world.url, "--tenant", "nobody", "--json")
    assert (done.code, done.document["verdict"]) == (1, "nothing")


def test_a_recheck_may_be_of_one_run(world: World) -> None:
    with world.gate() as gate:
        gate.call(opened(gate, "ticket-2"), "refund", {"account": "a1", "cents": 1}, key="k-2")
    policy = _policy(world, ALLOW)
    assert ran("recheck", policy, world.url, "--json").document["rechecked"] == 2
    assert ran("recheck", policy, world.url, "--run", "ticket-2", "--json").document["rechecked"] == 1
    assert ran("recheck", policy, world.url, "--run", "ticket-3", "--json").document["error"]["code"] == "not_found"


def test_a_recheck_of_every_kind_of_decision_is_fit_for_a_terminal(tmp_path: Path) -> None:
    story = tell(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text(DENY, "utf-8")
    assert not unseen(ran("recheck", str(policy), story.url).out)
    assert ran("recheck", str(policy), story.url, "--json").out.isascii()
