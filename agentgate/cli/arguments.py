"""What commands take: checked here, before a database is opened.

A check raises `click.UsageError` with the argument's name, what is wrong with it, and what would do.
"""

import functools
import os
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from agentgate.canonical import DEFAULT_BOUNDS, Json, parse
from agentgate.cli.endings import exit_code, refusal, tell
from agentgate.errors import AgentgateError, Misuse, NotCanonical
from agentgate.gate.names import DEFAULT_TENANT, check_name, check_tenant
from agentgate.sealing import SealingKeys

Command = TypeVar("Command", bound=Callable[..., Any])

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_FILE = "@"
_KEY_FILE = f"{__name__}.sealing-key"
LONGEST_NOTE = 2_000
# As JSON every byte of it can become six; the record takes 256 KiB of JSON.
LONGEST_EVIDENCE = DEFAULT_BOUNDS.max_bytes // 8
WRITE_URL = "give sqlite:///path/to/agent.db as the last argument, or set AGENTGATE_URL"


def answering(command: Callable[..., int]) -> Callable[..., None]:
    """Let a command return its exit code, and end with a line instead of a traceback where our own errors end it."""

    @functools.wraps(command)
    def answered(**given: Any) -> None:
        context = click.get_current_context()
        try:
            code = command(**given)
        except AgentgateError as error:
            tell(error, json=bool(given.get("json")))
            code = exit_code(error)
        context.exit(code)

    return answered


