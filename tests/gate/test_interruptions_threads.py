"""Interruptions of threads and processes: a dying thread, a real Ctrl-C, a process that ends under a late result."""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import datetime, timedelta, tzinfo
from random import Random
from typing import Any

import pytest

from agentgate import Done, Effect, Failed, Gate, Outcome, Running, Unknown
from agentgate.core.recording import Ended
from agentgate.gate.claiming import Claim
from agentgate.gate.performing import Performer
from agentgate.tools.decorator import AnyTool
from support import forking
from support.single import run_one, stored, until
from support.worlds import World, named, opened

SHORT = 0.05


def kill_thread(ident: int) -> None:
    """Raise SystemExit in a thread, at its next step: how threads are made to die."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def test_an_effect_whose_thread_is_made_to_die_is_in_doubt_and_the_exit_goes_on_to_the_caller(world: World) -> None:
    def act() -> None:
        kill_thread(threading.get_ident())
        while True:
            time.sleep(0.001)

    with pytest.raises(SystemExit):
        run_one(world, act)
    assert world.value("SELECT state FROM agentgate_actions") == "UNKNOWN"
    assert world.value("SELECT reason FROM agentgate_actions") == "cancelled"
    assert not world.damage()


@pytest.mark.parametrize("recorded", [False, True])
def test_a_thread_that_dies_as_it_records_has_its_end_recorded_by_the_one_who_waits(
    world: World, monkeypatch: pytest.MonkeyPatch, *, recorded: bool
) -> None:
    record, times = Performer._record, []

    def dies(self: Performer, claim: Claim, ended: Ended) -> Outcome:
        times.append(threading.current_thread().name)
        if len(times) == 1:
            if recorded:
                record(self, claim, ended)
            raise SystemExit
        return record(self, claim, ended)

    monkeypatch.setattr(Performer, "_record", dies)
    outcome = run_one(world, lambda: "done")
    assert isinstance(outcome, Done)
    assert times == ["agentgate-effect", "agentgate-record"]
    assert world.words(outcome.action) == ["proposed", "started", "succeeded"]
    assert not world.damage()


def test_a_caller_that_is_made_to_die_while_it_waits_has_the_end_recorded_first(world: World) -> None:
    entered, leave, told = threading.Event(), threading.Event(), list[object]()

    def act() -> str:
        entered.set()
        leave.wait(30)
        return "done"

    def caller(gate: Gate) -> None:
        try:
            told.append(gate.call(opened(gate), "act", {}, key="k"))
        except SystemExit as error:
            told.append(error)

    with world.gate(named("act", act)) as gate:
        thread = threading.Thread(target=caller, args=(gate,))
        thread.start()
        assert entered.wait(30)
        kill_thread(thread.ident or 0)  # it comes when the wait is over
        leave.set()
        thread.join()
        assert isinstance(told[0], SystemExit)
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "done"


def test_a_cancellation_inside_an_effect_is_in_doubt_and_goes_on(world: World) -> None:
    async def act() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    def plainly() -> None:
        raise asyncio.CancelledError

    with world.gate(named("act", act), named("plainly", plainly)) as gate:
        for name in ("act", "plainly"):
            with pytest.raises(asyncio.CancelledError):
                gate.call(opened(gate), name, {}, key=name)
            outcome = gate.call(opened(gate), name, {}, key=name)
            assert isinstance(outcome, Unknown)
            assert outcome.reason == "cancelled"


class Interrupting(tzinfo):
    def utcoffset(self, _moment: datetime | None) -> timedelta:
        raise KeyboardInterrupt

    dst = utcoffset

    def tzname(self, _moment: datetime | None) -> str:
        return "interrupting"


def test_a_result_that_interrupts_its_own_reading_has_succeeded_all_the_same(world: World) -> None:
    with world.gate(named("act", lambda: datetime(2030, 1, 1, tzinfo=Interrupting()))) as gate:
        with pytest.raises(KeyboardInterrupt):
            gate.call(opened(gate), "act", {}, key="k")
        outcome = gate.call(opened(gate), "act", {}, key="k")
    assert isinstance(outcome, Done)
    assert outcome.observation.value == {"$unencodable": "datetime.datetime"}
    assert outcome.observation.notes == ("unencodable",)


def test_a_late_result_is_recorded_though_the_gate_was_closed_and_the_lock_is_kept_until_then(world: World) -> None:
    leave = threading.Event()

    def act(account: str) -> str:
        leave.wait(30)
        return account

    with world.gate(named("act", act, timeout=SHORT, resource="account:{account}")) as gate:
        outcome = gate.call(opened(gate), "act", {"account": "a1"}, key="k")
    assert isinstance(outcome, Unknown)
    assert world.sql("SELECT action FROM agentgate_locks") == [(outcome.action,)]
    leave.set()
    until(lambda: world.words(outcome.action)[-1] == "late")
    assert world.sql("SELECT action FROM agentgate_locks") == [(outcome.action,)]
    assert '"value":"a1"' in stored(world, outcome.action, "evidence")


# --- a process that ends -------------------------------------------------------------------------

_ENDING = """
import sys
import agentgate
from agentgate import work
from agentgate.testing import ScriptedPolicy

