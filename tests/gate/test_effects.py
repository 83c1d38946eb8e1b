"""What an effect's end proves: that it happened, that it did not, or neither (design §4, errors)."""

import asyncio
import contextvars
import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import NoReturn
from uuid import UUID

import pytest

import agentgate
from agentgate import Done, Effect, Failed, NoEffect, Observation, Outcome, ToolError, Unknown
from agentgate.core.recording import Ended
from agentgate.gate.claiming import Claim
from agentgate.gate.performing import Performer
from support.worlds import World, named, opened

TRACE: contextvars.ContextVar[str] = contextvars.ContextVar("TRACE", default="none")
SHORT = 0.05


def run_one(world: World, function: Callable[..., object], **declared: object) -> Outcome:
    """Call a tool once in a run of its own."""
    with world.gate(named("act", function, **declared)) as gate:
        return gate.call(opened(gate), "act", {}, key="k")


def stored(world: World, action: str, kind: str = "result") -> str:
    """Read an action's payload of a kind."""
    event = next(event for event in reversed(world.events(action)) if kind in event.body["payloads"])  # type: ignore[operator]
    sql = "SELECT content FROM agentgate_payloads WHERE run = ? AND n = ? AND kind = ?"
    return bytes(world.value(sql, event.run, event.n, kind)).decode()


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
    assert world.words(outcome.action) == ["proposed", "started", "in_doubt", "late"]


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


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread is about to write."""
    over = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < over
        time.sleep(0.005)


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


# --- time-outs -----------------------------------------------------------------------------------


def test_a_time_out_is_unknown_and_the_late_result_is_kept_with_its_fence(world: World) -> None:
    leave = threading.Event()
    fences: list[int] = []

    def act(*, effect: Effect) -> str:
        fences.append(effect.fence)
        leave.wait(30)
        return "late but fine"

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        run = opened(gate)
        outcome = gate.call(run, "act", {}, key="k")
        assert isinstance(outcome, Unknown)
        assert outcome.reason == "timeout"
        leave.set()
        until(lambda: world.words(outcome.action)[-1] == "late")
        assert isinstance(gate.call(run, "act", {}, key="k"), Unknown)
    late = world.events(outcome.action)[-1]
    assert late.body["fence"] == fences[0]
    assert (late.body["status"], late.body["clean"]) == ("ok", False)
    assert "late but fine" in stored(world, outcome.action, "evidence")
    assert world.value("SELECT late_n FROM agentgate_attempts") == late.n
    assert len(fences) == 1


def test_a_late_result_after_not_applied_takes_the_answer_back(world: World) -> None:
    leave = threading.Event()

    def act() -> str:
        leave.wait(30)
        return "late but fine"

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        unknown = gate.call(opened(gate), "act", {}, key="k")
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="looked", tenant="acme")
        assert world.state(unknown.action) == "READY"
        leave.set()
        until(lambda: world.state(unknown.action) == "UNKNOWN")
        outcome = gate.execute(unknown.action, tenant="acme")
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "late"


def test_a_clean_late_end_after_not_applied_leaves_the_answer_standing(world: World) -> None:
    leave, tries = threading.Event(), []

    def act() -> str:
        tries.append(1)
        if len(tries) == 1:
            leave.wait(30)
            raise NoEffect
        return "now"

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        unknown = gate.call(opened(gate), "act", {}, key="k")
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="looked", tenant="acme")
        leave.set()
        until(lambda: "late" in world.words(unknown.action))
        outcome = gate.execute(unknown.action, tenant="acme")
    assert isinstance(outcome, Done)


def test_an_end_that_races_its_time_out_is_recorded_one_way_or_the_other(world: World) -> None:
    """The effect ends in the very moment in which the gate stops waiting: never lost, never an error."""

    def act(n: int) -> int:
        time.sleep(SHORT + (n - 10) / 20_000)
        return n

    with world.gate(named("act", act, timeout=SHORT)) as gate:
        run = opened(gate)
        outcomes = [gate.call(run, "act", {"n": n}, key=f"k{n}") for n in range(20)]
        for outcome in outcomes:
            until(lambda action=outcome.action: world.words(action)[-1] in {"succeeded", "late"})  # type: ignore[misc]
        again = [gate.call(run, "act", {"n": n}, key=f"k{n}") for n in range(20)]
    for outcome, later in zip(outcomes, again, strict=True):
        words = world.words(outcome.action)
        if words[:3] == ["proposed", "started", "succeeded"]:
            assert isinstance(outcome, Done)
            assert isinstance(later, Done)
        else:
            assert words == ["proposed", "started", "in_doubt", "late"]
            assert isinstance(outcome, Unknown)
            assert isinstance(later, Unknown)


def test_an_end_that_is_faster_than_the_record_of_its_own_time_out_is_simply_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = threading.Event()
    record = Performer._record

    def act() -> str:
        leave.wait(30)
        return "just in time"

    def slowly(self: Performer, claim: Claim, ended: Ended) -> Outcome:
        leave.set()
        until(lambda: world.state(claim.file.action.id) != "EXECUTING")
        return record(self, claim, ended)

    monkeypatch.setattr(Performer, "_record", slowly)
    with world.gate(named("act", act, timeout=SHORT)) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "just in time"
    assert world.words(outcome.action) == ["proposed", "started", "succeeded"]


# --- coroutines, context -------------------------------------------------------------------------


def test_a_coroutine_tool_is_run_by_a_loop_of_its_thread(world: World) -> None:
    async def act() -> str:
        await asyncio.sleep(0)
        return "awaited"

    outcome = run_one(world, act)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "awaited"


def test_a_coroutine_that_is_over_its_time_is_cancelled_and_in_doubt(world: World) -> None:
    cancelled = threading.Event()

    async def act() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    outcome = run_one(world, act, timeout=SHORT)
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "timeout"
    assert cancelled.wait(20)


def test_context_variables_of_the_caller_are_visible_in_the_effect_and_do_not_leak_back(world: World) -> None:
    seen: list[str] = []

    def act() -> None:
        seen.append(TRACE.get())
        TRACE.set("changed inside")

    async def act_later() -> None:
        seen.append(TRACE.get())

    with world.gate(named("act", act), named("act_later", act_later)) as gate:
        run = opened(gate)
        token = TRACE.set("of the caller")
        gate.call(run, "act", {})
        gate.call(run, "act_later", {})
        assert TRACE.get() == "of the caller"
        TRACE.reset(token)
    assert seen == ["of the caller", "of the caller"]


def test_context_variables_do_not_bleed_between_tenants(world: World) -> None:
    seen: dict[str, set[str]] = {"acme": set(), "other": set()}

    def act(*, effect: Effect) -> None:
        time.sleep(0.001)
        seen[effect.tenant].add(TRACE.get())

    def work(tenant: str) -> None:
        TRACE.set(tenant)
        run = opened(gate, tenant=tenant)
        for _ in range(10):
            gate.call(run, "act", {})

    with world.gate(named("act", act)) as gate:
        threads = [threading.Thread(target=contextvars.Context().run, args=(work, tenant)) for tenant in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {"acme": {"acme"}, "other": {"other"}}


# --- results -------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


@dataclass
class Receipt:
    amount: Decimal
    colour: Colour


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (None, None),
        (1.0, 1),
        ((1, 2), [1, 2]),
        (datetime(2030, 1, 1, tzinfo=UTC), "2030-01-01T00:00:00.000000Z"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "AP8="),
        (Colour.RED, "red"),
        (Receipt(amount=Decimal(1), colour=Colour.RED), {"amount": "1", "colour": "red"}),
    ],
)
def test_results_have_defined_encodings(world: World, value: object, seen: object) -> None:
    outcome = run_one(world, lambda: value)
    assert isinstance(outcome, Done)
    assert outcome.observation == Observation(status="ok", value=seen)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), {"a": [lambda: 0]}, {1: 2}, "\ud800", 2**60])
def test_a_result_that_cannot_be_encoded_has_succeeded_and_says_what_could_not_be_kept(
    world: World, value: object
) -> None:
    with world.gate(named("act", lambda: value)) as gate:
        run = opened(gate)
        outcome, again = (gate.call(run, "act", {}, key="k") for _ in range(2))
    assert isinstance(outcome, Done)
    assert "unencodable" in outcome.observation.notes
    assert isinstance(again, Done)
    assert again.observation == outcome.observation
    assert world.events(outcome.action)[2].body["notes"] == ["unencodable"]


def test_an_endless_result_has_succeeded_too(world: World) -> None:
    value: list[object] = []
    value.append(value)
    outcome = run_one(world, lambda: value)
    assert isinstance(outcome, Done)
    assert "unencodable" in outcome.observation.notes


def test_a_result_over_the_tools_limit_is_cut_for_the_loop_and_kept_whole(world: World) -> None:
    long = "x" * 10_000
    with world.gate(named("act", lambda: long, max_output_bytes=1_000)) as gate:
        run = opened(gate)
        outcome, again = (gate.call(run, "act", {}, key="k") for _ in range(2))
    assert isinstance(outcome, Done)
    assert outcome.observation.notes == ("capped",)
    assert isinstance(outcome.observation.value, dict)
    assert len(str(outcome.observation.value)) < 2_000
    assert isinstance(again, Done)
    assert again.observation == outcome.observation
    assert long in stored(world, outcome.action)
    assert world.events(outcome.action)[2].body["result_bytes"] > 10_000  # type: ignore[operator]


def test_a_result_that_its_schema_refuses_has_succeeded_and_says_so(world: World) -> None:
    outcome = run_one(world, lambda: "seven", output_schema={"type": "integer"})
    assert isinstance(outcome, Done)
    assert outcome.observation == Observation(status="ok", value="seven", notes=("output_invalid",))


def test_a_function_that_cannot_be_called_with_what_its_schema_accepts_fails_before_anything_happened(
    world: World,
) -> None:
    spec = agentgate.ToolSpec(name="act", input_schema={"type": "object"}, undeclared="allow")
    with world.gate(agentgate.gated(spec, lambda: None)) as gate:
        outcome = gate.call(opened(gate), "act", {"surprise": 1})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "invalid_arguments"


@pytest.mark.parametrize("raw", ["null", "7", '"text"', "[1,2]", "true"])
def test_arguments_that_are_no_object_go_to_the_callable_as_its_one_argument(world: World, raw: str) -> None:
    spec = agentgate.ToolSpec(name="act", input_schema=True)
    given: list[object] = []
    with world.gate(agentgate.gated(spec, given.append)) as gate:
        outcome = gate.call(opened(gate), "act", raw)
    assert isinstance(outcome, Done)
    assert given == [json.loads(raw)]


class Lying:
    """Whatever is asked of it raises."""

    def __getattribute__(self, name: str) -> object:
        raise ZeroDivisionError(name)


class LyingDict(dict[str, object]):
    def items(self) -> NoReturn:
        raise ZeroDivisionError

    __iter__ = keys = __len__ = items


@dataclass
class LyingReceipt:
    amount: int

    def __getattribute__(self, name: str) -> object:
        if name == "amount":
            raise ZeroDivisionError
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "made", [Lying, lambda: LyingDict(a=1), lambda: [LyingReceipt(1)], lambda: {"a": Lying()}, lambda: Lying]
)
def test_a_result_that_lies_has_succeeded_all_the_same(world: World, made: Callable[[], object]) -> None:
    outcome = run_one(world, lambda: made())  # noqa: PLW0108 - a class is no function
    assert isinstance(outcome, Done)


class LyingError(ToolError):
    @property
    def code(self) -> str:
        raise ZeroDivisionError

    @code.setter
    def code(self, value: str) -> None:
        pass


def test_an_error_that_lies_is_recorded_all_the_same(world: World) -> None:
    def act() -> None:
        raise LyingError("not_found", "x")

    outcome = run_one(world, act)
    assert isinstance(outcome, Unknown)
    assert world.state(outcome.action) == "UNKNOWN"


def test_a_long_effect_keeps_its_lease(world: World) -> None:
    """Five seconds is the shortest lease; an effect longer than it is renewed and stays its worker's."""
    settings = agentgate.Settings(lease=timedelta(seconds=5))
    leases: list[int] = []

    def act() -> None:
        leases.append(world.value("SELECT lease_until_us FROM agentgate_attempts"))
        until(lambda: world.value("SELECT lease_until_us FROM agentgate_attempts") > leases[0])

    with world.gate(named("act", act), settings=settings) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Done)
