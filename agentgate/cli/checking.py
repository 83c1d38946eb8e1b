"""Commands that check: verify the record, recheck its decisions. They write nothing."""

from collections.abc import Iterator
from pathlib import Path

import click

import agentgate
from agentgate.cli.arguments import answering, as_json, run_name, sealing, some_tenant, url
from agentgate.cli.endings import FOUND, OK
from agentgate.cli.terminal import progress, say, say_json
from agentgate.core.tables import tabulate
from agentgate.core.verification import KINDS, Break, Verification
from agentgate.printable import clipped, printable

_LONGEST = 400
_file = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


@click.command(short_help="Recompute the record and the state tables.")
@url
@click.option("--keyring", metavar="FILE", type=_file, help="The keyring file: whose signatures of votes are checked.")
@as_json
@answering
def verify(*, url: str, keyring: Path | None, json: bool) -> int:
    """Recompute the record: links, payloads, documents, and the state tables against the events."""
    with progress("events") as told:
        found = agentgate.verify(url, on_progress=told, sealing=sealing(), keyring=keyring)
    if json:
        say_json(found.to_json())
    else:
        say(_verified(found))
    return OK if found.ok else FOUND


def _verified(found: Verification) -> Iterator[str]:
    for one in found.breaks:
        yield f"BROKEN {_place(one)}: {KINDS.get(one.kind, one.kind)} ({printable(clipped(one.detail, _LONGEST))})"
    if found.omitted:
        yield f"and {found.omitted:,} more of these kinds"
    counted = ((found.runs, "runs"), (found.events, "events"), (found.payloads, "payloads"))
    looked = ", ".join(f"{count:,} {what}" for count, what in (*counted, (found.documents, "documents")))
    sealed = f"; not opened, for want of their key: {found.sealed:,} sealed payloads" if found.sealed else ""
    if found.signatures or found.unverified:
        votes = f"; {found.signatures:,} signatures of votes"
        sealed += votes + (f", and {found.unverified:,} more whose key is not here" if found.unverified else "")
    yield f"{'verified' if found.ok else 'NOT VERIFIED'}: {looked}{sealed}"


def _place(one: Break) -> str:
    parts = ["" if one.run is None else f"run {one.run}", "" if one.n is None else f"event {one.n}", one.row or ""]
    return printable(" ".join(filter(None, [one.kind, *parts])))


@click.command(short_help="Ask another policy about recorded decisions.")
@click.argument("policy", type=_file)
@url
@some_tenant
@run_name
@as_json
@answering
def recheck(*, policy: Path, url: str, tenant: str | None, run: str | None, json: bool) -> int:
    """Ask the rule file POLICY about every recorded decision, and tell what it would decide otherwise."""
    with progress("decisions") as told:
        report = agentgate.recheck(
            url,
            policy,
            tenant=tenant,
            run=run,
            on_progress=None if told is None else lambda far: told(far.decisions),
            sealing=sealing(),
        )
    if json:
        say_json(report.to_json())
    else:
        say(tabulate(report).splitlines())
    return OK if report.verdict == "same" else FOUND
