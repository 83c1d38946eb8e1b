"""One list of all that waits for a person; closing what was halted takes it off."""

import threading
from datetime import timedelta
from typing import Any

import pytest

import agentgate
from agentgate import Gate, Limits, NotFound, NotPossible, Refused
from agentgate.canonical import Json
from agentgate.store import inbox
from agentgate.testing import FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, named, opened

BIG, HUGE = 7, 9


def _decide(request: agentgate.PolicyRequest) -> agentgate.Decision:
    cents = request.arguments["cents"] if type(request.arguments) is dict else 0
    if cents == HUGE:
        return agentgate.abort("too_much")
    return agentgate.require_approval("big") if cents == BIG else agentgate.allow()


def _vanish(account: str, cents: int) -> str:
    raise RuntimeError(f"{account} {cents}")


def _tools(world: World) -> list[AnyTool]:
    return [world.refund(), named("vanish", _vanish, resource="account:{account}")]


def _gate(world: World, **options: Any) -> Gate:
    return world.gate(*_tools(world), policy=ScriptedPolicy(otherwise=_decide), **options)


def _call(gate: Gate, run: agentgate.Run, account: str, cents: int = 1, tool: str = "refund") -> agentgate.Outcome:
    arguments: dict[str, Json] = {"account": account, "cents": cents}
    return gate.call(run, tool, arguments, key=f"{tool}/{account}/{cents}")


def test_all_that_waits_for_a_person_is_in_one_list(world: World, clock: FakeClock) -> None:
    with _gate(world, clock=clock) as gate:
        assert list(gate.waiting()) == []
        runs = {name: opened(gate, name) for name in ("one", "two", "three")}
        held = _call(gate, runs["one"], "a", BIG)
        assert isinstance(held, agentgate.Held)
        unknown = _call(gate, runs["two"], "b", tool="vanish")
        aborted = _call(gate, runs["three"], "c", HUGE)
        _call(gate, runs["one"], "d")
        gate.pause(by="ops:ada", reason="look first", tool="refund")
        found = list(gate.waiting())
        why = world.value("SELECT reason FROM agentgate_actions WHERE id = ?", unknown.action)
        assert [(one.kind, one.name, one.tenant, one.tool, one.reason) for one in found] == [
            ("paused", None, None, "refund", "paused"),
            ("held", "one", "acme", "refund", "approval_required"),
            ("unknown", "two", "acme", "vanish", why),
            ("halted", "three", "acme", None, "aborted"),
        ]  # fmt: skip
        assert [one.action for one in found] == [None, held.action, unknown.action, None]
        assert (found[1].approval, found[1].until) == (held.approval.id, held.approval.expires_at)
        assert found[3].run == runs["three"].id
        assert isinstance(aborted, Refused)
        # Each is taken off by the command that is for it.
        gate.resume(by="ops:ada", tool="refund")
        gate.cancel(held.action, by="ops:ada", tenant="acme")
        gate.abandon(unknown.action, by="ops:ada", tenant="acme")
        gate.close_run(runs["three"], by="ops:ada", note="the budget was a typo")
        assert list(gate.waiting()) == []
    assert not world.damage()


def test_the_list_is_of_one_tenant_or_of_all(world: World) -> None:
    with _gate(world) as gate:
        for tenant in ("acme", "umbrella"):
            run = opened(gate, tenant=tenant)
            _call(gate, run, "a", BIG)
            _call(gate, run, "b", tool="vanish")
            _call(gate, run, "c", HUGE)
            gate.pause(by="ops:ada", reason="look first", tenant=tenant)
        assert len(list(gate.waiting())) == 6
        of = list(gate.waiting(tenant="umbrella"))
        # Halting refused what was held.
        assert [(one.kind, one.tenant) for one in of] == [
            (kind, "umbrella") for kind in ("paused", "unknown", "halted")
        ]  # fmt: skip
        assert list(gate.waiting(tenant="nobody")) == []


def test_a_list_of_many_pages_has_everything_once(world: World, clock: FakeClock) -> None:
    many = inbox.PAGE * 2 + 3
    with _gate(world, clock=clock) as gate:
        for n in range(many):
            _call(gate, opened(gate, f"run-{n}"), f"a{n}", HUGE)
            _call(gate, opened(gate, "held", limits=Limits()), f"h{n}", BIG)
            _call(gate, opened(gate, "lost"), f"l{n}", tool="vanish")
        found = list(gate.waiting(tenant="acme"))
        assert found == list(gate.waiting())
    for kind in ("held", "unknown"):
        of = [one for one in found if one.kind == kind]
        assert len(of) == len({one.action for one in of}) == many
        assert [one.since for one in of] == sorted(one.since for one in of)
    assert len({one.run for one in found if one.kind == "halted"}) == many


