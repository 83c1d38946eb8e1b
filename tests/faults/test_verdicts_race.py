"""A yes that races a no, an end or a stop: one of the two came first, both are told so, and nothing is in between."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentgate import Done, Gate, Held, NotPossible, Refused, Requirement, VoteRefused, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.operators import asked as asked_operators
from support.operators import lost
from support.racing import at_once
from support.worlds import World, gates, made, opened, vote

ROUNDS = 12
TENANT: Any = {"tenant": "acme"}
DAY = timedelta(hours=24)
TWO = ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement(quorum=2)))


@dataclass(frozen=True, kw_only=True)
class Against:
    """What a yes races.

    Args:
        name: for the report.
        does: the other command, by a gate of its own, given what is held and the key.
        ends: the states that the question and its action may be left in, by what the yes was told.
    """

    name: str
    does: Callable[[Gate, Held, str], object]
    ends: dict[str, set[tuple[str, str]]]


def _close(gate: Gate, _held: Held, key: str) -> None:
    gate.close_run(opened(gate, key), by="ops:ada")


def _take_back(gate: Gate, held: Held, _key: str) -> object:
    return gate.approvals.revoke(held.approval.id, digest=held.approval.digest, by="person:ada", **TENANT)


def _supersede(gate: Gate, _held: Held, key: str) -> object:
    return gate.propose(opened(gate, key), "refund", arguments(key, cents=2), key=key, supersede=True)


# fmt: off
RACES = (
    Against(name="reject", does=lambda gate, held, _: vote(gate, held, "eve", "reject"),
            ends={"granted": {("granted", "READY")}, "rejected": {("rejected", "REFUSED")}}),
    Against(name="revoke", does=_take_back,
            ends={"granted": {("revoked", "REFUSED"), ("granted", "READY")}, "pending": {("pending", "HELD")},
                  "revoked": {("revoked", "REFUSED")}}),
    Against(name="cancel", does=lambda gate, held, _: gate.cancel(held.action, by="ops:ada", **TENANT),
            ends={"granted": {("void", "REFUSED")}, "void": {("void", "REFUSED")}}),
    Against(name="supersede", does=_supersede,
            ends={"granted": {("void", "REFUSED")}, "void": {("void", "REFUSED")}}),
    Against(name="close_run", does=_close,
            ends={"granted": {("void", "REFUSED")}, "void": {("void", "REFUSED")}}),
    Against(name="pause", does=lambda gate, _held, _key: gate.pause(by="ops:ada", reason="stop"),
            ends={"granted": {("granted", "READY")}}),
)
# fmt: on


def arguments(key: str, *, cents: int = 1) -> dict[str, Any]:
    return {"account": key, "cents": cents}


def told(work: Callable[[], Any]) -> str:
    """Say how a question stands after a command of its own, or why the command could not be."""
    try:
        answer = work()
    except VoteRefused as error:
        return error.reason
    except NotPossible as error:
        return error.code
    return str(getattr(answer, "state", "done"))


def race(first: Callable[[], Any], second: Callable[[], Any], *, n: int) -> tuple[str, str]:
    """Do both at once; in the first two rounds one after the other, so that each has come first."""
    said = ["", ""]
    if n == 0:
        return told(first), told(second)
    if n == 1:
        before = told(second)
        return told(first), before

    def work(n: int) -> None:
        said[n] = told((first, second)[n])

    at_once(2, work)
    return said[0], said[1]


def ended(world: World, held: Held) -> tuple[str, str]:
    state = world.value("SELECT state FROM agentgate_approvals WHERE id = ?", held.approval.id)
    return str(state), world.state(held.action)


def check(world: World, held: Held) -> None:
    """Each vote and each end is on record once."""
    words = Counter(world.words(held.action))
    assert words["approved"] <= 1
    assert sum(words[one] for one in ("rejected", "grant_revoked", "cancelled", "superseded", "refused")) <= 1
    assert words["voted"] == world.value("SELECT count(*) FROM agentgate_votes WHERE approval = ?", held.approval.id)


@pytest.mark.parametrize("against", RACES, ids=lambda against: against.name)
def test_the_last_yes_and_what_ends_it_come_one_after_the_other(tmp_path: Path, against: Against) -> None:
    world, seen = made(tmp_path), Counter[str]()
    with gates(world, policy=TWO) as (one, other):
        for n in range(ROUNDS):
            key = f"k{n}"
            held = one.call(opened(one, key), "refund", arguments(key), key=key)
            assert isinstance(held, Held)
            vote(one, held, "ada")
            said, _ = race(
                lambda held=held: vote(one, held, "bob"),  # type: ignore[misc]
                lambda held=held, key=key: against.does(other, held, key),  # type: ignore[misc]
                n=n,
            )
            seen[said] += 1
            assert ended(world, held) in against.ends[said], (said, ended(world, held))
            check(world, held)
            _goes_on(one, held, world, pauses=against.name == "pause")
    print(f"\n{against.name}: {dict(seen)}")
    assert not world.damage()


def _goes_on(gate: Gate, held: Held, world: World, *, pauses: bool) -> None:
    """Whatever is left has an exit: what is ready runs, what is held takes the votes that it lacks."""
    before = world.downstream.total
    if pauses:
        outcome = gate.execute(held.action, **TENANT)
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.retryable) == ("paused", True)
        gate.resume(by="ops:ada")
    if world.state(held.action) == "HELD":
        vote(gate, held, "ada")
    runs = world.state(held.action) == "READY"
    assert isinstance(gate.execute(held.action, **TENANT), Done if runs else Refused)
    assert world.downstream.total == before + runs


def test_the_last_yes_and_the_end_of_its_time_come_one_after_the_other(tmp_path: Path) -> None:
    world, clock = made(tmp_path), FakeClock()
    with gates(world, policy=TWO, clock=clock) as (one, other):
        for n in range(ROUNDS):
            key = f"k{n}"
            held = one.call(opened(one, key), "refund", arguments(key), key=key)
            assert isinstance(held, Held)
            vote(one, held, "ada")

            def come_to_the_end(held: Held = held) -> object:
                clock.advance(DAY)
                return other.execute(held.action, **TENANT)

            said, _ = race(lambda held=held: vote(one, held, "bob"), come_to_the_end, n=n)  # type: ignore[misc]
            # A grant lasts 15 minutes: whoever comes a day later finds it over as well.
            assert (said in {"granted", "expired"}, ended(world, held)) == (True, ("expired", "REFUSED"))
            words = world.words(held.action)
            assert words[-1] == ("grant_expired" if "approved" in words else "question_expired")
            check(world, held)
    assert world.downstream.total == 0
    assert not world.damage()


@pytest.mark.parametrize("verdict", ["again", "applied", "not_applied"])
def test_an_operators_answer_and_giving_up_come_one_after_the_other(tmp_path: Path, verdict: Any) -> None:
    world = made(tmp_path)
    with gates(world, lost(world, times=ROUNDS)) as (one, other):
        for n in range(ROUNDS // 2):
            run, key = opened(one, f"k{n}"), f"k{n}"
            question = asked_operators(one.call(run, "refund", arguments(key), key=key))
            shown: Any = {"digest": question.digest, "by": "ops:ada", **TENANT}
            action = str(world.value("SELECT id FROM agentgate_actions WHERE key_text = ?", key))
            said, given_up = race(
                lambda id_=question.id, shown=shown: one.approvals.answer(id_, verdict=verdict, **shown),  # type: ignore[misc]
                lambda action=action: other.abandon(action, by="ops:eve", **TENANT),  # type: ignore[misc]
                n=n,
            )
            state = world.state(action)
            if verdict == "again":
                assert (state, said in {"granted", "void"}) == ("ABANDONED", True)
            else:
                moved = {"applied": "SUCCEEDED", "not_applied": "READY"}[verdict]
                assert (state == moved, given_up == "not_possible", said == "void") in {
                    (True, True, False),
                    (False, False, True),
                }, (state, said, given_up)
                assert state in {moved, "ABANDONED"}
    assert world.downstream.total == ROUNDS // 2
    assert not world.damage()
