"""How a command ends: its exit code, and the one line that says why."""

import click

from agentgate.canonical import Json
from agentgate.cli.terminal import complain, say_json
from agentgate.errors import AgentgateError, Damaged, NotPossible, VoteRefused
from agentgate.printable import clipped, printable

OK = 0
FOUND = 1  # breaks, differences, a command that the ledger refused, a record that contradicts itself
COULD_NOT = 2  # usage, misuse, a database that is not to be had
INTERRUPTED = 130  # as a shell reports SIGINT
PIPE_CLOSED = 141  # as a shell reports SIGPIPE: whoever read our output has read enough

LONGEST = 2_000


def refusal(field: str, problem: str, remedy: str) -> click.UsageError:
    """Make the error for an argument, before anything was opened: which one, what is wrong, what would do."""
    return click.UsageError(f"{field}: {problem}; {remedy}", click.get_current_context(silent=True))


def exit_code(error: AgentgateError) -> int:
    """Return how a command ends that met ``error``."""
    return FOUND if isinstance(error, Damaged | NotPossible | VoteRefused) else COULD_NOT


def tell(error: AgentgateError, *, json: bool) -> None:
    """Say on stderr what went wrong, and with ``--json`` as the (last) document on stdout."""
    complain(f"agentgate: {one_line(str(error))}")
    if json:
        told: dict[str, Json] = {"code": error.code, "message": str(error)}
        if isinstance(error, VoteRefused):
            told["reason"] = error.reason
        say_json({"error": told})


def one_line(message: str) -> str:
    """Make a message fit for one line of a terminal."""
    return printable(clipped(message, LONGEST))
