"""What tenants, tools and accounts may spend: set in the ledger, taken in every claim, given back where nothing was."""

import threading
from datetime import timedelta

import pytest

import agentgate
from agentgate import (
    Done,
    Effect,
    Held,
    Limits,
    Misuse,
    Refused,
    Reserve,
    ToolError,
    Unknown,
    allow,
    require_approval,
)
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, kinds, named, opened

ONE = {"account": "a1", "cents": 1}
REFUNDS = ScriptedPolicy(otherwise=allow(reserves=[Reserve(account="refunds", amount=30)]))


def used(world: World, measure: str = "actions") -> int:
    return int(world.value("SELECT used FROM agentgate_budgets WHERE measure = ?", measure))


def test_a_tenants_actions_are_shared_by_its_runs_and_no_other_tenants(world: World) -> None:
    with world.gate() as gate:
        first = opened(gate, "one")
        assert isinstance(gate.call(first, "refund", ONE), Done)
        set_ = gate.limit({"actions": 2}, tenant="acme", by="ada")
        assert (dict(set_.most), dict(set_.used)) == ({"actions": 2}, {"actions": 1})
        outcomes = [gate.call(opened(gate, name), "refund", ONE, key=name) for name in ("two", "three")]
        assert isinstance(gate.call(opened(gate, "one", tenant="umbrella"), "refund", ONE), Done)
        assert kinds(outcomes) == ["Done", "Refused"]
        assert (outcomes[1].reason, outcomes[1].retryable) == ("limit_tenant_actions", False)  # type: ignore[union-attr]
        # The key is not burnt: once there is more, it is tried as a new revision.
        gate.limit({"actions": 3}, tenant="acme", by="ada")
        assert isinstance(gate.call(opened(gate, "three"), "refund", ONE, key="three"), Done)
    assert used(world) == 3
    assert not world.damage()


def test_a_tools_actions_are_bounded_in_its_namespace_alone(world: World) -> None:
    other = named("refund", lambda: 1, namespace="mail")
    with world.gate(world.refund(), other) as gate:
        run = opened(gate)
        gate.limit({"actions": 1}, tenant="acme", tool="refund", by="ada")
        outcomes = [gate.call(run, "refund", ONE, key=key) for key in "ab"]
        assert kinds(outcomes) == ["Done", "Refused"]
        assert outcomes[1].reason == "limit_tool_actions"
        assert isinstance(gate.call(run, "refund", {}, namespace="mail"), Done)
    assert not world.damage()


def test_what_did_not_happen_gives_back_and_what_may_have_keeps(world: World) -> None:
    ends: list[Exception | None] = [ToolError("not_found", "no"), RuntimeError("?"), None, None]

    def act(n: int) -> None:  # noqa: ARG001 - its resource
        end = ends.pop(0)
        if end is not None:
            raise end

    with world.gate(named("act", act, resource="n:{n}"), policy=REFUNDS) as gate:
        gate.limit({"amount": 60}, tenant="acme", account="refunds", by="ada")
        run = opened(gate)
        outcomes = [gate.call(run, "act", {"n": n}, key=f"k{n}") for n in range(4)]
        assert kinds(outcomes) == ["Failed", "Unknown", "Done", "Refused"]
        assert outcomes[3].reason == "limit_account"
        assert used(world, "amount") == 60
        gate.reconcile(outcomes[1].action, applied=False, by="ada", evidence="looked", tenant="acme")
        assert used(world, "amount") == 30
        assert isinstance(gate.call(run, "act", {"n": 3}, key="k3"), Done)
        assert used(world, "amount") == 60
    assert not world.damage()


def test_an_account_that_nobody_bounds_is_none(world: World) -> None:
    with world.gate(policy=REFUNDS) as gate:
        run = opened(gate)
        refused = gate.call(run, "refund", ONE, key="k")
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.retryable) == ("limit_reserves", False)
        gate.limit({"amount": 30}, tenant="acme", account="refunds", by="ada")
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Done)
        gate.limit({}, tenant="acme", account="refunds", by="ada")
        assert gate.call(run, "refund", ONE, key="l").reason == "limit_reserves"
    assert not world.damage()


