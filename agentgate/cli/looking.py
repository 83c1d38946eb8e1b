"""Commands that look: runs, show, events. They write nothing, to the ledger or beside it."""

import click

from agentgate.cli import pages
from agentgate.cli.arguments import answering, as_json, common, sealing, some_tenant, url, what
from agentgate.cli.arguments import tenant as tenant_option
from agentgate.cli.documents import action_document, event_document, run_document, summary_document, waiting_document
from agentgate.cli.endings import OK
from agentgate.cli.terminal import say, say_json
from agentgate.gate import inbox, reading
from agentgate.gate.ledger import Ledger
from agentgate.gate.views import RunSummary


@click.command(short_help="List runs with their counters.")
@url
@tenant_option
@click.option("--all-tenants", is_flag=True, help="Of every tenant.")
@as_json
@answering
def runs(*, url: str, tenant: str, all_tenants: bool, json: bool) -> int:
    """List runs with their counters, oldest first; with --json one a line."""
    with reading.opened(url, sealing=sealing()) as ledger:
        found = reading.list_runs(ledger, tenant=None if all_tenants else tenant)
        if json:
            for run in found:
                say_json(run_document(run))
        else:
            say(pages.run_table(found, tenants=all_tenants))
    return OK


@click.command(short_help="Show an action or a run.")
@what
@click.option("--run", "is_run", is_flag=True, help="WHAT is a run, also where it is an action's id.")
@common
@answering
def show(*, what: str, is_run: bool, url: str, tenant: str, json: bool) -> int:
    """Show an action by its id, or a run by its id or name."""
    with reading.opened(url, sealing=sealing()) as ledger:
        find = reading.find_run if is_run else reading.find
        found = find(ledger, what, tenant=tenant)
        if isinstance(found, RunSummary):
            _show_run(ledger, found, json=json)
        elif json:
            say_json(action_document(found))
        else:
            say(pages.action_page(found))
    return OK


def _show_run(ledger: Ledger, run: RunSummary, *, json: bool) -> None:
    actions = reading.list_actions(ledger, run.id)
    if json:
        say_json(run_document(run) | {"actions": [summary_document(action) for action in actions]})
    else:
        say(pages.run_page(run, actions))


@click.command(short_help="List all that waits for a person.")
@url
@some_tenant
@as_json
@answering
def waiting(*, url: str, tenant: str | None, json: bool) -> int:
    """List all that waits for a person: what is paused, held, in doubt or halted; with --json one a line."""
    with reading.opened(url) as ledger:
        found = inbox.waiting(ledger, tenant=tenant)
        if json:
            for one in found:
                say_json(waiting_document(one))
        else:
            say(pages.waiting_table(found))
    return OK


@click.command(short_help="List the events of a run or an action.")
@what
@common
@answering
def events(*, what: str, url: str, tenant: str, json: bool) -> int:
    """List the events of a run, or of one action; with --json one a line.

    WHAT is an action's id, a run's id or name; the ledger's own id lists the ledger's own chain.
    """
    with reading.opened(url, sealing=sealing()) as ledger:
        found = reading.find(ledger, what, tenant=tenant)
        run, action = (found.id, None) if isinstance(found, RunSummary) else (found.run.id, found.summary.id)
        for event in reading.list_events(ledger, run, action=action):
            if json:
                say_json(event_document(event))
            else:
                say([pages.event_line(event, of_run=action is None)])
    return OK
