"""What a caller's code can see and touch: never an open transaction, never the values that were decided on."""

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from pydantic import BaseModel, model_serializer

import agentgate
from agentgate import Done, Effect, PolicyRequest, Refused, Unknown, allow, require_approval
from agentgate.testing import ScriptedPolicy
from support.worlds import World, grant, named, opened

ONE = {"account": "a1", "cents": 1}


# --- transactions -----------------------------------------------------------------------------


class Probe:
    """Try to write the ledger from where a caller's code runs: it works where no transaction is open."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.free: list[str] = []

    def __call__(self, place: str) -> None:
        with closing(self._world.connect()) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        descriptor = os.open(f"{self._world.path}.lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
        self.free.append(place)


@pytest.fixture
def probe(world: World) -> Probe:
    return Probe(world)


class Handler(logging.Handler):
    """A log handler that looks around; what it raises fails the test."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(logging.INFO)
        self._probe = probe

    def emit(self, record: logging.LogRecord) -> None:
        self._probe(f"log {record.getMessage()}")


@pytest.fixture
def logged(probe: Probe) -> Iterator[None]:
    logger, handler = logging.getLogger("agentgate"), Handler(probe)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.usefixtures("logged")
def test_no_code_of_the_callers_runs_while_a_transaction_is_open(world: World, probe: Probe) -> None:
    class Receipt(BaseModel):
        cents: int

        @model_serializer
        def dump(self) -> dict[str, int]:
            probe("result")
            return {"cents": self.cents}

    def act(cents: int, *, effect: Effect) -> Receipt:
        effect.sending()
        probe("effect")
        if cents == 13:
            raise ConnectionResetError
        return Receipt(cents=cents)

    async def act_later(cents: int) -> int:
        probe("coroutine")
        return cents

    def freeze(_request: PolicyRequest) -> bool:
        probe("fact")
        return False

    def decide(request: PolicyRequest) -> agentgate.Decision:
        probe("policy")
        return require_approval("big") if request.arguments == {"cents": 99} else allow()

    policy = ScriptedPolicy(otherwise=decide, facts=["freeze"])
    tools = [named("act", act, recovery=agentgate.Repeat()), named("act_later", act_later)]
    with world.gate(*tools, policy=policy, facts={"freeze": freeze}) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "act", {"cents": 1}, key="k"), Done)
        assert isinstance(gate.call(run, "act", {"cents": 1}, key="k"), Done)
        assert isinstance(gate.execute(gate.propose(run, "act_later", {"cents": 2})), Done)
        held = gate.call(run, "act", {"cents": 99}, key="held")
        assert isinstance(held, agentgate.Held)
        grant(gate, held)
        assert isinstance(gate.call(run, "act", {"cents": 99}, key="held"), Done)
        unknown = [gate.call(run, "act", {"cents": 13}, key="lost") for _ in range(2)]
        assert all(isinstance(outcome, Unknown) for outcome in unknown)
        gate.reconcile(unknown[0].action, applied=True, by="ada", evidence={"a": 1}, tenant="acme")
        gate.cancel(gate.propose(run, "act", {"cents": 3}), by="ada")
        gate.close_run(run, by="ada")
    assert {"policy", "fact", "effect", "coroutine", "result", "log committed"} <= set(probe.free)


def test_a_second_connection_inside_the_effect_sees_executing_and_no_open_transaction(world: World) -> None:
    seen: list[tuple[Any, ...]] = []

    def act(*, effect: Effect) -> None:
        with closing(world.connect()) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN IMMEDIATE")
            sql = "SELECT state, fence FROM agentgate_actions WHERE id = ?"
            seen.extend(connection.execute(sql, (effect.action_id,)).fetchall())
            seen.extend(connection.execute("SELECT state FROM agentgate_attempts").fetchall())
            connection.execute("ROLLBACK")
        assert seen[0] == ("EXECUTING", effect.fence)

    with world.gate(named("act", act)) as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "act", {}), Done)
        assert seen[1:] == [("open",)]
        seen.clear()
        world.sql("DELETE FROM agentgate_attempts")
        assert isinstance(gate.execute(gate.propose(run, "act", {})), Done)


def test_an_effect_may_use_its_own_gate(world: World) -> None:
    def inner() -> str:
        return "inner"

    def outer() -> str:
        outcome = gate.call(run, "inner", {})
        assert isinstance(outcome, Done)
        return str(outcome.observation.value)

    with world.gate(named("inner", inner), named("outer", outer)) as gate:
        run = opened(gate)
        outcome = gate.call(run, "outer", {})
    assert isinstance(outcome, Done)
    assert outcome.observation.value == "inner"


