"""What an effect's end proves: that it happened, that it did not, or neither (design §4, errors)."""

import contextvars
import signal
import threading
import time

import pytest

import agentgate
from agentgate import Effect, Failed, NoEffect, ToolError, Unknown
from support.single import run_one, stored, until
from support.worlds import World, named, opened

TRACE: contextvars.ContextVar[str] = contextvars.ContextVar("TRACE", default="none")
SHORT = 0.05

# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "code", "retryable"),
    [
        (ToolError("invalid_arguments", "x"), Failed, "invalid_arguments", False),
        (ToolError("not_found", "x"), Failed, "not_found", False),
        (ToolError("conflict", "x"), Failed, "conflict", False),
        (ToolError("rate_limited", "x"), Failed, "rate_limited", True),
        (ToolError("precondition_failed", "x"), Failed, "precondition_failed", False),
        (ToolError("transient", "x"), Unknown, "transient", None),
        (ToolError("timeout", "x"), Unknown, "timeout", None),
        (ToolError("internal", "x"), Unknown, "internal", None),
        (ToolError("own_word", "x"), Unknown, "own_word", None),
        (ToolError("transient", "x", effect="none"), Failed, "transient", True),
        (ToolError("not_found", "x", effect="unknown"), Unknown, "not_found", None),
        (ToolError("conflict", "x", retryable=True), Failed, "conflict", True),
        (NoEffect(), Failed, "transient", True),
        (NoEffect("x", code="own_word", retryable=False), Failed, "own_word", False),
        (KeyError("x"), Unknown, "internal", None),
        (ConnectionResetError("x"), Unknown, "internal", None),
        (TimeoutError("x"), Unknown, "internal", None),
    ],
)
def test_an_error_proves_what_its_code_says_and_no_more(
    world: World, error: Exception, kind: type, code: str, *, retryable: bool | None
) -> None:
    def act() -> None:
        raise error

    outcome = run_one(world, act)
    assert type(outcome) is kind
    assert outcome.reason == code
    if isinstance(outcome, Failed):
        assert (outcome.error.code, outcome.retryable) == (code, retryable)
    assert world.state(outcome.action) == ("FAILED" if kind is Failed else "UNKNOWN")


def test_what_a_tool_says_of_its_error_is_told_and_kept(world: World) -> None:
    def act() -> None:
        raise ToolError("not_found", "no such account", details={"near": ["a2"]}, suggested_action="use a2")

    outcome = run_one(world, act)
    assert isinstance(outcome, Failed)
    assert outcome.error == agentgate.Error(
        code="not_found", message="no such account", details={"near": ["a2"]}, suggested_action="use a2"
    )
    assert '"suggested_action":"use a2"' in stored(world, outcome.action)


@pytest.mark.parametrize("declared", [{"errors": "no_effect"}, {"risk": "read_only"}])
def test_an_exception_is_clean_where_the_spec_says_so(world: World, declared: dict[str, str]) -> None:
    def act() -> None:
        raise KeyError("x")

    outcome = run_one(world, act, **declared)
    assert isinstance(outcome, Failed)
    assert outcome.error.message.startswith("KeyError")


@pytest.mark.parametrize(
    ("code", "message"),
    [("a code\nwith lines", "x"), ("", "x"), ("x" * 65, "x"), (7, "x"), ("not_found", "\ud800 lone"), ("conflict", 7)],
)
def test_an_error_that_says_nonsense_is_still_recorded(world: World, code: object, message: object) -> None:
    def act() -> None:
        raise ToolError(code, message, effect="none", details=object())  # type: ignore[arg-type]

    outcome = run_one(world, act)
    assert isinstance(outcome, Failed)
    assert outcome.error.code in {"internal", "not_found", "conflict"}
    assert world.state(outcome.action) == "FAILED"


def test_an_exception_whose_text_cannot_be_had_is_still_recorded(world: World) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def act() -> None:
        raise Mute

    outcome = run_one(world, act)
    assert isinstance(outcome, Unknown)
    assert '"message":"Mute"' in stored(world, outcome.action)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interruption_is_recorded_in_doubt_and_goes_on_to_the_caller(
    world: World, error: type[BaseException]
) -> None:
    def act() -> None:
        raise error

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        with pytest.raises(error):
            gate.call(run, "act", {}, key="k")
        outcome = gate.call(run, "act", {}, key="k")
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "cancelled"


def test_an_interruption_of_the_one_who_waits_is_recorded_and_what_comes_late_is_kept(world: World) -> None:
    leave = threading.Event()

    def act() -> str:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        leave.wait(30)
        return "late but fine"

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        with pytest.raises(KeyboardInterrupt):
            gate.call(run, "act", {}, key="k")
        outcome = gate.call(run, "act", {}, key="k")
        leave.set()
        until(lambda: world.words(outcome.action)[-1] == "late")
    assert isinstance(outcome, Unknown)
    assert world.words(outcome.action) == ["proposed", "started", "in_doubt", "question_asked", "late"]


def test_an_effect_that_gets_no_thread_is_a_clean_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def act() -> None:
        raise AssertionError

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        gate.call(run, "refund", {})  # the policy has its thread already
        monkeypatch.setattr(threading.Thread, "start", start)
        outcome = gate.call(run, "act", {})
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.retryable) == ("transient", True)


# --- sending, check ------------------------------------------------------------------------------


def test_an_effect_that_wakes_up_over_its_time_before_its_first_byte_ends_cleanly_though_late(world: World) -> None:
    def act(*, effect: Effect) -> None:
        time.sleep(2 * SHORT)
        effect.sending()

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        outcome = gate.call(opened(gate), "act", {})
        assert isinstance(outcome, Unknown)
        until(lambda: world.words(outcome.action)[-1] == "late")
    late = world.events(outcome.action)[-1]
    assert (late.body["clean"], late.body["status"], late.body["code"]) == (True, "error", "timeout")


def test_check_stops_an_effect_whose_lease_is_lost(world: World) -> None:
    def act(*, effect: Effect) -> None:
        effect.sending()
        effect.lose()
        effect.check()

    outcome = run_one(world, act)
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "lease_lost"


def test_sending_refuses_cleanly_where_the_lease_is_lost_and_nothing_has_left(world: World) -> None:
    def act(*, effect: Effect) -> None:
        effect.lose()
        effect.sending()

    outcome = run_one(world, act)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.retryable) == ("lease_lost", True)
