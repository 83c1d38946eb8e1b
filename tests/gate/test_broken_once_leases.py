"""What broke leases once: clocks that were set back, processes that were stopped or could not be seen, many threads."""

import os
import signal
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

import agentgate
from agentgate import Done, Effect, Failed, Gate, PolicyRequest, Running, allow
from agentgate.clock import SystemClock
from agentgate.process import is_gone, this_process
from agentgate.testing import FakeClock, ScriptedPolicy
from support.forks import in_children
from support.single import until
from support.worlds import World, made, named, opened

ARGUMENTS = {"account": "a1", "cents": 5}


def test_a_worker_that_lives_keeps_its_lease_when_the_clock_is_set_back(world: World, clock: FakeClock) -> None:
    entered, leave = threading.Event(), threading.Event()

    def act() -> None:
        entered.set()
        assert leave.wait(30)

    told: list[object] = []
    with world.gate(named("act", act), clock=clock) as owner, world.gate(named("act", act), clock=clock) as other:
        run = opened(owner)
        thread = threading.Thread(target=lambda: told.append(owner.call(run, "act", {}, key="k")))
        thread.start()
        assert entered.wait(30)
        action, fence = world.sql("SELECT id, fence FROM agentgate_actions")[0]
        clock.jump(timedelta(hours=-1))
        assert owner._shop._renew((fence,)) == {fence}  # as its heartbeat does
        assert isinstance(other.execute(action, tenant="acme"), Running)
        leave.set()
        thread.join()
    assert isinstance(told[0], Done)


def test_an_effect_keeps_its_lease_after_its_gate_was_closed(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def act() -> None:
        entered.set()
        assert leave.wait(30)

    def lease() -> int:
        return int(world.value("SELECT lease_until_us FROM agentgate_attempts"))

    told: list[object] = []
    gate = world.gate(named("act", act), settings=agentgate.Settings(lease=timedelta(seconds=5)))
    run = opened(gate)
    thread = threading.Thread(target=lambda: told.append(gate.call(run, "act", {})))
    thread.start()
    assert entered.wait(30)
    gate.close()
    first = lease()
    until(lambda: lease() > first)
    leave.set()
    thread.join()
    assert isinstance(told[0], Done)


def test_all_threads_of_a_gate_hold_their_leases_under_one_name(world: World) -> None:
    for _ in range(20):
        with world.gate() as gate:
            barrier, names = threading.Barrier(8), set[str]()

            def name(gate: Gate = gate, barrier: threading.Barrier = barrier, names: set[str] = names) -> None:
                barrier.wait()
                names.add(str(gate._shop.this_process()))

            threads = [threading.Thread(target=name) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert names == {str(gate._shop.this_process())}


def test_nothing_is_sent_once_the_lease_is_over_though_the_heartbeat_has_not_said_so(
    world: World, clock: FakeClock
) -> None:
    """A process that was stopped wakes up inside its effect, before its heartbeat can tell it anything."""
    sent: list[str] = []

    def act(*, effect: Effect) -> None:
        clock.advance(timedelta(seconds=61))
        effect.sending()
        sent.append("the first byte")

    with world.gate(named("act", act, timeout=3600), clock=clock) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert sent == []
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "lease_lost"


def test_a_policy_that_thinks_longer_than_a_lease_costs_time_alone(world: World, clock: FakeClock) -> None:
    def decide(_request: PolicyRequest) -> agentgate.Decision:
        clock.advance(timedelta(seconds=7))
        return allow()

    settings = agentgate.Settings(lease=timedelta(seconds=5), policy_within=timedelta(seconds=30))
    with world.gate(policy=ScriptedPolicy(decide, decide), clock=clock, settings=settings) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "refund", ARGUMENTS), Done)
        proposal = gate.propose(run, "refund", {"account": "a2", "cents": 5})
        assert isinstance(gate.execute(proposal), Done)


