"""The one call that makes or changes a ledger's tables; alembic is loaded by it alone."""

from agentgate.store.version import Upgraded


def migrate(url: str) -> Upgraded:
    """Create or upgrade a ledger's tables; harmless where nothing is to be done.

    Args:
        url: ``sqlite:///path/to/agent.db``; a new file is readable by its owner alone.

    Raises:
        WrongSchema: a later version has migrated it.
        UnsafeStore: it lies where a ledger must not.
        Unavailable: the lock or the database could not be had; nothing was changed.
    """
    from agentgate.store.migration import upgrade

    return upgrade(url)
