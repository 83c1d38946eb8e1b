"""What store functions find, page by page, and what the tables refuse."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from agentgate.chain import Link
from agentgate.core.records import ActionFile
from agentgate.errors import Damaged, Unavailable
from agentgate.store import actions, committing, events, runs
from agentgate.store.engine import Database
from agentgate.store.schema import locks, switches
from agentgate.store.statements import Statement, insert_all
from support.ids import LEDGER, RUN, a_hash, an_id
from support.rows import running, write
from support.walking import Walk


def test_fences_grow_over_all_actions_and_none_is_given_twice(database: Database) -> None:
    walk = Walk()
    ids = [walk.take("proposed.allowed") for _ in range(3)]
    for action in ids:
        walk.take("started", action)
    tries = [walk.file(action).attempts[1] for action in ids]
    given: list[int] = []

    def work(connection: Connection) -> None:
        given.extend(actions.open_attempt(connection, attempt) for attempt in tries)
        connection.execute(text("DELETE FROM agentgate_attempts"))
        given.append(actions.open_attempt(connection, tries[0]))

    write(database, work)
    assert given == sorted(set(given))


def test_a_lease_is_renewed_by_its_holder_while_it_is_open(database: Database) -> None:
    walk = Walk()
    action = walk.take("proposed.allowed")
    walk.take("started", action)
    attempt, run = walk.file(action).attempts[1], walk.draft.run

    def work(connection: Connection) -> None:
        runs.write(connection, None, run)
        fence = actions.open_attempt(connection, attempt)

        def renewed(fence: int, holder: str, now_us: int) -> bool:
            return actions.renew(connection, fence=fence, holder=holder, now_us=now_us, lease_us=99)

        def until() -> object:
            return connection.execute(text("SELECT lease_until_us FROM agentgate_attempts")).scalar()

        assert renewed(fence, attempt.holder, run.at_us + 1)
        assert not renewed(fence, "somebody/1/2/else", run.at_us + 2)
        assert not renewed(fence + 1, attempt.holder, run.at_us + 2)
        assert until() == run.at_us + 1 + 99
        assert renewed(fence, attempt.holder, 0)  # the host's clock was set back: the run's own time goes on
        assert until() == run.at_us + 99
        connection.execute(text("UPDATE agentgate_attempts SET state = 'in_doubt'"))
        assert not renewed(fence, attempt.holder, run.at_us + 3)

    write(database, work)


def test_the_newest_revision_of_a_key_is_found_among_others(database: Database) -> None:
    walk = Walk()
    base = walk.file(walk.take("proposed.refused")).action

    def work(connection: Connection) -> None:
        runs.write(connection, None, walk.draft.run)
        changes: list[dict[str, Any]] = [
            {"revision": 1},
            {"revision": 3},
            {"revision": 2},
            {"tenant": "b", "revision": 9},
            {"tool": "x", "revision": 9},
        ]
        for number, changed in enumerate(changes):
            actions.add(connection, [ActionFile(action=replace(base, id=an_id(number), **changed))])
        found = actions.newest(connection, tenant="acme", namespace="", tool="refund", key=base.key)
        assert found is not None
        assert found.revision == 3

    write(database, work)


def test_the_recent_actions_are_the_newest_and_bounded(database: Database) -> None:
    walk = Walk()
    base = walk.file(walk.take("proposed.refused")).action

    def work(connection: Connection) -> None:
        runs.write(connection, None, walk.draft.run)
        for number in range(20):
            file = ActionFile(action=replace(base, id=an_id(number), tool=f"t{number}", revision=number + 1))
            actions.add(connection, [file])
        assert [row[2] for row in actions.recent(connection, RUN)] == [f"t{number}" for number in range(19, 3, -1)]
        assert [a.tool for a in actions.of_run(connection, RUN, after=an_id(3), size=2)] == ["t4", "t5"]
        assert actions.recent(connection, an_id(500)) == []

    write(database, work)


def test_documents_are_stored_once_and_read_in_pages(database: Database) -> None:
    kept = {a_hash(number): ("spec", str(number).encode()) for number in range(events.PAGE + 5)}

    def work(connection: Connection) -> None:
        for digest, (kind, content) in kept.items():
            assert events.add_document(connection, digest, kind, content)
        assert not events.add_document(connection, a_hash(0), "spec", b"other")
        assert events.document(connection, a_hash(0)) == ("spec", b"0")
        assert events.document(connection, a_hash("none")) is None
        first = list(events.all_documents(connection, after=b""))
        rest = list(events.all_documents(connection, after=first[-1][0]))
        assert (len(first), len(rest)) == (events.PAGE, 5)
        assert {digest: (kind, content) for digest, kind, content in first + rest} == kept

    write(database, work)


def test_a_link_is_read_at_its_place(database: Database) -> None:
    walk = Walk()
    plan = walk.commit()
    write(database, lambda connection: committing.write(connection, plan))
    with database.read() as connection:
        assert events.link(connection, RUN, 0) == plan.links[0]
        assert events.link(connection, RUN, 1) is None
        assert events.link(connection, LEDGER, 0) is None


def test_two_events_at_one_place_are_damage(database: Database) -> None:
    plan = Walk().commit()
    write(database, lambda connection: committing.write(connection, plan))
    with pytest.raises(Damaged, match="UNIQUE"):
        write(database, lambda connection: events.append(connection, RUN, [Link(n=0, hash=b"", encoded=b"")]))


HALF = b'[{"account":"a","amount":1.5}]'


@pytest.mark.parametrize(
    ("flip", "read"),
    [
        ("UPDATE agentgate_runs SET limits = x'7b'", lambda connection: runs.read(connection, RUN)),
        ("UPDATE agentgate_runs SET limits = x'5b5d'", lambda connection: runs.read(connection, RUN)),
        ("UPDATE agentgate_runs SET state = 'GONE'", lambda connection: runs.read(connection, RUN)),
        ("UPDATE agentgate_actions SET state = 'GONE'", lambda connection: actions.of_run(connection, RUN)),
        ("UPDATE agentgate_actions SET reserved = x'5b'", lambda connection: actions.of_run(connection, RUN)),
        ("UPDATE agentgate_actions SET reserved = x'5b315d'", lambda connection: actions.of_run(connection, RUN)),
        ("UPDATE agentgate_actions SET reserved = x'7b7d'", lambda connection: actions.of_run(connection, RUN)),
        (
            f"UPDATE agentgate_actions SET reserved = x'{HALF.hex()}'",
            lambda connection: actions.of_run(connection, RUN),
        ),
    ],
)
def test_a_row_that_no_writer_of_ours_would_write_is_damage(database: Database, flip: str, read: Any) -> None:
    walk = Walk()
    walk.take("proposed.allowed")
    write(database, lambda connection: committing.write(connection, walk.commit()))
    write(database, running("PRAGMA ignore_check_constraints = ON"), running(flip))
    with pytest.raises(Damaged):
        write(database, read)


@pytest.mark.parametrize(
    "row",
    [
        "INSERT INTO agentgate_switches VALUES ('some', '', '', '', 1, 0)",
        "INSERT INTO agentgate_budgets VALUES ('acme', 'run', '', '', 'actions', 1, 0, 0)",
        "INSERT INTO agentgate_budgets VALUES ('acme', 'tenant', '', '', 'actions', 'many', 0, 0)",
        "INSERT INTO agentgate_ledger VALUES (2, 'x', 0)",
        "INSERT INTO agentgate_tenants VALUES ('x', 'text where bytes belong')",
        "INSERT INTO agentgate_locks VALUES ('x', x'00', 'r', 'a', 'no number')",
        "INSERT INTO agentgate_events VALUES ('no such run', 0, x'00', x'00')",
    ],
)
def test_the_tables_refuse_what_the_schema_does_not_allow(database: Database, row: str) -> None:
    with pytest.raises((Damaged, Unavailable)):
        write(database, running(row))


def test_a_statement_binds_what_its_expression_carries(database: Database) -> None:
    paused = Statement(switches.select().where(switches.c.kind == "all", switches.c.paused == 1).limit(1))
    write(database, running("INSERT INTO agentgate_switches VALUES ('all', '', '', '', 1, 7)"))
    write(database, running("INSERT INTO agentgate_switches VALUES ('tool', '', '', '', 1, 7)"))
    with database.read() as connection:
        assert paused.rows(connection) == [("all", "", "", "", 1, 7)]
        assert paused.row(connection) == ("all", "", "", "", 1, 7)


def test_no_rows_need_no_statement(database: Database) -> None:
    write(database, lambda connection: insert_all(connection, locks, []))


def test_the_listing_leaves_the_ledgers_own_chain_out(database: Database) -> None:
    run = Walk().draft.run

    def work(connection: Connection) -> None:
        for number, tenant in enumerate(["acme", "$ledger", "b", "acme"]):
            runs.write(connection, None, replace(run, id=an_id(number), tenant=tenant, name=f"{number}"))
        assert [one.name for one in runs.listing(connection, tenant=None)] == ["0", "2", "3"]
        assert [one.name for one in runs.listing(connection, tenant="acme")] == ["0", "3"]
        assert [one.name for one in runs.pages(connection, after=an_id(1))] == ["2", "3"]

    write(database, work)


def test_a_tenant_has_a_fingerprint_key_until_it_is_destroyed(database: Database) -> None:
    def work(connection: Connection) -> None:
        assert not runs.has_tenant(connection, "acme")
        runs.create_tenant(connection, tenant="acme", fingerprint_key=b"k" * 32)
        assert runs.has_tenant(connection, "acme")
        assert runs.fingerprint_key(connection, "acme") == b"k" * 32
        connection.execute(text("UPDATE agentgate_tenants SET fingerprint_key = NULL"))
        assert runs.has_tenant(connection, "acme")
        assert runs.fingerprint_key(connection, "acme") is None

    write(database, work)


def test_a_database_without_its_ledgers_row_is_damage(database: Database) -> None:
    with pytest.raises(Damaged, match="missing"):
        write(database, runs.ledger_id)
