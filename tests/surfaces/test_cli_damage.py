"""Whatever somebody writes into a ledger's rows, a command ends with a line and not with a traceback."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import agentgate
from agentgate.store import sqlite
from agentgate.testing import ScriptedPolicy
from support.commands import Ran, ran, unseen
from support.worlds import World, made, named, opened

ODD: dict[str, tuple[object, ...]] = {
    "INTEGER": (None, 2**62),
    "BIGINT": (None, 2**62),
    "TEXT": (None, "\x1b[2J"),
    "BLOB": (None, b"\xff\x00", b'{"v":1,"a":[]}'),
}
TENANT = ("--tenant", "acme")


def vanish() -> None:
    raise RuntimeError("the connection broke")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a ledger with an action in each state that a command may meet."""
    world = made(tmp_path_factory.mktemp("damage"), journal="delete")
    policy = ScriptedPolicy(agentgate.allow(), agentgate.deny("a", "b"), agentgate.require_approval("c", "d"))
    with world.gate(world.refund(), named("vanish", vanish), policy=policy) as gate:
        run = opened(gate)
        for number in range(3):
            gate.call(run, "refund", {"account": "a1", "cents": 5}, key=f"k-{number}")
        gate.call(run, "vanish", {})
    return world


def _commands(world: World) -> list[tuple[str, ...]]:
    actions = dict(world.sql("SELECT state, id FROM agentgate_actions"))
    act = (world.url, *TENANT, "--by", "ops:ada")
    return [
        ("runs", world.url, *TENANT),
        ("show", "ticket-1", world.url, *TENANT),
        ("events", "ticket-1", world.url, *TENANT),
        *(("show", str(id_), world.url, *TENANT) for id_ in actions.values()),
        ("cancel", str(actions["HELD"]), *act),
        ("reconcile", str(actions["UNKNOWN"]), *act, "--applied", "--evidence", "none"),
    ]


def _columns(world: World) -> list[tuple[str, str, str]]:
    tables = world.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'agentgate%'")
    return [
        (table, str(name), str(kind))
        for (table,) in tables
        for _, name, kind, *_ in world.sql(f"PRAGMA table_info({table})")
    ]


def _spoilt(path: Path, table: str, column: str, value: object) -> bool:
    connection: sqlite3.Connection = sqlite.module().connect(str(path), isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            return connection.execute(f"UPDATE {table} SET {column} = ?", (value,)).rowcount > 0
        except sqlite.module().Error:
            return False


def _is_fit(done: Ran) -> bool:
    return done.code in {0, 1, 2} and "Traceback" not in done.err and not unseen(done.out + done.err)


@pytest.mark.slow
def test_no_value_of_any_column_ends_a_command_with_a_traceback(world: World) -> None:
    whole, commands = world.path.read_bytes(), _commands(world)
    unfit, tried = [], 0
    for table, column, kind in _columns(world):
        for value in ODD.get(kind, ODD["TEXT"]):
            world.path.write_bytes(whole)
            if not _spoilt(world.path, table, column, value):
                continue
            tried += 1
            unfit += [(table, column, value, command) for command in commands if not _is_fit(ran(*command))]
    world.path.write_bytes(whole)
    assert tried > 80
    assert not unfit
