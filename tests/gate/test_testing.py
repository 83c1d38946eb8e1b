"""`agentgate.testing` itself: what other people's tests will rest on."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import agentgate
from agentgate import Done, Effect, Failed, Held, Refused, ToolError, allow, deny, require_approval
from agentgate.clock import Clock, SystemClock, new_id, to_datetime
from agentgate.errors import Misuse
from agentgate.testing import Arrival, Downstream, FakeClock, ScriptedPolicy, memory_gate
from support import forking
from support.worlds import named, opened

HOUR = timedelta(hours=1)


# --- FakeClock -----------------------------------------------------------------------------------


def test_two_fake_clocks_made_alike_give_the_same_times_ids_and_chance() -> None:
    def told(clock: Clock) -> list[object]:
        return [clock.now_us(), new_id(clock), clock.random(32), new_id(clock), clock.monotonic_us()]

    assert told(FakeClock()) == told(FakeClock())
    assert told(FakeClock(seed=1)) != told(FakeClock())


def test_ids_made_one_after_another_sort_in_that_order() -> None:
    clock = FakeClock()
    made = [new_id(clock) for _ in range(200)]
    assert made == sorted(made)
    assert len(set(made)) == 200


def test_advancing_moves_both_clocks_and_jumping_only_the_wall() -> None:
    clock = FakeClock(datetime(2030, 1, 1, tzinfo=UTC), tick=timedelta(0))
    clock.advance(HOUR)
    assert to_datetime(clock.now_us()) == datetime(2030, 1, 1, 1, tzinfo=UTC)
    assert clock.monotonic_us() == 3_600_000_000
    clock.jump(-2 * HOUR)
    assert to_datetime(clock.now_us()) == datetime(2029, 12, 31, 23, tzinfo=UTC)
    assert clock.monotonic_us() == 3_600_000_000


def test_a_clock_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(Misuse, match="naive"):
        FakeClock(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
    with pytest.raises(Misuse, match="tick"):
        FakeClock(tick=-HOUR)
    with pytest.raises(Misuse, match="backwards"):
        FakeClock().advance(-HOUR)


def test_its_chance_does_not_repeat_itself_between_threads() -> None:
    clock = FakeClock()
    drawn: list[bytes] = []

    def draw() -> None:
        drawn.extend(clock.random(8) for _ in range(200))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 800


def test_a_forked_child_draws_other_ids_than_its_parent(tmp_path: Path) -> None:
    clock = FakeClock()
    clock.random(8)
    assert forking.run(lambda: (tmp_path / "child").write_bytes(clock.random(8))) == 0
    assert (tmp_path / "child").read_bytes() != clock.random(8)


# --- ScriptedPolicy ------------------------------------------------------------------------------


def test_a_scripted_policy_answers_in_order_and_remembers_what_it_was_asked() -> None:
    policy = ScriptedPolicy(deny("no"), require_approval("big"), RuntimeError("broken"), otherwise=allow("fine"))

    def echo(n: int) -> int:
        return n

    with memory_gate(policy=policy, tools=[named("echo", echo)]) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "echo", {"n": n}) for n in range(4)]
        assert policy.left == 0
        policy.say(lambda request: deny("even") if request.arguments == {"n": 4} else allow())
        outcomes.append(gate.call(run, "echo", {"n": 4}))
    assert [type(outcome) for outcome in outcomes] == [Refused, Held, Refused, Done, Refused]
    assert [request.arguments for request in policy.requests] == [{"n": n} for n in range(5)]


def test_two_scripts_are_two_policies_where_they_have_two_names() -> None:
    assert ScriptedPolicy(name="a").identity == ScriptedPolicy(deny("no"), name="a").identity
    assert ScriptedPolicy(name="a").identity.digest != ScriptedPolicy(name="b").identity.digest


def test_a_scripted_policy_is_shown_the_facts_it_declares() -> None:
    def touch() -> None:
        return None

    policy = ScriptedPolicy(facts=["freeze"])
    with memory_gate(policy=policy, tools=[named("touch", touch)], facts={"freeze": lambda _: True}) as gate:
        assert isinstance(gate.call(opened(gate), "touch", {}), Done)
    assert dict(policy.requests[0].facts) == {"freeze": True}


# --- memory_gate ---------------------------------------------------------------------------------


def test_a_gate_in_memory_is_fresh_each_time_and_allows_everything_unless_told_otherwise() -> None:
    def echo(n: int) -> int:
        return n

    ledgers = set()
    for _ in range(2):
        with memory_gate(tools=[named("echo", echo)]) as gate:
            outcome = gate.call(opened(gate), "echo", {"n": 1}, key="k")
            assert isinstance(outcome, Done)
            assert outcome.source == "executed"
            ledgers.add(gate.ledger)
    assert len(ledgers) == 2


def test_a_gate_in_memory_expires_by_its_fake_clock() -> None:
    def echo(n: int) -> int:
        return n

    clock = FakeClock()
    settings = agentgate.Settings(ready=HOUR)
    with memory_gate(tools=[named("echo", echo)], clock=clock, settings=settings) as gate:
        proposal = gate.propose(opened(gate), "echo", {"n": 1})
        clock.advance(HOUR)
        outcome = gate.execute(proposal)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "action_expired"


def test_a_gate_in_memory_with_a_fake_clock_repeats_itself_to_the_byte() -> None:
    def echo(n: int) -> int:
        return n

    def digests() -> Iterator[str]:
        with memory_gate(tools=[named("echo", echo)], clock=FakeClock()) as gate:
            run = opened(gate)
            for n in range(3):
                yield gate.call(run, "echo", {"n": n}).digest

    assert list(digests()) == list(digests())


def test_a_gate_in_memory_is_used_by_many_threads() -> None:
    def echo(n: int) -> int:
        return n

    done: list[object] = []
    with memory_gate(tools=[named("echo", echo)]) as gate:
        run = opened(gate)

        def work() -> None:
            done.extend(gate.call(run, "echo", {"n": n}) for n in range(10))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(done) == 80
    assert all(isinstance(outcome, Done) for outcome in done)


# --- Downstream ----------------------------------------------------------------------------------


def effect(*, key: str = "k", fence: int = 1) -> Effect:
    return Effect(
        action_id="a",
        idempotency_key=key,
        attempt=1,
        fence=fence,
        deadline=datetime(2030, 1, 1, tzinfo=UTC),
        tenant="acme",
        principal="agent:support",
        clock=SystemClock(),
        until_us=0,
        lease_until_us=0,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "downstream.db"


def test_a_downstream_counts_every_arrival_so_that_a_second_effect_is_seen(file: Path) -> None:
    downstream = Downstream(file)
    assert downstream.apply(effect(key="k"))
    assert downstream.apply(effect(key="k", fence=2))
    assert downstream.apply(effect(key="other", fence=3), resource="r")
    assert downstream.effects == {"k": 2, "other": 1}
    assert downstream.total == 3
    assert downstream.arrivals[2] == Arrival(key="other", resource="r", fence=3, verdict="applied")


def test_a_downstream_that_dedupes_applies_a_key_once(file: Path) -> None:
    downstream = Downstream(file, dedupes=True)
    assert downstream.apply(effect())
    assert not downstream.apply(effect(fence=2))
    assert [arrival.verdict for arrival in downstream.arrivals] == ["applied", "repeated"]
    assert downstream.total == 1


def test_a_downstream_refuses_an_older_fence_of_the_same_resource_and_only_of_that(file: Path) -> None:
    downstream = Downstream(file)
    downstream.apply(effect(fence=5), resource="r")
    with pytest.raises(ToolError) as raised:
        downstream.apply(effect(fence=4), resource="r")
    assert (raised.value.code, raised.value.effect) == ("precondition_failed", "none")
    assert downstream.apply(effect(fence=5), resource="r")
    assert downstream.apply(effect(fence=4), resource="other")
    assert [arrival.verdict for arrival in downstream.arrivals] == ["applied", "fenced", "applied", "applied"]


def test_a_fenced_worker_fails_cleanly_at_its_gate(file: Path) -> None:
    downstream = Downstream(file)
    downstream.apply(effect(fence=99), resource="r")

    def touch(*, effect: Effect) -> None:
        downstream.apply(effect, resource="r")

    with memory_gate(tools=[named("touch", touch)]) as gate:
        outcome = gate.call(opened(gate), "touch", {})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "precondition_failed"


def test_a_downstream_is_one_for_all_processes_and_survives_their_death(file: Path) -> None:
    downstream = Downstream(file)

    def apply_and_die(resource: str) -> None:
        for fence in range(1, 21):
            downstream.apply(effect(key=resource, fence=fence), resource=resource)
        forking.die()

    children = [forking.start(partial(apply_and_die, resource)) for resource in "abc"]
    assert [forking.end(pid) for pid in children] == [forking.KILLED] * 3
    assert Downstream(file).effects == {"a": 20, "b": 20, "c": 20}