def _url(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    if not value:
        raise refusal("URL", "missing", WRITE_URL)
    if "://" not in value:
        raise refusal("URL", "no database URL", WRITE_URL)
    return value


def _db(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and "://" not in value:
        raise refusal("--db", "no database URL", "give sqlite:///path/to/agent.db")
    return value


def _sealing_key(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    context.meta[_KEY_FILE] = value or None


def _tenant(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    return _checked(check_tenant, value)


def _some_tenant(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _checked(check_tenant, value)


def _run(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _checked(lambda name: check_name(name, "--run"), value)


def _tool(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _checked(lambda name: check_name(name, "--tool"), value)


def _principal(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _checked(lambda name: check_name(name, "--principal"), value)


def _note(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    if len(value) > LONGEST_NOTE or any("\ud800" <= character <= "\udfff" for character in value):
        raise refusal(parameter.opts[0], "too long, or no UTF-8", f"give at most {LONGEST_NOTE} characters of text")
    return value


def _by(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    if value is None:
        raise refusal("--by", "missing", "name who does this: --by ops:ada")
    return _checked(lambda name: check_name(name, "by"), value, field="--by")


def _some_by(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _by(context, parameter, value)


def _what(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    field = parameter.human_readable_name
    if "://" in value:
        raise refusal(field, "this is a URL", f"give {field} first and the URL last")
    return _checked(lambda name: check_name(name, field), value)


def _id_of(whose: str, listed: str) -> Callable[[click.Context, click.Parameter, str], str]:
    def checked(_context: click.Context, parameter: click.Parameter, value: str) -> str:
        field = parameter.human_readable_name
        found = value.strip().lower()
        if "://" in value:
            raise refusal(field, "this is a URL", f"give {field} first and the URL last")
        if _ID.fullmatch(found) is None:
            raise refusal(field, f"no {whose}'s id", f"give the 36 characters that `agentgate {listed}` lists")
        return found

    return checked


def some_action(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Take an action's id, or none."""
    found = None if value is None else value.strip().lower()
    if found is not None and _ID.fullmatch(found) is None:
        raise refusal(parameter.opts[0], "no action's id", "give the 36 characters that `agentgate show RUN` lists")
    return found


_approval = _id_of("approval", "approvals")


def _id_and_url(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str | None, str]:
    """Take an approval's id, or none, before the URL, which the environment may say."""
    given = list(value)
    url = given.pop() if given and "://" in given[-1] else os.environ.get("AGENTGATE_URL")
    if len(given) > 1:
        raise refusal("[ID] [URL]", "more than these", WRITE_URL)
    if given and _ID.fullmatch(given[0].strip().lower()) is None and url is None:
        return None, _url(context, parameter, given[0])
    return (_approval(context, _ID_ALONE, given[0]) if given else None), _url(context, parameter, url)


_ID_ALONE = click.Argument(["id"])


def _digest(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    found = None if value is None else value.strip().lower()
    if found is not None and _DIGEST.fullmatch(found) is None:
        raise refusal("--digest", "no digest", "give the 64 hexadecimal digits that `agentgate approvals ID` shows")
    return found


def _roles(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_checked(lambda name: check_name(name, "--role"), role) for role in value)


def _span(_context: click.Context, parameter: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    found = _SPAN.fullmatch(value.strip())
    if found is None:
        raise refusal(parameter.opts[0], "no span of time", "give a whole number and its unit: 90s, 30m, 12h or 7d")
    return int(found[1]) * _UNITS[found[2]]


def asked_passphrase(*, confirm: bool) -> str:
    """Ask for a passphrase, where there is a terminal to ask on."""
    if not sys.stdin.isatty():
        raise refusal("--passphrase", "there is no terminal to ask on", "run it on one, or leave the passphrase out")
    asked: str = click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    return asked


def _checked(check: Callable[[str], str], value: str, *, field: str = "") -> str:
    try:
        return check(value)
    except Misuse as error:
        words = str(error)
        raise refusal(field or words.partition(": ")[0], *_halves(words.partition(": ")[2])) from error


def _halves(words: str) -> tuple[str, str]:
    problem, _, remedy = words.partition("; ")
    return (problem, remedy) if remedy else ("not a name", problem)


_argument = click.argument("url", required=False, envvar="AGENTGATE_URL", callback=_url)
_some_url = click.option("--db", metavar="URL", callback=_db, help="The ledger whose table of keys is meant.")
_key_file = click.option(
    "--sealing-key",
    metavar="FILE",
    envvar="AGENTGATE_SEALING_KEY",
    expose_value=False,
    callback=_sealing_key,
    help="The file of the keys that payloads are sealed with.",
)


def url(command: Command) -> Command:
    """Give a command the URL, and the place of the sealing keys that go with a ledger."""
    return _argument(_key_file(command))


def id_and_url(command: Command) -> Command:
    """Give a command an approval's id, which may be left out, before the URL and the place of the sealing keys."""
    return some_approval(_key_file(command))


def db(command: Command) -> Command:
    """Give a command a ledger that it may do without."""
    return _some_url(_key_file(command))


def sealing() -> SealingKeys | None:
    """Read the sealing keys that the command was given; a command that needs none reads none.

    Raises:
        Misuse: their file is not there, or not one to be trusted.
    """
    file = click.get_current_context().meta.get(_KEY_FILE)
    return None if file is None else SealingKeys.from_file(file)


tenant = click.option(
    "--tenant", default=DEFAULT_TENANT, show_default=True, callback=_tenant, help="Whose runs and actions."
)
some_tenant = click.option("--tenant", callback=_some_tenant, help="Whose; everybody's where it is left out.")
run_name = click.option("--run", metavar="RUN", callback=_run, help="Of one run, by its id or name.")
note = click.option("--note", default="", callback=_note, help="Why, in words; kept beside the record.")
tool_name = click.option("--tool", metavar="NAME", callback=_tool, help="A tool, by its exact name.")
reason = click.option("--reason", metavar="TEXT", default="", callback=_note, help="Why; kept beside the record.")
run_argument = click.argument("run", callback=_what)
as_json = click.option("--json", is_flag=True, help="Write JSON instead of text.")
by = click.option("--by", metavar="NAME", callback=_by, help="Who does this; stands in the record for ever.")
some_by = click.option("--by", metavar="NAME", callback=_some_by, help="Who does this; needed with --db.")
what = click.argument("what", callback=_what)
action_id = click.argument("id", callback=_id_of("action", "show RUN"))
grant_id = click.argument("id", callback=_id_of("standing grant", "grants list"))
principal = click.option(
    "--principal", metavar="NAME", callback=_principal, help="Of this principal alone; else everybody's."
)
how_long = click.option("--for", "span", metavar="SPAN", callback=_span, help="How long from now: 30m, 2h, 7d.")
why = click.option("--why", metavar="TEXT", default="", callback=_note, help="Why, in words; kept beside the record.")
approval_id = click.argument("id", callback=_approval)
some_approval = click.argument("given", nargs=-1, metavar="[ID] [URL]", callback=_id_and_url)
digest = click.option("--digest", metavar="HEX", callback=_digest, help="What was seen before; another is refused.")
roles = click.option("--role", "roles", multiple=True, callback=_roles, help="A role of theirs that you vouch for.")
expiring = click.option("--expiring", metavar="SPAN", callback=_span, help="Only those over within 1h, 30m, 2d.")
keyring = click.option(
    "--keyring", metavar="FILE", type=click.Path(path_type=Path), help="The keyring file, outside the database."
)
passphrase = click.option("--passphrase", is_flag=True, help="The private key's file has one; asked on the terminal.")


def common(command: Command) -> Command:
    """Give a command the URL, the tenant and ``--json``."""
    return url(tenant(as_json(command)))


def evidence(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """Take evidence as text, or as the text of a file named after an @."""
    if value is None:
        raise refusal("--evidence", "missing", "say what shows it: --evidence TEXT, or --evidence @FILE")
    content = _file(value.removeprefix(_FILE)) if value.startswith(_FILE) else os.fsencode(value)
    if len(content) > LONGEST_EVIDENCE:
        raise refusal("--evidence", "too long", f"give at most {LONGEST_EVIDENCE} bytes, or say where it is kept")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise refusal("--evidence", "no UTF-8 text", "describe it in words instead") from error
    if not text.strip():
        raise refusal("--evidence", "empty", "say what shows it")
    return text


def some_evidence(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Take evidence, or none."""
    return None if value is None else evidence(context, parameter, value)


def _file(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(LONGEST_EVIDENCE + 1)
    except OSError as error:
        raise refusal("--evidence", f"the file cannot be read ({error.strerror})", "name a readable file") from error


def result(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Json:
    """Take a result as strict JSON."""
    if value is None:
        return None
    try:
        return parse(value)
    except NotCanonical as error:
        problem = f"no JSON: {error.reason} at {error.path or '/'}"
        raise refusal("--result", problem, error.remedy) from error
