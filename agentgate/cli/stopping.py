"""Commands of whoever must stop, and of whoever tidies up: pause, resume, sweep. They ask no policy and run no tool."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agentgate.canonical import Json
from agentgate.cli import pages
from agentgate.cli.acting import opened
from agentgate.cli.arguments import answering, as_json, by, reason, some_tenant, tool_name, url
from agentgate.cli.documents import at_us
from agentgate.cli.endings import FOUND, OK, refusal
from agentgate.cli.terminal import progress, say, say_json
from agentgate.gate.overdue import Swept
from agentgate.gate.switching import Paused, Scope

Command = TypeVar("Command", bound=Callable[..., Any])


def _scoped(command: Command) -> Command:
    """Give a command the options that say what its switch is about."""
    everything = click.option("--all", "everything", is_flag=True, help="Everything, of every tenant.")
    namespace = click.option("--namespace", default="", help="The tool's server.")
    return everything(some_tenant(tool_name(namespace(command))))


def _scope(*, everything: bool, tenant: str | None, tool: str | None, namespace: str) -> dict[str, Any]:
    if everything and (tenant is not None or tool is not None):
        raise refusal("--all", "a tenant or a tool is named as well", "say --all, or what it is about")
    if not everything and tenant is None and tool is None:
        raise refusal("--all|--tenant|--tool", "missing", "say what it is about: a tenant, a tool, or --all")
    if namespace and tool is None:
        raise refusal("--namespace", "a namespace alone is no scope", "name its tool as well: --tool NAME")
    return {"tenant": tenant, "tool": tool, "namespace": namespace}


@click.command(short_help="Stop every later effect of a scope.")
@url
@_scoped
@by
@reason
@as_json
@answering
def pause(*, url: str, by: str, reason: str, json: bool, **scope: Any) -> int:
    """Stop every later effect, of everybody, a tenant, or a tool; tells what executes.

    Once it has returned nothing within the scope is started any more, by any gate on the ledger. What waits keeps its
    key.
    """
    if not reason.strip():
        raise refusal("--reason", "missing", "say why: --reason TEXT; it is kept beside the record")
    about = _scope(**scope)
    with opened(url) as gate:
        paused = gate.pause(by=by, reason=reason, **about)
    if json:
        say_json(_paused(paused))
        return OK
    said = "paused" if paused.changed else f"was paused already, since {pages.time(paused.since)}"
    say([f"{_named(paused.scope)}: {said}; executing: {len(paused.executing)}"])
    head = ("action", "tool", "tenant", "lease until")
    rows = (
        (one.action, pages.tool(one.namespace, one.tool), pages.text(one.tenant), pages.time(one.until))
        for one in paused.executing
    )
    if paused.executing:
        say(pages.table(head, rows))
    return OK


@click.command(short_help="Take a pause back.")
@url
@_scoped
@by
@reason
@as_json
@answering
def resume(*, url: str, by: str, reason: str, json: bool, **scope: Any) -> int:
    """Take a pause back, of exactly the scope that was paused; tells what is paused still."""
    about = _scope(**scope)
    with opened(url) as gate:
        resumed = gate.resume(by=by, reason=reason, **about)
    if json:
        still: list[Json] = [one.to_json() for one in resumed.paused]
        say_json({"scope": resumed.scope.to_json(), "changed": resumed.changed, "paused": still})
        return OK
    say([f"{_named(resumed.scope)}: {'resumed' if resumed.changed else 'was not paused'}"])
    say(f"paused still: {_named(one)}" for one in resumed.paused)
    return OK


def _named(scope: Scope) -> str:
    return pages.text(str(scope))


def _paused(paused: Paused) -> dict[str, Json]:
    executing: list[Json] = [
        {
            "action": one.action,
            "run": one.run,
            "tenant": one.tenant,
            "namespace": one.namespace,
            "tool": one.tool,
            "until_us": at_us(one.until),
        }
        for one in paused.executing
    ]
    return {
        "scope": paused.scope.to_json(),
        "changed": paused.changed,
        "since_us": at_us(paused.since),
        "executing": executing,
    }


@click.command(short_help="Take over from dead workers, end what has expired.")
@url
@as_json
@answering
def sweep(*, url: str, json: bool) -> int:
    """Take over from workers that are gone, and end what has expired: questions, grants, actions. It runs nothing."""
    with opened(url) as gate, progress("looked at") as told:
        swept = gate.sweep(on_progress=told)
    if json:
        say_json(_swept(swept))
    else:
        say(_swept_lines(swept))
    return FOUND if swept.damaged else OK


def _swept(swept: Swept) -> dict[str, Json]:
    counted: dict[str, Json] = {name: getattr(swept, name) for name in Swept.__slots__ if name != "damaged"}
    return counted | {"damaged": list(swept.damaged)}


def _swept_lines(swept: Swept) -> list[str]:
    counts = (
        (swept.crashed, "taken over from dead workers"),
        (swept.lease_lost, "taken over from workers whose lease was over"),
        (swept.probed, "told of by their tools"),
        (swept.questions, "questions expired"),
        (swept.grants, "grants expired"),
        (swept.actions, "actions expired"),
        (swept.asked, "put to operators"),
        (swept.moved, "left to the next sweep"),
    )
    lines = [f"{count:,} {what}" for count, what in counts if count]
    lines += [f"DAMAGED action {pages.text(one)}: run agentgate verify" for one in swept.damaged]
    return [*lines, f"swept: {swept.looked:,} looked at, {swept.changed:,} changed"]
