"""What people do is of one tenant: another one's id is not found, tells nothing, and leaves nothing behind."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agentgate import Gate, Held, NotFound, Requirement, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, opened

OTHER: Any = {"tenant": "umbrella"}
VOTE: Any = {"by": "person:mallory", **OTHER}
Do = Callable[[Gate, Held, str], object]

VERBS: dict[str, Do] = {
    "show": lambda gate, held, _: gate.approvals.show(held.approval.id, **OTHER),
    "approve": lambda gate, held, _: gate.approvals.approve(held.approval.id, digest=held.approval.digest, **VOTE),
    "reject": lambda gate, held, _: gate.approvals.reject(held.approval.id, digest=held.approval.digest, **VOTE),
    "revoke": lambda gate, held, _: gate.approvals.revoke(held.approval.id, digest=held.approval.digest, **VOTE),
    "answer": lambda gate, held, _: gate.approvals.answer(
        held.approval.id, digest=held.approval.digest, verdict="again", **VOTE
    ),
    "edit": lambda gate, held, _: gate.approvals.edit(
        held.approval.id, digest=held.approval.digest, arguments={"account": "a1", "cents": 1}, **VOTE
    ),
    "wait": lambda gate, held, _: gate.wait(held.action, timeout=0, **OTHER),
    "grants.show": lambda gate, _held, grant: gate.grants.show(grant, **OTHER),
    "grants.revoke": lambda gate, _held, grant: gate.grants.revoke(grant, **VOTE),
    "grants.add, like an action": lambda gate, held, _: gate.grants.add(
        action=held.action, uses=1, until=timedelta(hours=1), why="the same again", **VOTE
    ),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("late", [False, True], ids=["in time", "when its time is over"])
def test_another_tenants_question_or_grant_is_not_found_and_nothing_is_recorded(
    world: World, clock: FakeClock, verb: str, *, late: bool
) -> None:
    ask = require_approval("big", requirement=Requirement(roles=("finance",)))
    with world.gate(policy=ScriptedPolicy(otherwise=ask), clock=clock) as gate:
        opened(gate, "theirs", tenant="umbrella")
        held = gate.call(opened(gate), "refund", {"account": "a1", "cents": 900}, key="k")
        assert isinstance(held, Held)
        grant = gate.grants.add(
            action=held.action, tenant="acme", by="person:ada", why="known", uses=1, until=timedelta(days=9)
        )
        if late:
            clock.advance(timedelta(days=2))
        events = world.value("SELECT count(*) FROM agentgate_events")
        with pytest.raises(NotFound) as refused:
            VERBS[verb](gate, held, grant.id)
        assert "finance" not in str(refused.value)
        assert world.value("SELECT count(*) FROM agentgate_events") == events
        assert not list(gate.approvals.list(**OTHER))
        assert not list(gate.grants.list(**OTHER))
    assert world.downstream.total == 0
    assert not world.damage()
