"""What is wrong with a command is said in one line, before a database is opened, and never with a traceback."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentgate.cli.program import program
from support.commands import AGENTGATE, ran, typed, unseen
from support.terminals import on_a_terminal
from support.worlds import World, made, opened

ID = "01a22da7-df65-7537-b0b6-a897f9eab70a"
URL = "sqlite:////nowhere/at/all/agent.db"
BY = ("--by", "ops:ada")
EVIDENCE = ("--evidence", "SECRET-7")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


WRONG = {
    "no command": (("frobnicate", URL), "frobnicate"),
    "an unknown option": (("runs", URL, "--frob"), "--frob"),
    "no URL": (("runs",), "URL: missing; give sqlite:///"),
    "no URL to migrate": (("migrate",), "URL: missing"),
    "a path that is no URL": (("runs", "agent.db"), "URL: no database URL; give sqlite:///"),
    "another database": (("runs", "mysql://u:SECRET-7@host/db"), "'mysql' is not supported; write sqlite:///"),
    "an option of the URL": (("runs", "sqlite:///a.db?frob=1"), "frob"),
    "a reserved tenant": (("runs", URL, "--tenant", "$ledger"), "tenant: names that begin with $"),
    "an empty tenant": (("runs", URL, "--tenant", ""), "tenant: not a name; give a text"),
    "nothing to show": (("show",), "WHAT"),
    "a URL in the place of a name": (("show", URL), "WHAT: this is a URL; give WHAT first and the URL last"),
    "a name with control characters": (("events", "a\x1b[2J", URL), "WHAT: it holds control characters"),
    "a name for an id": (("cancel", "ticket-1", URL, *BY), "ID: no action's id; give the 36 characters"),
    "a URL in the place of an id": (("cancel", URL, ID, *BY), "ID: this is a URL"),
    "nobody who cancels": (("cancel", ID, URL), "--by: missing; name who does this"),
    "an empty name": (("cancel", ID, URL, "--by", ""), "--by: not a name; give a text"),
    "a long note": (("cancel", ID, URL, *BY, "--note", "SECRET-7" * 1_000), "--note: too long"),
    "no finding": (("reconcile", ID, URL, *BY, *EVIDENCE), "--applied|--not-applied: missing; say whether"),
    "no evidence": (("reconcile", ID, URL, *BY, "--applied"), "--evidence: missing; say what shows it"),
    "empty evidence": (("reconcile", ID, URL, *BY, "--applied", "--evidence", " "), "--evidence: empty"),
    "evidence in no file": (("reconcile", ID, URL, *BY, "--applied", "--evidence", "@/no"), "--evidence: the file"),
    "evidence without end": (("reconcile", ID, URL, *BY, "--applied", "--evidence", "@/dev/zero"), "--evidence: too"),
    "evidence that is no text": (("reconcile", ID, URL, *BY, "--applied", "--evidence", "@/bin/sh"), "--evidence"),
    "a result of nothing": (
        ("reconcile", ID, URL, *BY, "--not-applied", *EVIDENCE, "--result", "1"),
        "--result: there is none of what did not happen",
    ),
    "a result that is no JSON": (
        ("reconcile", ID, URL, *BY, "--applied", *EVIDENCE, "--result", '{"a": "SECRET-7", "b": NaN}'),
        "--result: no JSON",
    ),
    "no policy": (("recheck", "/no/policy.yaml", URL), "/no/policy.yaml"),
    "a demo among files": (("demo", "--folder", "/"), "--folder: is not empty; name a new or empty folder"),
    "a demo nowhere": (("demo", "--folder", "/no/where"), "--folder: its parent does not exist"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_in_one_line_with_what_would_do(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTGATE_URL", raising=False)
    done = ran(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert words in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert "SECRET-7" not in done.err
    assert not unseen(done.err)


@pytest.mark.parametrize(
    "arguments", [given for given, _ in WRONG.values() if len(given) > 1], ids=lambda given: given[0]
)
def test_with_json_a_wrong_argument_is_a_document_too(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTGATE_URL", raising=False)
    done = ran(*arguments, "--json")
    assert done.code == 2
    assert set(done.document["error"]) == {"code", "message"}


CHECKED = ("show", "events", "runs", "cancel", "reconcile", "verify", "recheck", "migrate")


def test_a_database_that_is_not_there_is_no_traceback(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nrules: []\n", "utf-8")
    for arguments in (
        ("runs", url),
        ("show", "a", url),
        ("events", "a", url),
        ("cancel", ID, url, *BY),
        ("reconcile", ID, url, *BY, "--applied", *EVIDENCE),
        ("verify", url),
        ("recheck", str(policy), url),
    ):
        done = ran(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert f"agentgate migrate {url}" in done.err
    assert list(tmp_path.iterdir()) == [policy]


def test_a_database_without_a_ledger_is_told_to_be_migrated(tmp_path: Path) -> None:
    (tmp_path / "agent.db").touch(0o600)
    done = ran("runs", f"sqlite:///{tmp_path}/agent.db", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "wrong_schema")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.db").write_bytes(b"\x1b[2J no database at all" * 100)
    done = ran("verify", f"sqlite:///{tmp_path}/agent.db")
    assert done.code == 2
    assert not unseen(done.err)


def test_a_policy_that_cannot_be_read_is_refused_with_its_place(world: World, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nrules: [{name: a, match: {tol: x}, outcome: allow}]\n", "utf-8")
    done = ran("recheck", str(policy), world.url, "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "policy_refused")
    assert "/rules/0/match/tol" in done.err


def test_migrate_creates_a_ledger_and_then_finds_it_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    first, second = ran("migrate", url, "--json").document, ran("migrate", url, "--json").document
    assert (first["created"], second["created"]) == (True, False)
    assert first["ledger"] == second["ledger"]
    assert second["before"] == second["after"] == first["after"]
    assert ran("migrate", url).out == f"{url}: is up to date; schema {first['after']}, ledger {first['ledger']}\n"


def test_the_url_may_come_from_the_environment(world: World) -> None:
    assert typed("runs", "--all-tenants", "--json", env={"AGENTGATE_URL": world.url}).code == 0


def test_every_command_explains_itself() -> None:
    for name in ("", "demo", *CHECKED):
        shown = ran(*filter(None, (name, "--help")))
        assert (shown.code, shown.err) == (0, "")
        assert "Usage: agentgate" in shown.out
        if name != "":
            assert "--json" in shown.out
    assert ran().out == ran("--help").out
    assert ran("--version").out.startswith("agentgate, version ")


def test_the_commands_are_ordinary_click_commands(world: World) -> None:
    done = CliRunner().invoke(program, ["runs", world.url, "--json"])
    assert (done.exit_code, done.output) == (0, "")
    assert CliRunner().invoke(program, ["cancel", ID, world.url]).exit_code == 2


def _long(world: World) -> str:
    with world.gate() as gate:
        run = opened(gate)
        for number in range(120):  # more than a pipe holds
            gate.propose(run, f"unknown-{number}", {"text": "a" * 200})
    return run.name


def test_a_reader_that_goes_away_is_no_error(world: World) -> None:
    name = _long(world)
    command = f"'{AGENTGATE}' events {name} '{world.url}' --tenant acme --json | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "141"


def test_output_that_a_terminal_cannot_encode_is_escaped(world: World) -> None:
    with world.gate() as gate:
        gate.run("你好", principal="p")
    assert "\\u4f60\\u597d" in typed("runs", world.url, env={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}).out
    assert "你好" in typed("runs", world.url, env={"PYTHONIOENCODING": "utf-8"}).out


def test_long_work_shows_its_progress_on_a_terminal_alone(world: World) -> None:
    _long(world)
    assert b"events" in on_a_terminal("verify", world.url, "--json", env={"TERM": "xterm"}).split(b"{")[0]
    assert on_a_terminal("verify", world.url, "--json", env={"TERM": "dumb"}).startswith(b"{")
    assert typed("verify", world.url, "--json").err == ""
