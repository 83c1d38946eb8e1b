"""A gate opens a database of its own version, and says which of the two to bring up otherwise."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from agentgate.errors import Damaged, WrongSchema
from agentgate.store.engine import Database
from agentgate.store.schema import REVISION, VERSION_TABLE
from agentgate.store.version import check_version, current
from support.rows import running, write


def _at(database: Database, *revisions: str) -> Database:
    write(database, running(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) PRIMARY KEY)"))
    for revision in revisions:
        write(database, running(f"INSERT INTO {VERSION_TABLE} VALUES (:revision)", revision=revision))
    return database


def _check(database: Database) -> WrongSchema | None:
    try:
        with database.read() as connection:
            check_version(connection, database.url)
    except WrongSchema as error:
        return error
    return None


def test_its_own_version_is_opened(database: Database) -> None:
    _at(database, REVISION)
    assert _check(database) is None


@pytest.mark.parametrize(
    ("revisions", "found", "remedy"),
    [
        ((), "missing", "run: agentgate migrate {url}"),
        (("0000",), "0000", "run: agentgate migrate {url}"),
        (("0002",), "0002", "upgrade agentgate"),
        (("9999",), "9999", "upgrade agentgate"),
    ],
)
def test_another_version_is_refused_with_what_to_do(
    database: Database, revisions: tuple[str, ...], found: str, remedy: str
) -> None:
    refused = _check(_at(database, *revisions))
    assert refused is not None
    assert (refused.url, refused.found, refused.needed) == (database.url, found, REVISION)
    assert refused.remedy.startswith(remedy.format(url=database.url))


def test_a_database_without_a_ledger_is_to_be_migrated(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'agent.db'}")
    database.create()
    refused = _check(database)
    assert refused is not None
    assert (refused.found, refused.remedy) == ("missing", f"run: agentgate migrate {database.url}")
    database.close()


def test_a_version_table_that_names_two_versions_is_damage(database: Database) -> None:
    _at(database, REVISION, "0002")
    with pytest.raises(Damaged, match="2 revisions"):
        write(database, current)


def test_looking_at_the_version_changes_nothing(database: Database) -> None:
    assert _check(database) is not None
    with database.read() as connection:
        found = connection.execute(text("SELECT count(*) FROM sqlite_master WHERE name = :n"), {"n": VERSION_TABLE})
        assert found.scalar() == 0


def test_the_version_is_read_without_alembic() -> None:
    code = "import sys, agentgate.store.version, agentgate.store.engine; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