def test_a_parallel_bound_of_the_tenant_is_a_wait(world: World) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold(n: int) -> int:
        entered.set()
        leave.wait(30)
        return n

    with world.gate(named("hold", hold, resource="n:{n}")) as gate:
        gate.limit({"parallel": 1}, tenant="acme", by="ada")
        thread = threading.Thread(target=gate.call, args=(opened(gate), "hold", {"n": 1}))
        thread.start()
        assert entered.wait(30)
        waits = gate.call(opened(gate, "other"), "hold", {"n": 2}, key="k")
        leave.set()
        thread.join()
        assert isinstance(waits, Refused)
        assert (waits.reason, waits.retryable) == ("limit_parallel", True)
        assert isinstance(gate.call(opened(gate, "other"), "hold", {"n": 2}, key="k"), Done)


@pytest.mark.parametrize("tool", [None, "refund"])
def test_no_more_questions_wait_for_people_than_a_tenant_or_a_tool_may_ask(world: World, tool: str | None) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=require_approval("big"))) as gate:
        gate.limit({"pending": 2}, tenant="acme", tool=tool, by="ada")
        outcomes = [gate.call(opened(gate, f"run-{n}"), "refund", ONE, key=f"k{n}") for n in range(3)]
        assert kinds(outcomes) == ["Held", "Held", "Refused"]
        assert outcomes[2].reason == f"limit_{'tenant' if tool is None else 'tool'}_pending"
        gate.cancel(outcomes[0].action, by="ada", tenant="acme")
        assert isinstance(gate.call(opened(gate, "run-2"), "refund", ONE, key="k2"), Held)
    assert not world.damage()


def test_a_tool_whose_last_attempts_all_failed_is_not_started_until_the_bound_is_lifted(world: World) -> None:
    ends = ["no", "yes", "no", "no"]

    def act() -> None:
        if ends and ends.pop(0) == "no":
            raise ToolError("not_found", "no")

    with world.gate(named("act", act)) as gate:
        gate.limit({"failures": 2}, tenant="acme", tool="act", by="ada")
        outcomes = [gate.call(opened(gate, f"run-{n}"), "act", {}) for n in range(5)]
        assert kinds(outcomes) == ["Failed", "Done", "Failed", "Failed", "Refused"]
        assert outcomes[4].reason == "limit_tool_failures"
        gate.limit({}, tenant="acme", tool="act", by="ada")
        assert isinstance(gate.call(opened(gate), "act", {}), Done)
    assert not world.damage()


@pytest.mark.parametrize(
    ("most", "scope", "says"),
    [
        ({"failures": 3}, {}, "'failures' is nothing that bounds a tenant"),
        ({"tokens": 3}, {"tool": "refund"}, "'tokens' is nothing that bounds a tool"),
        ({"actions": 3}, {"account": "refunds"}, "'actions' is nothing that bounds an account"),
        ({"actions": -1}, {}, "most.actions: give a whole number"),
        ({"actions": True}, {}, "most.actions: give a whole number"),
        ({"actions": 2**53}, {}, "most.actions: give a whole number"),
        (3, {}, "most: give a mapping"),
        ({}, {"tool": "a", "account": "b"}, "account: bound a tool or an account"),
        ({}, {"namespace": "mail"}, "namespace: name its tool"),
        ({}, {"namespace": "mail", "account": "a"}, "namespace: leave it out"),
        ({}, {"account": "two\nlines"}, "account: give a name"),
        ({}, {"tenant": "$ledger"}, "tenant: names that begin with $"),
        ({}, {"by": ""}, "by: give a text"),
        ({"actions": 3}, {"note": 3}, "note: give a text"),
    ],
)
def test_a_bound_that_means_nothing_is_refused_by_name(
    world: World, most: object, scope: dict[str, str], says: str
) -> None:
    with world.gate() as gate, pytest.raises(Misuse, match=says.replace("$", "\\$")):
        gate.limit(most, **{"by": "ada"} | scope)  # type: ignore[arg-type]
    assert not world.sql("SELECT * FROM agentgate_budgets")


