"""The program: its commands, and how each of its ends becomes an exit code.

Where our own errors end a command, `agentgate.cli.arguments.answering` has said so already; here is what ends it
from outside: a wrong usage, an interrupt, a reader that went away, a defect.
"""

import os
import sys
import traceback
from collections.abc import Sequence

import click

from agentgate.cli.acting import abandon, cancel, close, reconcile
from agentgate.cli.approving import DECIDING, approvals
from agentgate.cli.checking import recheck, verify
from agentgate.cli.endings import COULD_NOT, INTERRUPTED, OK, PIPE_CLOSED, one_line
from agentgate.cli.keys import keys
from agentgate.cli.looking import events, runs, show, waiting
from agentgate.cli.making import demo, migrate, seal_key
from agentgate.cli.policies import policy
from agentgate.cli.standing import grants
from agentgate.cli.stopping import pause, resume, sweep
from agentgate.cli.terminal import Unwritten, complain, leave, open_closed, prepare, say_json

DISTRIBUTION = "agentgate-ledger"
_UNREAD = "what was to be done may be done: look with agentgate waiting or show"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name=DISTRIBUTION, prog_name="agentgate")
def program() -> None:
    """Look at a ledger of agents' effects, and act on it.

    URL is sqlite:///path/to/agent.db (four slashes for an absolute path); AGENTGATE_URL stands in where it is left
    out. Exit codes: 0 ok; 1 breaks, differences, a command that was refused, a damaged record; 2 it could not.
    """


_LOOKING = (runs, show, events, waiting, approvals, verify, recheck)
_ACTING = (*DECIDING, cancel, reconcile, abandon, close, pause, resume, policy, grants, sweep)

for _command in (migrate, seal_key, keys, demo, *_LOOKING, *_ACTING):
    program.add_command(_command)


def run(arguments: Sequence[str] | None) -> int:
    """Run the program; whatever ends it, return its exit code."""
    given = _typed() if arguments is None else list(arguments)
    open_closed()
    prepare(sys.stdout)
    prepare(sys.stderr)
    try:
        _invoke(given or ["--help"])
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return _flushed(ended.exit_code)
    except click.ClickException as error:
        return _misused(error, json="--json" in given)
    except BrokenPipeError:
        return _reader_gone()
    except Unwritten as error:
        leave(sys.stdout)
        complain(f"agentgate: stdout cannot be written ({error}); {_UNREAD}")
        return COULD_NOT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - a defect of ours must not end like "found something", which is 1
        traceback.print_exc()
        return COULD_NOT
    return OK


def _typed() -> list[str]:
    """Return what was typed: as UTF-8 where it is that, also in a locale that knows no letters."""
    return [_as_utf8(word) for word in sys.argv[1:]]


def _as_utf8(word: str) -> str:
    try:
        return os.fsencode(word).decode()
    except UnicodeDecodeError:
        return word


def _invoke(given: list[str]) -> None:
    """Parse and invoke; not by `Command.main`, which ends with 1 where a reader went away."""
    with program.make_context("agentgate", given) as context:
        program.invoke(context)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    return code


def _reader_gone() -> int:
    leave(sys.stdout)
    return PIPE_CLOSED


def _misused(error: click.ClickException, *, json: bool) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = "agentgate" if context is None else context.command_path
    message = error.format_message().removesuffix(".")
    complain(f"{path}: {one_line(message)} (see: {path} --help)")
    if json:
        say_json({"error": {"code": "usage", "message": message}})
    return COULD_NOT
