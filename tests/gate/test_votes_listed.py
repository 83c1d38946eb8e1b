"""Open questions and unused grants, as people and scripts list them."""

from datetime import timedelta
from typing import Any

import pytest

from agentgate import Gate, Held, Misuse, Requirement, require_approval
from agentgate.store import asked
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, grant, opened

MANY = 2 * asked.PAGE + 7
LONG = require_approval("big", requirement=Requirement(question=timedelta(days=3)))
SHORT = require_approval("big", requirement=Requirement(question=timedelta(hours=2)))


def held(gate: Gate, key: str, tenant: str = "acme") -> Held:
    outcome = gate.call(opened(gate, tenant=tenant), "refund", {"account": key, "cents": 1}, key=key)
    assert isinstance(outcome, Held)
    return outcome


def test_a_list_of_many_pages_has_everything_once_soonest_over_first(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=LONG), clock=clock) as gate:
        every = {held(gate, f"k{n}").approval.id for n in range(MANY)}
        listed = list(gate.approvals.list())
        assert list(gate.approvals.unused()) == []
    assert len(listed) == MANY
    assert {one.id for one in listed} == every
    assert [one.expires_at for one in listed] == sorted(one.expires_at for one in listed)


def test_lists_are_narrowed_by_tenant_kind_and_time(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ScriptedPolicy(LONG, SHORT, LONG), clock=clock) as gate:
        slow, soon, others = held(gate, "slow"), held(gate, "soon"), held(gate, "others", tenant="umbrella")

        def ids(**given: Any) -> list[str]:
            return [one.id for one in gate.approvals.list(**given)]

        assert ids() == [soon.approval.id, slow.approval.id, others.approval.id]
        assert ids(tenant="umbrella") == [others.approval.id]
        assert ids(tenant="acme", kind="approval") == [soon.approval.id, slow.approval.id]
        assert ids(kind="question") == []
        assert ids(expiring=timedelta(hours=3)) == [soon.approval.id]
        assert ids(tenant="umbrella", expiring=timedelta(hours=3)) == []
        grant(gate, slow)
        grant(gate, others)
        assert ids() == [soon.approval.id]
        assert [one.id for one in gate.approvals.unused()] == [slow.approval.id, others.approval.id]
        assert [one.id for one in gate.approvals.unused(tenant="umbrella")] == [others.approval.id]


@pytest.mark.parametrize(
    "given", [{"kind": "vote"}, {"expiring": 5}, {"expiring": timedelta(-1)}, {"tenant": ""}, {"tenant": "$ledger"}]
)
def test_what_narrows_nothing_is_said_at_once(world: World, given: dict[str, Any]) -> None:
    with world.gate() as gate, pytest.raises(Misuse):
        gate.approvals.list(**given)


def test_the_pages_go_by_index(world: World) -> None:
    with world.gate() as gate, gate._shop.ledger.own.read() as connection:
        raw: Any = connection.connection.dbapi_connection
        pages = ((asked._PENDING_PAGES, "approvals_pending"), (asked._GRANTED_PAGES, "approvals_granted"))
        for statements, index in pages:
            for statement in statements.values():
                sql, names, _ = statement._for(connection.dialect)
                plan = " ".join(row[3] for row in raw.execute("EXPLAIN QUERY PLAN " + sql, [0] * len(names)))
                assert f"USING INDEX agentgate_{index}" in plan, plan
                assert "SCAN agentgate_actions" not in plan, plan