# --- values -----------------------------------------------------------------------------------


def recorded(world: World, action: str) -> bytes:
    (event, *_) = world.events(action)
    sql = "SELECT content FROM agentgate_payloads WHERE run = ? AND n = ? AND kind = 'arguments'"
    return bytes(world.value(sql, event.run, event.n))


def test_what_a_policy_does_to_its_request_reaches_nobody_else(world: World) -> None:
    def meddle(request: PolicyRequest) -> agentgate.Decision:
        assert isinstance(request.arguments, dict)
        request.arguments["cents"] = 1_000_000
        request.arguments["more"] = "x"
        return allow()

    given = dict(ONE)
    with world.gate(policy=ScriptedPolicy(otherwise=meddle)) as gate:
        run = opened(gate)
        fused = gate.call(run, "refund", given)
        apart = gate.execute(gate.propose(run, "refund", given))
    for outcome in (fused, apart):
        assert isinstance(outcome, Done)
        assert outcome.observation.value == {"cents": 1}
        assert recorded(world, outcome.action) == b'{"account":"a1","cents":1}'
    assert given == ONE


def test_what_a_fact_provider_does_to_its_request_reaches_nobody_else(world: World) -> None:
    def meddle(request: PolicyRequest) -> bool:
        assert isinstance(request.arguments, dict)
        request.arguments["cents"] = 1_000_000
        return True

    policy = ScriptedPolicy(facts=["freeze"])
    with world.gate(policy=policy, facts={"freeze": meddle}) as gate:
        outcome = gate.call(opened(gate), "refund", ONE)
    assert isinstance(outcome, Done)
    assert policy.requests[0].arguments == ONE


def test_what_an_effect_does_to_its_arguments_reaches_no_later_attempt(world: World) -> None:
    seen: list[object] = []

    def act(items: list[int]) -> None:
        seen.append(list(items))
        items.append(99)
        raise ConnectionResetError

    with world.gate(named("act", act, recovery=agentgate.Repeat())) as gate:
        run = opened(gate)
        given = [1]
        for _ in range(2):
            gate.call(run, "act", {"items": given}, key="k")
    assert seen == [[1], [1]]
    assert given == [1]


@pytest.mark.parametrize("moment", ["policy", "effect"])
def test_what_the_caller_does_to_its_own_dict_meanwhile_changes_nothing(world: World, moment: str) -> None:
    given: dict[str, object] = {"account": "a1", "cents": 1}

    def change() -> None:
        thread = threading.Thread(target=lambda: given.update(cents=1_000_000, account="a2"))
        thread.start()
        thread.join()

    def decide(_request: PolicyRequest) -> agentgate.Decision:
        if moment == "policy":
            change()
        return allow()

    def refund(account: str, cents: int) -> list[object]:
        if moment == "effect":
            change()
        return [account, cents]

    with world.gate(named("refund", refund), policy=ScriptedPolicy(otherwise=decide)) as gate:
        outcome = gate.call(opened(gate), "refund", given)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == ["a1", 1]
    assert recorded(world, outcome.action) == b'{"account":"a1","cents":1}'


class LyingDict(dict[str, object]):
    """Says something else each time."""

    def __getitem__(self, key: str) -> object:
        return 1_000_000

    def items(self) -> Any:
        return {"cents": 1_000_000}.items()


class LyingStr(str):
    def encode(self, *_args: object, **_named: object) -> bytes:
        return b"a2"

    def __str__(self) -> str:
        return "a2"


class LyingFloat(float):
    def __float__(self) -> float:
        return 999.0


@pytest.mark.parametrize(
    "given",
    [
        LyingDict(account="a1", cents=1),
        {"account": LyingStr("a1"), "cents": 1},
        {"account": "a1", "cents": LyingFloat(1.0)},
        {LyingStr("account"): "a1", "cents": 1},
    ],
)
def test_subclasses_with_lying_methods_are_taken_for_what_they_are_or_refused(world: World, given: object) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), "refund", given)
    match outcome:
        case Refused(reason):
            assert reason == "invalid_arguments"
            assert world.downstream.total == 0
        case Done(observation):
            assert observation.value == {"cents": 1}
            assert recorded(world, outcome.action) == b'{"account":"a1","cents":1}'
        case _:
            pytest.fail(str(outcome))


