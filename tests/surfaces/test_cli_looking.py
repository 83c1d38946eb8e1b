"""runs, show and events: what is on record, for people and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Gate, Settings
from agentgate.testing import ScriptedPolicy
from support.commands import Ran, ran, unseen
from support.worlds import World, made, named, opened

ESC, BIDI, HIDDEN = "\x1b[2J\x1b]0;owned\x07", "\u202egpj.exe\u2066", "pay\u200bpal\u2800\ufeff"
HUGE = "x" * 50_000 + "; rm -rf /"
TENANT = "acme"


def echo(text: str, blob: str = "") -> dict[str, str]:
    return {"said": text, "blob": blob}


def fail(text: str) -> None:
    raise agentgate.ToolError("not_found", text, suggested_action=text)


def _gate(world: World, *answers: Any) -> Gate:
    return world.gate(named("echo", echo), named("fail", fail), policy=ScriptedPolicy(*answers))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a ledger in which everything that others wrote would like to be printed raw."""
    world = made(tmp_path_factory.mktemp("hostile"))
    why = agentgate.deny("no", ESC + BIDI + HIDDEN)
    held = agentgate.require_approval("big", ESC + HIDDEN)
    with _gate(world, agentgate.allow("yes", ESC), why, held) as gate:
        run = gate.run(f"run {BIDI}{HIDDEN}", principal=f"agent:{BIDI}", tenant=f"{TENANT}{HIDDEN}", goal=ESC + HUGE)
        gate.call(run, "echo", {"text": ESC + BIDI, "blob": HUGE}, key=f"key{BIDI}")
        gate.call(run, "echo", {"text": ESC})
        waiting = gate.call(run, "echo", {"text": HIDDEN, "blob": HUGE}, key="held")
        gate.cancel(waiting.action, by=f"ops{HIDDEN}", note=ESC + BIDI, tenant=run.tenant)
        gate.call(run, "fail", {"text": ESC + BIDI}, provenance={ESC: HIDDEN})
        gate.call(run, "echo", f'{{"text": 1, "{BIDI}": "{HIDDEN}"}}'.encode())
        gate.call(run, f"no{HIDDEN}", {})
        doubt = gate.call(run, "echo", {"text": "a"}, key="doubt")
        assert doubt.reason == "succeeded"
    return world


def _looks(world: World) -> list[tuple[str, ...]]:
    tenant, name = f"{TENANT}{HIDDEN}", f"run {BIDI}{HIDDEN}"
    ids = [str(id_) for (id_,) in world.sql("SELECT id FROM agentgate_actions")]
    return [
        ("runs", world.url, "--tenant", tenant),
        ("runs", world.url, "--all-tenants"),
        *((command, what, world.url, "--tenant", tenant) for command in ("show", "events") for what in (name, *ids)),
    ]


def test_nothing_of_a_hostile_record_reaches_the_terminal_raw(hostile: World) -> None:
    for look in _looks(hostile):
        shown = ran(*look)
        assert (shown.code, shown.err) == (0, "")
        assert not unseen(shown.out), look
        assert max(map(len, shown.out.splitlines())) < 2_000, look


def test_what_is_escaped_is_still_told(hostile: World) -> None:
    text = "".join(ran(*look).out for look in _looks(hostile))
    for told in ("\\u001b[2J", "\\u202e", "\\u200b", "\\u2800", "; rm -rf /", "[cut: 50", "note:", "because no:"):
        assert told in text


def test_every_look_as_json_is_ascii_that_parses_and_holds_everything(hostile: World) -> None:
    for look in _looks(hostile):
        shown = ran(*look, "--json")
        assert shown.code == 0
        assert not unseen(shown.out)
        assert shown.out.isascii()
        assert shown.documents
    assert HUGE in "".join(json.dumps(ran(*look, "--json").documents) for look in _looks(hostile))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def _shown(world: World, what: str, *options: str) -> Ran:
    return ran("show", what, world.url, "--tenant", TENANT, *options)


def test_an_action_is_shown_with_all_that_is_recorded_of_it(world: World) -> None:
    with _gate(world) as gate:
        done = gate.call(opened(gate), "echo", {"text": "hello"}, key="k-1")
    shown = _shown(world, done.action, "--json").document
    assert shown["state"] == "SUCCEEDED"
    assert shown["tool"] == "echo"
    assert shown["key"] == {"source": "caller", "scope": "", "text": "k-1"}
    assert shown["digest"] == done.digest
    assert shown["proposed"]["arguments"] == {"text": "hello", "blob": ""}
    assert shown["proposed"]["supplied"] == {"text": "hello"}
    assert shown["observation"] == {"status": "ok", "notes": [], "value": {"said": "hello", "blob": ""}}
    assert [attempt["state"] for attempt in shown["attempts"]] == ["succeeded"]
    assert [step["type"] for step in shown["steps"]] == ["proposed", "started", "succeeded"]
    assert shown["steps"][0]["decision"]["outcome"] == "allow"
    assert shown["run"]["name"] == "ticket-1"
    text = _shown(world, done.action).out
    assert 'arguments  {"blob": "", "text": "hello"}' in text
    assert "SUCCEEDED" in text


def test_a_held_action_is_shown_with_the_text_that_its_approval_binds(world: World) -> None:
    with _gate(world, agentgate.require_approval("big", "Ask finance.")) as gate:
        held = gate.call(opened(gate), "echo", {"text": "hello"}, key="k-1")
    assert isinstance(held, agentgate.Held)
    (approval,) = _shown(world, held.action, "--json").document["approvals"]
    assert approval["shown"] == held.approval.shown
    assert approval["digest"] == held.approval.digest
    text = _shown(world, held.action).out
    assert all(f"| {line}" in text for line in held.approval.shown.splitlines())
    assert f"agentgate cancel {held.action}" in text