def test_what_was_not_spent_in_the_end_is_given_back(world: World) -> None:
    def pay(spent: int, *, effect: Effect) -> int:
        effect.settle("refunds", 29)
        effect.settle("refunds", spent)  # the last word counts
        return spent

    with world.gate(named("pay", pay), policy=REFUNDS) as gate:
        gate.limit({"amount": 45}, tenant="acme", account="refunds", by="ada")
        run = opened(gate)
        done = gate.call(run, "pay", {"spent": 10})
        assert used(world, "amount") == 10
        assert isinstance(gate.call(run, "pay", {"spent": 0}), Done)
        assert used(world, "amount") == 10
        assert isinstance(gate.call(run, "pay", {"spent": 30}), Done)
        assert gate.call(run, "pay", {"spent": 1}).reason == "limit_account"
    (end,) = (event for event in world.events(done.action) if event.type == "succeeded")
    assert end.body["settled"] == [{"account": "refunds", "amount": 10}]
    (start,) = (event for event in world.events(done.action) if event.type == "started")
    assert start.body["reserves"] == [{"account": "refunds", "amount": 30}]
    assert not world.damage()


@pytest.mark.parametrize(
    ("account", "amount", "says"),
    [
        ("other", 1, "account: nothing was reserved from it for this action; reserved from: refunds"),
        ("refunds", 31, "amount: give a whole number from 0 to 30"),
        ("refunds", -1, "amount: give a whole number from 0 to 30"),
        ("refunds", True, "amount: give a whole number from 0 to 30"),
    ],
)
def test_what_was_never_reserved_cannot_have_been_spent(world: World, account: str, amount: int, says: str) -> None:
    """The tool is told; what it did until then is in doubt, as after any other error, and keeps what it took."""

    def pay(*, effect: Effect) -> None:
        with pytest.raises(Misuse, match=says):
            effect.settle(account, amount)
        effect.settle(account, amount)

    with world.gate(named("pay", pay), policy=REFUNDS) as gate:
        gate.limit({"amount": 45}, tenant="acme", account="refunds", by="ada")
        assert isinstance(gate.call(opened(gate), "pay", {}), Unknown)
    assert used(world, "amount") == 30


def test_another_try_at_an_unknown_outcome_takes_nothing_again(world: World) -> None:
    ends: list[Exception | None] = [RuntimeError("?"), None]

    def act() -> None:
        end = ends.pop(0)
        if end is not None:
            raise end

    with world.gate(named("act", act, recovery=agentgate.Repeat()), policy=REFUNDS) as gate:
        gate.limit({"amount": 30}, tenant="acme", account="refunds", by="ada")
        gate.limit({"actions": 1}, tenant="acme", by="ada")
        lost = gate.call(opened(gate), "act", {})
        assert isinstance(lost, Unknown)
        assert isinstance(gate.execute(lost.action, tenant="acme"), Done)
    assert used(world, "amount") == 30
    assert used(world) == 1
    assert not world.damage()


def test_a_late_result_takes_again_what_was_given_back_even_beyond_the_bound(world: World, clock: FakeClock) -> None:
    entered, leave = threading.Event(), threading.Event()

    def pay(n: int) -> int:
        if n == 1:
            entered.set()
            leave.wait(30)
        return n

    with world.gate(named("pay", pay, resource="n:{n}"), policy=REFUNDS, clock=clock) as gate:
        gate.limit({"amount": 30}, tenant="acme", account="refunds", by="ada")
        slow = gate.propose(opened(gate), "pay", {"n": 1})
        thread = threading.Thread(target=gate.execute, args=(slow,))
        thread.start()
        assert entered.wait(30)
        clock.advance(timedelta(minutes=5))
        gate.reconcile(slow, applied=False, by="ada", evidence="nothing there", worker_known_dead=True)
        assert used(world, "amount") == 0
        assert isinstance(gate.call(opened(gate), "pay", {"n": 2}), Done)
        leave.set()
        thread.join()
    assert world.state(slow.action) == "UNKNOWN"
    assert used(world, "amount") == 60
    assert not world.damage()


