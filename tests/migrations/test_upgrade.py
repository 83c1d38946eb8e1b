"""Migrating: one transaction, whoever else tries, and a ledger founded in it."""

import itertools
import logging
import stat
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from agentgate.chain import follow, start
from agentgate.core.records import Counters
from agentgate.errors import Damaged, Misuse, Unavailable, UnsafeStore, WrongSchema
from agentgate.store import events, migration, runs, sqlite
from agentgate.store.engine import Database
from agentgate.store.migration import Upgraded, upgrade, upgrade_in
from agentgate.store.schema import REVISION, VERSION_TABLE
from support.forks import in_children
from support.ids import AT_US
from support.rows import running, write

WAL = pytest.param("wal", marks=pytest.mark.skipif(
    not sqlite.wal_is_safe(sqlite.module().sqlite_version_info), reason="this SQLite's WAL is not safe"
))  # fmt: skip
ROUNDS, PROCESSES = 3, 8


class Ticking:
    """A clock that stands, and chance that counts."""

    def __init__(self) -> None:
        self.drawn = itertools.count(1)

    def now_us(self) -> int:
        return AT_US

    def monotonic_us(self) -> int:
        return 0

    def random(self, size: int) -> bytes:
        return next(self.drawn).to_bytes(size, "big")

    def sleep(self, span_us: int, *, wake: object = None) -> None:
        raise AssertionError(f"nobody sleeps by this clock: {span_us}, {wake}")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'agent.db'}"


def _tables(url: str) -> dict[str, str]:
    database = Database(url)
    with database.read() as connection:
        found = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    database.close()
    return {name: sql for name, sql in found}  # noqa: C416 - rows are no pairs to a type checker


def _in(url: str, work: Callable[[Any], Any]) -> Any:
    database = Database(url)
    with database.write() as connection:
        result = work(connection)
    database.close()
    return result


def test_an_upgrade_makes_the_file_the_tables_and_the_ledger(url: str, tmp_path: Path) -> None:
    done = upgrade(url, clock=Ticking())
    assert done == Upgraded(url=url, before=None, after=REVISION, created=True, ledger=done.ledger)
    assert stat.S_IMODE((tmp_path / "agent.db").stat().st_mode) == 0o600
    assert _in(url, runs.ledger_row) == (done.ledger, AT_US)


def test_the_ledgers_own_chain_begins_with_its_creation(url: str) -> None:
    ledger = upgrade(url, clock=Ticking()).ledger
    links = _in(url, lambda connection: events.links(connection, ledger, start=0))
    assert len(links) == 1
    event, head = follow(start(ledger, ledger), links[0])
    assert (event.type, event.run, event.at_us, event.action) == ("ledger_created", ledger, AT_US, None)
    assert event.body == {"v": 1, "format": 1, "origin": f"agentgate/{ledger}"}
    run = _in(url, lambda connection: runs.read(connection, ledger))
    assert (run.tenant, run.name, run.n, run.head, run.counters) == ("$ledger", "$ledger", 0, head.hash, Counters())


def test_upgrading_again_changes_nothing(url: str, tmp_path: Path) -> None:
    first = upgrade(url)
    before = (tmp_path / "agent.db").read_bytes() if Database(url).journal == "delete" else _tables(url)
    again = upgrade(url)
    assert again == Upgraded(url=url, before=REVISION, after=REVISION, created=False, ledger=first.ledger)
    assert before == ((tmp_path / "agent.db").read_bytes() if Database(url).journal == "delete" else _tables(url))


def test_a_database_of_later_code_is_refused_untouched(url: str) -> None:
    upgrade(url)
    _in(url, running(f"UPDATE {VERSION_TABLE} SET version_num = '0002'"))
    before = _tables(url)
    with pytest.raises(WrongSchema) as caught:
        upgrade(url)
    assert (caught.value.found, caught.value.needed) == ("0002", REVISION)
    assert caught.value.remedy.startswith("upgrade agentgate")
    assert _tables(url) == before


def test_a_users_own_tables_are_left_as_they_are(url: str) -> None:
    Database(url).create()
    _in(url, running("CREATE TABLE notes (x)"))
    _in(url, running("INSERT INTO notes VALUES ('mine')"))
    upgrade(url)
    assert _in(url, lambda connection: connection.execute(text("SELECT x FROM notes")).scalar()) == "mine"
    assert {name for name in _tables(url) if not name.startswith(("agentgate_", "sqlite_"))} == {"notes"}


def test_a_ledger_whose_row_is_gone_is_not_founded_again(url: str) -> None:
    upgrade(url)
    _in(url, running("DELETE FROM agentgate_ledger"))
    with pytest.raises(Damaged, match="has runs"):
        upgrade(url)


@pytest.mark.parametrize("memory", ["sqlite://", "sqlite:///:memory:"])
def test_a_ledger_in_memory_is_not_migrated_by_its_url(memory: str) -> None:
    with pytest.raises(UnsafeStore, match="memory"):
        upgrade(memory)
    with pytest.raises(Misuse):
        upgrade("postgresql://host/db")


def test_an_open_database_is_migrated_where_it_is() -> None:
    database = Database("sqlite://")
    done = upgrade_in(database, clock=Ticking())
    with database.read() as connection:
        assert runs.ledger_id(connection) == done.ledger
    database.close()