def test_what_a_late_answer_put_in_doubt_waits_for_a_person(world: World, clock: FakeClock) -> None:
    inside, go = threading.Event(), threading.Event()

    def stay(account: str) -> str:
        inside.set()
        assert go.wait(30)
        return account

    with world.gate(named("stay", stay), clock=clock) as gate:
        begun = gate.propose(opened(gate), "stay", {"account": "a"})
        thread = threading.Thread(target=gate.execute, args=(begun,))
        thread.start()
        assert inside.wait(30)
        clock.advance(timedelta(minutes=2))
        gate.reconcile(begun, applied=False, by="ada", evidence="nothing there")
        gate.cancel(begun, by="ada")
        assert list(gate.waiting()) == []
        go.set()
        thread.join()
        (waits,) = gate.waiting()
        assert (waits.kind, waits.action, waits.reason, waits.late) == ("unknown", begun.action, "late", True)
        gate.reconcile(begun, applied=True, by="ada", evidence="there it is")
        assert list(gate.waiting()) == []
    assert not world.damage()


def test_the_pages_go_by_index(world: World) -> None:
    with world.gate() as gate, gate._shop.ledger.database.read() as connection:
        for pages, index in (
            (inbox._HELD_PAGES, "agentgate_approvals_pending"),
            (inbox._UNKNOWN_PAGES, "agentgate_actions_in_doubt"),
            (inbox._RUN_PAGES, "agentgate_runs_halted"),
        ):
            for statement in pages.values():
                sql, names, _ = statement._for(connection.dialect)
                raw: Any = connection.connection.dbapi_connection
                plan = " ".join(row[3] for row in raw.execute("EXPLAIN QUERY PLAN " + sql, [0] * len(names)))
                assert index in plan, plan


# --- closing ------------------------------------------------------------------------------------------------------


def test_closing_refuses_what_waits_in_one_transaction_and_burns_no_key(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate, "one")
        held = _call(gate, run, "a", BIG)
        ready = gate.propose(run, "refund", {"account": "b", "cents": 1}, key="b")
        gate.close_run(run, by="ops:ada", note="the customer is gone")
        assert {world.state(one) for one in (held.action, ready.action)} == {"REFUSED"}
        other = opened(gate, "two")
        assert isinstance(gate.call(other, "refund", {"account": "b", "cents": 1}, key="b"), agentgate.Done)
        with pytest.raises(NotPossible, match="nothing is left to do"):
            gate.close_run(run, by="ops:ada")
    closed = next(event for event in world.events() if event.type == "run_closed")
    content = world.value("SELECT content FROM agentgate_payloads WHERE run = ? AND n = ?", closed.run, closed.n)
    assert bytes(content) == b'{"note":"the customer is gone"}'
    assert closed.body["by"] == "ops:ada"
    assert not world.damage()


def test_a_halted_run_is_closed_once_and_its_unknown_outcomes_wait_on(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        unknown = _call(gate, run, "b", tool="vanish")
        _call(gate, run, "c", HUGE)
        assert [one.kind for one in gate.waiting()] == ["unknown", "halted"]
        gate.close_run(run, by="ops:ada")
        assert [one.kind for one in gate.waiting()] == ["unknown"]
        assert world.sql("SELECT state, reason FROM agentgate_runs WHERE name = 'ticket-1'") == [("CLOSED", "closed")]
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="nothing there", tenant="acme")
        assert world.state(unknown.action) == "REFUSED"
        with pytest.raises(NotPossible):
            gate.close_run(run, by="ops:ada")
    assert not world.damage()


def test_another_tenants_run_is_not_closed(world: World) -> None:
    with _gate(world) as gate:
        run = opened(gate)
        with pytest.raises(NotFound):
            gate.close_run(
                agentgate.Run(id=run.id, name=run.name, tenant="umbrella", principal=run.principal), by="ops:ada"
            )
    assert world.value("SELECT state FROM agentgate_runs WHERE name = 'ticket-1'") == "OPEN"
