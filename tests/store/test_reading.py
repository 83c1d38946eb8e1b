"""A database that is opened for reading: nothing of it is written, whatever the journal and the SQLite."""

import hashlib
from pathlib import Path

import pytest
from sqlalchemy import text

from agentgate.errors import Unavailable
from agentgate.gate.migrating import migrate
from agentgate.store import runs
from agentgate.store.engine import Database


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture
def url(journal: str, tmp_path: Path) -> str:
    made = f"sqlite:///{tmp_path}/agent.db?journal={journal}"
    migrate(made)
    return made


def test_a_reader_takes_the_journal_as_it_is(url: str) -> None:
    other = url.replace("=wal", "=x").replace("=delete", "=wal").replace("=x", "=delete")
    database = Database(other, read_only=True)
    database.open()
    with database.read() as connection:
        runs.ledger_id(connection)
    assert f"journal={database.journal}" in url
    database.close()


def test_a_reader_cannot_write(url: str) -> None:
    database = Database(url, read_only=True)
    database.open()
    with pytest.raises(Unavailable, match=r"readonly|query_only"), database.write() as connection:
        connection.execute(text("DELETE FROM agentgate_ledger"))
    database.close()


def test_reading_leaves_the_file_as_it_was_and_makes_no_lock(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db?journal=delete"
    migrate(url)
    (tmp_path / "agent.db.lock").unlink()
    before = digests(tmp_path)
    database = Database(url, read_only=True)
    database.open()
    with database.read() as connection:
        runs.ledger_id(connection)
    database.close()
    assert digests(tmp_path) == before


def test_a_reader_goes_on_while_a_writer_waits_to_commit(url: str) -> None:
    reader, writer = Database(url, read_only=True), Database(url)
    reader.open()
    writer.open()
    with reader.read() as connection:
        known = runs.ledger_id(connection)
    with writer.write() as connection:
        connection.execute(text("UPDATE agentgate_ledger SET created_at_us = created_at_us + 1"))
    with reader.read() as connection:
        assert runs.ledger_id(connection) == known
    reader.close()
    writer.close()
