"""A ledger's tables in a file of its own, on both journals."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentgate.store import sqlite
from agentgate.store.engine import Database
from agentgate.store.schema import metadata


@pytest.fixture(params=["wal", "delete"])
def journal(request: pytest.FixtureRequest) -> str:
    chosen = str(request.param)
    if chosen == "wal" and not sqlite.wal_is_safe(sqlite.module().sqlite_version_info):
        pytest.skip("this SQLite's WAL is not safe; the extra `sqlite` brings one that is")
    return chosen


@pytest.fixture
def url(tmp_path: Path, journal: str) -> str:
    return f"sqlite:///{tmp_path / 'agent.db'}?journal={journal}"


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """An open database with every table, and nothing in them."""
    made = opened(url)
    yield made
    made.close()


def opened(url: str) -> Database:
    database = Database(url)
    if database.create():
        with database.write() as connection:
            metadata.create_all(connection)
    database.open()
    return database
