"""A tool's check after its write: on the outcome and in the record, and never more than was seen."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Checked, Done, Effect, Failed, Function, FunctionName, Gate, NotPossible, ToolSpec, Unknown
from agentgate.errors import NotFound, Unavailable
from agentgate.gate.ledger import Ledger
from agentgate.tools.decorator import AnyTool
from support.single import stored
from support.worlds import World, named, opened

Ask = Callable[[Effect, Any, Any], object]


def checked(ask: Ask, function: Callable[..., object] | None = None, **declared: Any) -> AnyTool:
    def pay(cents: int) -> dict[str, int]:
        return {"cents": cents}

    confirm = Function(call=ask, name="look", version="2")
    return named("pay", function or pay, confirm=confirm, **declared)


def call(gate: Gate, key: str = "k") -> agentgate.Outcome:
    return gate.call(opened(gate), "pay", {"cents": 5}, key=key)


@pytest.mark.parametrize(
    ("answer", "said", "word"),
    [
        (True, "yes", "confirmed"),
        (False, "no", "contradicted"),
        (Checked(ok=True), "yes", "confirmed"),
        (Checked(ok=False), "no", "contradicted"),
        (None, "unchecked", None),
        (Checked(ok=None, evidence="nothing found"), "unchecked", None),
        (1, "unchecked", None),
        ("yes", "unchecked", None),
        (Checked(ok="yes"), "unchecked", None),  # type: ignore[arg-type]
    ],
)
def test_what_a_check_says_stands_on_the_outcome_on_every_replay_and_in_the_record(
    world: World, answer: object, said: str, word: str | None
) -> None:
    tool = checked(lambda *_: answer)
    with world.gate(tool) as gate:
        executed, replayed = call(gate), call(gate)
        proposed = gate.propose(opened(gate), "pay", {"cents": 5}, key="k").outcome
    with world.gate(tool) as gate:
        later = gate.execute(executed.action, tenant="acme")
    for outcome, source in (
        (executed, "executed"),
        (replayed, "replayed"),
        (proposed, "replayed"),
        (later, "replayed"),
    ):
        assert isinstance(outcome, Done)
        assert (outcome.source, outcome.confirmed) == (source, said)
    words = [one for one in world.words(executed.action) if one != "replayed"]
    assert words == ["proposed", "started", "succeeded", *([] if word is None else [word])]
    if word is not None:
        event = next(event for event in world.events(executed.action) if event.type == word)
        body = {name: event.body[name] for name in ("attempt", "name", "version", "payloads")}
        assert body == {"attempt": 1, "name": "look", "version": "2", "payloads": {}}
    assert not world.damage()


def _raises(_effect: Effect, _arguments: Any, _result: Any) -> object:
    raise LookupError("5 cents")


async def _later() -> bool:
    return True


@pytest.mark.parametrize("ask", [_raises, lambda *_: _later(), lambda _effect: True])
def test_a_check_that_does_not_answer_leaves_it_unchecked(world: World, ask: Ask) -> None:
    with world.gate(checked(ask)) as gate:
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "unchecked"
    assert world.words(outcome.action) == ["proposed", "started", "succeeded"]


def test_a_check_that_is_too_slow_leaves_it_unchecked(world: World) -> None:
    leave = threading.Event()
    settings = agentgate.Settings(check_within=timedelta(milliseconds=20))
    with world.gate(checked(lambda *_: leave.wait(30)), settings=settings) as gate:
        outcome = call(gate)
        leave.set()
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "unchecked"


def test_a_check_sees_the_attempt_its_arguments_and_its_whole_result_and_no_open_transaction(world: World) -> None:
    effects: list[Effect] = []
    seen: list[Any] = []

    def pay(cents: int, *, effect: Effect) -> dict[str, Any]:
        effects.append(effect)
        return {"cents": cents, "text": "x" * 10_000}

    def ask(effect: Effect, arguments: Any, result: Any) -> bool:
        world.sql("BEGIN IMMEDIATE")
        assert world.state(effect.action_id) == "SUCCEEDED"
        effects.append(effect)
        seen.append((dict(arguments), len(result["text"])))
        arguments.clear()
        result.clear()
        return True

    with world.gate(checked(ask, pay, max_output_bytes=100)) as gate:
        outcome = call(gate)
        gate.confirm(outcome.action, tenant="acme")
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "yes"
    assert seen == [({"cents": 5}, 10_000)] * 2
    for effect in effects:
        for name in ("action_id", "idempotency_key", "attempt", "fence", "tenant", "principal"):
            assert getattr(effect, name) == getattr(effects[0], name)


def test_only_what_has_happened_is_checked(world: World) -> None:
    asked: list[object] = []

    def pay(cents: int) -> None:
        raise ConnectionResetError if cents == 1 else agentgate.NoEffect

    with world.gate(checked(lambda *_: asked.append(1), pay)) as gate:
        run = opened(gate)
        unknown, failed = gate.call(run, "pay", {"cents": 1}, key="1"), gate.call(run, "pay", {"cents": 2}, key="2")
        assert isinstance(unknown, Unknown)
        for outcome in (unknown, failed):
            with pytest.raises(NotPossible):
                gate.confirm(outcome.action, tenant="acme")
    assert asked == []


def test_evidence_of_a_check_is_kept_beside_the_record(world: World) -> None:
    ask = lambda *_: Checked(ok=False, evidence={"status": "pending", "odd": object()})  # noqa: E731
    with world.gate(checked(ask)) as gate:
        outcome = call(gate)
    evidence = json.loads(stored(world, outcome.action, "evidence"))
    assert evidence == {"said": "no", "evidence": {"status": "pending", "odd": {"$unencodable": "builtins.object"}}}
    assert not world.damage()


# --- again ---------------------------------------------------------------------------------------


def test_a_check_can_be_made_again_and_the_latest_that_could_tell_stands(world: World) -> None:
    answers: list[object] = [None, True, None, False, False]
    with world.gate(checked(lambda *_: answers.pop(0))) as gate:
        outcome = call(gate)
        said = [gate.confirm(outcome.action, tenant="acme").outcome for _ in range(4)]
    assert [one.confirmed for one in said if isinstance(one, Done)] == ["yes", "yes", "no", "no"]
    assert world.words(outcome.action)[3:] == ["confirmed", "contradicted", "contradicted"]
    assert not world.damage()


def test_what_somebody_reconciled_can_be_checked(world: World) -> None:
    seen: list[object] = []

    def pay(cents: int) -> None:  # noqa: ARG001 - the tool's form
        raise ConnectionResetError

    def ask(_effect: Effect, _arguments: Any, result: Any) -> bool:
        seen.append(result)
        return True

    with world.gate(checked(ask, pay)) as gate:
        unknown = call(gate)
        gate.reconcile(unknown.action, applied=True, by="ada", evidence="x", result={"id": 9}, tenant="acme")
        assert seen == []
        outcome = gate.confirm(unknown.action, tenant="acme").outcome
    assert isinstance(outcome, Done)
    assert (outcome.source, outcome.confirmed, seen) == ("reconciled", "yes", [{"id": 9}])


def test_a_gate_without_the_tool_of_that_definition_cannot_check(world: World) -> None:
    with world.gate(checked(lambda *_: None)) as gate:
        outcome = call(gate)
    with world.gate(checked(lambda *_: True, version="2")) as gate, pytest.raises(NotPossible, match="definition"):
        gate.confirm(outcome.action, tenant="acme")
    with world.gate() as gate:
        with pytest.raises(NotPossible, match="definition"):
            gate.confirm(outcome.action, tenant="acme")
        done = gate.call(opened(gate), "refund", {"account": "a", "cents": 1})
        with pytest.raises(NotPossible, match="confirm function"):
            gate.confirm(done.action, tenant="acme")
        with pytest.raises(NotFound):
            gate.confirm(outcome.action, tenant="other")
        with pytest.raises(NotFound):
            gate.confirm("01a22e5e-0000-7000-8000-000000000000", tenant="acme")


def test_an_answer_that_another_check_was_faster_than_is_dropped(world: World) -> None:
    with world.gate(checked(lambda *_: False)) as other:
        inside: list[str] = []

        def ask(effect: Effect, _arguments: Any, _result: Any) -> bool:
            if not inside:
                inside.append(effect.action_id)
                other.confirm(effect.action_id, tenant="acme")
            return True

        with world.gate(checked(ask)) as gate:
            outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "no"
    assert world.words(outcome.action)[3:] == ["contradicted"]


def test_a_replay_meanwhile_takes_no_answer_away(world: World) -> None:
    with world.gate(checked(lambda *_: None)) as other:

        def ask(effect: Effect, _arguments: Any, _result: Any) -> bool:
            assert isinstance(other.execute(effect.action_id, tenant="acme"), Done)
            return True

        with world.gate(checked(ask)) as gate:
            outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "yes"


def test_a_check_that_cannot_be_recorded_is_no_check_and_loses_no_result(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = Ledger.change

    def ask(*_: object) -> bool:
        def fails(*_args: object, **_options: object) -> None:
            raise Unavailable("database", "disk full")

        monkeypatch.setattr(Ledger, "change", fails)
        return True

    with world.gate(checked(ask)) as gate:
        outcome = call(gate)
        monkeypatch.setattr(Ledger, "change", change)
        assert isinstance(outcome, Done)
        assert outcome.confirmed == "unchecked"
        again = call(gate)
    assert isinstance(again, Done)
    assert again.confirmed == "unchecked"


def test_an_end_that_beat_the_record_of_its_time_out_is_checked_all_the_same(world: World) -> None:
    """A tool that is given beside its spec, by its bare function; a failure is never checked."""
    spec = ToolSpec(
        name="pay", input_schema={"type": "object"}, undeclared="allow", confirm=FunctionName(name="c", version="1")
    )
    asked: list[object] = []

    def ask(*seen: object) -> bool:
        asked.append(seen[1:])
        return True

    tool = agentgate.gated(spec, lambda **named: named, confirm=Function(call=ask, name="c", version="1"))
    with world.gate(tool) as gate:
        outcome = call(gate)
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "yes"
    assert asked == [({"cents": 5}, {"cents": 5})]
    with pytest.raises(agentgate.SpecRefused):
        agentgate.gated(spec, print, confirm=Function(call=ask, name="c", version="2"))


def test_a_retry_that_succeeds_is_checked_as_its_own_attempt(world: World) -> None:
    def pay(cents: int, *, effect: Effect) -> int:
        if effect.attempt == 1:
            raise agentgate.NoEffect
        return cents

    attempts: list[int] = []

    def ask(effect: Effect, _arguments: Any, _result: Any) -> bool:
        attempts.append(effect.attempt)
        return True

    with world.gate(checked(ask, pay)) as gate:
        failed = call(gate)
        assert isinstance(failed, Failed)
        outcome = gate.execute(failed.action, tenant="acme", retry=True)
    assert isinstance(outcome, Done)
    assert outcome.confirmed == "yes"
    assert attempts == [2]
    assert world.events(outcome.action)[-1].body["attempt"] == 2
