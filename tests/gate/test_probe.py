"""A tool that can be asked whether its effect has happened: when it is asked, and what follows from its answer."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Applied, Done, Effect, Function, Gate, NotApplied, Refused, Unknown
from agentgate.policy.deadline import MAX_ABANDONED
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support import forking
from support.single import stored
from support.worlds import World, named, opened

CALL = {"account": "a1", "cents": 5}
Ask = Callable[[Effect, Any], object]


def doubted(ask: Ask, *, tries: list[int] | None = None, **declared: Any) -> AnyTool:
    """Make a tool whose first attempt ends in doubt, and which answers by ``ask``."""
    made = [] if tries is None else tries

    def pay(account: str, cents: int, *, effect: Effect) -> dict[str, int]:  # noqa: ARG001 - the tool's form
        made.append(effect.attempt)
        if effect.attempt == 1:
            raise ConnectionResetError
        return {"cents": cents, "attempt": effect.attempt}

    probe = Function(call=ask, name="find_payment", version="3")
    whole = {"recovery": agentgate.Probe(), "probe": probe, "resource": "account:{account}"} | declared
    return named("pay", pay, **whole)


def call(gate: Gate, **options: Any) -> agentgate.Outcome:
    return gate.call(opened(gate), "pay", CALL, key="k", **options)


def test_a_probe_that_says_it_has_happened_answers_with_its_result_and_its_evidence(world: World) -> None:
    def ask(_effect: Effect, arguments: Any) -> Applied:
        return Applied(result={"id": "p1", "cents": arguments["cents"]}, evidence={"seen": ["p1"]})

    tries: list[int] = []
    with world.gate(doubted(ask, tries=tries)) as gate:
        unknown, outcome = call(gate), call(gate)
        again = call(gate)
    assert isinstance(unknown, Unknown)
    assert isinstance(outcome, Done)
    assert (outcome.source, outcome.observation.value) == ("reconciled", {"id": "p1", "cents": 5})
    assert again == outcome
    assert tries == [1]
    reconciled = world.events(outcome.action)[3]
    assert (reconciled.type, reconciled.body["by"]) == ("reconciled", "probe:find_payment/3")
    assert (reconciled.body["verdict"], reconciled.body["attempts"]) == ("applied", [1])
    assert reconciled.body["worker_known_dead"] is True
    assert json.loads(stored(world, outcome.action, "evidence")) == {"said": "yes", "evidence": {"seen": ["p1"]}}
    assert not world.damage()


def test_after_not_applied_the_same_call_goes_on_and_runs_it_again(world: World) -> None:
    tries: list[int] = []
    policy = ScriptedPolicy()
    with world.gate(doubted(lambda *_: NotApplied(evidence="no such payment"), tries=tries), policy=policy) as gate:
        assert isinstance(call(gate), Unknown)
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert (outcome.source, outcome.observation.value) == ("executed", {"cents": 5, "attempt": 2})
    assert tries == [1, 2]
    assert world.words(outcome.action) == ["proposed", "started", "in_doubt", "reconciled", "started", "succeeded"]
    assert len(policy.requests) == 2  # once for the proposal, once for the claim after the answer
    assert not world.damage()


@pytest.mark.parametrize(("answer", "kind"), [(True, Done), (False, Done), (None, Unknown)])
def test_a_bare_yes_or_no_or_nothing_will_do(world: World, *, answer: bool | None, kind: type) -> None:
    tries: list[int] = []
    with world.gate(doubted(lambda *_: answer, tries=tries)) as gate:
        call(gate)
        outcome = call(gate)
    assert isinstance(outcome, kind)
    assert tries == ([1, 2] if answer is False else [1])


def _raises(_effect: Effect, _arguments: Any) -> object:
    raise LookupError("a text with a1 in it")


def _exits(_effect: Effect, _arguments: Any) -> object:
    raise SystemExit


async def _later() -> bool:
    return True


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda *_: None, "none"),
        (_raises, "raised"),
        (_exits, "raised"),
        (lambda *_: _later(), "awaitable"),
        (lambda *_: "yes", "rubbish"),
        (lambda *_: 1, "rubbish"),
        (lambda *_: Applied, "rubbish"),
        (lambda _effect: True, "raised"),
    ],
)
def test_whatever_else_a_probe_does_is_no_answer_and_is_recorded_once(world: World, ask: Ask, why: str) -> None:
    tries: list[int] = []
    with world.gate(doubted(ask, tries=tries)) as gate:
        call(gate)
        outcomes = [call(gate), call(gate)]
    for outcome in outcomes:
        assert isinstance(outcome, Unknown)
        assert outcome.reason == "internal"
    assert tries == [1]
    words = world.words(outcomes[0].action)
    assert words == ["proposed", "started", "in_doubt", "waited", "question_asked"]
    waited = world.events(outcomes[0].action)[-2]
    assert waited.body["reason"] == "probe_unsure"
    evidence = stored(world, outcomes[0].action, "evidence")
    assert json.loads(evidence)["said"] == why
    assert "a1" not in evidence
    assert not world.damage()


def test_a_probe_that_is_too_slow_is_no_answer_and_is_not_waited_for(world: World) -> None:
    leave = threading.Event()
    settings = agentgate.Settings(check_within=timedelta(milliseconds=20))

    def ask(_effect: Effect, _arguments: Any) -> bool:
        leave.wait(30)
        return True

    with world.gate(doubted(ask), settings=settings) as gate:
        call(gate)
        outcome = call(gate)
        leave.set()
    assert isinstance(outcome, Unknown)
    assert json.loads(stored(world, outcome.action, "evidence")) == {"said": "late"}


def test_a_probe_knows_the_attempt_it_is_asked_about_and_gets_arguments_of_its_own(world: World) -> None:
    effects: list[Effect] = []
    seen: list[Any] = []

    def pay(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001 - the tool's form
        effects.append(effect)
        raise ConnectionResetError

    def ask(effect: Effect, arguments: Any) -> None:
        effects.append(effect)
        seen.append(dict(arguments))
        arguments.clear()
        effect.check()
        effect.sending()

    probe = Function(call=ask, name="p", version="1")
    with world.gate(named("pay", pay, recovery=agentgate.Probe(), probe=probe)) as gate:
        call(gate)
        call(gate)
        call(gate)
    first, *asked = effects
    assert len(asked) == 2
    for effect in asked:
        for name in ("action_id", "idempotency_key", "attempt", "fence", "tenant", "principal"):
            assert getattr(effect, name) == getattr(first, name)
    assert seen == [CALL, CALL]


def test_no_transaction_is_open_while_a_probe_is_asked(world: World) -> None:
    def ask(effect: Effect, _arguments: Any) -> bool:
        world.sql("BEGIN IMMEDIATE")
        assert world.state(effect.action_id) == "UNKNOWN"
        return True

    with world.gate(doubted(ask)) as gate:
        call(gate)
        assert isinstance(call(gate), Done)


def test_an_answer_about_what_has_moved_meanwhile_is_dropped(world: World) -> None:
    with world.gate() as other:

        def ask(effect: Effect, _arguments: Any) -> bool:
            other.reconcile(effect.action_id, applied=True, by="ada", evidence="the bank", result=7, tenant="acme")
            return False

        with world.gate(doubted(ask)) as gate:
            call(gate)
            outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == 7
    assert world.words(outcome.action)[:4] == ["proposed", "started", "in_doubt", "reconciled"]
    assert world.events(outcome.action)[3].body["by"] == "ada"


def test_not_applied_in_a_closed_run_refuses_it_and_gives_its_resource_back(world: World) -> None:
    with world.gate(doubted(lambda *_: False)) as gate:
        unknown = call(gate)
        gate.close_run(opened(gate), by="ada")
        outcome = gate.execute(unknown.action, tenant="acme")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "run_closed"
    assert world.sql("SELECT * FROM agentgate_locks") == []


def test_a_policy_that_says_no_by_now_is_obeyed_after_not_applied(world: World) -> None:
    tries: list[int] = []
    policy = ScriptedPolicy(agentgate.allow("first"), otherwise=agentgate.deny("no_more"))
    with world.gate(doubted(lambda *_: False, tries=tries), policy=policy) as gate:
        call(gate)
        outcome = call(gate)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "policy_denied"
    assert tries == [1]


def test_applied_gives_the_resource_back_and_unsure_keeps_it(world: World) -> None:
    answers: list[object] = [None, True]
    with world.gate(doubted(lambda *_: answers.pop(0))) as gate:
        unknown = call(gate)
        assert isinstance(call(gate), Unknown)
        blocked = gate.call(opened(gate), "pay", CALL | {"cents": 6}, key="k2")
        assert isinstance(blocked, Refused)
        assert blocked.blocking == unknown.action
        assert isinstance(call(gate), Done)
        assert world.sql("SELECT * FROM agentgate_locks") == []


def test_a_probe_of_another_definition_is_not_asked(world: World) -> None:
    with world.gate(doubted(lambda *_: True)) as gate:
        unknown = call(gate)
    with world.gate(doubted(lambda *_: True, version="2")) as gate:
        outcome = gate.execute(unknown.action, tenant="acme")
    assert isinstance(outcome, Unknown)
    assert world.words(unknown.action) == ["proposed", "started", "in_doubt", "question_asked"]


def test_what_a_probe_shows_is_kept_as_far_as_it_can_be(world: World) -> None:
    with world.gate(doubted(lambda *_: Applied(result=object(), evidence={1, 2}))) as gate:
        call(gate)
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.observation.notes == ("reconciled", "unencodable")
    assert not world.damage()


def test_a_worker_that_died_is_taken_over_and_its_effect_asked_about_in_one_call(world: World) -> None:
    def pay(account: str, cents: int, *, effect: Effect) -> None:  # noqa: ARG001 - the tool's form
        world.downstream.apply(effect, resource=account)
        forking.die()

    def ask(effect: Effect, _arguments: Any) -> bool:
        return world.downstream.has_applied(effect)

    probe = Function(call=ask, name="p", version="1")
    tool = named("pay", pay, recovery=agentgate.Probe(), probe=probe)

    def work() -> None:
        with world.gate(tool) as gate:
            call(gate)

    assert forking.run(work) == forking.KILLED
    with world.gate(tool) as gate:
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.source == "reconciled"
    assert world.downstream.total == 1
    assert world.words(outcome.action) == ["proposed", "started", "in_doubt", "reconciled"]


@pytest.mark.parametrize(
    ("call_", "words"),
    [(_later, "coroutine"), (7, "called"), (lambda: (yield), "coroutine")],
)
def test_a_function_that_cannot_be_asked_is_refused_when_the_tool_is_made(call_: Any, words: str) -> None:
    with pytest.raises(agentgate.SpecRefused, match=words) as caught:
        doubted(call_)
    assert caught.value.path == "/probe"


def test_a_probe_that_hangs_again_and_again_is_not_started_any_more(world: World, clock: FakeClock) -> None:
    """Hung threads are bounded, and keep no policy from answering."""
    leave, entered = threading.Event(), list[int]()
    settings = agentgate.Settings(check_within=timedelta(milliseconds=1))

    def ask(_effect: Effect, _arguments: Any) -> bool:
        entered.append(1)
        leave.wait(60)
        return True

    with world.gate(doubted(ask), settings=settings, clock=clock) as gate:
        call(gate)
        outcomes = [call(gate) for _ in range(MAX_ABANDONED + 3)]
        assert isinstance(gate.call(opened(gate), "pay", CALL | {"account": "a2"}, key="other"), Unknown)
        leave.set()
    assert {type(outcome) for outcome in outcomes} == {Unknown}
    assert len(entered) <= MAX_ABANDONED
