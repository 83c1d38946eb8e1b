"""Commands that change something about an action: cancel and reconcile, each in somebody's name."""

import click

import agentgate
from agentgate.canonical import Json
from agentgate.cli import arguments, pages
from agentgate.cli.arguments import action_id, answering, by, common
from agentgate.cli.endings import OK, refusal
from agentgate.cli.terminal import say, say_json
from agentgate.outcome import Proposal


def _runs_nothing(_request: agentgate.PolicyRequest) -> agentgate.Decision:
    """Deny everything: what is opened here has no tools and only carries out commands, which ask no policy."""
    return agentgate.deny("command_line", "nothing runs from the command line")


def _open(url: str) -> agentgate.Gate:
    return agentgate.Gate.open(url, policy=_runs_nothing, sealing=arguments.sealing())


@click.command(short_help="Cancel an action that has not started.")
@action_id
@common
@by
@arguments.note
@answering
def cancel(*, id: str, url: str, tenant: str, by: str, note: str, json: bool) -> int:
    """Cancel an action that has not started, or whose failure is known."""
    with _open(url) as gate:
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
    json: bool,
) -> int:
    """Say what was found out about an action whose outcome is unknown."""
    if applied is None:
        raise refusal("--applied|--not-applied", "missing", "say whether it happened")
    if not applied and result is not None:
        raise refusal("--result", "there is none of what did not happen", "leave it out, or say --applied")
    with _open(url) as gate:
        proposal = gate.reconcile(
            id,
            applied=applied,
            by=by,
            evidence=evidence,
            result=result,
            worker_known_dead=worker_known_dead,
            tenant=tenant,
        )
    found = "applied" if applied else "not applied"
    _tell(proposal, f"reconciled as {found} by {pages.text(by)}", json=json)
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