@pytest.mark.parametrize("journal", [WAL, "delete"])
def test_many_processes_upgrade_at_once_and_all_of_them_succeed(tmp_path: Path, journal: str) -> None:
    for turn in range(ROUNDS):
        url = f"sqlite:///{tmp_path / f'{turn}.db'}?journal={journal}"
        done = in_children(partial(_upgrade, url), PROCESSES)
        assert len({one.ledger for one in done}) == 1
        assert [one.created for one in done].count(True) == 1
        assert sorted(str(one.before) for one in done) == [REVISION] * (PROCESSES - 1) + ["None"]


def _upgrade(url: str, _number: int) -> Upgraded:
    return upgrade(url)


def test_threads_upgrade_several_databases_at_once(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path / f'{number % 2}.db'}" for number in range(6)]
    done: list[Upgraded] = []
    threads = [threading.Thread(target=lambda url=url: done.append(upgrade(url))) for url in urls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 6
    assert len({one.ledger for one in done}) == 2


LATER = """
from alembic import op
import sqlalchemy as sa

revision = "0002"
down_revision = "0001"


def upgrade():
    op.create_table("agentgate_extra", sa.Column("x", sa.Text(), primary_key=True), sqlite_strict=True)
    op.execute("INSERT INTO agentgate_extra VALUES ('half')")
    op.execute("INSERT INTO nowhere VALUES (1)")
"""


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Put a later migration beside the real ones, as the next version's checkout would have."""

    def lay(script: str) -> None:
        checkout = tmp_path / "check%out"  # configparser reads % as its own
        (checkout / "migrations" / "versions").mkdir(parents=True)
        for path in migration.scripts().rglob("*.py"):
            (checkout / "migrations" / path.relative_to(migration.scripts())).write_bytes(path.read_bytes())
        (checkout / "migrations" / "versions" / "0002_later.py").write_text(script)
        monkeypatch.setattr(migration, "_PACKAGE", checkout / "agentgate")
        monkeypatch.setattr(migration, "REVISION", "0002")

    return lay


def test_a_migration_that_fails_leaves_a_ledger_as_it_was(url: str, later: Callable[[str], None]) -> None:
    upgrade(url)
    before = _tables(url)
    later(LATER)
    with pytest.raises(Unavailable, match="nowhere"):
        upgrade(url)
    assert _tables(url) == before
    assert _in(url, migration.current) == "0001"


def test_a_migration_that_fails_leaves_a_new_database_empty(url: str, later: Callable[[str], None]) -> None:
    later(LATER)
    with pytest.raises(Unavailable, match="nowhere"):
        upgrade(url)
    assert _tables(url) == {}


def test_a_later_migration_is_taken_from_an_older_ledger(url: str, later: Callable[[str], None]) -> None:
    first = upgrade(url)
    later("\n".join(line for line in LATER.splitlines() if "nowhere" not in line))
    done = upgrade(url)
    assert done == Upgraded(url=url, before="0001", after="0002", created=False, ledger=first.ledger)
    assert "STRICT" in _tables(url)["agentgate_extra"]


def test_the_scripts_commit_nothing_themselves(url: str) -> None:
    Database(url).create()

    def work(connection: Any) -> None:
        migration._run_scripts(connection)
        raise ValueError("after the scripts")

    with pytest.raises(ValueError, match="after the scripts"):
        _in(url, work)
    assert _tables(url) == {}


def test_founding_and_tables_are_one_transaction(url: str) -> None:
    class Broken(Ticking):
        def random(self, size: int) -> bytes:
            raise OSError(f"no chance of {size} bytes")

    with pytest.raises(OSError, match="no chance"):
        upgrade(url, clock=Broken())
    assert _tables(url) == {}


def test_nobody_migrates_past_a_writer_who_does_not_leave(url: str) -> None:
    upgrade(url)
    holder, hasty = Database(url), Database(url, patience_us=50_000)
    with holder.write(), pytest.raises(Unavailable) as caught:
        upgrade_in(hasty)
    assert caught.value.reason == "locked"
    holder.close()
    hasty.close()


def test_migrating_speaks_to_nobody_and_configures_no_logging(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = (
        root.level,
        list(root.handlers),
        logging.getLogger("alembic").level,
        logging.getLogger("sqlalchemy").level,
    )
    upgrade(url)
    assert before == (
        root.level,
        list(root.handlers),
        logging.getLogger("alembic").level,
        logging.getLogger("sqlalchemy").level,
    )
    assert capfd.readouterr() == ("", "")


def test_a_place_that_is_refused_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "agent.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeStore):
        upgrade(f"sqlite:///{tmp_path / 'agent.db'}")
    assert (tmp_path / "elsewhere").stat().st_size == 0


def test_the_database_is_private_whatever_was_there_is_kept(url: str, tmp_path: Path) -> None:
    (tmp_path / "agent.db").touch(mode=0o640)
    assert upgrade(url).created
    assert stat.S_IMODE((tmp_path / "agent.db").stat().st_mode) == 0o640  # the user's own database, the user's choice


def test_rows_written_before_an_upgrade_are_there_after_it(url: str, later: Callable[[str], None]) -> None:
    upgrade(url)
    database = Database(url)
    write(database, running("INSERT INTO agentgate_tenants VALUES ('acme', NULL)"))
    database.close()
    later("\n".join(line for line in LATER.splitlines() if "nowhere" not in line))
    upgrade(url)
    assert _in(url, lambda connection: runs.has_tenant(connection, "acme"))
