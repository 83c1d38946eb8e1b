"""Every record is read as it was written, and is written only where it still stands as it was read."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from agentgate.action import Key
from agentgate.bodies import LIMIT_NAMES
from agentgate.chain import follow, start
from agentgate.core.draft import Payload, StoredPayload
from agentgate.core.records import ActionFile, ActionRecord, Counters, RunRecord
from agentgate.states import STATES, RunState
from agentgate.store import actions, committing, events, runs
from agentgate.store.engine import Database
from support.documents import TEXTS
from support.ids import LEDGER, RUN, a_hash, an_id
from support.rows import commit, raising, running, write
from support.walking import Walk

each_on_one_database = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])

HASHES = st.binary(min_size=32, max_size=32)
MOMENTS = st.integers(0, 2**53 - 1)
COUNTS = st.integers(0, 2**31)
CODES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF).filter(str.isprintable) | st.just(" "), min_size=1)


class Undone(Exception):
    """What is tried in an example leaves nothing for the next."""


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


RUNS = st.builds(
    RunRecord,
    id=st.just(RUN),
    tenant=TEXTS,
    name=TEXTS,
    principal=TEXTS,
    limits=st.dictionaries(st.sampled_from(sorted(LIMIT_NAMES)), COUNTS).map(MappingProxyType),
    opened_at_us=MOMENTS,
    state=st.sampled_from(RunState),
    reason=_maybe(CODES),
    n=COUNTS,
    head=HASHES,
    at_us=MOMENTS,
    counters=st.builds(Counters, **dict.fromkeys(Counters.__dataclass_fields__, COUNTS)),
)
ACTIONS = st.builds(
    ActionRecord,
    id=st.just(an_id(1)),
    run=st.just(RUN),
    tenant=TEXTS,
    principal=TEXTS,
    namespace=TEXTS,
    tool=TEXTS,
    key=st.builds(Key, source=st.sampled_from(["caller", "adapter", "outside", "own"]), scope=TEXTS, text=TEXTS),
    revision=st.integers(1, 2**31),
    spec=_maybe(HASHES),
    digest=HASHES,
    request=_maybe(HASHES),
    resource=_maybe(HASHES),
    proposed_n=COUNTS,
    proposed_at_us=MOMENTS,
    state=st.sampled_from(STATES),
    reason=_maybe(CODES),
    state_n=COUNTS,
    last_n=COUNTS,
    attempts=COUNTS,
    unresolved=COUNTS,
    fence=_maybe(COUNTS),
    approval=_maybe(TEXTS),
    requirement=_maybe(HASHES),
    asked=COUNTS,
    first_started_us=_maybe(MOMENTS),
    expires_at_us=_maybe(MOMENTS),
    result_n=_maybe(COUNTS),
    outcome=_maybe(HASHES),
    waited=st.lists(CODES, unique=True).map(tuple),
    confirmed=st.sampled_from([None, "yes", "no"]),
    reserved=st.dictionaries(CODES, st.integers(-(2**31), 2**31)).map(lambda amounts: tuple(amounts.items())),
    dedupe_until_us=_maybe(MOMENTS),
    edits=_maybe(TEXTS),
    edited_by=_maybe(TEXTS),
)


def _example(database: Database, *steps: Any) -> None:
    with pytest.raises(Undone):
        write(database, *steps, raising(Undone))


@each_on_one_database
@given(run=RUNS)
def test_a_run_is_read_as_it_was_written(database: Database, run: RunRecord) -> None:
    def work(connection: Connection) -> None:
        assert runs.write(connection, None, run)
        assert runs.read(connection, run.id) == run
        assert runs.find(connection, tenant=run.tenant, name=run.name) == run
        assert runs.pages(connection) == [run]

    _example(database, work)


@each_on_one_database
@given(run=RUNS, later=RUNS)
def test_a_run_moves_from_where_it_was_read_and_from_nowhere_else(
    database: Database, run: RunRecord, later: RunRecord
) -> None:
    moved = replace(
        later, tenant=run.tenant, name=run.name, principal=run.principal, limits=run.limits,
        opened_at_us=run.opened_at_us,
    )  # fmt: skip

    def work(connection: Connection) -> None:
        runs.write(connection, None, run)
        for stale in (replace(run, n=run.n + 1), replace(run, head=a_hash("other")), replace(run, id=an_id(99))):
            assert not runs.write(connection, stale, replace(moved, id=stale.id))
            assert runs.read(connection, run.id) == run
        assert runs.write(connection, run, moved)
        assert runs.read(connection, run.id) == moved

    _example(database, work)


@each_on_one_database
@given(action=ACTIONS)
def test_an_action_is_read_as_it_was_written(database: Database, action: ActionRecord) -> None:
    def work(connection: Connection) -> None:
        _opened(connection)
        actions.add(connection, [ActionFile(action=action)])
        assert actions.read(connection, action.id) == action
        found = actions.newest(
            connection, tenant=action.tenant, namespace=action.namespace, tool=action.tool, key=action.key
        )
        assert found == action
        assert actions.of_run(connection, RUN) == [action]
        assert actions.waiting(connection, RUN) == ([action.id] if action.state in {"READY", "HELD"} else [])
        shown = (action.id, action.namespace, action.tool, action.state, action.reason, action.request, action.outcome)
        assert actions.recent(connection, RUN) == [shown]

    _example(database, work)


@each_on_one_database
@given(action=ACTIONS, later=ACTIONS)
def test_an_action_moves_from_where_it_was_read_and_from_nowhere_else(
    database: Database, action: ActionRecord, later: ActionRecord
) -> None:
    kept = (
        *("tenant", "principal", "namespace", "tool", "key", "revision", "spec", "digest", "request", "resource"),
        *("edits", "edited_by"),
    )
    moved = replace(
        later,
        proposed_n=action.proposed_n,
        proposed_at_us=action.proposed_at_us,
        **{name: getattr(action, name) for name in kept},
    )
    other_state = next(state for state in STATES if state is not action.state)

    def work(connection: Connection) -> None:
        _opened(connection)
        actions.add(connection, [ActionFile(action=action)])
        for stale in (
            replace(action, state=other_state),
            replace(action, last_n=action.last_n + 1),
            replace(action, fence=(action.fence or 0) + 1),
            replace(action, fence=None if action.fence is not None else 0),
        ):
            assert not actions.write(connection, ActionFile(action=stale), ActionFile(action=moved))
            assert actions.read(connection, action.id) == action
        assert actions.write(connection, ActionFile(action=action), ActionFile(action=moved))
        assert actions.read(connection, action.id) == moved

    _example(database, work)


def _opened(connection: Connection) -> None:
    """Write the run that an action's foreign key needs."""
    runs.write(connection, None, Walk().draft.run)


