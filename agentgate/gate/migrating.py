"""The one call that makes or changes a ledger's tables; alembic is loaded by it alone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What `migrate` found and left.

    Args:
        url: the database, without its options.
        before: its revision before; None where it had none.
        after: its revision now.
        created: whether this call made the ledger.
        ledger: the ledger's id.
    """

    url: str
    before: str | None
    after: str
    created: bool
    ledger: str


def migrate(url: str) -> Migrated:
    """Create or upgrade a ledger's tables; harmless where nothing is to be done.

    Args:
        url: ``sqlite:///path/to/agent.db``; a new file is readable by its owner alone.

    Raises:
        WrongSchema: a later version has migrated it.
        UnsafeStore: it lies where a ledger must not.
        Unavailable: the lock or the database could not be had; nothing was changed.
    """
    from agentgate.store.migration import upgrade

    done = upgrade(url)
    return Migrated(url=done.url, before=done.before, after=done.after, created=done.created, ledger=done.ledger)
