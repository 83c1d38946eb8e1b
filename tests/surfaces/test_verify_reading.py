"""Verifying writes nothing, reads in pages of any size, and is not disturbed by those who write meanwhile."""

import multiprocessing
import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Gate, Unavailable, UnsafeStore, WrongSchema
from agentgate.clock import SystemClock
from agentgate.store import inspecting, sqlite
from agentgate.store.engine import Database
from agentgate.store.front import FrontLock
from support.edits import Copy
from support.rich import until
from support.worlds import World, made, opened

WAL = sqlite.wal_is_safe(sqlite.module().sqlite_version_info)


@pytest.fixture(params=["wal", "delete"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if request.param == "wal" and not WAL:
        pytest.skip("this SQLite's WAL is not safe; the extra `sqlite` brings one that is")
    (tmp_path / "ledger").mkdir()
    return made(tmp_path / "ledger", journal=request.param)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_verifying_changes_no_file_and_makes_none(copy: Copy) -> None:
    before = _files(copy.path.parent)
    assert copy.verify().ok
    assert _files(copy.path.parent) == before


def test_verifying_writes_nothing_into_a_ledger_that_others_have_open(written: World) -> None:
    with written.gate() as gate:
        gate.call(opened(gate), "refund", {"account": "a", "cents": 1})
        before = {name: content for name, content in _files(written.folder).items() if not name.endswith("-shm")}
        assert agentgate.verify(written.url).ok
        after = {name: content for name, content in _files(written.folder).items() if not name.endswith("-shm")}
    assert after == before


def test_verifying_migrates_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(WrongSchema):
        agentgate.verify(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(UnsafeStore):
        agentgate.verify(f"sqlite:///{tmp_path / 'missing.db'}")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_bytes(b"no database at all" * 1_000)
    with pytest.raises((UnsafeStore, Unavailable)):
        agentgate.verify(f"sqlite:///{tmp_path / 'text.db'}")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_where_a_page_ends_changes_nothing(copy: Copy, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    whole = copy.verify()
    monkeypatch.setattr(inspecting, "PAGE", size)
    assert copy.verify() == whole
    monkeypatch.setattr(inspecting, "PAGE_BYTES", 100)
    assert copy.verify() == whole


@pytest.mark.parametrize("size", [1, 3])
def test_what_is_broken_is_found_in_pages_of_any_size(copy: Copy, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(inspecting, "PAGE", size)
    for name, column in (("actions", "last_n"), ("actions", "state"), ("attempts", "ended_n"), ("payloads", "content")):
        for row in copy.fresh().rows(name)[::5]:
            value = row[column]
            if type(value) is int:
                for other in (value - 1, value + 1, 2**62):
                    copy.fresh().set(name, column, row["rowid"], other)
                    assert not copy.verify().ok
            elif type(value) is bytes:
                copy.fresh().set(name, column, row["rowid"], value + b" ")
                assert not copy.verify().ok


def test_progress_is_told_up_to_the_end(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "PAGE", 10)
    told: list[tuple[int, int]] = []
    found = agentgate.verify(copy.url, on_progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (found.events, found.events)
    assert len(told) > found.events / 10


def test_who_is_told_may_end_the_verification(copy: Copy) -> None:
    class Enough(Exception):
        pass

    def tell(_done: int, _total: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        agentgate.verify(copy.url, on_progress=tell)


def _write_on(gate: Gate, stop: threading.Event, name: str) -> None:
    run = opened(gate, name)
    for n in range(10_000):
        if stop.is_set():
            return
        gate.call(run, "refund", {"account": "again", "cents": n % 20}, key=f"{name}-{n % 20}")
        gate.execute(gate.propose(opened(gate, f"{name}-{n % 5}"), "refund", {"account": str(n % 3), "cents": n}))


@pytest.mark.parametrize("size", [4, 400])
def test_a_ledger_that_is_written_meanwhile_is_whole(
    written: World, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(inspecting, "PAGE", size)
    stop = threading.Event()
    with written.gate() as one, written.gate() as other:
        named = ((one, "a"), (other, "b"))
        writers = [threading.Thread(target=_write_on, args=(gate, stop, name)) for gate, name in named]
        for writer in writers:
            writer.start()
        try:
            until(lambda: agentgate.verify(written.url).events > 120)
            found = [agentgate.verify(written.url) for _ in range(6)]
        finally:
            stop.set()
            for writer in writers:
                writer.join()
    assert [one.breaks for one in found] == [()] * len(found)
    assert found[-1].events > found[0].events


def test_a_ledger_that_is_locked_for_long_is_unavailable(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentgate.gate.verifying.Database", partial(Database, patience_us=50_000))
    path = copy.path.with_name(f"{copy.path.name}.lock")
    path.touch(mode=0o600)
    with FrontLock(path, clock=SystemClock(), patience_us=1_000_000).exclusive(), pytest.raises(Unavailable):
        copy.verify()


def test_a_ledger_that_was_left_in_a_transaction_says_how_to_undo_it(copy: Copy) -> None:
    killed = multiprocessing.get_context("fork").Process(target=_die_writing, args=(copy.path,))
    killed.start()
    killed.join()
    with pytest.raises(Unavailable) as unavailable:
        copy.verify()
    assert unavailable.value.reason == "interrupted"
    assert f"agentgate migrate {copy.url}" in str(unavailable.value)
    agentgate.migrate(copy.url)
    assert copy.verify().ok


def _die_writing(path: Path) -> None:
    """Write more than fits the cache, so that some of it is in the file, and die before the commit."""
    module: Any = sqlite.module()
    connection = module.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA cache_size = 5")
    connection.execute("BEGIN IMMEDIATE")
    for n in range(500):
        connection.execute("INSERT INTO agentgate_payloads VALUES ('x', ?, 'raw', NULL, randomblob(5000), NULL)", (n,))
    os.kill(os.getpid(), signal.SIGKILL)
