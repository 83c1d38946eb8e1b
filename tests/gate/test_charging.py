"""What a loop spends elsewhere is charged to its run, bounds it and its tenant, and stays on record."""

import copy
import pickle
from dataclasses import asdict, replace
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Limits, Misuse, Refused
from agentgate.testing import FakeClock
from support.worlds import World, named, opened

ONE = {"account": "a1", "cents": 1}


@pytest.mark.parametrize(("account", "given"), [("tokens", "tokens"), ("money", "cost")])
def test_what_is_charged_stops_further_actions_and_leaves_the_run_open(world: World, account: str, given: str) -> None:
    with world.gate() as gate:
        run = opened(gate, limits=Limits(**{account: 100}))  # type: ignore[arg-type]
        run.charge(**{given: 99})
        assert isinstance(gate.call(run, "refund", ONE), Done)
        run.charge(**{given: 1})
        over = gate.call(run, "refund", ONE, key="k")
        assert isinstance(over, Refused)
        assert (over.reason, over.retryable) == (f"limit_{account}", False)
    assert world.sql(f"SELECT state, {account} FROM agentgate_runs WHERE name = 'ticket-1'") == [("OPEN", 100)]
    charged = [event.body for event in world.events() if event.type == "charged"]
    assert [body["charges"] for body in charged] == [[{"account": account, "amount": n}] for n in (99, 1)]
    assert {body["by"] for body in charged} == {"agent:support"}
    assert not world.damage()


@pytest.mark.parametrize(("account", "given"), [("tokens", "tokens"), ("money", "cost")])
def test_what_the_runs_of_a_tenant_spend_is_one_budget(world: World, account: str, given: str) -> None:
    with world.gate() as gate:
        opened(gate, "one").charge(**{given: 60})
        gate.limit({account: 100}, tenant="acme", by="ada")
        assert isinstance(gate.call(opened(gate, "two"), "refund", ONE), Done)
        opened(gate, "two").charge(**{given: 40})
        opened(gate, "two", tenant="umbrella").charge(**{given: 1_000})
        over = gate.call(opened(gate, "three"), "refund", ONE)
        assert over.reason == f"limit_tenant_{account}"
    assert world.value("SELECT used FROM agentgate_budgets") == 100
    assert not world.damage()


def test_charging_works_in_a_run_that_is_not_open_any_more(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        gate.close_run(run, by="ada")
        run.charge(tokens=5, cost=7)
    assert world.sql("SELECT state, tokens, money FROM agentgate_runs WHERE name = 'ticket-1'") == [("CLOSED", 5, 7)]
    assert not world.damage()


def test_a_charge_of_nothing_is_no_event(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        run.charge(tokens=0, cost=0)
    assert not [event for event in world.events() if event.type == "charged"]


@pytest.mark.parametrize("amount", [-1, 1.5, True, "7", 2**53])
@pytest.mark.parametrize("given", ["tokens", "cost"])
def test_an_amount_that_is_none_is_refused_by_name(world: World, given: str, amount: object) -> None:
    with world.gate() as gate, pytest.raises(Misuse, match=f"{given}: give a whole number"):
        opened(gate).charge(**{given: amount})  # type: ignore[arg-type]


def test_what_no_record_could_hold_is_refused_and_leaves_the_run_usable(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        run.charge(tokens=2**53 - 1)
        with pytest.raises(Misuse, match="cost, or both"):
            run.charge()
        with pytest.raises(Misuse, match="more than 2\\*\\*53 - 1"):
            run.charge(tokens=1)
        assert isinstance(gate.call(run, "refund", ONE), Done)


def test_a_handle_is_a_value_that_is_compared_copied_and_pickled(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        pickled = pickle.loads(pickle.dumps(run))
        assert run == opened(gate) == pickled == copy.copy(run) == copy.deepcopy(run)
        assert hash(run) == hash(pickled)
        assert asdict(run) == {"id": run.id, "name": "ticket-1", "tenant": "acme", "principal": "agent:support"}
        assert repr(run) == repr(pickled)
        copy.deepcopy(run).charge(tokens=1)
        assert isinstance(gate.call(pickled, "refund", ONE), Done)
        for lost in (pickled, replace(run, name="other")):
            with pytest.raises(Misuse, match="lost its gate"):
                lost.charge(tokens=1)
        with pytest.raises(AttributeError):
            run.name = "other"  # type: ignore[misc]


def test_the_time_that_actions_take_is_added_up_and_halts_the_run(world: World, clock: FakeClock) -> None:
    def work(minutes: int) -> int:
        clock.advance(timedelta(minutes=minutes))
        return minutes

    with world.gate(named("work", work, timeout=timedelta(hours=1)), clock=clock) as gate:
        run = opened(gate, limits=Limits(active=timedelta(minutes=10)))
        assert isinstance(gate.call(run, "work", {"minutes": 4}), Done)
        clock.advance(timedelta(minutes=30))  # nothing of it was at work
        assert isinstance(gate.call(run, "work", {"minutes": 6}), Done)
        waiting = gate.propose(run, "work", {"minutes": 1})
        over = gate.call(run, "work", {"minutes": 1})
        assert isinstance(over, Refused)
        assert (over.reason, over.retryable) == ("limit_active", False)
        assert gate.execute(waiting).reason == "run_halted"
    assert world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'") == [("HALTED", "limit_active")]
    assert not world.damage()


@pytest.mark.parametrize(("limit", "passes"), [("wall", "limit_wall"), ("active", "limit_active")])
def test_time_that_is_over_halts_the_run_also_where_an_unknown_outcome_would_be_tried_again(
    world: World, clock: FakeClock, limit: str, passes: str
) -> None:
    def lose() -> None:
        clock.advance(timedelta(minutes=5))
        raise RuntimeError("?")

    tool = named("lose", lose, recovery=agentgate.Repeat(), timeout=timedelta(hours=1))
    with world.gate(tool, clock=clock) as gate:
        run = opened(gate, limits=Limits(**{limit: timedelta(minutes=5)}))  # type: ignore[arg-type]
        lost = gate.call(run, "lose", {})
        assert type(gate.execute(lost.action, tenant="acme")) is type(lost)
    assert world.state(lost.action) == "UNKNOWN"
    assert world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'") == [("HALTED", passes)]
    assert not world.damage()
