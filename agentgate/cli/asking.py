"""Asking whoever is there: on a terminal, what has just been shown on it; where there is none, nobody says yes."""

import sys
import termios

import click

from agentgate.cli.endings import refusal

_YES = "yes"


def must_ask(*, yes: bool, json: bool) -> bool:
    """Tell whether somebody is to be asked: who reads what is shown, and answers where they read it.

    Args:
        yes: whether they have said yes already.
        json: whether what is shown is JSON, which nobody is asked about.

    Raises:
        click.UsageError: nobody has said yes, and nobody can be asked.
    """
    if yes:
        return False
    if json:
        raise refusal("--yes", "missing", "with --json nobody is asked: look first, then say --yes")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise refusal("--yes", "missing", "there is no terminal to ask on: look first, then say --yes")
    return True


def agreed(what: str, *, to: str = "go on") -> bool:
    """Ask on the terminal; every answer but one word is a no.

    Args:
        what: what is to be done, as a command: "give this grant".
        to: what the word says yes to.
    """
    # What was typed before the question stood there answers something else. Not after: that would lose an answer.
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    click.echo(f"\n{what}? Type {_YES} to {to}: ", nl=False)
    sys.stdout.flush()
    return sys.stdin.readline().strip() == _YES
