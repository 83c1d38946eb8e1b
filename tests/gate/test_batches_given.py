"""What may be handed over as a batch, and what is made of it."""

import pytest

import agentgate
from agentgate import Call, Misuse, PolicyRequest, allow
from agentgate.gate.calls import MOST
from agentgate.testing import ScriptedPolicy
from support.worlds import World, opened


def refund(cents: int, key: str | None = None, **more: object) -> Call:
    return Call("refund", {"account": "a1", "cents": cents}, key=key, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ("refund", "calls: give a list of agentgate.Call"),
        ({"tool": "refund"}, "calls: give a list of agentgate.Call"),
        ((call for call in [refund(1)]), "calls: give a list of agentgate.Call"),
        ([refund(1), {"tool": "refund"}], "calls[1]: give an agentgate.Call"),
        ([refund(1), refund(2, "")], "calls[1].key: give a text of 1 to 200 characters"),
        ([refund(1, principal=3)], "calls[0].principal: give a text of 1 to 200 characters"),
        ([refund(1, supersede="no")], "calls[0].supersede: say True or False"),
        ([Call(3, {})], "calls[0].tool: give a text"),  # type: ignore[arg-type]
        ([refund(1)] * (MOST + 1), f"calls: {MOST + 1} are too many for one batch; give at most {MOST}"),
    ],
)
def test_what_is_no_batch_is_misuse_that_names_the_call_and_the_field(world: World, calls: object, told: str) -> None:
    with world.gate() as gate:
        run = opened(gate)
        with pytest.raises(Misuse) as raised:
            gate.propose_many(run, calls)  # type: ignore[arg-type]
    assert str(raised.value).startswith(told)
    assert world.value("SELECT count(*) FROM agentgate_actions") == 0


def test_a_call_shows_its_arguments_and_provenance_to_nobody_who_prints_it() -> None:
    assert "secret" not in repr(Call("refund", {"account": "secret"}, key="k", provenance="secret"))


def test_what_the_caller_or_a_policy_does_to_a_later_calls_arguments_changes_nothing(world: World) -> None:
    mine = {"account": "a1", "cents": 1}

    def meddling(_request: PolicyRequest) -> agentgate.Decision:
        mine["cents"] = 99
        return allow("fine")

    with world.gate(policy=ScriptedPolicy(otherwise=meddling)) as gate:
        proposals = gate.propose_many(opened(gate), [refund(2), Call("refund", mine)])
        done = [gate.execute(proposal) for proposal in proposals]
    assert [one.observation.value for one in done] == [{"cents": 2}, {"cents": 1}]
