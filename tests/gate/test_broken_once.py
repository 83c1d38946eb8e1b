"""What broke the gate once, each from the outside: hostile input, odd moments, other clocks, many threads."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import agentgate
from agentgate import (
    Done,
    Failed,
    Gate,
    Held,
    Limits,
    Misuse,
    NotFound,
    PolicyRequest,
    Refused,
    Run,
    Unknown,
    UnsafeStore,
    allow,
    deny,
    require_approval,
)
from agentgate.policy.identity import PolicyIdentity, stated
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, grant, kinds, made, named, opened, slow

ARGUMENTS = {"account": "a1", "cents": 5}


# --- what was judged is what runs ----------------------------------------------------------------


def test_a_tool_that_is_replaced_while_its_call_is_judged_does_not_run_in_its_place(world: World) -> None:
    ran: list[str] = []
    gates: list[Gate] = []

    def read(n: int) -> None:
        ran.append(f"harmless {n}")

    def wipe(n: int) -> None:
        ran.append(f"destructive {n}")

    def decide(request: PolicyRequest) -> agentgate.Decision:
        while gates:
            gates.pop().register(named("act", wipe, risk="destructive"), replace=True)
        return allow() if request.spec.risk == "read_only" else deny("destructive")

    with world.gate(
        named("act", read, risk="read_only"), policy=ScriptedPolicy(decide, decide), settings=slow()
    ) as gate:
        run = opened(gate)
        gates.append(gate)
        assert isinstance(gate.call(run, "act", {"n": 1}), Done)
        assert isinstance(gate.call(run, "act", {"n": 2}), Refused)
    assert ran == ["harmless 1"]


def test_tools_that_are_registered_at_once_are_all_there(world: World) -> None:
    def make(number: int) -> agentgate.Tool[..., object]:
        return named(f"tool-{number}", lambda: number)

    with world.gate(make(0)) as gate:
        threads = [threading.Thread(target=gate.register, args=(make(number),)) for number in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run = opened(gate)
        assert all(isinstance(gate.call(run, f"tool-{number}", {}), Done) for number in range(9))


# --- whose run it is -----------------------------------------------------------------------------


def test_a_run_is_reached_under_its_own_tenant_alone(world: World) -> None:
    with world.gate() as gate:
        theirs = opened(gate, tenant="victim")
        forged = Run(id=theirs.id, name=theirs.name, tenant="acme", principal=theirs.principal)
        commands: list[Callable[[], object]] = [
            lambda: gate.propose(forged, "refund", ARGUMENTS),
            lambda: gate.call(forged, "refund", ARGUMENTS, key="k"),
            lambda: gate.close_run(forged, by="ada"),
        ]
        for command in commands:
            with pytest.raises(NotFound):
                command()
        with pytest.raises(Misuse):
            gate.close_run(Run(id=gate.ledger, name="$ledger", tenant="$ledger", principal="x"), by="ada")
    assert world.value("SELECT count(*) FROM agentgate_actions") == 0
    assert world.value("SELECT state FROM agentgate_runs WHERE tenant = 'victim'") == "OPEN"


@pytest.mark.parametrize("id_", ["\ud800", "a\x00b", "", "x" * 100_000, "0" * 36])
def test_a_text_that_is_no_actions_id_is_not_found(world: World, id_: str) -> None:
    with world.gate() as gate:
        for command in (
            lambda: gate.execute(id_, tenant="acme"),
            lambda: gate.cancel(id_, by="ada", tenant="acme"),
            lambda: gate.reconcile(id_, applied=True, by="ada", evidence="x", tenant="acme"),
        ):
            with pytest.raises(NotFound) as raised:
                command()
            assert len(str(raised.value)) < 300


@pytest.mark.parametrize("wrong", [None, 5, 2**70, b"x", object()])
def test_what_is_no_action_and_no_run_is_misuse(world: World, wrong: object) -> None:
    with world.gate() as gate:
        for command in (
            lambda: gate.execute(wrong, tenant="acme"),  # type: ignore[arg-type]
            lambda: gate.cancel(wrong, by="ada"),  # type: ignore[arg-type]
            lambda: gate.call(wrong, "refund", ARGUMENTS),  # type: ignore[arg-type]
            lambda: gate.close_run(wrong, by="ada"),  # type: ignore[arg-type]
        ):
            with pytest.raises(Misuse):
                command()


@pytest.mark.parametrize("name", ["a\x00b.db", "\ud800.db"])
def test_a_file_that_cannot_be_is_refused_as_a_place(name: str) -> None:
    for command in (agentgate.migrate, lambda url: Gate.open(url, policy=ScriptedPolicy())):
        with pytest.raises(UnsafeStore):
            command(f"sqlite:///{name}")


@pytest.mark.parametrize("name", ["a\x00b.yaml", "\ud800.yaml"])
def test_a_policy_file_that_cannot_be_is_refused(world: World, name: str) -> None:
    with pytest.raises(agentgate.PolicyRefused):
        world.gate(policy=name)


# --- what a reader accepts -----------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [None, 1, "yes", "not_applied"])
def test_a_verdict_that_is_neither_true_nor_false_is_refused_before_it_is_chained(world: World, wrong: object) -> None:
    def act() -> None:
        raise RuntimeError("?")

    with world.gate(named("act", act)) as gate:
        outcome = gate.call(opened(gate), "act", {})
        for said in ({"applied": wrong}, {"applied": True, "worker_known_dead": wrong}):
            with pytest.raises(Misuse):
                gate.reconcile(outcome.action, by="ada", evidence="x", tenant="acme", **said)  # type: ignore[arg-type]
        assert isinstance(gate.execute(outcome.action, tenant="acme"), Unknown)
    assert world.words(outcome.action) == ["proposed", "started", "in_doubt", "question_asked"]


# --- observers -----------------------------------------------------------------------------------


class _Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError(f"the sink is down: {record.name}")


def test_a_log_that_raises_changes_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    logger, broken = logging.getLogger("agentgate"), _Broken()
    caplog.set_level(logging.INFO, logger="agentgate")
    logger.addHandler(broken)
    try:
        with world.gate() as gate:
            outcome = gate.call(opened(gate), "refund", ARGUMENTS)
    finally:
        logger.removeHandler(broken)
    assert isinstance(outcome, Done)
    assert world.words(outcome.action) == ["proposed", "started", "succeeded"]


def test_an_old_sqlite_is_warned_of_where_nobody_chose_the_slower_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agentgate.store.sqlite.wal_is_safe", lambda _version: False)
    world = made(tmp_path)
    for url, lines in ((world.url, ["slow journal"]), (f"{world.url}?journal=delete", [])):
        caplog.clear()
        with Gate.open(url, policy=ScriptedPolicy()):
            assert [record.message for record in caplog.records if record.name == "agentgate"] == lines


# --- exceptions of the caller's own --------------------------------------------------------------


def _nameless() -> Exception:
    class Nameless(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError("no name")

    return Nameless("Unnamed", (Exception,), {})()  # type: ignore[no-any-return]


def _classless() -> Exception:
    class Classless(Exception):
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            raise RuntimeError("no class")

    return Classless()


@pytest.mark.parametrize("make", [_nameless, _classless])
def test_an_exception_that_cannot_even_be_looked_at_is_an_unknown_outcome(
    world: World, make: Callable[[], Exception]
) -> None:
    def act() -> None:
        raise make()

    with world.gate(named("act", act)) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Unknown)
    assert world.state(outcome.action) == "UNKNOWN"


def test_what_an_error_tells_a_loop_is_bounded(world: World) -> None:
    def act() -> None:
        raise agentgate.ToolError("not_found", "no", details="x" * 100_000)

    with world.gate(named("act", act)) as gate:
        outcome = gate.call(opened(gate), "act", {})
    assert isinstance(outcome, Failed)
    assert outcome.error.details == {"$unencodable": "builtins.str"}


def test_an_interruption_while_an_exception_is_read_is_recorded_and_goes_on(world: World) -> None:
    class Loud(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    def act() -> None:
        raise Loud

    with world.gate(named("act", act)) as gate, pytest.raises(KeyboardInterrupt):
        gate.call(opened(gate), "act", {})
    assert world.value("SELECT state FROM agentgate_actions") == "UNKNOWN"


# --- many rows -----------------------------------------------------------------------------------


def test_a_run_with_more_waiting_than_one_statement_takes_can_be_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentgate.store.statements.MOST_ROWS", 3)
    with world.gate(policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        run = opened(gate)
        for cents in range(10):
            gate.propose(run, "refund", {"account": "a", "cents": cents})
        gate.close_run(run, by="ada")
    assert world.value("SELECT count(*) FROM agentgate_actions WHERE state = 'REFUSED'") == 10
    assert len(world.events()) == 1 + 1 + 1 + 10 + 1 + 10


# --- policies ------------------------------------------------------------------------------------


class Twisting:
    """A policy that says it is closed, and changes what it is asked about."""

    def __init__(self) -> None:
        self.identity = PolicyIdentity(kind="closed", engine="own", engine_version="1", documents=())
        self.facts: tuple[str, ...] = ()

    def decide(self, request: PolicyRequest) -> agentgate.Decision:
        assert isinstance(request.arguments, dict)
        request.arguments["cents"] = 1
        return require_approval("big")


def test_a_policy_that_changes_its_request_changes_nothing_that_people_are_shown(world: World) -> None:
    with world.gate(policy=Twisting()) as gate:
        outcome = gate.call(opened(gate), "refund", {"account": "a1", "cents": 999})
    assert isinstance(outcome, Held)
    assert "cents = 999" in outcome.approval.shown


def test_a_policy_is_recorded_as_what_it_was_when_the_gate_was_opened(world: World) -> None:
    class Changing:
        asked = 0

        @property
        def identity(self) -> PolicyIdentity:
            self.asked += 1
            if self.asked > 3:
                raise RuntimeError("whatever")
            return stated(f"version {self.asked}")

        @property
        def facts(self) -> tuple[str, ...]:
            return ()

        def decide(self, _request: PolicyRequest) -> agentgate.Decision:
            return allow()

    with world.gate(policy=Changing(), settings=slow()) as gate:
        run = opened(gate)
        assert all(isinstance(gate.call(run, "refund", ARGUMENTS), Done) for _ in range(3))
    policies = {event.body["policy"] for event in world.events() if event.type == "proposed"}
    assert len(policies) == 1


def test_a_policy_that_cannot_say_what_it_is_is_refused(world: World) -> None:
    class Mute:
        facts = ()

        @property
        def identity(self) -> PolicyIdentity:
            raise RuntimeError("a secret")

        def decide(self, _request: PolicyRequest) -> agentgate.Decision:
            return allow()

    with pytest.raises(agentgate.PolicyRefused) as raised:
        world.gate(policy=Mute())
    assert "secret" not in str(raised.value)


def test_what_a_policy_spends_from_an_account_that_nobody_keeps_is_refused_and_not_forgotten(world: World) -> None:
    spending = allow(reserves=[agentgate.Reserve(account="money", amount=5)])
    with world.gate(policy=ScriptedPolicy(otherwise=spending)) as gate:
        run = opened(gate)
        outcomes = [
            gate.call(run, "refund", ARGUMENTS),
            gate.execute(gate.propose(run, "refund", {"account": "a2", "cents": 5})),
        ]
    assert [outcome.reason for outcome in outcomes] == ["limit_reserves"] * 2
    assert world.downstream.total == 0


# --- approvals -----------------------------------------------------------------------------------


def test_no_more_questions_are_asked_at_a_claim_than_the_run_may_ask(world: World) -> None:
    policy = ScriptedPolicy()
    with world.gate(policy=policy) as gate:
        run = opened(gate, limits=Limits(pending=1))
        proposals = [gate.propose(run, "refund", {"account": f"a{n}", "cents": 1}) for n in range(3)]
        policy.say(*[require_approval("now")] * 3)
        outcomes = [gate.execute(proposal) for proposal in proposals]
    assert kinds(outcomes) == ["Held", "Refused", "Refused"]
    assert {outcome.reason for outcome in outcomes[1:]} == {"limit_pending"}
    assert world.value("SELECT pending FROM agentgate_runs WHERE tenant = 'acme'") == 1


def test_the_same_requirement_may_be_asked_for_after_every_attempt_in_doubt(world: World) -> None:
    def act() -> None:
        raise ConnectionResetError

    with world.gate(named("act", act), policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        run = opened(gate)
        outcome = gate.call(run, "act", {}, key="k")
        for _ in range(3):
            assert isinstance(outcome, Held)
            grant(gate, outcome)
            assert isinstance(gate.call(run, "act", {}, key="k"), Unknown)
            gate.reconcile(outcome.action, applied=False, by="ada", evidence="looked", tenant="acme")
            outcome = gate.call(run, "act", {}, key="k")
    assert isinstance(outcome, Held)


def test_a_grant_that_was_given_back_ends_when_it_always_would_have(world: World, clock: FakeClock) -> None:
    ends = [agentgate.NoEffect("not yet")]

    def act() -> None:
        if ends:
            raise ends.pop()

    with world.gate(named("act", act), policy=ScriptedPolicy(otherwise=require_approval("big")), clock=clock) as gate:
        run = opened(gate)
        held = gate.call(run, "act", {}, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        assert isinstance(gate.call(run, "act", {}, key="k"), Failed)
        clock.advance(timedelta(minutes=15))
        outcome = gate.call(run, "act", {}, key="k", retry=True)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "grant_expired"


# --- resources -----------------------------------------------------------------------------------


def test_a_write_that_says_it_is_parallel_is_refused_because_writes_take_turns(world: World) -> None:
    with pytest.raises(agentgate.SpecRefused) as raised:
        world.gate(world.refund(parallel=True))
    assert raised.value.path == "/parallel"
    with world.gate(world.refund(parallel=True, risk="read_only")) as gate:
        assert isinstance(gate.call(opened(gate), "refund", ARGUMENTS), Done)
