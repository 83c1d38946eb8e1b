"""Cases of other people's loops, "not what was approved". One test per line that is not met elsewhere."""

import threading
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Gate, Held, Key, NotFound, PolicyRequest, Refused, allow, require_approval
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, gates, grant, named, opened

ONE = {"account": "a1", "cents": 1}
ASK = require_approval("big")


def test_exactly_the_arguments_that_were_approved_run(world: World) -> None:
    ran: list[tuple[str, int]] = []

    def refund(account: str, cents: int = 7) -> None:
        ran.append((account, cents))

    given = {"account": "a1"}
    with world.gate(named("refund", refund), policy=ScriptedPolicy(otherwise=ASK)) as gate:
        run = opened(gate)
        held = gate.call(run, "refund", given, key="k")
        assert isinstance(held, Held)
        given["account"] = "a2"  # a later hook
        grant(gate, held)
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)
    assert ran == [("a1", 7)]
    assert "  cents = 7\n    ^ filled in by default" in held.approval.shown


def test_a_dict_changed_by_the_policy_or_another_thread_changes_nothing(world: World) -> None:
    given: dict[str, object] = dict(ONE)

    def meddle(request: PolicyRequest) -> agentgate.Decision:
        thread = threading.Thread(target=lambda: given.update(cents=10**6))
        thread.start()
        thread.join()
        assert isinstance(request.arguments, dict)
        request.arguments["cents"] = 10**6
        return allow()

    with world.gate(policy=ScriptedPolicy(otherwise=meddle)) as gate:
        outcome = gate.call(opened(gate), "refund", given)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == {"cents": 1}


def test_an_id_from_a_provider_never_binds_an_approval(world: World) -> None:
    """An attacker who reuses a call id with other arguments meets a conflict, not the approval."""
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        run = opened(gate)
        key = Key(source="adapter", text="call_1")
        held = gate.call(run, "refund", ONE, key=key, provenance={"call_id": "call_1"})
        assert isinstance(held, Held)
        grant(gate, held)
        with pytest.raises(agentgate.KeyConflict):
            gate.call(run, "refund", {"account": "a2", "cents": 9}, key=key, provenance={"call_id": "call_1"})
        other = gate.call(run, "refund", {"account": "a2", "cents": 9}, provenance={"call_id": "call_1"})
    assert isinstance(other, Held)
    assert other.action != held.action
    assert world.downstream.total == 0


def test_a_tool_that_is_called_directly_is_ungated(world: World) -> None:
    tool = world.refund()
    with pytest.raises(agentgate.Ungated):
        tool("a1", 1)
    assert world.downstream.total == 0


def test_a_continuation_of_a_call_that_never_existed_is_an_error(world: World) -> None:
    with world.gate() as gate, pytest.raises(NotFound):
        gate.execute("0197b6c2-0000-7000-8000-000000000001", tenant="acme")


def test_duplicate_keys_in_the_raw_call_are_refused(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        outcome = gate.call(opened(gate), "refund", b'{"account":"a1","cents":1,"cents":1000000}')
    assert isinstance(outcome, Refused)
    assert outcome.error.details == [
        {"path": "/cents", "keyword": "duplicate_key", "expected": outcome.error.suggested_action}
    ]


@pytest.mark.parametrize("text", ["\u202e1234", "a\u200bb", "\x1b]0;x\x07", "\u2066a", "\ufeff", "\u00a0"])
def test_bidi_zero_width_and_terminal_escapes_are_shown_as_escapes(world: World, text: str) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        outcome = gate.call(opened(gate), "refund", {"account": text, "cents": 1}, key=None)
    assert isinstance(outcome, Held)
    assert text not in outcome.approval.shown
    assert "\\u" in outcome.approval.shown
    assert outcome.approval.shown.isascii()


def test_a_question_that_timed_out_is_its_own_end_and_no_yes(world: World) -> None:
    clock = FakeClock()
    with world.gate(policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        run = opened(gate)
        held = gate.call(run, "refund", ONE, key="k")
        clock.advance(timedelta(hours=24))
        outcome = gate.execute(held.action, tenant="acme")
        # Waiting returned, and the same intent may be asked about again.
        again = gate.call(run, "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "question_expired"
    assert isinstance(again, Held)
    assert again.action != held.action
    assert world.downstream.total == 0


def test_fifty_scripts_at_once_on_one_granted_action_are_one_effect(world: World) -> None:
    outcomes: list[agentgate.Outcome] = []
    with gates(world, policy=ScriptedPolicy(otherwise=ASK), count=5) as many:
        held = many[0].call(opened(many[0]), "refund", ONE, key="k")
        assert isinstance(held, Held)
        grant(many[0], held)

        def work(gate: Gate) -> None:
            outcomes.append(gate.execute(held.action, tenant="acme"))

        threads = [threading.Thread(target=work, args=(many[n % 5],)) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(outcomes) == 50
    assert {type(outcome).__name__ for outcome in outcomes} <= {"Done", "Running"}
    assert world.downstream.total == 1


def test_a_vote_goes_by_what_was_shown_and_never_by_a_place_in_a_list(world: World) -> None:
    """The list was sorted anew between looking and answering: the answer is still about what was looked at."""
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        run = opened(gate)
        asked = [gate.call(run, "refund", {"account": name, "cents": 1}, key=name) for name in "abc"]
        listed = list(gate.approvals.list())
        for meant, other in zip(listed, reversed(listed), strict=True):
            if meant.id != other.id:
                with pytest.raises(agentgate.VoteRefused, match="other_digest"):
                    gate.approvals.approve(other.id, digest=meant.digest, by="ada", tenant="acme")
        said = gate.approvals.reject(listed[0].id, digest=listed[0].digest, by="ada", tenant="acme")
        assert said.action == listed[0].action
    states = {one.action: world.state(one.action) for one in asked}
    assert [states[one.action] for one in listed] == ["REFUSED", "HELD", "HELD"]