def test_a_policy_is_shown_what_is_left_of_the_bounds_that_concern_it(world: World) -> None:
    policy = ScriptedPolicy(otherwise=allow(reserves=[Reserve(account="refunds", amount=30)]))
    with world.gate(world.refund(), named("other", lambda: 1), policy=policy) as gate:
        gate.limit({"actions": 10, "tokens": 500}, tenant="acme", by="ada")
        gate.limit({"actions": 5, "failures": 2}, tenant="acme", tool="refund", by="ada")
        gate.limit({"actions": 7}, tenant="acme", tool="other", by="ada")
        gate.limit({"amount": 100}, tenant="acme", account="refunds", by="ada")
        gate.limit({"amount": 9}, tenant="umbrella", account="theirs", by="ada")
        run = opened(gate, limits=Limits(actions=3, wall=timedelta(days=1), tokens=50))
        gate.call(run, "refund", ONE)
        run.charge(tokens=70)
        gate.execute(gate.propose(run, "refund", ONE, key="k"))
    first, second, claimed = (dict(request.view.budgets) for request in policy.requests)
    assert first == {
        "account.refunds": 100, "run.actions": 3, "run.tokens": 50, "tenant.actions": 10, "tenant.tokens": 500,
        "tool.actions": 5,
    }  # fmt: skip
    assert second == claimed
    assert second == {
        "account.refunds": 70, "run.actions": 2, "run.tokens": 0, "tenant.actions": 9, "tenant.tokens": 430,
        "tool.actions": 4,
    }  # fmt: skip
    (proposed, _) = (event for event in world.events() if event.type == "proposed")
    view = proposed.body["view"]
    assert type(view) is dict
    assert view["budgets"] == first
    assert agentgate.recheck(world.url, policy=policy).verdict == "same"


def test_a_batch_is_decided_on_what_its_earlier_calls_leave_of_the_bounds(world: World) -> None:
    policy = ScriptedPolicy(otherwise=require_approval("big"))
    with world.gate(policy=policy) as gate:
        gate.limit({"pending": 2}, tenant="acme", tool="refund", by="ada")
        calls = [agentgate.Call("refund", {"account": f"a{n}", "cents": 1}) for n in range(3)]
        states = [one.state for one in gate.propose_many(opened(gate), calls)]
    assert states == ["HELD", "HELD", "REFUSED"]
    assert [request.view.budgets["tool.pending"] for request in policy.requests] == [2, 1, 0]
    assert used(world, "pending") == 2
    assert not world.damage()


def test_a_bound_of_a_tool_that_nobody_knows_would_bound_nothing(world: World) -> None:
    with world.gate() as gate:
        for given in ({"tool": "refnud"}, {"tool": "refund", "namespace": "mail"}):
            with pytest.raises(agentgate.NotFound):
                gate.limit({"actions": 3}, by="ada", **given)
            gate.limit({}, by="ada", **given)  # lifting what is not there is no mistake
    assert not world.sql("SELECT * FROM agentgate_budgets")
    assert not world.damage()


def test_who_bounded_what_and_why_is_on_the_ledgers_own_chain(world: World) -> None:
    with world.gate() as gate:
        gate.limit({"money": 5, "actions": 3}, tenant="acme", by="ada", note="till monday")
        gate.limit({"amount": 7}, tenant="acme", account="refunds", by="bob")
        ledger = gate.ledger
    found = [event for event in world.events() if event.type == "limited"]
    assert {event.run for event in found} == {ledger}
    assert [(event.body["scope"], event.body["limits"], event.body["by"]) for event in found] == [
        ({"kind": "tenant", "tenant": "acme"}, {"actions": 3, "money": 5}, "ada"),
        ({"kind": "account", "tenant": "acme", "account": "refunds"}, {"amount": 7}, "bob"),
    ]
    texts = world.sql("SELECT content FROM agentgate_payloads WHERE run = ? AND kind = 'texts'", ledger)
    assert texts == [(b'{"note":"till monday"}',)]
    rows = world.sql("SELECT kind, name, measure, most, used, n FROM agentgate_budgets ORDER BY n, measure")
    assert rows == [
        ("tenant", "", "actions", 3, 0, found[0].n),
        ("tenant", "", "money", 5, 0, found[0].n),
        ("account", "refunds", "amount", 7, 0, found[1].n),
    ]
