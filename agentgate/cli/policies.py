"""Commands about which policy holds: policy activate, policy active."""

from pathlib import Path

import click

import agentgate
from agentgate.canonical import Json
from agentgate.cli import arguments, pages
from agentgate.cli.arguments import answering, as_json, by, some_tenant, url
from agentgate.cli.documents import at_us
from agentgate.cli.endings import OK
from agentgate.cli.terminal import say, say_json
from agentgate.gate import activating, reading
from agentgate.gate.activating import Activated, ActivePolicy


@click.group(short_help="Say which policy holds, or look.")
def policy() -> None:
    """Say which policy pinned gates must hold to start anything, or look which it is."""


@policy.command(short_help="Make a policy the active one.")
@click.argument("policy", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@url
@some_tenant
@by
@arguments.note
@as_json
@answering
def activate(*, policy: Path, url: str, tenant: str | None, by: str, note: str, json: bool) -> int:
    """Make the rules in the file POLICY the active policy, of every tenant without one of its own or of one tenant.

    Once it has returned no pinned gate that holds another policy starts anything for them, until it is opened with
    these rules. Gates that are not pinned go on. To go back, activate the former rules again.
    """
    with agentgate.Gate.open(url, policy=policy, sealing=arguments.sealing()) as gate:
        activated = gate.activate_policy(by=by, note=note, tenant=tenant)
    if json:
        say_json(_activated(activated))
        return OK
    now = activated.active
    said = "activated" if activated.changed else f"was active already, since {pages.time(now.since)}"
    say([f"{_whose(now)}: {said}; policy {now.policy}"])
    if activated.replaced is not None:
        say([f"before: policy {activated.replaced}"])
    say(f"{_whose(one)} goes on with its own: policy {one.policy}" for one in activated.own)
    return OK


@policy.command(short_help="List which policies are active.")
@url
@as_json
@answering
def active(*, url: str, json: bool) -> int:
    """List which policies are active: everybody's first, then those that tenants have of their own."""
    with reading.opened(url, sealing=arguments.sealing()) as ledger, ledger.database.read() as connection:
        found = tuple(activating.active(connection, ledger.id))
    if json:
        for one in found:
            say_json(_document(one))
        return OK
    if not found:
        say(["no policy is active: pinned gates start nothing"])
        return OK
    head = ("tenant", "policy", "made of", "since", "by")
    rows = (
        (
            "(every tenant)" if one.tenant is None else pages.text(one.tenant),
            one.policy,
            pages.text(", ".join(one.documents)),
            pages.time(one.since),
            pages.text(one.by),
        )
        for one in found
    )
    say(pages.table(head, rows))
    return OK


def _whose(active: ActivePolicy) -> str:
    return "every tenant" if active.tenant is None else pages.text(f"tenant {active.tenant}")


def _document(active: ActivePolicy) -> dict[str, Json]:
    return {
        "tenant": active.tenant,
        "policy": active.policy,
        "engine": active.engine,
        "documents": list(active.documents),
        "by": active.by,
        "since_us": at_us(active.since),
    }


def _activated(activated: Activated) -> dict[str, Json]:
    own: list[Json] = [_document(one) for one in activated.own]
    return {
        "active": _document(activated.active),
        "changed": activated.changed,
        "replaced": activated.replaced,
        "own": own,
    }
