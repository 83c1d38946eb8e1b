"""cancel and reconcile: a person's commands, in their name, and what refuses them."""

from pathlib import Path

import pytest

import agentgate
from agentgate import Gate, Outcome
from agentgate.testing import ScriptedPolicy
from support.commands import ran, unseen
from support.worlds import World, made, named, opened

TENANT = ("--tenant", "acme")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def vanish() -> None:
    raise RuntimeError("the connection broke")


def _gate(world: World) -> Gate:
    return world.gate(named("vanish", vanish), policy=ScriptedPolicy())


def _unknown(world: World) -> Outcome:
    with _gate(world) as gate:
        return gate.call(opened(gate), "vanish", {}, key="k-1")


def _waiting(world: World) -> str:
    with _gate(world) as gate:
        return gate.propose(opened(gate), "vanish", {}, key="k-1").action


def test_cancel_ends_an_action_that_waits_and_says_who_did_it(world: World) -> None:
    action = _waiting(world)
    done = ran("cancel", action, world.url, *TENANT, "--by", "ops:ada", "--note", "no longer wanted")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"action {action}: cancelled by ops:ada; it is REFUSED now\n"
    assert world.state(action) == "REFUSED"
    (step,) = ran("show", action, world.url, *TENANT, "--json").document["steps"][1:]
    assert step["type"] == "cancelled"
    assert step["texts"] == {"note": "no longer wanted"}


def test_cancel_as_json_says_where_the_action_stands(world: World) -> None:
    action = _waiting(world)
    document = ran("cancel", action, world.url, *TENANT, "--by", "ops:ada", "--json").document
    assert document["action"] == action
    assert (document["state"], document["reason"]) == ("REFUSED", "cancelled")
    assert (document["tenant"], document["key"], document["revision"]) == ("acme", "k-1", 1)


def test_a_command_that_the_ledger_refuses_ends_with_1_and_changes_nothing(world: World) -> None:
    action = _unknown(world).action
    before = world.words(action)
    refused = ran("cancel", action, world.url, *TENANT, "--by", "ops:ada", "--json")
    assert refused.code == 1
    assert refused.document["error"]["code"] == "not_possible"
    assert refused.err.count("\n") == 1
    assert world.words(action) == before


def test_reconcile_says_that_it_happened_with_evidence_and_result(world: World) -> None:
    action = _unknown(world).action
    options = ("--applied", "--by", "ops:ada", "--evidence", "bank line 17", "--result", '{"ok": true}')
    done = ran("reconcile", action, world.url, *TENANT, *options, "--worker-known-dead")
    assert done.out == f"action {action}: reconciled as applied by ops:ada; it is SUCCEEDED now\n"
    shown = ran("show", action, world.url, *TENANT, "--json").document
    assert shown["observation"]["value"] == {"ok": True}
    step = shown["steps"][-1]
    assert (step["type"], step["evidence"]) == ("reconciled", "bank line 17")
    assert world.events(action)[-1].body["worker_known_dead"] is True


def test_reconcile_says_that_it_did_not_happen_and_the_action_may_run_again(world: World) -> None:
    action = _unknown(world).action
    done = ran(
        "reconcile", action, world.url, *TENANT, "--not-applied", "--by", "ops:ada", "--evidence", "none", "--json"
    )
    assert (done.code, done.document["state"]) == (0, "READY")
    assert ran("reconcile", action, world.url, *TENANT, "--applied", "--by", "x", "--evidence", "x").code == 1


def test_reconcile_of_an_attempt_that_is_not_the_newest_is_refused(world: World) -> None:
    action = _unknown(world).action
    options = ("--not-applied", "--by", "ops:ada", "--evidence", "none", "--attempt")
    refused = ran("reconcile", action, world.url, *TENANT, *options, "2")
    assert refused.code == 1
    assert "look again" in refused.err
    assert world.state(action) == "UNKNOWN"
    assert ran("reconcile", action, world.url, *TENANT, *options, "1").code == 0
    assert world.state(action) == "READY"


def test_evidence_is_taken_from_a_file(world: World, tmp_path: Path) -> None:
    action = _unknown(world).action
    book = tmp_path / "book.txt"
    book.write_text("17: 12.50 to a1 \x1b[2J\n", "utf-8")
    options = ("--applied", "--by", "ops:ada", "--evidence", f"@{book}")
    assert ran("reconcile", action, world.url, *TENANT, *options).code == 0
    assert ran("show", action, world.url, *TENANT, "--json").document["steps"][-1]["evidence"] == book.read_text(
        "utf-8"
    )
    assert not unseen(ran("show", action, world.url, *TENANT).out)


def test_a_command_finds_no_action_of_another_tenant(world: World) -> None:
    action = _waiting(world)
    missing = ran("cancel", action, world.url, "--by", "ops:ada", "--json")
    assert (missing.code, missing.document["error"]["code"]) == (2, "not_found")
    assert world.state(action) == "READY"


def test_the_loop_is_told_what_a_person_found_out(world: World) -> None:
    action = _unknown(world).action
    ran("reconcile", action, world.url, *TENANT, "--applied", "--by", "a", "--evidence", "e", "--result", "17")
    with _gate(world) as gate:
        told = gate.call(opened(gate), "vanish", {}, key="k-1")
    assert isinstance(told, agentgate.Done)
    assert (told.source, told.observation.value) == ("reconciled", 17)
