"""Commands about standing grants: grants add, grants list, grants revoke.

What is given or taken back is shown first. It is asked about on a terminal; where there is none, somebody must have
said --yes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from agentgate.canonical import Json, parse
from agentgate.cli import arguments, grantpages, pages
from agentgate.cli.acting import opened
from agentgate.cli.arguments import answering, as_json, by, common, grant_id, some_tenant, tool_name, url
from agentgate.cli.asking import agreed, must_ask
from agentgate.cli.endings import FOUND, OK, refusal
from agentgate.cli.terminal import complain, say, say_json
from agentgate.clock import SystemClock, to_datetime
from agentgate.errors import Misuse, NotCanonical
from agentgate.gate import reading
from agentgate.gate.granting import Grants
from agentgate.jcs import LARGEST_INTEGER
from agentgate.ownfiles import read_unchanged
from agentgate.policy.grants import predicate_of
from agentgate.publickeys import time_us
from agentgate.tools.registry import ToolSet

_WRITE_WHERE = 'give JSON as {"where": [{"path": "/cents", "at_most": 5000}]}, or @FILE'


@click.group(short_help="Standing grants: add, list, revoke.")
def grants() -> None:
    """Say yes in advance: to calls of a tool, with arguments that are named, until a time, so many times."""


def _where(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Json:
    """Take a predicate, as JSON or as the JSON of a file named after an @."""
    if value is None:
        return None
    try:
        content = read_unchanged(Path(value[1:]), "--where") if value.startswith("@") else value.encode()
        stated = parse(content)
    except Misuse as error:
        if not isinstance(error, NotCanonical):
            raise refusal("--where", str(error).removeprefix("--where: "), _WRITE_WHERE) from error
        raise refusal(f"--where at {error.path or '/'}", f"no JSON: {error.reason}", _WRITE_WHERE) from error
    except UnicodeEncodeError as error:
        raise refusal("--where", "no UTF-8", _WRITE_WHERE) from error
    try:
        return predicate_of(stated).to_json()
    except Misuse as error:
        place, _, words = str(error).partition(": ")
        place = place.removeprefix("where").removeprefix(".")
        problem, _, remedy = words.partition("; ")
        raise refusal(f"--where at {place}" if place else "--where", problem, remedy or _WRITE_WHERE) from error


def _time(_context: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        return to_datetime(time_us(value))
    except ValueError as error:
        raise refusal("--until", "no time", str(error)) from error


def _uses(_context: click.Context, _parameter: click.Parameter, value: int | None) -> int:
    if value is None:
        raise refusal("--uses", "missing", "say how many calls it is for: --uses 20")
    return value


_yes = click.option("--yes", is_flag=True, help="Go on without asking; needed where there is no terminal.")


@grants.command(short_help="Say yes in advance to calls of a tool.")
@common
@tool_name
@click.option("--namespace", default="", help="The tool's server.")
@click.option("--where", metavar="JSON|@FILE", callback=_where, help="What the arguments must be like.")
@click.option(
    "--action", metavar="ID", callback=arguments.some_action, help="An action: its tool, and exactly its arguments."
)
@arguments.principal
@click.option(
    "--uses", metavar="N", type=click.IntRange(1, LARGEST_INTEGER), callback=_uses, help="For how many calls."
)
@click.option("--until", metavar="TIME", callback=_time, help="When it is over, in UTC: 2026-12-01T00:00:00Z.")
@arguments.how_long
@by
@arguments.why
@_yes
@answering
def add(*, url: str, until: datetime | None, span: timedelta | None, yes: bool, json: bool, **given: Any) -> int:
    """Say yes in advance to calls of a tool: with arguments like --where, or exactly those of an --action.

    A rule with `standing: true` then asks nobody about them, until the time is over or the uses are gone.
    """
    about, now = _about(given), to_datetime(SystemClock().now_us())
    over = _until(until, span, now)
    asks = must_ask(yes=yes, json=json)
    with opened(url) as gate:
        meant = gate.grants.preview(**about, tenant=given["tenant"])
        if not json:
            shown = grantpages.given(meant, given["principal"], tenant=given["tenant"], like=given["action"])
            say(shown)
            say(grantpages.terms(given["uses"], over, now, by=given["by"], why=given["why"]))
        if asks and not agreed("give this standing grant"):
            complain("agentgate: nothing was given")
            return FOUND
        kept = {name: given[name] for name in ("by", "why", "uses", "principal", "tenant")}
        grant = gate.grants.add(**about, **kept, until=over, spec=meant.spec)
    if json:
        say_json(grantpages.document(grant))
    else:
        say(["", f"grant {grant.id}: given by {pages.text(grant.by)}; it is {grant.state} now"])
    return OK


def _until(until: datetime | None, span: timedelta | None, now: datetime) -> datetime:
    if (until is None) == (span is None):
        raise refusal("--until|--for", "one of them is needed", "say when it is over: --for 2h, or --until TIME")
    over = until
    if span is not None:
        over = now + span
    assert over is not None  # one of them was needed
    if over <= now:
        raise refusal("--until" if span is None else "--for", "it is over already", "give a time to come")
    return over


def _about(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what says which calls are meant, where it goes together and nothing is left unsaid."""
    if (given["tool"] is None) == (given["action"] is None):
        raise refusal("--tool|--action", "one of them is needed", "name a tool, or an action that its calls are like")
    if given["tool"] is None and given["namespace"]:
        raise refusal("--namespace", "the action says which tool", "leave it out beside --action")
    if not given["why"].strip():
        raise refusal("--why", "missing", "say why, in words; it is kept beside the record")
    if given["tool"] is not None and given["where"] is None:
        raise refusal("--where", "missing", _WRITE_WHERE)
    return {name: given[name] for name in ("tool", "namespace", "where", "action")}


@grants.command("list", short_help="List standing grants, with what is left of them.")
@url
@some_tenant
@click.option("--ended", is_flag=True, help="Also those that are used up, over or revoked.")
@as_json
@answering
def list_(*, url: str, tenant: str | None, ended: bool, json: bool) -> int:
    """List standing grants, oldest first, with the uses and the time that are left of each; with --json one a line."""
    with reading.opened(url, sealing=arguments.sealing()) as ledger:
        found = Grants(ledger, ToolSet()).list(tenant=tenant, ended=ended)
        if json:
            for one in found:
                say_json(grantpages.document(one))
        else:
            say(grantpages.table(found, to_datetime(ledger.clock.now_us())))
    return OK


@grants.command(short_help="Take a standing grant back.")
@grant_id
@common
@by
@arguments.why
@_yes
@answering
def revoke(*, id: str, url: str, tenant: str, by: str, why: str, yes: bool, json: bool) -> int:
    """Take standing grant ID back: no claim after this one uses it. What has used it is not undone."""
    asks = must_ask(yes=yes, json=json)
    with opened(url) as gate:
        before = gate.grants.show(id, tenant=tenant)
        if not json:
            say(grantpages.page(before, to_datetime(SystemClock().now_us())))
        if asks and not agreed("take this standing grant back"):
            complain("agentgate: nothing was taken back")
            return FOUND
        after = gate.grants.revoke(id, by=by, why=why, tenant=tenant)
    if json:
        say_json(grantpages.document(after) | {"changed": before.state != "revoked"})
    else:
        done = "was taken back already" if before.state == "revoked" else f"taken back by {pages.text(by)}"
        say(["", f"grant {id}: {done}; it is {after.state} now"])
    return OK
