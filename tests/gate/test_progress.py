"""A run that goes in circles is warned, has one more, and is halted; the record says so in the same transaction."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from agentgate import Done, Failed, Limits, Misuse, Refused, ToolError
from support.worlds import World, kinds, named, opened

TOO_OFTEN = ("no_progress",)


def look(account: str) -> dict[str, str]:
    """Find the same, always."""
    return {"account": account}


def miss(account: str) -> None:
    """Find nothing, always."""
    raise ToolError("not_found", f"no account {account}")


def run_row(world: World) -> tuple[str, str | None]:
    (row,) = world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'")
    return row[0], row[1]


@pytest.mark.parametrize("act", [look, miss])
def test_the_same_request_and_outcome_warn_then_one_more_then_halt(world: World, act: Callable[..., object]) -> None:
    """Failures count as well as successes."""
    with world.gate(named("act", act)) as gate:
        run = opened(gate, limits=Limits(no_progress=3))
        waiting = gate.propose(run, "act", {"account": "other"})
        outcomes = [gate.call(run, "act", {"account": "a1"}) for _ in range(5)]
        assert kinds(outcomes) == ["Done" if act is look else "Failed"] * 4 + ["Refused"]
        assert [outcome.observation.notes for outcome in outcomes[:4]] == [(), (), TOO_OFTEN, TOO_OFTEN]
        assert outcomes[4].reason == "run_halted"
        refused = gate.execute(waiting)
        assert isinstance(refused, Refused)
        assert refused.reason == "run_halted"
        # Told again, it says the same; also to a gate that was not there.
        assert gate.execute(outcomes[2].action, tenant="acme").observation.notes == TOO_OFTEN
    assert run_row(world) == ("HALTED", "no_progress")
    events = [event for event in world.events() if event.run == run.id]
    halted = next(event for event in events if event.type == "run_halted")
    before = next(event for event in events if event.n == halted.n - 1)
    assert (before.action, before.at_us) == (outcomes[3].action, halted.at_us)
    if act is look:
        notes = [event.body["notes"] for event in events if event.type == "succeeded"]
        assert notes == [[], [], ["no_progress"], ["no_progress"]]
    assert not world.damage()


def test_an_agent_that_alternates_is_caught(world: World) -> None:
    with world.gate(named("look", look), named("miss", miss)) as gate:
        run = opened(gate, limits=Limits(no_progress=2))
        names = ["look", "miss"] * 3
        outcomes = [gate.call(run, name, {"account": "a1"}) for name in names]
    assert kinds(outcomes) == ["Done", "Failed", "Done", "Failed", "Done", "Refused"]
    assert outcomes[2].observation.notes == outcomes[3].observation.notes == TOO_OFTEN
    assert run_row(world) == ("HALTED", "no_progress")


def test_another_request_another_outcome_or_sixteen_actions_between_are_progress(world: World) -> None:
    count = iter(range(1_000))

    def step(_account: str) -> int:
        return next(count)

    with world.gate(named("look", look), named("step", step)) as gate:
        run = opened(gate, limits=Limits(no_progress=2))
        outcomes = [gate.call(run, "look", {"account": f"a{n}"}) for n in range(4)]
        outcomes += [gate.call(run, "step", {"_account": "a1"}) for _ in range(16)]
        outcomes += [gate.call(run, "look", {"account": "a0"})]
    assert {outcome.observation.notes for outcome in outcomes} == {()}
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert run_row(world) == ("OPEN", None)


def test_retries_of_one_action_are_one_and_bounded_by_a_limit_of_their_own(world: World) -> None:
    with world.gate(named("miss", miss)) as gate:
        run = opened(gate, limits=Limits(no_progress=2, retries=2))
        failed = gate.call(run, "miss", {"account": "a1"}, key="k")
        again = [gate.execute(failed.action, tenant="acme", retry=True) for _ in range(4)]
        assert kinds(again) == ["Failed"] * 4
        assert world.words(failed.action).count("started") == 3
        assert world.words(failed.action)[-1] == "waited"  # once, however often it is asked
        assert {outcome.observation.notes for outcome in again} == {()}
        another = gate.call(run, "miss", {"account": "a2"})
        assert isinstance(another, Failed)
    assert run_row(world) == ("OPEN", None)
    assert not world.damage()


def test_a_failure_that_may_help_to_try_again_says_when_the_run_has_no_more_retries(world: World) -> None:
    def busy() -> None:
        raise ToolError("rate_limited", "later")

    with world.gate(named("busy", busy)) as gate:
        run = opened(gate, limits=Limits(retries=0))
        failed = gate.call(run, "busy", {})
        assert isinstance(failed, Failed)
        assert failed.retryable
        told = gate.execute(failed.action, tenant="acme", retry=True)
    assert isinstance(told, Failed)
    assert (told.retryable, told.error.code) == (False, "rate_limited")


@pytest.mark.parametrize("most", [0, 1, 16, True, 2.0, "3"])
def test_a_bound_that_could_never_be_met_or_always_is_refused(most: object) -> None:
    with pytest.raises(Misuse, match=r"limits\.no_progress: give a whole number from 2 to 15"):
        Limits(no_progress=most)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tokens", "money", "retries", "actions"])
def test_other_bounds_are_whole_numbers(name: str) -> None:
    for bad in (-1, True, 1.0, 2**53):
        with pytest.raises(Misuse, match=rf"limits\.{name}: give a whole number from 0"):
            Limits(**{name: bad})  # type: ignore[arg-type]
    with pytest.raises(Misuse, match=r"limits\.active: give a positive timedelta"):
        Limits(active=timedelta(0))
