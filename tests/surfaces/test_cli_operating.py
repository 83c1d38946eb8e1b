"""pause, resume, sweep, waiting, abandon, close: what operators type, what they read, and how it ends."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest

import agentgate
from agentgate import Done, Gate, Refused
from agentgate.testing import ScriptedPolicy
from support import forking
from support.commands import ran, unseen
from support.terminals import on_a_terminal
from support.worlds import World, made, named, opened

TENANT = ("--tenant", "acme")
ADA = ("--by", "ops:ada")
ONE = {"account": "a1", "cents": 5}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def _decide(request: agentgate.PolicyRequest) -> agentgate.Decision:
    cents = request.arguments.get("cents") if type(request.arguments) is dict else None
    if cents == 9:
        return agentgate.abort("too_much")
    return agentgate.require_approval("big") if cents == 7 else agentgate.allow()


def _vanish() -> None:
    raise RuntimeError("the connection broke")


def _gate(world: World) -> Gate:
    return world.gate(world.refund(), named("vanish", _vanish), policy=ScriptedPolicy(otherwise=_decide))


def _unknown(world: World) -> str:
    with _gate(world) as gate:
        return gate.call(opened(gate), "vanish", {}, key="k-1").action


def test_pause_stops_everything_and_resume_lets_it_go_on(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
        done = ran("pause", world.url, "--all", *ADA, "--reason", "the bank is on fire")
        assert (done.code, done.err, done.out) == (0, "", "everything: paused; executing: 0\n")
        refused = gate.call(opened(gate), "refund", ONE, key="k1")
        assert isinstance(refused, Refused)
        assert refused.reason == "paused"
        again = ran("pause", world.url, "--all", *ADA, "--reason", "still")
        assert again.out.startswith("everything: was paused already, since 20")
        assert ran("resume", world.url, "--all", *ADA).out == "everything: resumed\n"
        assert ran("resume", world.url, "--all", *ADA).out == "everything: was not paused\n"
        assert isinstance(gate.call(opened(gate), "refund", ONE, key="k1"), Done)
    assert not world.damage()


def test_pause_as_json_tells_the_scope_and_what_executes(world: World) -> None:
    inside, go = threading.Event(), threading.Event()

    def stay() -> None:
        inside.set()
        assert go.wait(30)

    with world.gate(named("stay", stay, namespace="bank")) as gate:
        thread = threading.Thread(target=gate.call, args=(opened(gate), "stay", {}), kwargs={"namespace": "bank"})
        thread.start()
        assert inside.wait(30)
        scope = ("--tool", "stay", "--namespace", "bank", *TENANT)
        done = ran("pause", world.url, *scope, *ADA, "--reason", "stop", "--json").document
        text = ran("pause", world.url, *scope, *ADA, "--reason", "stop").out
        go.set()
        thread.join()
    assert done["scope"] == {"kind": "tool", "tenant": "acme", "namespace": "bank", "tool": "stay"}
    assert done["changed"] is True
    (one,) = done["executing"]
    assert (one["tenant"], one["namespace"], one["tool"]) == ("acme", "bank", "stay")
    assert one["until_us"] > done["since_us"]
    assert text.startswith("tool stay of bank, tenant acme: was paused already, since ")
    assert one["action"] in text.splitlines()[2]
    ended = ran("resume", world.url, *scope, *ADA, "--json").document
    assert (ended["changed"], ended["paused"]) == (True, [])


def test_resume_says_what_is_paused_still(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
    for scope in (("--all",), TENANT):
        assert ran("pause", world.url, *scope, *ADA, "--reason", "stop").code == 0
    assert ran("resume", world.url, "--all", *ADA).out == "everything: resumed\npaused still: tenant acme\n"


@pytest.mark.parametrize(
    ("arguments", "named_"),
    [
        (["pause", "--by", "a", "--reason", "r"], "--all|--tenant|--tool: missing"),
        (["pause", "--all", "--by", "a"], "--reason: missing"),
        (["pause", "--all", "--by", "a", "--reason", "  "], "--reason: missing"),
        (["pause", "--all", "--reason", "r"], "--by: missing"),
        (["pause", "--all", "--tool", "x", "--by", "a", "--reason", "r"], "--all: "),
        (["pause", "--all", "--namespace", "x", "--by", "a", "--reason", "r"], "--namespace: "),
        (["pause", "--tool", "", "--by", "a", "--reason", "r"], "--tool: "),
        (["pause", "--tenant", "$ledger", "--by", "a", "--reason", "r"], "tenant: "),
        (["resume", "--by", "a"], "--all|--tenant|--tool: missing"),
        (["close", "x"], "--by: missing"),
        (["abandon", "x", "--by", "a"], "ID: "),
    ],
)
def test_a_wrong_argument_is_named_before_a_database_is_opened(arguments: list[str], named_: str) -> None:
    done = ran(*arguments, "sqlite:////nowhere/at/all.db")
    assert done.code == 2
    assert named_.lower() in done.err.lower()
    assert done.err.count("\n") == 1


def test_a_misspelt_scope_ends_with_2_and_pauses_nothing(world: World) -> None:
    done = ran("pause", world.url, "--tool", "refnud", *ADA, "--reason", "stop", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "not_found")
    assert not world.sql("SELECT * FROM agentgate_switches")


def test_sweep_tells_what_it_changed(world: World) -> None:
    tool = named("die", forking.die)
    with world.gate(tool) as gate:
        run = opened(gate)

        def work() -> None:
            with world.gate(tool) as other:
                other.call(run, "die", {})

        assert forking.run(work) == forking.KILLED
    assert ran("sweep", world.url).out == "1 taken over from dead workers\nswept: 1 looked at, 1 changed\n"
    done = ran("sweep", world.url, "--json")
    assert (done.code, done.document["looked"], done.document["crashed"], done.document["damaged"]) == (0, 0, 0, [])
    assert not world.damage()


def test_a_sweep_that_met_damage_ends_with_1_and_names_it(world: World) -> None:
    settings = agentgate.Settings(ready=timedelta(microseconds=1))
    with world.gate(settings=settings) as gate:
        action = gate.propose(opened(gate), "refund", ONE).action
    world.sql("UPDATE agentgate_actions SET reserved = x'00' WHERE id = ?", action)
    done = ran("sweep", world.url)
    assert done.code == 1
    assert done.out.splitlines()[0] == f"DAMAGED action {action}: run agentgate verify"


def test_waiting_lists_all_that_waits_for_a_person(world: World) -> None:
    with _gate(world) as gate:
        held = gate.call(opened(gate, "one"), "refund", {"account": "a", "cents": 7}, key="k")
        unknown = gate.call(opened(gate, "two"), "vanish", {})
        gate.call(opened(gate, "three"), "refund", {"account": "a", "cents": 9})
        gate.pause(by="ops:ada", reason="look", tool="refund")
    documents = ran("waiting", world.url, "--json").documents
    assert [one["kind"] for one in documents] == ["paused", "held", "unknown", "halted"]
    assert [one["action"] for one in documents] == [None, held.action, unknown.action, None]
    assert documents[1]["until_us"] > documents[1]["since_us"]
    lines = ran("waiting", world.url, *TENANT).out.splitlines()
    assert len(lines) == 5
    assert lines[3].endswith(f"agentgate reconcile {unknown.action} --tenant acme")
    assert not unseen("".join(lines))
    assert ran("waiting", world.url, "--tenant", "nobody", "--json").documents == [documents[0]]


def test_abandon_gives_up_in_somebodys_name(world: World) -> None:
    action = _unknown(world)
    done = ran("abandon", action, world.url, *TENANT, *ADA, "--note", "the bank is gone")
    assert done.out == f"action {action}: abandoned by ops:ada; it is ABANDONED now\n"
    again = ran("abandon", action, world.url, *TENANT, *ADA, "--json")
    assert (again.code, again.document["error"]["code"]) == (1, "not_possible")
    (step,) = (
        one for one in ran("show", action, world.url, *TENANT, "--json").document["steps"] if one["type"] == "abandoned"
    )
    assert step["texts"] == {"note": "the bank is gone"}


def test_close_ends_a_run_by_its_name_or_id(world: World) -> None:
    with _gate(world) as gate:
        first, second = opened(gate, "one"), opened(gate, "two")
        waits = gate.propose(first, "refund", ONE).action
        ledger = gate.ledger
    done = ran("close", "one", world.url, *TENANT, *ADA, "--note", "over")
    assert done.out == f"run one {first.id}: closed by ops:ada\n"
    assert world.state(waits) == "REFUSED"
    document = ran("close", second.id, world.url, *TENANT, *ADA, "--json").document
    assert document == {"run": second.id, "tenant": "acme", "name": "two", "state": "CLOSED"}
    assert ran("close", "one", world.url, *TENANT, *ADA).code == 1
    assert ran("close", "three", world.url, *TENANT, *ADA).code == 2
    assert ran("close", "one", world.url, *ADA).code == 2
    assert ran("close", ledger, world.url, *TENANT, *ADA).code == 2
    assert not world.damage()


def test_the_commands_of_operators_need_no_policy_and_no_tool(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTGATE_URL", world.url)
    with _gate(world) as gate:
        opened(gate)
    for command in (["pause", "--all", *ADA, "--reason", "r"], ["resume", "--all", *ADA], ["sweep"], ["waiting"]):
        assert ran(*command).code == 0
    assert not world.damage()


def test_what_strangers_named_is_escaped_in_the_list(world: World) -> None:
    with _gate(world) as gate:
        run = gate.run("ticket \u202e4711\u200b", principal="agent:support", tenant="acme\u2066")
        gate.call(run, "vanish", {})
        gate.pause(by="ops:ada", reason="look", tenant="acme\u2066")
    listed = ran("waiting", world.url)
    assert listed.code == 0
    assert "\\u202e4711" in listed.out
    assert not unseen(listed.out + ran("waiting", world.url, "--json").out)


def test_a_long_sweep_tells_how_far_it_is_on_a_terminal_alone(world: World) -> None:
    settings = agentgate.Settings(ready=timedelta(microseconds=1))
    with world.gate(settings=settings) as gate:
        gate.propose(opened(gate), "refund", ONE)
    assert b"1 looked at" in on_a_terminal("sweep", world.url, env={"TERM": "xterm"})
    quiet = ran("sweep", world.url)
    assert (quiet.out, quiet.err) == ("swept: 0 looked at, 0 changed\n", "")