# --- what can be seen of another process ---------------------------------------------------------


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc to change, with this process and process 1 in it as they are in the real one."""
    proc, real = tmp_path / "proc", Path("/proc")
    (proc / "sys/kernel/random").mkdir(parents=True)
    (proc / "sys/kernel/random/boot_id").write_bytes((real / "sys/kernel/random/boot_id").read_bytes())
    for pid in (os.getpid(), 1):
        (proc / str(pid) / "ns").mkdir(parents=True)
        (proc / str(pid) / "stat").write_bytes((real / str(pid) / "stat").read_bytes())
    for kind in ("pid", "time"):
        (proc / str(os.getpid()) / "ns" / kind).symlink_to(f"{kind}:[1]")
    (proc / "self").symlink_to(str(os.getpid()))
    monkeypatch.setattr("agentgate.process.PROC", proc)
    return proc


def test_a_process_that_proc_hides_is_not_taken_for_gone(proc: Path) -> None:
    """Mounted with hidepid, /proc shows a user no process of another one."""
    holder = this_process(SystemClock())
    assert not is_gone(holder)
    (proc / str(os.getpid()) / "stat").unlink()
    assert not is_gone(holder)


def test_numbers_of_another_process_namespaces_proc_are_not_believed(proc: Path) -> None:
    holder = this_process(SystemClock())
    (proc / "self").unlink()
    (proc / "self").symlink_to("1")
    (proc / "1/ns/pid").symlink_to("pid:[1]")
    (proc / "1/ns/time").symlink_to("time:[1]")
    (proc / str(os.getpid()) / "stat").write_bytes((proc / "1/stat").read_bytes())
    assert not is_gone(holder)
    assert this_process(SystemClock()).host == ""


def test_another_time_namespaces_start_times_are_not_compared(proc: Path) -> None:
    holder = this_process(SystemClock())
    clock = proc / str(os.getpid()) / "ns/time"
    clock.unlink()
    clock.symlink_to("time:[2]")
    (proc / str(os.getpid()) / "stat").write_bytes((proc / "1/stat").read_bytes())
    assert not is_gone(holder)


def test_a_process_that_cannot_tell_its_own_start_is_judged_by_its_lease_alone(proc: Path) -> None:
    (proc / str(os.getpid()) / "stat").unlink()
    assert this_process(SystemClock()).host == ""


def test_a_process_that_has_ended_and_its_successor_of_the_same_id_are_told_apart(proc: Path) -> None:
    holder = this_process(SystemClock())
    (proc / str(os.getpid()) / "stat").write_bytes((proc / "1/stat").read_bytes())
    assert is_gone(holder)


# --- interruptions -------------------------------------------------------------------------------


class _Interrupt(BaseException):
    """What a signal raises at some moment, as Ctrl-C does."""


def _interrupted(gate: Gate, run: agentgate.Run, times: int) -> int:
    """Call and call, interrupted after any time; return how often it was."""
    chance, came, armed = Random(7), 0, list[int]()

    def interrupt(*_: object) -> None:
        if armed:
            armed.clear()
            raise _Interrupt

    signal.signal(signal.SIGALRM, interrupt)
    for number in range(times):
        try:
            armed.append(number)
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.000_1, 0.004))
            gate.call(run, "act", {"n": number}, key=f"k{number}")
            armed.clear()
        except _Interrupt:
            came += 1
    return came


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_interruptions_at_any_moment_leave_no_lock_behind(tmp_path: Path, journal: str) -> None:
    world = made(tmp_path, journal=journal)
    entered: Counter[str] = Counter()

    def act(n: int, *, effect: Effect) -> int:
        entered[effect.action_id] += 1
        return n

    def work(_number: int) -> tuple[int, str, int]:
        with world.gate(named("act", act)) as gate:
            run = opened(gate)
            came = _interrupted(gate, run, 500)
            outcome = gate.call(opened(gate, "another"), "act", {"n": -1})
        return came, type(outcome).__name__, max(entered.values())

    ((came, last, most),) = in_children(work, 1)
    assert came > 100
    assert (last, most) == ("Done", 1)
    assert agentgate.verify(world.url).ok
