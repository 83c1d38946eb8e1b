"""Cases of other people's loops, "the record". One test per line; docs/cases.md names what else holds each."""

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

import agentgate
from agentgate import Done, Effect, Limits, NotFound, Refused, Unknown
from agentgate.testing import FakeClock, ScriptedPolicy
from support import forking
from support.worlds import World, gates, named, opened

ONE = {"account": "a1", "cents": 1}
CANARY = "canary-7f3a"


def test_no_record_no_transition(world: World) -> None:
    """The event cannot be written, so the state does not move, and nobody is told otherwise."""
    with world.gate() as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", ONE)
        world.sql("CREATE TRIGGER full BEFORE INSERT ON agentgate_events BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        with pytest.raises(agentgate.AgentgateError):
            gate.execute(proposal)
        with pytest.raises(agentgate.AgentgateError):
            gate.propose(run, "refund", ONE, key="k")
    assert world.downstream.total == 0
    assert world.state(proposal.action) == "READY"
    assert world.value("SELECT count(*) FROM agentgate_actions") == 1
    world.sql("DROP TRIGGER full")
    assert not world.broken()
    with world.gate() as gate:
        assert isinstance(gate.execute(proposal), Done)


def test_chains_do_not_fork_under_concurrent_writers(world: World) -> None:
    with gates(world, count=4) as many:
        runs = [opened(gate) for gate in many]

        def work(n: int) -> None:
            for step in range(8):
                many[n].call(runs[n], "refund", {"account": f"a{n}", "cents": step})

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert world.downstream.total == 32
    assert not world.broken()
    assert world.value("SELECT n FROM agentgate_runs WHERE name = 'ticket-1'") == 32 * 3


def test_the_last_three_receipts_deleted_are_found_also_where_the_run_is_set_back_with_them(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        for step in range(3):
            gate.call(run, "refund", {"account": "a1", "cents": step})
    assert not world.damage()
    world.sql("DELETE FROM agentgate_events WHERE run = ? AND n > 6", run.id)
    assert world.broken()
    assert not agentgate.verify(world.url).ok
    world.sql(
        "UPDATE agentgate_runs SET n = 6, head = (SELECT hash FROM agentgate_events WHERE run = id AND n = 6) "
        "WHERE id = ?",
        run.id,
    )
    found = agentgate.verify(world.url)
    assert not found.ok  # the rows that those receipts made stand there without them


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE agentgate_payloads SET content = X'7B7D' WHERE kind = 'arguments'",
        "UPDATE agentgate_payloads SET content = X'7B7D' WHERE kind = 'result'",
        "UPDATE agentgate_actions SET state = 'REFUSED'",
        "UPDATE agentgate_attempts SET state = 'failed'",
        "UPDATE agentgate_events SET event = CAST(replace(event, 'agent:support', 'agent:another') AS BLOB)",
    ],
)
def test_arguments_a_result_a_state_or_an_event_that_was_edited_are_found(world: World, edit: str) -> None:
    with world.gate() as gate:
        gate.call(opened(gate), "refund", ONE)
    assert not world.damage()
    world.sql(edit)
    assert not agentgate.verify(world.url).ok


def test_a_chain_goes_on_in_the_next_process_and_a_start_without_an_end_gets_exactly_one(world: World) -> None:
    """Its head is in the database alone; who comes back, or a sweep, ends what a dead process began."""

    def die() -> None:
        forking.die()

    tool = named("act", die)

    def crash() -> None:
        with world.gate(tool) as gate:
            gate.call(opened(gate), "act", {}, key="k")

    assert forking.run(crash) == forking.KILLED
    assert not world.broken()
    with world.gate(tool) as gate:
        assert gate.sweep().crashed == 1
        unknown = gate.call(opened(gate), "act", {}, key="k")
        assert gate.sweep().crashed == 0
    assert isinstance(unknown, Unknown)
    assert world.words(unknown.action)[:3] == ["proposed", "started", "in_doubt"]
    assert world.words(unknown.action).count("in_doubt") == 1
    assert not world.damage()


def test_no_transaction_is_held_open_across_the_effect(world: World) -> None:
    """A second connection writes while the effect runs, and is not kept waiting."""
    wrote: list[str] = []

    def act(*, effect: Effect) -> None:
        with closing(world.connect()) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
        wrote.append(effect.action_id)

    ways: list[Callable[[agentgate.Gate, agentgate.Run], agentgate.Outcome]] = [
        lambda gate, run: gate.call(run, "act", {}),
        lambda gate, run: gate.execute(gate.propose(run, "act", {})),
        lambda gate, run: gate.execute(gate.propose_many(run, [agentgate.Call("act", {})])[0]),
    ]
    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        assert all(isinstance(way(gate, run), Done) for way in ways)
    assert len(wrote) == len(ways)