def test_a_run_is_shown_by_its_name_and_by_its_id(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        done = gate.call(run, "echo", {"text": "hello"})
    by_name, by_id = (_shown(world, what, "--json").document for what in (run.name, run.id))
    assert by_name == by_id
    assert [action["id"] for action in by_name["actions"]] == [done.action]
    assert by_name["counters"]["succeeded"] == 1
    assert done.action in _shown(world, run.name).out


def test_a_run_that_is_named_like_an_action_is_shown_where_it_is_asked_for(world: World) -> None:
    with _gate(world) as gate:
        done = gate.call(opened(gate), "echo", {"text": "hello"})
        opened(gate, done.action)
    assert "steps" in _shown(world, done.action, "--json").document
    assert _shown(world, done.action, "--run", "--json").document["name"] == done.action


def test_runs_are_listed_of_one_tenant_or_of_all(world: World) -> None:
    with _gate(world) as gate:
        opened(gate, "a")
        opened(gate, "b")
        opened(gate, "c", tenant="other")
    assert [run["name"] for run in ran("runs", world.url, "--tenant", TENANT, "--json").documents] == ["a", "b"]
    assert [run["name"] for run in ran("runs", world.url, "--all-tenants", "--json").documents] == ["a", "b", "c"]
    assert ran("runs", world.url, "--json").out == ""
    assert len(ran("runs", world.url, "--all-tenants").out.splitlines()) == 4


def test_events_are_listed_as_they_are_hashed(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        gate.call(run, "echo", {"text": "a"})
        second = gate.call(run, "echo", {"text": "b"})
    listed = ran("events", run.name, world.url, "--tenant", TENANT, "--json").documents
    assert [event["event"]["n"] for event in listed] == list(range(7))
    assert listed[1]["event"]["prev"] == listed[0]["hash"]
    of_action = ran("events", second.action, world.url, "--tenant", TENANT, "--json").documents
    assert of_action == listed[4:]
    assert len(ran("events", run.name, world.url, "--tenant", TENANT).out.splitlines()) == 7


def test_events_of_a_long_run_are_read_in_pages(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        for _ in range(230):
            gate.propose(run, "echo", {"text": "a"}, key="again")
            gate.propose(run, "unknown", {})
    listed = ran("events", run.name, world.url, "--tenant", TENANT, "--json").documents
    assert [event["event"]["n"] for event in listed] == list(range(len(listed)))
    assert len(listed) > 200


def test_the_ledgers_own_chain_is_listed_by_its_id(world: World) -> None:
    with _gate(world) as gate:
        ledger = gate.ledger
    types = [event["event"]["type"] for event in ran("events", ledger, world.url, "--json").documents]
    assert types[:2] == ["ledger_created", "spec_registered"]


@pytest.mark.parametrize("command", ["show", "events"])
def test_what_another_tenant_has_is_not_found(world: World, command: str) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        done = gate.call(run, "echo", {"text": "hello"})
    for what in (run.name, run.id, done.action):
        shown = ran(command, what, world.url, "--tenant", "other", "--json")
        assert shown.code == 2
        assert shown.document["error"]["code"] == "not_found"


def test_an_action_whose_row_says_something_else_is_not_shown_as_true(world: World) -> None:
    with _gate(world) as gate:
        done = gate.call(opened(gate), "echo", {"text": "hello"})
    world.sql("UPDATE agentgate_actions SET state = 'REFUSED' WHERE id = ?", done.action)
    shown = _shown(world, done.action, "--json")
    assert shown.code == 1
    assert shown.document["error"]["code"] == "damaged"
    assert "agentgate verify" in shown.err


def test_arguments_that_were_edited_are_not_shown_as_true(world: World) -> None:
    with _gate(world) as gate:
        done = gate.call(opened(gate), "echo", {"text": "hello"})
    world.sql("UPDATE agentgate_payloads SET content = ? WHERE kind = 'arguments'", b'{"text":"other"}')
    assert _shown(world, done.action).code == 1


def test_a_name_that_somebody_wrote_into_a_row_is_escaped(world: World) -> None:
    with _gate(world) as gate:
        opened(gate)
    world.sql("UPDATE agentgate_runs SET name = ?, reason = ? WHERE tenant = ?", ESC, BIDI, TENANT)
    shown = ran("runs", world.url, "--tenant", TENANT)
    assert not unseen(shown.out)
    assert "\\u001b[2J" in shown.out


def test_looking_writes_nothing(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        done = gate.call(run, "echo", {"text": "hello"})
    before = _kept(world)
    for what in (("runs", "--all-tenants"), ("show", done.action), ("show", run.name), ("events", run.name)):
        assert ran(*what, world.url, *(() if what[0] == "runs" else ("--tenant", TENANT))).code == 0
    assert _kept(world) == before


def _kept(world: World) -> dict[str, bytes]:
    """Read every file but a reader's own bookkeeping of a write-ahead log, in which nothing may stand."""
    found = {path.name: path.read_bytes() for path in world.folder.iterdir()}
    assert not found.pop("agent.db-wal", b"")
    found.pop("agent.db-shm", None)
    return found


def test_a_held_lease_is_shown_while_its_action_executes(world: World) -> None:
    seen: list[Ran] = []

    def look(*, effect: agentgate.Effect) -> None:
        seen.append(_shown(world, effect.action_id))

    with world.gate(named("look", look), settings=Settings()) as gate:
        gate.call(opened(gate), "look", {})
    (shown,) = seen
    assert "EXECUTING" in shown.out
    assert "1: open; fence 1" in shown.out