def test_what_is_handed_back_is_nobody_elses(world: World) -> None:
    with world.gate(named("act", lambda: {"items": [1]})) as gate:
        run = opened(gate)
        first = gate.call(run, "act", {}, key="k")
        assert isinstance(first, Done)
        assert isinstance(first.observation.value, dict)
        first.observation.value["items"] = "changed"
        again = gate.call(run, "act", {}, key="k")
    assert isinstance(again, Done)
    assert again.observation.value == {"items": [1]}


# --- damage ------------------------------------------------------------------------------------


def edit(sql: str) -> Callable[[World, str], object]:
    return lambda world, action: world.sql(sql, action)


PROPOSED = "(SELECT proposed_n FROM agentgate_actions WHERE id = ?)"


@pytest.mark.parametrize(
    "damage",
    [
        edit("UPDATE agentgate_actions SET principal = 'agent:other' WHERE id = ?"),
        edit("UPDATE agentgate_actions SET tool = 'delete_all' WHERE id = ?"),
        edit("UPDATE agentgate_actions SET key_text = 'other' WHERE id = ?"),
        edit("UPDATE agentgate_actions SET revision = 7 WHERE id = ?"),
        edit("UPDATE agentgate_actions SET digest = randomblob(32) WHERE id = ?"),
        edit("UPDATE agentgate_actions SET state_n = 0 WHERE id = ?"),
        edit("UPDATE agentgate_actions SET proposed_n = 0 WHERE id = ?"),
        edit(f"UPDATE agentgate_payloads SET content = CAST('[2]' AS BLOB) WHERE n = {PROPOSED}"),
        edit(f"UPDATE agentgate_payloads SET content = x'7b7d' WHERE n = {PROPOSED}"),
        edit(f"UPDATE agentgate_payloads SET salt = randomblob(32) WHERE n = {PROPOSED}"),
        edit(f"DELETE FROM agentgate_payloads WHERE n = {PROPOSED}"),
        edit(f"DELETE FROM agentgate_events WHERE n = {PROPOSED}"),
        edit(f"UPDATE agentgate_events SET hash = randomblob(32) WHERE n = {PROPOSED}"),
    ],
)
def test_a_damaged_action_does_not_run(world: World, damage: Callable[[World, str], object]) -> None:
    with world.gate() as gate:
        run = opened(gate)
        proposal = gate.propose(run, "refund", ONE, key="k")
        damage(world, proposal.action)
        with pytest.raises(agentgate.Damaged):
            gate.execute(proposal)
    assert world.downstream.total == 0


@pytest.mark.parametrize(
    "flip",
    [
        ("REFUSED", "UPDATE agentgate_actions SET state = 'READY', expires_at_us = 9e15 WHERE id = ?"),
        ("SUCCEEDED", "UPDATE agentgate_actions SET state = 'READY', expires_at_us = 9e15 WHERE id = ?"),
        ("UNKNOWN", "UPDATE agentgate_actions SET state = 'READY', expires_at_us = 9e15 WHERE id = ?"),
        ("HELD", "UPDATE agentgate_actions SET state = 'READY', expires_at_us = 9e15 WHERE id = ?"),
    ],
)
def test_a_row_that_was_made_ready_by_hand_does_not_run(world: World, flip: tuple[str, str]) -> None:
    state, sql = flip
    tries: list[int] = []

    def act(how: str) -> None:
        tries.append(1)
        if how == "UNKNOWN":
            raise ConnectionResetError

    decisions = {"REFUSED": agentgate.deny("no"), "HELD": require_approval("big")}
    with world.gate(named("act", act), policy=ScriptedPolicy(decisions.get(state, allow()))) as gate:
        run = opened(gate)
        outcome = gate.call(run, "act", {"how": state}, key="k")
        before = len(tries)
        assert world.state(outcome.action) == state
        world.sql(sql, outcome.action)
        with pytest.raises(agentgate.Damaged):
            gate.execute(outcome.action, tenant="acme")
        with pytest.raises(agentgate.Damaged):
            gate.call(run, "act", {"how": state}, key="k")
    assert len(tries) == before


def test_a_lost_attempt_row_is_damage_and_not_a_second_start(world: World) -> None:
    tries: list[int] = []

    def act() -> None:
        tries.append(1)
        raise ConnectionResetError

    with world.gate(named("act", act)) as gate:
        unknown = gate.call(opened(gate), "act", {}, key="k")
        world.sql("UPDATE agentgate_actions SET state = 'EXECUTING' WHERE id = ?", unknown.action)
        world.sql("DELETE FROM agentgate_attempts")
        with pytest.raises(agentgate.Damaged):
            gate.execute(unknown.action, tenant="acme")
    assert len(tries) == 1
