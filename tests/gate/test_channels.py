"""Every new question is told on every channel, at least once: whoever asked it, and wherever a process dies."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Gate, Held, Misuse, Question, require_approval
from agentgate.gate import channels
from agentgate.sealing import SealingKey
from agentgate.store import notices
from agentgate.testing import CollectingChannel, FakeClock, ScriptedPolicy, memory_gate
from support import forking
from support.worlds import World, opened

ASK = require_approval("big")
SECRET = "xyzzy-canary"


def call(gate: Gate, key: str = "k", *, run: str = "ticket-1") -> Held:
    outcome = gate.call(opened(gate, run), "refund", {"account": f"of {key}", "cents": 1}, key=key)
    assert isinstance(outcome, Held), outcome
    return outcome


def asking(world: World, **options: Any) -> Gate:
    return world.gate(policy=ScriptedPolicy(otherwise=ASK), **options)


def ids(channel: CollectingChannel) -> list[str]:
    return [question.id for question in channel.questions]


class FileChannel:
    """Writes what it is told to a file that outlives its process, and dies where it is told to."""

    name = "file"

    def __init__(self, path: Path, *, dies: str = "never") -> None:
        self.path, self.dies = path, dies

    def asked(self, question: Question) -> None:
        if self.dies == "before":
            forking.die()
        with self.path.open("a") as file:
            file.write(f"{question.id}\n")
            file.flush()
        if self.dies == "after":
            forking.die()

    @property
    def told(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []


@contextmanager
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(channels, "LOOK_S", 0.05)
        yield


def test_a_question_is_told_on_every_channel_once_as_it_is_listed(world: World) -> None:
    one, two = CollectingChannel("one"), CollectingChannel("two")
    with asking(world, channels=[one, two]) as gate:
        held = call(gate)
        (question,) = one.wait_for(1)
        assert two.wait_for(1) == (question,)
        assert question == gate.approvals.show(held.approval.id, tenant="acme")
        assert (question.state, question.shown, question.digest) == (
            "pending",
            held.approval.shown,
            held.approval.digest,
        )
    assert ids(one) == ids(two) == [held.approval.id]
    assert not world.damage()


def test_questions_of_gates_without_a_channel_are_told_by_one_that_has_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = CollectingChannel()
    with hurried(monkeypatch), asking(world) as other, asking(world, channels=[channel]):
        first = call(other)
        assert [question.id for question in channel.wait_for(1)] == [first.approval.id]


def test_what_was_asked_before_a_gate_was_opened_is_told_when_it_is(world: World) -> None:
    with asking(world) as gate:
        helds = [call(gate, key) for key in "abc"]
    channel = CollectingChannel()
    with asking(world, channels=[channel]):
        channel.wait_for(3)
    assert ids(channel) == [held.approval.id for held in helds]  # the oldest first


def test_every_command_that_asks_is_told(world: World) -> None:
    channel = CollectingChannel()
    with asking(world) as gate:
        proposal = gate.propose(opened(gate), "refund", {"account": "a", "cents": 1}, key="one")
        gate.propose_many(
            opened(gate), [agentgate.Call("refund", {"account": name, "cents": 1}, key=name) for name in "bc"]
        )
        held = call(gate, "edited")
        edited = gate.approvals.edit(
            held.approval.id,
            digest=held.approval.digest,
            arguments={"account": "e", "cents": 1},
            by="ada",
            tenant="acme",
        )
        assert gate.deliver(channel) == 4
    actions = {question.action for question in channel.questions}
    assert {proposal.action, edited.action} <= actions
    assert held.action not in actions


def test_what_a_policy_asks_for_at_a_claim_is_told(world: World) -> None:
    channel = CollectingChannel()
    with world.gate(policy=ScriptedPolicy(agentgate.allow(), otherwise=ASK)) as gate:
        proposal = gate.propose(opened(gate), "refund", {"account": "a", "cents": 1}, key="k")
        assert gate.deliver(channel) == 0
        assert isinstance(gate.execute(proposal), Held)
        assert gate.deliver(channel) == 1


def test_a_caller_without_a_thread_delivers_and_is_told_how_many(world: World, clock: FakeClock) -> None:
    channel = CollectingChannel()
    with asking(world, clock=clock) as gate:
        call(gate, "a")
        call(gate, "b")
        assert gate.deliver(channel) == 2
        assert gate.deliver(channel) == 0
        assert gate.deliver(CollectingChannel("another")) == 2


def test_a_channel_that_raises_is_told_again_later_and_holds_nobody_up(world: World, clock: FakeClock) -> None:
    failing = CollectingChannel("failing", *(RuntimeError(SECRET) for _ in range(3)))
    other = CollectingChannel("other")
    with asking(world, clock=clock) as gate:
        first, second = call(gate, "a"), call(gate, "b")
        assert (gate.deliver(failing), gate.deliver(other)) == (0, 2)
        assert gate.deliver(failing) == 0  # not at once
        clock.advance(timedelta(seconds=3))
        assert gate.deliver(failing) == 1
        clock.advance(timedelta(seconds=3))
        assert gate.deliver(failing) == 0  # ever more seldom
        clock.advance(timedelta(seconds=3))
        assert gate.deliver(failing) == 1
    assert sorted(ids(failing)) == sorted([first.approval.id, second.approval.id])


def test_a_failure_is_logged_without_what_was_asked_or_raised(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with asking(world) as gate, caplog.at_level(logging.DEBUG, "agentgate"):
        gate.call(opened(gate), "refund", {"account": SECRET, "cents": 1}, key="k")
        gate.deliver(CollectingChannel("failing", RuntimeError(SECRET)))
    assert "question not told" in caplog.text
    assert all(SECRET not in f"{record.getMessage()} {record.__dict__}" for record in caplog.records)


def test_what_has_ended_before_it_was_told_is_told_to_nobody(world: World, clock: FakeClock) -> None:
    channel = CollectingChannel()
    with asking(world, clock=clock) as gate:
        cancelled, expired = call(gate, "a"), call(gate, "b")
        gate.cancel(cancelled.action, by="ops", tenant="acme")
        clock.advance(timedelta(days=1))
        assert gate.deliver(channel) == 0
        assert gate.execute(expired.action, tenant="acme").reason == "question_expired"


def test_marks_are_kept_only_as_long_as_their_questions_wait(world: World) -> None:
    channel = CollectingChannel()
    with asking(world) as gate:
        for key in "abcde":
            held = call(gate, key)
            gate.deliver(channel)
            gate.cancel(held.action, by="ops", tenant="acme")
    assert world.value("SELECT count(*) FROM agentgate_notices") == 1


def test_sensitive_arguments_are_masked_in_what_is_told(world: World) -> None:
    channel = CollectingChannel()
    tool = world.refund(sensitive=["/account"])
    with world.gate(tool, policy=ScriptedPolicy(otherwise=ASK), sealing=SealingKey(bytes(range(32)))) as gate:
        gate.call(opened(gate), "refund", {"account": SECRET, "cents": 1}, key="k")
        assert gate.deliver(channel) == 1
    assert SECRET not in repr(channel.questions)


def test_a_clock_that_was_set_back_holds_no_question_up(world: World, clock: FakeClock) -> None:
    channel = CollectingChannel("c", RuntimeError("once"))
    with asking(world, clock=clock) as gate:
        call(gate)
        gate.deliver(channel)
        clock.jump(timedelta(hours=-1))
        assert gate.deliver(channel) == 1


def test_a_channel_that_hangs_keeps_no_other_and_no_close_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "CLOSING_S", 0.1)
    entered, let_go = threading.Event(), threading.Event()

    class Hanging:
        name = "hanging"

        def asked(self, _question: Question) -> None:
            entered.set()
            let_go.wait(30)

    other = CollectingChannel("other")
    with asking(world, channels=[Hanging(), other]) as gate:
        call(gate)
        assert entered.wait(30)
        assert len(other.wait_for(1)) == 1
    let_go.set()
    for thread in threading.enumerate():
        if thread.name == "agentgate-channel-hanging":
            thread.join(30)


def test_a_forked_child_tells_of_its_own_questions(world: World, tmp_path: Path) -> None:
    channel = FileChannel(tmp_path / "told")
    with asking(world, channels=[channel]) as gate:

        def work() -> None:
            with gate:
                call(gate)

        assert forking.run(work) == 0
        (waiting,) = gate.waiting()
    assert set(channel.told) == {waiting.approval}


@pytest.mark.parametrize("dies", ["unsent", "before", "after"])
def test_a_kill_between_a_question_and_its_mark_loses_none(
    world: World, tmp_path: Path, clock: FakeClock, dies: str
) -> None:
    def work() -> None:
        with asking(world, clock=clock) as gate:
            call(gate)
            if dies == "unsent":  # between the question's commit and its delivery
                forking.die()
            gate.deliver(FileChannel(tmp_path / "told", dies=dies))

    assert forking.run(work) == forking.KILLED
    channel = FileChannel(tmp_path / "told")
    clock.advance(timedelta(minutes=1))
    with asking(world, clock=clock) as gate:
        (waiting,) = gate.waiting()
        assert gate.deliver(channel) == 1
        assert gate.deliver(channel) == 0
    assert channel.told == [waiting.approval] * (2 if dies == "after" else 1)
    assert not world.damage()


def test_a_mark_that_is_flipped_costs_a_note_and_never_an_answer(world: World) -> None:
    channel = CollectingChannel()
    with asking(world) as gate:
        held = call(gate)
        gate.deliver(channel)
        for flip in ("UPDATE agentgate_notices SET told = 0, again_at_us = 0", "DELETE FROM agentgate_notices"):
            world.sql(flip)
            assert not world.damage()
            assert gate.deliver(channel) == 1  # repeated
        world.sql("DELETE FROM agentgate_notices")
        world.sql("INSERT INTO agentgate_notices VALUES ('collecting', ?, 1, 0, 1)", held.approval.id)
        assert gate.deliver(channel) == 0  # missed, and on the list all the same
        assert [question.id for question in gate.approvals.list()] == [held.approval.id]
        world.sql("UPDATE agentgate_notices SET told = 0, again_at_us = 9000000000000000")
        assert gate.deliver(channel) == 1  # put off for longer than anybody puts off
        assert not world.damage()


def test_a_new_process_finds_what_expires_and_what_was_granted_and_not_used(world: World, clock: FakeClock) -> None:
    def work() -> None:
        with asking(world, clock=clock) as gate:
            call(gate, "pending")
            held = call(gate, "granted")
            gate.approvals.approve(held.approval.id, digest=held.approval.digest, by="ada", tenant="acme")
            forking.die()

    assert forking.run(work) == forking.KILLED
    with asking(world, clock=clock) as gate:
        assert list(gate.approvals.list(expiring=timedelta(hours=1))) == []
        (granted,) = gate.approvals.unused()
        assert granted.state == "granted"
        assert isinstance(gate.execute(granted.action, tenant="acme"), agentgate.Done)
        assert list(gate.approvals.unused()) == []
        clock.advance(timedelta(hours=23, minutes=30))
        (expiring,) = gate.approvals.list(expiring=timedelta(hours=1))
        assert (expiring.state, expiring.tool) == ("pending", "refund")


def test_two_gates_with_one_channel_share_the_work(world: World) -> None:
    one, two = CollectingChannel("shared"), CollectingChannel("shared")
    with asking(world) as gate:
        helds = [call(gate, f"k{i}") for i in range(12)]
        threads = [threading.Thread(target=gate.deliver, args=(channel,)) for channel in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted([*ids(one), *ids(two)]) == sorted(held.approval.id for held in helds)


def test_a_gate_in_memory_tells_too() -> None:
    channel = CollectingChannel()
    tool = agentgate.tool(risk="external")(_pay)
    with memory_gate(policy=ScriptedPolicy(otherwise=ASK), tools=[tool], channels=[channel]) as gate:
        run = gate.run("r", principal="agent:a")
        gate.call(run, "_pay", {"cents": 1})
        assert len(channel.wait_for(1)) == 1


def _pay(cents: int) -> int:
    return cents


@pytest.mark.parametrize(
    "given", [5, "mail", [object()], [CollectingChannel(""), 1], [CollectingChannel(), CollectingChannel()]]
)
def test_what_is_no_list_of_channels_is_said_by_its_name(world: World, given: Any) -> None:
    with pytest.raises(Misuse, match="channels"):
        world.gate(channels=given)


def test_the_marks_are_looked_up_by_the_index_of_what_is_pending(world: World) -> None:
    sql, names, _ = notices._DUE._for(_dialect())
    with asking(world):
        plan = world.sql(f"EXPLAIN QUERY PLAN {sql}", *(0 for _ in names))
    assert any("agentgate_approvals_pending" in str(row) for row in plan), plan


def _dialect() -> Any:
    from sqlalchemy.dialects import sqlite

    return sqlite.dialect(paramstyle="qmark")