@st.composite
def steps(draw: st.DrawFn) -> list[list[int]]:
    """Choices for a walk, in transactions of one to six events."""
    return draw(st.lists(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), min_size=1, max_size=8))


@each_on_one_database
@given(choices=steps())
def test_what_a_walk_leaves_in_the_tables_is_what_it_folds_to(database: Database, choices: list[list[int]]) -> None:
    def work(connection: Connection) -> None:
        walk = Walk()
        for transaction in choices:
            for choice in transaction:
                possible = walk.possible()
                walk.take(*possible[choice % len(possible)])
            expected = {action: walk.file(action) for action in walk.models}
            run = walk.draft.run
            commit(connection, walk.commit())
            files = {action: actions.file(connection, action) for action in walk.models}
            assert files == expected
            assert runs.read(connection, RUN) == run
            walk.read(run, {action: file for action, file in files.items() if file is not None})
        _chain_is_whole(connection, walk)

    _example(database, work)


def _chain_is_whole(connection: Connection, walk: Walk) -> None:
    head, read = start(LEDGER, RUN), []
    while page := events.links(connection, RUN, start=head.n, size=7):
        for link in page:
            event, head = follow(head, link)
            read.append(event)
    assert read == walk.events
    named = {(event.n, kind): digest for event in read for kind, digest in _named(event.body).items()}
    stored = events.payloads_between(connection, RUN, start=0, end=head.n)
    assert {(one.n, one.payload.kind): one.payload.digest.hex() for one in stored} == named


def _named(body: Mapping[str, Any]) -> dict[str, str]:
    return dict(body["payloads"])


def test_a_stale_plan_is_refused_whole(database: Database) -> None:
    walk = Walk()
    action = walk.take("proposed.allowed")
    write(database, lambda connection: commit(connection, walk.commit()))
    walk.take("cancelled", action)
    plan = walk.commit()
    write(database, lambda connection: commit(connection, plan))
    with pytest.raises(committing.Moved):
        write(database, lambda connection: commit(connection, plan))
    with database.read() as connection:
        assert len(events.links(connection, RUN, start=0)) == 3


def test_a_plan_of_the_run_alone_is_refused_where_the_run_has_moved(database: Database) -> None:
    walk = Walk()
    write(database, lambda connection: commit(connection, walk.commit()))
    walk.take("charged")
    plan = walk.commit()
    write(database, lambda connection: commit(connection, plan))
    with pytest.raises(committing.Moved):
        write(database, lambda connection: commit(connection, plan))


@pytest.mark.parametrize("table", ["actions", "attempts", "approvals", "votes"])
def test_a_row_that_was_changed_behind_a_plan_stops_it(database: Database, table: str) -> None:
    walk = Walk()
    action = walk.take("proposed.held")
    for word in ("voted", "approved", "started"):
        walk.take(word, action)
    if table == "votes":
        action = walk.take("proposed.held")
        walk.take("voted", action)
    write(database, lambda connection: commit(connection, walk.commit()))
    run = walk.draft.run
    walk.take("vote_revoked" if table == "votes" else "failed", action)
    behind = {
        "actions": "UPDATE agentgate_actions SET last_n = last_n + 1",
        "attempts": "UPDATE agentgate_attempts SET state = 'in_doubt'",
        "approvals": "UPDATE agentgate_approvals SET state = 'void'",
        "votes": "DELETE FROM agentgate_votes",
    }[table]
    write(database, running(behind))
    with pytest.raises(committing.Moved):
        write(database, lambda connection: commit(connection, walk.commit()))
    with database.read() as connection:
        assert events.links(connection, RUN, start=run.n + 1) == []


def test_an_attempt_that_begins_and_ends_in_one_transaction_is_ended_in_its_row(database: Database) -> None:
    walk = Walk()
    action = walk.take("proposed.allowed")
    walk.take("started", action)
    walk.take("succeeded", action)
    expected = walk.file(action)
    write(database, lambda connection: commit(connection, walk.commit()))
    with database.read() as connection:
        assert actions.file(connection, action) == expected


@each_on_one_database
@given(content=st.binary(), salt=HASHES)
def test_a_payload_is_read_as_it_was_written_at_its_place(database: Database, content: bytes, salt: bytes) -> None:
    payload = Payload(kind="arguments", salt=salt, content=content)

    def work(connection: Connection) -> None:
        events.add_payloads(connection, [StoredPayload(run=RUN, n=3, payload=payload)])
        assert events.payload(connection, RUN, 3, "arguments") == payload
        assert events.payload(connection, RUN, 2, "arguments") is None
        assert events.payload(connection, RUN, 3, "result") is None

    _example(database, work)