@agentgate.tool(timeout=0.05, resource="account:{account}")
def act(account: str) -> str:
    sys.stdin.readline()
    return account

gate = agentgate.Gate.open(sys.argv[1], policy=ScriptedPolicy(), tools=[act])
outcome = gate.call(gate.run("r", principal="p"), "act", {"account": "a1"}, key="k")
print(type(outcome).__name__, outcome.action, flush=True)
while sys.argv[2] == "recording" and not work._recording:
    pass
print("ends", flush=True)
"""


def _ending(world: World, phase: str) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", _ENDING, world.url, phase]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_process_that_ends_while_a_late_result_is_recorded_lets_it_be_recorded(world: World) -> None:
    with world.gate() as gate, _ending(world, "recording") as process:
        kind, _, action = _line(process).partition(" ")
        assert kind == "Unknown"
        with gate._shop.ledger.database.write():
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            assert _line(process) == "ends"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
        assert process.wait(30) == 0
    assert world.words(action)[-1] == "late"


def test_a_process_that_ends_under_an_effect_leaves_it_unknown_and_its_resource_locked(world: World) -> None:
    with _ending(world, "effect") as process:
        kind, _, action = _line(process).partition(" ")
        assert _line(process) == "ends"
        assert process.wait(30) == 0
    assert kind == "Unknown"
    assert world.state(action) == "UNKNOWN"
    assert world.sql("SELECT action FROM agentgate_locks") == [(action,)]


# --- Ctrl-C --------------------------------------------------------------------------------------

CALLS = 200


def payment(world: World) -> AnyTool:
    def pay(n: int, *, effect: Effect) -> int:
        world.downstream.apply(effect, resource=f"payment-{n}")
        return n

    return named("pay", pay, resource="payment:{n}")


def _payments(world: World) -> None:
    """Pay each once, whatever comes in between: a loop that is interrupted and goes on."""
    left = list(range(CALLS))
    with world.gate(payment(world)) as gate:
        while left:
            with contextlib.suppress(KeyboardInterrupt):
                while left:
                    gate.call(opened(gate), "pay", {"n": left[0]}, key=f"payment-{left[0]}")
                    left.pop(0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_ctrl_c_at_any_moment_leaves_every_state_right_and_nothing_done_twice(world: World) -> None:
    chance = Random("ctrl-c")

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                _payments(world)
                os._exit(0)

    child = forking.start(work)
    sent = 0
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(chance.uniform(0.005, 0.05))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT)
        sent += 1
        if sent > 400:  # long enough: the rest in peace
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            break
    assert sent > 20
    applied = Counter(arrival.resource for arrival in world.downstream.arrivals)
    assert max(applied.values()) == 1
    with world.gate(payment(world)) as gate:
        _check(world, gate, applied)
    assert not world.damage()


def _check(world: World, gate: Gate, applied: Counter[str]) -> None:
    seen: Counter[str] = Counter()
    for action, key in world.sql("SELECT id, key_text FROM agentgate_actions"):
        outcome: Any = gate.execute(action, tenant="acme")
        seen[type(outcome).__name__] += 1
        if isinstance(outcome, Done):
            assert applied[key] == 1, key
        elif isinstance(outcome, Failed):
            assert not applied[key], key
        else:
            assert isinstance(outcome, Unknown | Running), (key, outcome)
    assert seen["Done"] > CALLS / 2, seen
