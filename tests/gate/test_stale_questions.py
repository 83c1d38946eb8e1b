"""Questions whose answers would carry nothing as things stand are marked, and neither hidden nor refused."""

from typing import Any

import agentgate
from agentgate import Done, Gate, Held, require_approval
from agentgate.testing import ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, grant, named, opened

ASK = require_approval("ask")


def marks(gate: Gate, held: agentgate.Outcome) -> tuple[str, ...]:
    """Say how an action's question is marked: alike in the list and when it is shown."""
    (listed,) = [one for one in gate.approvals.list(tenant="acme") if one.action == held.action]
    assert gate.approvals.show(listed.id, tenant="acme").stale == listed.stale
    return listed.stale


def act(**declared: Any) -> AnyTool:
    return named("act", lambda: 1, **declared)


def asking(world: World, name: str, *tools: AnyTool) -> Gate:
    return world.gate(*tools, policy=ScriptedPolicy(otherwise=ASK, name=name))


def test_a_question_about_what_the_gate_knows_as_it_was_asked_is_not_stale(world: World) -> None:
    with asking(world, "v1", act()) as gate:
        gate.activate_policy(by="ops:ada")
        held = gate.call(opened(gate), "act", {})
        assert marks(gate, held) == ()


def test_a_changed_spec_and_a_removed_tool_are_marked_as_this_gate_sees_them(world: World) -> None:
    with asking(world, "v1", act()) as gate:
        held = gate.call(opened(gate), "act", {}, key="k")
    with asking(world, "v1", act(description="does more now")) as gate:
        assert marks(gate, held) == ("spec_changed",)
    with asking(world, "v1", named("other", lambda: 1)) as gate:
        assert marks(gate, held) == ("tool_removed",)
    assert world.state(held.action) == "HELD"  # to look ends nothing


def test_without_tools_of_its_own_a_gate_goes_by_what_was_registered_since(world: World) -> None:
    with asking(world, "v1", act(description="before")) as gate, asking(world, "v1", act()) as gate:
        held = gate.call(opened(gate), "act", {}, key="k")
    with agentgate.Gate.open(world.url, policy=ScriptedPolicy()) as looking:
        assert marks(looking, held) == ()  # the other spec is older than the question
        with asking(world, "v1", act(description="does more now")):
            pass
        assert marks(looking, held) == ("spec_changed",)


def test_a_question_that_was_asked_under_a_policy_that_is_not_active_is_marked(world: World) -> None:
    with asking(world, "v1", act()) as old, asking(world, "v2", act()) as new:
        held = old.call(opened(old), "act", {}, key="k")
        assert marks(old, held) == ()  # no policy is active
        new.activate_policy(by="ops:ada")
        assert marks(old, held) == ("policy_changed",)
        old.activate_policy(by="ops:ada", tenant="acme")
        assert marks(old, held) == ()
        new.activate_policy(by="ops:ada", tenant="acme")
        with asking(world, "v2", act(description="does more now")) as newer:
            assert marks(newer, held) == ("spec_changed", "policy_changed")
    assert isinstance(held, Held)


def test_what_was_granted_is_marked_as_well_and_what_has_ended_is_not(world: World) -> None:
    with asking(world, "v1", act()) as old, asking(world, "v2", act()) as new:
        held = old.call(opened(old), "act", {}, key="k")
        new.activate_policy(by="ops:ada")
        assert isinstance(held, Held)
        grant(old, held)
        (unused,) = old.approvals.unused()
        assert unused.stale == ("policy_changed",)
        assert isinstance(new.execute(held.action, tenant="acme"), Done)  # it asks for the same: a mark refuses nothing
        assert new.approvals.show(held.approval.id, tenant="acme").stale == ()
