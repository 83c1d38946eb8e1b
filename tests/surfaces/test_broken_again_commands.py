"""What a person at night was told by a command, and could not use: each once, by a test that failed."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import agentgate
from agentgate import Gate
from agentgate.errors import Unavailable
from agentgate.testing import ScriptedPolicy
from support import forking
from support.commands import Ran, ran, unseen
from support.worlds import World, made, named

ADA = ("--by", "ops:ada")
NOBODY = 65_534
WHY = ("--reason", "the bank is on fire")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def _decide(request: agentgate.PolicyRequest) -> agentgate.Decision:
    cents = request.arguments.get("cents") if type(request.arguments) is dict else None
    return agentgate.abort("too_much") if cents == 9 else agentgate.allow()


def _vanish() -> None:
    raise RuntimeError("the connection broke")


def _gate(world: World) -> Gate:
    return world.gate(
        world.refund(), named("vanish", _vanish, namespace="bank"), policy=ScriptedPolicy(otherwise=_decide)
    )


def _commands(world: World, *arguments: str) -> list[list[str]]:
    """Read the commands that `waiting` prints, as a shell does."""
    lines = ran("waiting", world.url, *arguments).out.splitlines()[1:]
    return [shlex.split(line[line.index("agentgate ") :])[1:] for line in lines]


@pytest.mark.parametrize("tenant", ["default", "acme", "acme's; touch pwned", "-x"])
def test_each_command_that_waiting_prints_goes_on_with_what_it_stands_beside(world: World, tenant: str) -> None:
    with _gate(world) as gate:
        gate.call(gate.run("two", principal="p", tenant=tenant), "vanish", {}, namespace="bank", key="k")
        gate.call(gate.run("three", principal="p", tenant=tenant), "refund", {"account": "a", "cents": 9}, key="k")
        for scope in (
            {},
            {"tool": "vanish", "namespace": "bank"},
            {"tenant": tenant, "tool": "refund"},
            {"tenant": tenant},
        ):
            gate.pause(by="ops:ada", reason="look", **scope)
    commands = _commands(world)
    assert len(commands) == 6
    finding = {"reconcile": ("--applied", "--evidence", "the bank"), "close": (), "resume": ()}
    for command in commands:
        done = ran(*command, world.url, *ADA, *finding[command[0]])
        assert (done.code, done.err) == (0, ""), command
    assert _commands(world) == []
    assert not world.damage()


def test_a_command_that_waiting_prints_hides_nothing_of_a_hostile_name(world: World) -> None:
    with _gate(world) as gate:
        gate.call(gate.run("two", principal="p", tenant="acme's; touch pwned"), "vanish", {}, namespace="bank", key="k")
        gate.pause(by="ops:ada", reason="look", tenant="acme's; touch pwned")
    assert not unseen(ran("waiting", world.url).out)
    assert all("touch" not in command for command in _commands(world))


def test_what_to_do_next_with_an_action_names_its_tenant(world: World) -> None:
    with _gate(world) as gate:
        run = gate.run("two", principal="p", tenant="acme's")
        action = gate.call(run, "vanish", {}, namespace="bank", key="k").action
    shown = ran("show", action, world.url, "--tenant", "acme's").out.splitlines()[-1]
    assert f"agentgate reconcile {action} --tenant 'acme'\"'\"'s' --applied|--not-applied" in shown
    assert f"agentgate abandon {action} --tenant 'acme'\"'\"'s' --by NAME" in shown


def _with(streams: dict[str, Any], *arguments: str, closed: int | None = None) -> Ran:
    program = "import sys; from agentgate.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        preexec_fn=None if closed is None else lambda: os.close(closed),
        check=False,
        timeout=60,
        **streams,
    )
    return Ran(code=done.returncode, out=(done.stdout or b"").decode(), err=(done.stderr or b"").decode())


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_where_its_answer_cannot_be_written_a_command_says_so_in_one_line(world: World, more: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = _with({"stdout": full, "stderr": subprocess.PIPE}, "pause", world.url, "--all", *ADA, *WHY, *more)
    assert done.code == 2
    assert done.err == (
        "agentgate: stdout cannot be written (No space left on device); what was to be done may be done: look with "
        "agentgate waiting or show\n"
    )
    assert ran("resume", world.url, "--all", *ADA).out == "everything: resumed\n"


@pytest.mark.parametrize("closed", [1, 2])
@pytest.mark.parametrize("command", ["pause", "sweep"])
def test_a_command_without_a_stream_does_what_it_is_for(world: World, closed: int, command: str) -> None:
    given = ("--all", *ADA, *WHY) if command == "pause" else ()
    streams = {"stderr": subprocess.PIPE} if closed == 1 else {"stdout": subprocess.PIPE}
    done = _with(streams, command, world.url, *given, closed=closed)
    assert (done.code, done.err) == (0, "")
    assert ran("resume", world.url, "--all", *ADA).out.startswith("everything: ")
    assert not world.damage()


def test_a_refusal_that_nobody_can_read_ends_with_its_code(world: World) -> None:
    with Path("/dev/full").open("wb") as full:
        done = _with({"stdout": subprocess.PIPE, "stderr": full}, "close", "nope", world.url, *ADA, "--json")
    assert done.code == 2
    assert done.document["error"]["code"] == "not_found"


def test_a_ledger_in_a_folder_that_may_not_be_written_is_not_said_to_be_in_a_transaction() -> None:
    with TemporaryDirectory(dir="/tmp") as name:  # where any user may come to, whatever TMPDIR says
        folder = Path(name)
        world = made(folder)

        def look() -> None:
            if not os.geteuid():
                os.setuid(NOBODY)
            with pytest.raises(Unavailable) as unavailable:
                agentgate.verify(world.url)
            assert unavailable.value.reason == "folder"
            assert f"this user may write none in {folder}; look as a user who may" in str(unavailable.value)

        if not os.geteuid():
            for path in (folder, *folder.iterdir()):
                os.chown(path, NOBODY, -1)
        folder.chmod(0o500)
        try:
            assert forking.run(look) == 0
        finally:
            folder.chmod(0o700)
        assert agentgate.verify(world.url).ok


def test_without_the_key_an_operator_is_told_the_option_and_the_way_out(world: World) -> None:
    def lost(card: str) -> None:  # noqa: ARG001 - the tool's form
        raise ConnectionResetError

    with world.gate(named("lost", lost, sensitive=["/card"]), sealing=agentgate.SealingKey.new()) as gate:
        run = gate.run("one", principal="p")
        action = gate.call(run, "lost", {"card": "4000-0012"}, key="k").action
    refused = ran("reconcile", action, world.url, *ADA, "--applied", "--evidence", "the bank")
    assert refused.code == 2
    assert refused.err.endswith("there is no key: give one (sealing=, or --sealing-key FILE)\n")
    noted = ran("abandon", action, world.url, *ADA, "--note", "nobody knows")
    assert noted.code == 2
    assert noted.err.endswith("give one (sealing=, or --sealing-key FILE), or leave the note out\n")
    assert ran("abandon", action, world.url, *ADA).code == 0
    assert ran("close", "one", world.url, *ADA, "--note", "in clear").code == 0
    assert world.value("SELECT content FROM agentgate_payloads WHERE sealed_by IS NULL") == b'{"note":"in clear"}'
