"""What a policy is made of is on the record wherever an event names it, and nowhere else."""

from agentgate.digests import document_digest
from agentgate.testing import ScriptedPolicy
from support.worlds import World, opened

ARGUMENTS = {"account": "a1", "cents": 5}


def _stored(world: World) -> set[bytes]:
    return {row[0] for row in world.sql("SELECT digest FROM agentgate_documents WHERE kind = 'policy'")}


def _made_of(policy: ScriptedPolicy) -> set[bytes]:
    return {document_digest("policy", content) for _, content in policy.identity.documents}


def test_a_policy_that_spoke_only_at_a_claim_is_on_record(world: World) -> None:
    first, second = ScriptedPolicy(name="first"), ScriptedPolicy(name="second")
    with world.gate(policy=first) as one, world.gate(policy=second) as other:
        other.execute(one.propose(opened(one), "refund", ARGUMENTS))
    assert _stored(world) == _made_of(first) | _made_of(second)


def test_a_policy_that_was_not_asked_leaves_no_document(world: World) -> None:
    with world.gate() as gate:
        gate.call(opened(gate), "no_such_tool", ARGUMENTS)
    assert _stored(world) == set()


def test_a_policy_is_on_record_though_the_first_call_was_a_repeat(world: World) -> None:
    first, second = ScriptedPolicy(name="first"), ScriptedPolicy(name="second")
    with world.gate(policy=first) as one:
        one.propose(opened(one), "refund", ARGUMENTS, key="k")
    with world.gate(policy=second) as other:
        other.propose(opened(other), "refund", ARGUMENTS, key="k")
        other.propose(opened(other), "refund", ARGUMENTS, key="another")
    assert _stored(world) == _made_of(first) | _made_of(second)
