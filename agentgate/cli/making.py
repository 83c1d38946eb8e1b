"""Commands that make something: a ledger's tables, and a demonstration."""

import sys
from pathlib import Path

import click

import agentgate
from agentgate.cli.arguments import answering, as_json, url
from agentgate.cli.endings import FOUND, OK, refusal
from agentgate.cli.terminal import has_colour, say, say_json
from agentgate.printable import printable
from agentgate.sealing import SealingKey, write_key


@click.command(short_help="Create or upgrade a ledger's tables.")
@url
@as_json
@answering
def migrate(*, url: str, json: bool) -> int:
    """Create a ledger's tables, or bring them to this version; harmless where nothing is to be done."""
    done = agentgate.migrate(url)
    if json:
        say_json(
            {
                "url": done.url,
                "before": done.before,
                "after": done.after,
                "created": done.created,
                "ledger": done.ledger,
            }
        )
        return OK
    found = "created" if done.created else "is up to date" if done.before == done.after else f"was {done.before}"
    say([f"{printable(done.url)}: {found}; schema {done.after}, ledger {done.ledger}"])
    return OK


@click.command("seal-key", short_help="Make a key that seals payloads.")
@click.argument("file", type=click.Path(path_type=Path))
@as_json
@answering
def seal_key(*, file: Path, json: bool) -> int:
    """Make a fresh sealing key in a new FILE that its owner alone may read.

    Keep a copy where no copy of the database lies: what the key sealed is lost with it.
    """
    key = SealingKey.new()
    write_key(file, key)
    if json:
        say_json({"key": key.id, "file": str(file)})
    else:
        say([f"key {key.id} is in {printable(str(file))}; keep a copy of it apart from the database"])
    return OK


@click.command(short_help="Tell the whole story on a fresh ledger.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Where its files go: a new or empty folder. A fresh temporary one where this is left out.",
)
@as_json
@answering
def demo(*, folder: Path | None, json: bool) -> int:
    """Tell the whole story on a real ledger in seconds: no model, no network, one process killed."""
    from agentgate.demo import tell

    if folder is not None:
        _check_folder(folder)
    stdout = sys.stdout
    story = tell(folder, write=None if json else stdout, colour=has_colour(stdout))
    if json:
        say_json(story.to_json())
    return OK if story.holds else FOUND


def _check_folder(folder: Path) -> None:
    """Refuse a folder that the demo would share with somebody's files."""
    try:
        if folder.is_dir() and not any(folder.iterdir()):
            return
        if not folder.exists() and folder.parent.is_dir():
            return
    except OSError as error:
        raise refusal("--folder", f"cannot be looked at ({error.strerror})", "name a new or empty folder") from error
    problem = "is not empty" if folder.is_dir() else "is no folder" if folder.exists() else "its parent does not exist"
    raise refusal("--folder", problem, "name a new or empty folder")