def test_every_call_that_completes_has_a_start_and_exactly_one_end(world: World) -> None:
    def act(how: str) -> None:
        if how == "unknown":
            raise ConnectionResetError
        if how == "failed":
            raise agentgate.NoEffect

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "act", {"how": how}) for how in ("done", "failed", "unknown")]
    for outcome in outcomes:
        words = world.words(outcome.action)
        assert words[1] == "started"
        assert len([word for word in words if word != "question_asked"]) == 3
    assert not world.broken()


def test_a_canary_in_arguments_and_results_is_in_payloads_alone_and_in_no_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def act(secret: str) -> str:
        if secret.endswith("raise"):
            raise ConnectionResetError(secret)
        return f"result {secret}"

    with world.gate(named("act", act), policy=ScriptedPolicy(otherwise=agentgate.allow("fine", CANARY))) as gate:
        run = gate.run("r", principal="agent:a", goal=f"goal {CANARY}", tenant="acme")
        gate.call(run, "act", {"secret": CANARY}, provenance={"prompt": CANARY})
        gate.call(run, "act", {"secret": f"{CANARY}raise"})
        refused = gate.call(run, "act", {"secret": 7, CANARY: 1})
        invalid = gate.call(run, "act", f'{{"secret": "{CANARY}"')
        assert CANARY not in repr(gate)
    assert isinstance(refused, Refused)
    assert isinstance(invalid, Refused)
    assert CANARY not in repr(invalid)
    assert CANARY not in caplog.text
    for (table,) in world.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'agent%'"):
        values = [value for row in world.sql(f"SELECT * FROM {table}") for value in row]
        held = any(CANARY in (value.decode("latin-1") if isinstance(value, bytes) else str(value)) for value in values)
        assert held == (table == "agentgate_payloads"), table


def test_the_database_is_locked_reaches_no_caller_under_parallel_agents(world: World) -> None:
    """In one process here; sixteen processes are in the room of faults."""
    errors: list[BaseException] = []
    with gates(world, count=4) as many:

        def work(n: int) -> None:
            run = opened(many[n % 4], f"run-{n}")
            try:
                for step in range(5):
                    many[n % 4].call(run, "refund", {"account": f"a{n}", "cents": step})
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert world.downstream.total == 60


def test_one_organisations_key_never_collides_with_anothers_and_a_foreign_id_is_not_found(world: World) -> None:
    with world.gate() as gate:
        ours = gate.call(opened(gate, tenant="acme"), "refund", ONE, key="k")
        theirs = gate.call(opened(gate, tenant="other"), "refund", {"account": "a2", "cents": 2}, key="k")
        assert isinstance(theirs, Done)
        with pytest.raises(NotFound):
            gate.execute(ours.action, tenant="other")
    assert len(world.downstream.effects) == 2


def test_a_budget_is_reserved_in_the_claim_kept_by_unknown_and_released_by_did_not_happen(world: World) -> None:
    def act(how: str) -> None:
        if how == "unknown":
            raise ConnectionResetError
        if how == "failed":
            raise agentgate.NoEffect

    with world.gate(named("act", act, resource="how:{how}")) as gate:
        run = opened(gate, limits=Limits(actions=2))
        unknown = gate.call(run, "act", {"how": "unknown"})
        gate.call(run, "act", {"how": "failed"})
        assert isinstance(gate.call(run, "act", {"how": "done"}), Done)
        refused = gate.call(run, "act", {"how": "done"}, key="k")
        assert isinstance(refused, Refused)
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="looked", tenant="acme")
        assert isinstance(gate.call(run, "act", {"how": "done"}, key="k"), Done)
    assert isinstance(unknown, Unknown)


def test_times_are_integer_microseconds_utc_and_naive_datetimes_are_refused(world: World) -> None:
    clock = FakeClock()
    with world.gate(clock=clock) as gate:
        run = opened(gate)
        done = gate.call(run, "refund", ONE)
        naive = gate.call(run, "refund", {"account": datetime(2030, 1, 1), "cents": 1})  # noqa: DTZ001 - the point
        aware = gate.propose(run, "refund", {"account": datetime(2030, 1, 1, tzinfo=UTC), "cents": 1})
    assert isinstance(naive, Refused)
    assert naive.reason == "invalid_arguments"
    assert aware.state == "READY"
    times = [event.at_us for event in world.events(done.action)]
    assert all(type(at_us) is int for at_us in times)
    assert times == sorted(times)
    assert datetime.fromtimestamp(times[0] / 1e6, UTC).year == 2030


def test_a_clock_that_goes_back_does_not_turn_the_record_round(world: World) -> None:
    clock = FakeClock()
    with world.gate(clock=clock) as gate:
        run = opened(gate)
        first = gate.call(run, "refund", ONE)
        clock.jump(-timedelta(days=1))
        second = gate.call(run, "refund", ONE)
    times = [event.at_us for action in (first, second) for event in world.events(action.action)]
    assert times == sorted(times)
    assert not world.broken()
