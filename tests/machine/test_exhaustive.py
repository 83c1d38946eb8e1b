"""Every state there is, and every move from it: the laws of doubt hold in all of them, and each has a way out.

The moves are what people, policies, workers and time can do (`support.moves`), drafted by the real core. Beside the
laws stand the same laws over a core that was broken on purpose: each time at least one of them is red.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

import pytest

from agentgate import Keyed, Operator, Repeat, states
from agentgate.core import attempts, claiming, fold
from agentgate.core.inquiring import is_told_again
from agentgate.core.reasons import REVISABLE
from agentgate.errors import Damaged
from agentgate.gate import standing
from agentgate.states import TERMINAL, RunState, State
from support.abouts import Shop
from support.exploring import Graph, Point, Revision, Step, explored, growing, is_commanded, stuck
from support.moves import moves

ALL = Shop(recovery=Operator()).says
FEW, ALLOW = frozenset({"allow", "ask 0"}), frozenset({"allow"})
SHOPS = {
    "three attempts": Shop(recovery=Operator(), attempts=3, says=ALLOW),
    "under approval": Shop(recovery=Operator(), attempts=2, says=FEW),
    "side by side": Shop(recovery=Operator(), attempts=2, says=ALLOW, parallel=True),
    "keyed": Shop(recovery=Keyed(hours=24), attempts=2, says=FEW),
    "repeat": Shop(recovery=Repeat(), attempts=2, says=FEW),
    "every answer of a policy": Shop(recovery=Operator(), attempts=2, revisions=1, says=ALL),
}
everywhere = pytest.mark.parametrize("name", SHOPS)


@cache
def graph(name: str) -> Graph:
    return explored(moves(SHOPS[name]))


# --- the laws ------------------------------------------------------------------------------------


def is_end(point: Point) -> bool:
    """Tell whether everything has ended, or rests with nothing in doubt."""
    return all(
        one.state in TERMINAL | {State.FAILED} and (one.state is State.ABANDONED or not one.file.action.unresolved)
        for one in point.revisions
    )


def without_a_command(found: Graph) -> Iterator[str]:
    """Find what waits for a person, or blocks others, and takes no command."""
    for key, edges in found.edges.items():
        for number, one in enumerate(found.points[key].revisions, 1):
            offered = {step.name for step, _ in edges if is_commanded(step) and step.number == number}
            if not _wanted(one) <= offered:
                yield f"{found.path(key)}: {one.state} takes {sorted(offered)}"


def _wanted(one: Revision) -> set[str]:
    if one.state is State.HELD:
        return {"approve", "reject", "cancel", "expire"}
    if one.state is State.UNKNOWN:
        return {"reconcile, applied", "reconcile, not applied", "abandon"}
    if one.file.action.unresolved and one.state in {State.REFUSED, State.SUCCEEDED}:
        return {"reconcile, applied", "reconcile, not applied"}
    return {State.READY: {"cancel", "expire"}, State.FAILED: {"cancel"}, State.EXECUTING: {"take over"}}.get(
        one.state, set()
    )


def resting_in_doubt(found: Graph) -> Iterator[str]:
    """Find what blocks nothing, or has ended, while an attempt of it may have happened and nobody said otherwise."""
    for key, point in found.points.items():
        for one in point.revisions:
            if one.state in {State.READY, State.HELD, State.FAILED} and one.file.action.unresolved:
                yield f"{found.path(key)}: {one.state} with an attempt in doubt"
    for source, step in _steps(found):
        before, after = _about(source, step), _about(step.target, step)
        ended = after is not None and after.state is State.REFUSED and after.file.action.unresolved
        if ended and (before is None or before.state is not State.REFUSED):
            yield f"{step}: REFUSED with an attempt in doubt"


def running_again(found: Graph, *, repeats: bool) -> Iterator[str]:
    """Find starts of what is known to have happened, under the same key, by whichever attempt of it.

    Args:
        found: the states.
        repeats: whether the tool is declared to be safe to run again while its outcome is unknown; an operator who
            was asked about it may say so of any.
    """
    for key, edges in found.edges.items():
        point = found.points[key]
        for step, _ in edges:
            if "started" not in step.events:
                continue
            for number, one in enumerate(point.revisions, 1):
                again = number == step.number and one.state is State.UNKNOWN
                if one.known and not (again and (repeats or is_told_again(one.file))):
                    yield f"{found.path(key)} > {step}: attempt {sorted(one.known)} of revision {number} had happened"


def grants_used_twice(found: Graph) -> Iterator[str]:
    """Find starts under a grant that an attempt was started under before and did not come back from empty-handed."""
    for source, step in _steps(found):
        before, after = _about(source, step), _about(step.target, step)
        if "started" not in step.events or before is None or after is None:
            continue
        grant = before.file.question if after.file.question is not None else None
        under = grant.id if grant is not None and grant.state == "granted" else None
        spent = [one for one in before.file.attempts.values() if one.approval == under and one.state != "failed"]
        if under is not None and spent:
            yield f"{step}: its grant was used before"


def open_beside_the_state(found: Graph) -> Iterator[str]:
    """Find attempts that are open though nothing executes, or two of them, or none where something does."""
    for key, point in found.points.items():
        for one in point.revisions:
            opened = [number for number, attempt in one.file.attempts.items() if attempt.state == "open"]
            if opened != ([one.file.action.attempts] if one.state is State.EXECUTING else []):
                yield f"{found.path(key)}: {one.state} with attempts {opened} open"


def begun_when_closed(found: Graph) -> Iterator[str]:
    """Find what waits to run, or starts, in a run that is halted or closed."""
    for source, step in _steps(found):
        if source.run is not RunState.OPEN and "started" in step.events:
            yield f"{step}: started in a run that is {source.run}"
        waits = [one for one in step.target.revisions if one.state in {State.READY, State.HELD}]
        if step.target.run is not RunState.OPEN and waits:
            yield f"{step}: {waits[0].state} in a run that is {step.target.run}"


def _steps(found: Graph) -> Iterator[tuple[Point, Step]]:
    for key, edges in found.edges.items():
        for step, _ in edges:
            yield found.points[key], step


def _about(point: Point, step: Step) -> Revision | None:
    return point.revisions[step.number - 1] if len(point.revisions) >= step.number else None


LAWS = (
    without_a_command, resting_in_doubt, grants_used_twice, open_beside_the_state, begun_when_closed,
)  # fmt: skip


def offences(found: Graph, shop: Shop) -> list[str]:
    """Return what breaks a law, by the shortest way to it; of a graph that grows still, as far as it has grown."""
    again = running_again(found, repeats=not isinstance(shop.recovery, Operator))
    return [*again, *(offence for law in LAWS for offence in law(found))]


@everywhere
def test_every_law_holds_in_every_state_and_from_each_a_command_leads_to_an_end(name: str) -> None:
    found, shop = graph(name), SHOPS[name]
    print(f"{name}: {len(found.points)} states, {found.transitions} transitions")
    assert not offences(found, shop)
    assert not stuck(found, is_end)


@everywhere
def test_every_kind_of_state_and_every_move_is_met(name: str) -> None:
    """A search that meets little proves little."""
    found, shop = graph(name), SHOPS[name]
    states_met = {one.state for point in found.points.values() for one in point.revisions}
    moves_met = {step.name for edges in found.edges.values() for step, _ in edges}
    assert states_met == {*states.STATES} - (set() if "ask 0" in shop.says else {State.HELD})
    assert {point.run for point in found.points.values()} == {*RunState}
    assert moves_met >= MOVES | ({"supersede, allow"} if shop.revisions > 1 else set())
    assert {f"propose, {answer}" for answer in shop.says - {"ask 1", "ask 2"}} <= moves_met
    assert {f"claim, {answer}" for answer in shop.says} <= moves_met
    assert max(point.attempts for point in found.points.values()) == shop.attempts
    assert ("the window passes" in moves_met) == isinstance(shop.recovery, Keyed)
    assert ("ask an operator" in moves_met) != isinstance(shop.recovery, Repeat)
    assert max(len(point.revisions) for point in found.points.values()) == shop.revisions


MOVES = {
    *("halt", "close", "expire", "cancel", "retry, allow", "take over", "abandon", "approve", "reject", "revoke"),
    *("succeeded", "failed", "in_doubt", "late ok", "late error", "late nothing"),
    *("reconcile, applied", "reconcile, not applied"),
    *("grant expires", "question expires"),
}


# --- and a checker that can be red ------------------------------------------------------------------

ONE = Shop(recovery=Operator(), attempts=2, revisions=1, says=ALLOW)
TWO = replace(ONE, revisions=2)


def missed(*words: str, shop: Shop = ONE) -> set[str]:
    """Search the core as it now is until each of these words is in what is found; return those that never were."""
    left = set(words)
    try:
        for graph in growing(moves(shop)):
            told = "\n".join(offences(graph, shop))
            left = {word for word in left if word not in told}
            if not left:
                break
    except Damaged as error:
        left = {f"{word}; instead the record is damaged: {error}" for word in left}
    return left


def without(table: object, *gone: object) -> MappingProxyType[Any, Any]:
    rows: Any = table
    return MappingProxyType({row: target for row, target in rows.items() if row not in gone})


def test_a_late_success_that_moves_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    row = (State.READY, "late")
    monkeypatch.setattr(states, "MOVES", without(states.MOVES, row))
    monkeypatch.setattr(states, "STAYS", {**states.STAYS, "late": states.STAYS["late"] | {State.READY}})
    assert not missed("READY with an attempt in doubt", "had happened")


def test_a_state_without_an_exit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = [(State.UNKNOWN, word) for word in ("abandoned", "reconciled.applied", "reconciled.not_applied")]
    monkeypatch.setattr(states, "MOVES", without(states.MOVES, *gone))
    assert not missed("UNKNOWN takes")
    assert stuck(explored(moves(ONE)), is_end)


def test_a_failure_that_forgets_an_earlier_attempt_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {**states.MOVES, (State.EXECUTING, "failed.unresolved"): State.FAILED}
    monkeypatch.setattr(states, "MOVES", rows)
    assert not missed("FAILED with an attempt in doubt")


def test_a_key_that_opens_a_revision_beside_a_doubt_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "is_revisable", lambda newest: newest.reason in REVISABLE)
    monkeypatch.setattr(claiming, "earlier", lambda _revisions: None)
    assert not missed("of revision 1 had happened", shop=TWO)


def test_a_claim_that_asks_nothing_of_the_revisions_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "earlier", lambda _revisions: None)
    assert not missed("of revision 1 had happened", shop=TWO)


def test_a_verdict_that_lets_what_is_running_fail_into_another_try_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were "it happened" taken while another attempt runs, its clean failure would make the action ready again."""
    happened = states.STAYS["reconciled.applied"] | {State.EXECUTING}
    monkeypatch.setattr(states, "STAYS", {**states.STAYS, "reconciled.applied": happened})
    assert not missed("had happened", shop=replace(ONE, attempts=3))


def test_a_refusal_that_forgets_that_it_happened_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a cancelled action, of which a late answer was confirmed, would open another revision."""
    real = fold._moved

    def forgetful(before: Any, changed: Any, event: Any, after: Any) -> Any:
        moved = real(before, changed, event, after)
        return replace(moved, reason=before.reason) if moved.reason == "happened" else moved

    monkeypatch.setattr(fold, "_moved", forgetful)
    assert not missed("of revision 1 had happened", shop=TWO)


def test_a_grant_that_an_uncertain_end_gives_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def given_back(file: Any, event: Any, body: Any) -> Any:
        ended = attempts.in_doubt(file, event, body)
        grant = ended.question
        if grant is None or grant.state != "used":
            return ended
        back = replace(grant, state="granted")
        return replace(ended, approvals=MappingProxyType({**ended.approvals, grant.id: back}))

    monkeypatch.setattr(fold, "_CHANGES", {**fold._CHANGES, "in_doubt": given_back})
    assert not missed("its grant was used before", shop=replace(ONE, recovery=Repeat(), says=FEW))
