"""What is lent may write in its transaction, and nothing else: each statement is judged as it is prepared."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from agentgate.errors import Misuse, Unavailable
from agentgate.store.engine import Database
from agentgate.store.lending import lent
from support.rows import names


@pytest.fixture
def own(database: Database) -> Database:
    with database.write() as connection:
        connection.execute(text("CREATE TABLE mine (id INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT)"))
        connection.execute(text("CREATE TABLE plain (id INTEGER PRIMARY KEY, word TEXT)"))
    return database


@pytest.fixture
def given(own: Database) -> Iterator[Connection]:
    with own.write() as connection, lent(connection, of="a test") as lent_connection:
        yield lent_connection


ALLOWED = [
    "INSERT INTO mine (word) VALUES ('a')",
    "UPDATE mine SET word = upper(word)",
    "DELETE FROM mine",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT * FROM n",
    "CREATE TABLE other (id INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT UNIQUE)",
    "CREATE INDEX words ON mine (word)",
    "ALTER TABLE mine ADD COLUMN agentgate_action TEXT",
    "DROP TABLE plain",
    "PRAGMA table_info(mine)",
    "SELECT name FROM sqlite_master",
    "SAVEPOINT theirs",
]
REFUSED = [
    ("COMMIT", "transaction"),
    ("END", "transaction"),
    ("ROLLBACK", "transaction"),
    ("BEGIN", "transaction"),
    ("/* a word */ commit", "transaction"),
    ("SAVEPOINT agentgate_effect", "savepoint"),
    ("RELEASE Agentgate_Effect", "savepoint"),
    ("ROLLBACK TO agentgate_step", "savepoint"),
    ("ATTACH ':memory:' AS other", "attaches"),
    ("DETACH main", "detaches"),
    ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys"),
    ("PRAGMA synchronous = OFF", "PRAGMA synchronous"),
    ("PRAGMA writable_schema = ON", "PRAGMA writable_schema"),
    ("PRAGMA wal_checkpoint", "PRAGMA wal_checkpoint"),
    ("SELECT * FROM agentgate_tenants", "reads"),
    ("SELECT (SELECT count(*) FROM agentgate_events)", "reads"),
    ("INSERT INTO agentgate_tenants VALUES ('x', x'00')", "writes"),
    ("INSERT INTO main.AGENTGATE_tenants VALUES ('x', x'00')", "writes"),
    ("UPDATE agentgate_runs SET state = 'OPEN'", "writes|reads"),
    ("DELETE FROM agentgate_events", "writes"),
    ("UPDATE sqlite_sequence SET seq = 0", "writes"),
    ("DROP TABLE agentgate_events", "ledger's|writes"),
    ("ALTER TABLE agentgate_events ADD COLUMN x TEXT", "ledger's"),
    ("CREATE INDEX mine_too ON agentgate_events (n)", "ledger's"),
    ("CREATE TABLE agentgate_mine (x TEXT)", "ledger's"),
    ("CREATE TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM mine; END", "trigger"),
    ("CREATE TEMP TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM mine; END", "trigger"),
    ("CREATE TEMP TABLE agentgate_actions (x TEXT)", "temporary"),
    ("CREATE VIEW v AS SELECT * FROM mine", "view"),
]


@pytest.mark.parametrize("statement", ALLOWED)
def test_tables_that_are_not_the_ledgers_are_free(given: Connection, statement: str) -> None:
    given.exec_driver_sql(statement)
    assert given.exec_driver_sql("SELECT 1").scalar() == 1  # and what was lent goes on


@pytest.mark.parametrize(("statement", "words"), REFUSED)
def test_everything_else_is_refused_with_what_is_wrong(given: Connection, statement: str, words: str) -> None:
    with pytest.raises(Misuse, match=f"a test: its statement .*({words})"):
        given.exec_driver_sql(statement)
    raw = given.connection.dbapi_connection
    assert raw is not None
    with pytest.raises(Misuse, match=f"a test: its statement .*({words})"):
        raw.cursor().execute(statement)
    given.exec_driver_sql("INSERT INTO mine (word) VALUES ('still there')")


def test_a_statement_that_was_prepared_before_is_judged_too(own: Database) -> None:
    statement = "SELECT count(*) FROM agentgate_tenants"
    with own.write() as connection:
        connection.exec_driver_sql(statement).all()
        with lent(connection, of="a test") as given, pytest.raises(Misuse):
            given.exec_driver_sql(statement)
        connection.exec_driver_sql(statement).all()


def test_nothing_else_of_the_connection_is_handed_out(given: Connection) -> None:
    raw = given.connection.dbapi_connection
    assert raw is not None
    with pytest.raises(Misuse, match="makes a function"):
        raw.create_function("f", 0, lambda: 1)
    with pytest.raises(Misuse, match="executescript commits"):
        raw.cursor().executescript("SELECT 1")
    with pytest.raises(AttributeError):
        raw.set_authorizer(None)


def test_savepoints_of_its_own_work(given: Connection) -> None:
    with given.begin_nested():
        given.exec_driver_sql("INSERT INTO mine (word) VALUES ('kept')")
    nested = given.begin_nested()
    given.exec_driver_sql("INSERT INTO mine (word) VALUES ('undone')")
    nested.rollback()
    assert given.exec_driver_sql("SELECT word FROM mine").scalars().all() == ["kept"]


def test_what_is_left_open_is_not_in_the_commits_way(own: Database) -> None:
    with own.write() as connection, lent(connection, of="a test") as given:
        rows = given.exec_driver_sql("INSERT INTO mine (word) VALUES ('a'), ('b') RETURNING word")
        rows.fetchone()
    with own.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM mine").scalar() == 2


def test_nothing_is_written_once_the_database_has_ended_the_transaction(own: Database) -> None:
    """A full disk or a conflict may undo the transaction; a tool that goes on would then commit bit by bit."""
    told: list[Exception] = []

    def go_on() -> None:
        with own.write() as connection, lent(connection, of="a test") as given:
            given.exec_driver_sql("INSERT INTO mine (id, word) VALUES (1, 'before')")
            for statement in ("INSERT OR ROLLBACK INTO mine (id) VALUES (1)", "INSERT INTO mine (id) VALUES (2)"):
                try:
                    given.exec_driver_sql(statement)
                except (IntegrityError, Unavailable) as error:
                    told.append(error)

    with pytest.raises(Unavailable, match="had ended before its commit"):
        go_on()
    assert [type(error) for error in told] == [IntegrityError, Unavailable]
    with own.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM mine").scalar() == 0


def test_its_guard_is_gone_with_it(own: Database) -> None:
    with own.write() as connection, lent(connection, of="a test") as given:
        given.exec_driver_sql("INSERT INTO mine (word) VALUES ('a')")
    assert names(own) == []
    with pytest.raises(Exception, match="closed"):
        given.exec_driver_sql("SELECT 1")
