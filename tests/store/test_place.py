"""Where a ledger may lie, who may read it, and that it is still the same file."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from agentgate.errors import Damaged, Unavailable, UnsafeStore
from agentgate.store import files
from agentgate.store.engine import Database
from support.rows import adding, names, write


@pytest.fixture
def umask() -> Iterator[None]:
    """The most careless umask there is."""
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_everything_that_is_written_is_private_to_its_owner(database: Database, tmp_path: Path) -> None:
    with database.write() as connection:
        adding("acme")(connection)
        beside = {path.name: _mode(path) for path in tmp_path.iterdir()}
    journals = {"agent.db-wal", "agent.db-shm"} if database.journal == "wal" else {"agent.db-journal"}
    assert set(beside) == {"agent.db", "agent.db.lock"} | journals
    assert set(beside.values()) == {0o600}


def test_a_file_is_created_once(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'agent.db'}")
    assert database.create()
    assert not database.create()


def test_a_database_that_is_not_there_is_not_made_by_opening_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    database = Database(f"sqlite:///{path}")
    with pytest.raises(UnsafeStore) as caught:
        database.open()
    assert caught.value.remedy == f"create it with: agentgate migrate sqlite:///{path}"
    with pytest.raises(Unavailable):
        names(database)
    assert not path.exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsafeStore, match="folder does not exist"):
        Database(f"sqlite:///{tmp_path / 'no' / 'agent.db'}").create()


def test_a_path_with_every_awkward_letter_is_that_path(tmp_path: Path) -> None:
    path = tmp_path / "a b#c%41?+ü&;.db"
    database = Database(f"sqlite:///{quote(str(path))}")
    assert database.create()
    write(database, lambda connection: connection.exec_driver_sql("CREATE TABLE agentgate_tenants (tenant TEXT)"))
    database.close()
    assert path.stat().st_size > 0
    assert {file.name for file in tmp_path.iterdir()} <= {path.name + suffix for suffix in files.SIBLINGS}


@pytest.mark.parametrize("suffix", files.SIBLINGS)
def test_a_symbolic_link_is_refused_for_the_file_and_for_all_beside_it(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / f"agent.db{suffix}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeStore, match="symbolic link"):
        Database(f"sqlite:///{tmp_path / 'agent.db'}").create()


def test_a_dangling_link_is_refused_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "agent.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeStore, match="symbolic link"):
        files.create(tmp_path / "agent.db")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "agent.db")
    with pytest.raises(UnsafeStore, match="no regular file"):
        Database(f"sqlite:///{tmp_path / 'agent.db'}").open()


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# not a database\n" * 100)
    database = Database(f"sqlite:///{path}")
    database.open()
    with pytest.raises(UnsafeStore, match="no SQLite database"):
        names(database)
    assert path.read_text().startswith("# not a database")


LOCAL = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"


def _mounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *lines: str) -> None:
    written = tmp_path / "mountinfo"
    written.write_bytes(b"".join(os.fsencode(line) + b"\n" for line in lines))
    monkeypatch.setattr(files, "MOUNTS", written)


@pytest.mark.parametrize("kind", sorted(files.NETWORK))
def test_a_network_file_system_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    _mounts(monkeypatch, tmp_path, LOCAL, f"40 22 0:40 / {home} rw - {kind} server:/export rw")
    with pytest.raises(UnsafeStore, match=kind):
        Database(f"sqlite:///{home / 'agent.db'}").create()
    assert not (home / "agent.db").exists()


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        ([LOCAL], "ext4"),
        ([LOCAL, "40 22 0:40 / {} rw - nfs4 s:/x rw"], "nfs4"),
        ([LOCAL, "40 22 0:40 / {} rw shared:1 master:2 - nfs4 s:/x rw"], "nfs4"),
        (["40 22 0:40 / {} rw - nfs4 s:/x rw", LOCAL], "nfs4"),  # the deepest, in any order
        ([LOCAL, "40 22 0:40 / {} rw - nfs4 s:/x rw", "41 40 0:41 / {} rw - tmpfs t rw"], "tmpfs"),  # the latest
        ([LOCAL, "40 22 0:40 / {}x rw - nfs4 s:/x rw"], "ext4"),  # a name that only begins alike
        ([LOCAL, "40 22 0:40 / {}/sub rw - nfs4 s:/x rw"], "ext4"),
        ([], None),
    ],
)
def test_a_file_lies_on_the_deepest_and_latest_mount_above_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mounts: list[str], found: str | None
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    _mounts(monkeypatch, tmp_path, *[line.format(home) for line in mounts])
    assert files.file_system(home / "agent.db") == found


@pytest.mark.parametrize(
    ("name", "written"), [("a b", r"a\040b"), ("ü", "ü"), ("a\\b", r"a\134b"), ("\udcff", "\udcff")]
)
def test_a_mount_with_an_awkward_name_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, written: str
) -> None:
    home = tmp_path / name
    home.mkdir()
    _mounts(monkeypatch, tmp_path, LOCAL, f"40 22 0:40 / {tmp_path}/{written} rw - nfs s:/x rw")
    assert files.file_system(home / "agent.db") == "nfs"


def test_a_folder_that_is_a_link_is_judged_by_where_it_leads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    _mounts(monkeypatch, tmp_path, LOCAL, f"40 22 0:40 / {home} rw - cifs s:/x rw")
    assert files.file_system(tmp_path / "link" / "agent.db") == "cifs"


def test_where_the_host_does_not_tell_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "MOUNTS", tmp_path / "none")
    assert files.file_system(tmp_path / "agent.db") is None
    assert files.create(tmp_path / "agent.db")


def test_a_file_that_is_removed_in_use_is_damage_and_is_not_made_anew(database: Database) -> None:
    write(database, adding("acme"))
    assert database.path is not None
    database.path.unlink()
    with pytest.raises(Damaged, match="removed"):
        write(database, adding("other"))
    database.close()
    with pytest.raises(Damaged, match="removed"):
        write(database, adding("other"))
    assert not database.path.exists()


def test_a_file_that_is_replaced_in_use_is_damage_and_is_left_alone(database: Database, tmp_path: Path) -> None:
    write(database, adding("acme"))
    assert database.path is not None
    database.path.rename(tmp_path / "kept")
    with closing(sqlite3.connect(database.path)) as other:
        other.execute("CREATE TABLE agentgate_tenants (tenant TEXT, fingerprint_key BLOB)")
    for _ in range(2):
        with pytest.raises(Damaged, match="replaced"):
            write(database, adding("other"))
        database.close()
    with closing(sqlite3.connect(database.path)) as other:
        assert other.execute("SELECT * FROM agentgate_tenants").fetchall() == []


FOREIGN = {
    "trigger": "CREATE TRIGGER spy AFTER INSERT ON agentgate_tenants BEGIN DELETE FROM agentgate_tenants; END",
    "trigger on another table": "CREATE TRIGGER spy AFTER INSERT ON notes BEGIN DELETE FROM agentgate_tenants; END",
    "view": "CREATE VIEW spy AS SELECT * FROM agentgate_tenants",
    "view with our name": "CREATE VIEW agentgate_spy AS SELECT 1",
    "view in other letters": "CREATE VIEW spy AS SELECT * FROM AgentGate_Tenants",
}


@pytest.mark.parametrize("kind", list(FOREIGN))
def test_foreign_triggers_and_views_on_our_tables_are_refused(database: Database, kind: str) -> None:
    database.close()
    with closing(database._module.connect(str(database.path))) as other:
        other.execute("CREATE TABLE notes (x)")
        other.execute(FOREIGN[kind])
        other.commit()
    with pytest.raises(UnsafeStore, match="spy") as caught:
        names(database)
    assert caught.value.remedy == f"drop the {kind.partition(' ')[0]}"


def test_a_users_own_tables_triggers_and_views_are_none_of_our_business(database: Database) -> None:
    database.close()
    with closing(database._module.connect(str(database.path))) as other:
        other.execute("CREATE TABLE notes (x)")
        other.execute("CREATE VIEW recent AS SELECT * FROM notes")
        other.execute("CREATE TRIGGER tidy AFTER INSERT ON notes BEGIN DELETE FROM notes; END")
        other.commit()
    assert names(database) == []
