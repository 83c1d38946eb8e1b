"""Workers that are stopped past their lease: another takes over, and what they do when they go on changes nothing.

Fifty of them in two waves. Those of a wave are stopped together inside their effects, before its first byte; once their
leases are over another process finishes what they began; then they go on, reach the downstream, and report.
"""

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

import agentgate
from agentgate import Done, Effect, Keyed, Operator, Settings, Unknown
from agentgate.testing import Downstream
from agentgate.tools.recovery import Recovery
from support import forking
from support.worlds import World, made, named, opened

WAVE = 25
LEASE = timedelta(seconds=5)  # the shortest there is
_PATIENCE_S = 120


class Bank:
    """A downstream that checks fences, and workers that say where they are and wait to be let go on."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def downstream(self) -> Downstream:
        return self.world.downstream

    def mark(self, word: str, account: str) -> Path:
        return self.world.folder / f"{word} {account}"

    def pay(self, account: str, *, effect: Effect) -> str:
        """Pay; the one who comes first waits at the door, where it is stopped."""
        if not self.mark("inside", account).exists():
            self.mark("inside", account).touch()
            until((self.world.folder / "go on").exists)
        self.downstream.apply(effect, resource=account)
        return "paid"


def work(bank: Bank, tool: agentgate.Tool[..., object], account: str) -> None:
    """Be the worker that is stopped; once it goes on it may answer whatever is true, and then it ends."""
    with bank.world.gate(tool, settings=Settings(lease=LEASE)) as gate:
        outcome = gate.call(opened(gate, account), "pay", {"account": account}, key=account)
    bank.mark(f"told {type(outcome).__name__}", account).touch()


def until(true: Callable[[], bool]) -> None:
    over = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < over
        time.sleep(0.01)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def wave(bank: Bank, recovery: Recovery, accounts: list[str]) -> None:
    """Stop a wave of workers, finish what they began, and let them go on."""
    tool = named("pay", bank.pay, resource="{account}", recovery=recovery, timeout=timedelta(minutes=5))
    workers = {account: forking.start(partial(work, bank, tool, account)) for account in accounts}
    try:
        with bank.world.gate(tool, settings=Settings(lease=LEASE)) as gate:
            until(lambda: all(bank.mark("inside", account).exists() for account in accounts))
            # Not while one of them writes: who is stopped with the file's lock keeps everybody waiting.
            with gate._shop.ledger.database.write():
                for pid in workers.values():
                    os.kill(pid, signal.SIGSTOP)
                until(lambda: all(map(is_stopped, workers.values())))
            for account in accounts:
                finish(gate, account)
        assert all(is_stopped(pid) for pid in workers.values())
    finally:
        (bank.world.folder / "go on").touch()
        for pid in workers.values():
            os.kill(pid, signal.SIGCONT)
        ended = [forking.end(pid) for pid in workers.values()]
    assert ended == [0] * len(accounts)


def finish(gate: agentgate.Gate, account: str) -> None:
    """Take over as soon as the lease is over, and pay: by recovery, or by an operator who found nothing."""
    run = opened(gate, account)
    outcome: list[agentgate.Outcome] = []

    def taken() -> bool:
        outcome[:] = [gate.call(run, "pay", {"account": account}, key=account)]
        return not isinstance(outcome[0], agentgate.Running)

    until(taken)
    if isinstance(outcome[0], Unknown):
        action = outcome[0].action
        gate.reconcile(action, applied=False, by="ada", evidence="nothing in the bank's log", tenant="acme")
        assert taken()
    assert isinstance(outcome[0], Done), outcome[0]


@pytest.mark.parametrize("recovery", [Operator(), Keyed(hours=24)], ids=["operator", "keyed"])
def test_workers_stopped_past_their_leases_write_nothing_twice_and_what_they_answer_is_kept(
    tmp_path: Path, recovery: Recovery
) -> None:
    world = made(tmp_path)
    bank = Bank(world)
    accounts = [f"a{number}" for number in range(WAVE)]
    began = time.monotonic()
    wave(bank, recovery, accounts)
    print(f"{WAVE} rounds in {time.monotonic() - began:.1f} s")
    arrivals = bank.downstream.arrivals
    assert [one.verdict for one in arrivals].count("applied") == WAVE
    assert {one.resource for one in arrivals if one.verdict == "applied"} == {*accounts}
    assert [one.verdict for one in arrivals].count("fenced") == WAVE  # each came, and none was let in
    for account in accounts:
        check(world, account)
    assert not world.damage()


def check(world: World, account: str) -> None:
    """Look at one action: the second attempt stands, and the first one's answer is evidence, with its fence."""
    action = world.value("SELECT id FROM agentgate_actions WHERE key_text = ?", account)
    assert world.state(action) == "SUCCEEDED"
    starts = [event for event in world.events(action) if event.type == "started"]
    late = [event for event in world.events(action) if event.type == "late"]
    assert len(starts) == 2
    assert [one.body["fence"] for one in late] == [starts[0].body["fence"]]
    assert late[0].body["clean"] is True
    assert len([word for word in world.words(action) if word == "succeeded"]) == 1
    assert world.value("SELECT unresolved FROM agentgate_actions WHERE id = ?", action) == 0
    assert list(world.folder.glob(f"told Done {account}"))  # and it is told what stands
