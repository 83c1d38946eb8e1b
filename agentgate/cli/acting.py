"""Commands that change something about an action or a run: each in somebody's name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

import agentgate
from agentgate.canonical import Json
from agentgate.cli import arguments, pages
from agentgate.cli.arguments import action_id, answering, by, common
from agentgate.cli.endings import OK, refusal
from agentgate.cli.terminal import say, say_json
from agentgate.gate import reading
from agentgate.outcome import Proposal


def _runs_nothing(_request: agentgate.PolicyRequest) -> agentgate.Decision:
    """Deny everything: what is opened here has no tools and only carries out commands, which ask no policy."""
    return agentgate.deny("command_line", "nothing runs from the command line")


def opened(url: str, *, keyring: Path | None = None) -> agentgate.Gate:
    """Open a gate that carries out commands, and runs nothing."""
    return agentgate.Gate.open(url, policy=_runs_nothing, sealing=arguments.sealing(), keyring=keyring)


@contextmanager
def looking(url: str) -> Iterator[agentgate.Gate]:
    """Open a gate that looks, and can write nothing."""
    with reading.opened(url, sealing=arguments.sealing()) as ledger:
        yield agentgate.Gate(ledger, policy=_runs_nothing, tools=(), facts={}, settings=agentgate.Settings())


@click.command(short_help="Cancel an action that has not started.")
@action_id
@common
@by
@arguments.note
@answering
def cancel(*, id: str, url: str, tenant: str, by: str, note: str, json: bool) -> int:
    """Cancel an action that has not started, or whose failure is known."""
    with opened(url) as gate:
        _tell(gate.cancel(id, by=by, note=note, tenant=tenant), f"cancelled by {pages.text(by)}", json=json)
    return OK


@click.command(short_help="Say what became of an unknown outcome.")
@action_id
@common
@click.option("--applied/--not-applied", default=None, help="It happened; or it did not, and will not.")
@by
@click.option(
    "--evidence", metavar="TEXT|@FILE", callback=arguments.evidence, help="What shows it; kept beside the record."
)
@click.option("--result", metavar="JSON", callback=arguments.result, help="What the loop is told of what happened.")
@click.option("--worker-known-dead", is_flag=True, help="The worker that began it is known not to come back.")
@click.option(
    "--attempt",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of which it was found out; refused where a later one began.",
)
@answering
def reconcile(
    *,
    id: str,
    url: str,
    tenant: str,
    applied: bool | None,
    by: str,
    evidence: str,
    result: Json,
    worker_known_dead: bool,
    attempt: int | None,
    json: bool,
) -> int:
    """Say what was found out about an action whose outcome is unknown."""
    if applied is None:
        raise refusal("--applied|--not-applied", "missing", "say whether it happened")
    if not applied and result is not None:
        raise refusal("--result", "there is none of what did not happen", "leave it out, or say --applied")
    with opened(url) as gate:
        proposal = gate.reconcile(
            id,
            applied=applied,
            by=by,
            evidence=evidence,
            result=result,
            worker_known_dead=worker_known_dead,
            attempt=attempt,
            tenant=tenant,
        )
    found = "applied" if applied else "not applied"
    _tell(proposal, f"reconciled as {found} by {pages.text(by)}", json=json)
    return OK


@click.command(short_help="Give up knowing what became of an action.")
@action_id
@common
@by
@arguments.note
@answering
def abandon(*, id: str, url: str, tenant: str, by: str, note: str, json: bool) -> int:
    """Give up knowing whether an action happened: its block is lifted, its key closed, and it counts as taken."""
    with opened(url) as gate:
        _tell(gate.abandon(id, by=by, note=note, tenant=tenant), f"abandoned by {pages.text(by)}", json=json)
    return OK


@click.command(short_help="Close a run.")
@arguments.run_argument
@common
@by
@arguments.note
@answering
def close(*, run: str, url: str, tenant: str, by: str, note: str, json: bool) -> int:
    """Close RUN, by its id or name: nothing of it starts any more. Of a halted one it says that somebody looked."""
    with reading.opened(url) as ledger:
        found = reading.find_run(ledger, run, tenant=tenant)
        its = agentgate.Run(id=found.id, name=found.name, tenant=tenant, principal=found.principal)
    with opened(url) as gate:
        gate.close_run(its, by=by, note=note)
    if json:
        say_json({"run": its.id, "tenant": tenant, "name": its.name, "state": "CLOSED"})
    else:
        say([f"run {pages.text(its.name)} {its.id}: closed by {pages.text(by)}"])
    return OK


def _tell(proposal: Proposal, done: str, *, json: bool) -> None:
    if json:
        say_json(
            {
                "action": proposal.action,
                "run": proposal.run,
                "tenant": proposal.tenant,
                "key": proposal.key,
                "revision": proposal.revision,
                "state": proposal.state,
                "reason": None if proposal.outcome is None else proposal.outcome.reason,
            }
        )
    else:
        say([f"action {proposal.action}: {done}; it is {proposal.state} now"])
