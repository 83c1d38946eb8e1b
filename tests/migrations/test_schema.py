"""The schema is the sum of its migrations, and a migration stays what it was."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from agentgate.states import STATES, RunState
from agentgate.store import migration
from agentgate.store.engine import Database
from agentgate.store.migration import upgrade_in
from agentgate.store.schema import REVISION, VERSION_TABLE, metadata
from support.source import ROOT

VERSIONS = sorted((ROOT / "migrations" / "versions").glob("*.py"))


@pytest.fixture
def migrated() -> Iterator[Database]:
    database = Database("sqlite://")
    upgrade_in(database)
    yield database
    database.close()


def _dump(database: Database) -> dict[str, str]:
    with database.read() as connection:
        rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master")).all()
    return {f"{kind} {name}": sql for kind, name, sql in rows if VERSION_TABLE not in name}


def test_migrating_leaves_exactly_what_the_schema_says(migrated: Database) -> None:
    made = Database("sqlite://")
    with made.write() as connection:
        metadata.create_all(connection)
    assert _dump(migrated) == _dump(made)
    made.close()


def test_alembic_finds_nothing_left_to_do(migrated: Database) -> None:
    with migrated.write() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


def test_every_table_is_strict_ours_and_named_so(migrated: Database) -> None:
    with migrated.read() as connection:
        rows = connection.execute(text("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")).all()
    tables = {name: strict for name, strict in rows if not name.startswith("sqlite_")}
    assert set(tables) == {*metadata.tables, VERSION_TABLE}
    assert all(name.startswith("agentgate_") for name in tables)
    assert {name for name, strict in tables.items() if not strict} == {VERSION_TABLE}  # alembic writes that one


def test_the_states_a_table_allows_are_the_state_tables(migrated: Database) -> None:
    for table, words in (("actions", STATES), ("runs", tuple(RunState))):
        listed = ", ".join(repr(word.value) for word in words)
        assert f"CHECK (state IN ({listed}))" in _dump(migrated)[f"table agentgate_{table}"]


def test_fences_are_never_given_twice_and_every_check_survived(migrated: Database) -> None:
    dump = _dump(migrated)
    assert "AUTOINCREMENT" in dump["table agentgate_attempts"]
    checked = {name for name, sql in dump.items() if "CHECK" in str(sql)}
    tables = ("ledger", "runs", "actions", "attempts", "approvals", "switches", "budgets")
    assert checked == {f"table agentgate_{table}" for table in tables}


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(migration.scripts()))
    return ScriptDirectory.from_config(config)


def test_there_is_one_line_of_migrations_and_it_ends_where_the_code_is() -> None:
    assert _scripts().get_heads() == [REVISION]
    numbers = [script.revision for script in _scripts().walk_revisions()][::-1]
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
    assert [path.name[:4] for path in VERSIONS] == numbers


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)
def test_a_migration_is_frozen_it_imports_nothing_of_ours(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in named if name.split(".")[0] == "agentgate"]


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)
def test_there_is_no_way_down_a_record_is_not_taken_back(path: Path) -> None:
    assert "downgrade" not in path.read_text("utf-8")


def test_the_environment_takes_its_connection_and_configures_no_logging() -> None:
    source = (ROOT / "migrations" / "env.py").read_text("utf-8")
    called = {_name(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    assert not called & {"fileConfig", "dictConfig", "basicConfig", "create_engine", "engine_from_config"}
    assert 'attributes["connection"]' in source


def _name(node: Any) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_the_wheels_scripts_come_before_the_checkouts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(migration, "_PACKAGE", tmp_path / "agentgate")
    assert migration.scripts() == tmp_path / "migrations"
    (tmp_path / "agentgate" / "_migrations").mkdir(parents=True)
    assert migration.scripts() == tmp_path / "agentgate" / "_migrations"
