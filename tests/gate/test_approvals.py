"""A held action's question is stored whole: who must agree, what they were shown, until when, bound by digests."""

import hashlib
import json
from datetime import timedelta

import pytest

import agentgate
from agentgate import Done, Gate, Held, Refused, Requirement, allow, deny, require_approval
from agentgate.clock import to_datetime
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, gates, grant, named, opened

ONE = {"account": "a1", "cents": 1250}
REQUIREMENT = Requirement(quorum=2, roles=("finance", "auditor"), signed=True, obligations=("four_eyes", "call_back"))
ASK = require_approval("big", "over the limit", requirement=REQUIREMENT)
OTHER = require_approval("big", "over the limit", requirement=Requirement(quorum=3))
THIRD = require_approval("big", "over the limit", requirement=Requirement(quorum=4))


def ask(gate: Gate, *, key: str = "k") -> Held:
    outcome = gate.call(opened(gate), "refund", ONE, key=key)
    assert isinstance(outcome, Held)
    return outcome


def sha(domain: str, value: object) -> str:
    """Digest as formats.md writes it, of a value whose JCS is Python's own sorted JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"agentgate/{domain}/v1".encode() + b"\x00" + text.encode()).hexdigest()


def test_the_three_digests_are_those_of_the_format_computed_by_hand(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK)) as gate:
        held, ledger, run = ask(gate), gate.ledger, opened(gate)
    (event,) = world.events(held.action)
    bound, arguments = event.body["approval"], event.body["payloads"]["arguments"]  # type: ignore[index,call-overload]
    action = sha(
        "action",
        {
            "ledger": ledger,
            "run": run.id,
            "tenant": "acme",
            "principal": "agent:support",
            "namespace": "",
            "tool": "refund",
            "spec": event.body["spec"],
            "arguments": arguments,
            "key": {"source": "caller", "scope": "", "text": "k"},
            "revision": 1,
        },
    )
    requirement = sha(
        "requirement",
        {
            "action": action,
            "kind": "approval",
            "quorum": 2,
            "roles": ["auditor", "finance"],
            "proposer": False,
            "signed": True,
            "obligations": ["four_eyes", "call_back"],
        },
    )
    ((salt, content),) = world.sql("SELECT salt, content FROM agentgate_payloads WHERE kind = 'presentation'")
    presentation = hashlib.sha256(b"agentgate/payload/v1\x00presentation\x00" + salt + content).hexdigest()
    approval = sha(
        "approval",
        {
            "ledger": ledger,
            "id": held.approval.id,
            "requirement": requirement,
            "presentation": presentation,
            "expires_at_us": bound["expires_at_us"],  # type: ignore[index,call-overload]
        },
    )
    assert held.digest == action == event.body["digest"]
    assert held.approval.digest == approval
    assert bound == {
        "id": held.approval.id,
        "requirement": requirement,
        "presentation": presentation,
        "digest": approval,
        "expires_at_us": bound["expires_at_us"],  # type: ignore[index,call-overload]
        "grant_us": 900_000_000,
    }


def test_the_question_has_a_row_that_says_what_its_event_says(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK)) as gate:
        held = ask(gate)
    columns = "id, action, kind, attempt, hex(requirement), hex(presentation), hex(digest), state, asked_n, until_us"
    ((*row,),) = world.sql(f"SELECT {columns} FROM agentgate_approvals")
    (event,) = world.events(held.action)
    bound = event.body["approval"]
    assert type(bound) is dict
    digests = [str(bound[name]).upper() for name in ("requirement", "presentation", "digest")]
    assert row == [held.approval.id, held.action, "approval", None, *digests, "pending", event.n, None]
    assert held.approval.expires_at == to_datetime(world.value("SELECT expires_at_us FROM agentgate_approvals"))
    assert held.approval.requirement == REQUIREMENT
    assert world.value("SELECT approval FROM agentgate_actions") == held.approval.id


def test_what_is_shown_is_the_whole_call_and_the_last_line_is_the_gates(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK)) as gate:
        held = ask(gate)
    lines = held.approval.shown.split("\n")
    assert '  account = "a1"' in lines
    assert "  cents = 1250" in lines
    assert lines[-1] == f"agentgate: approving runs exactly this, once. action {held.digest}"
    assert "  | over the limit" in lines
    assert "approvers  2 of auditor or finance, not the proposer, signed" in lines
    assert [line for line in lines if line.startswith("obliged to")] == ["obliged to four_eyes", "obliged to call_back"]


def test_what_is_shown_has_no_control_bidi_or_invisible_character(world: World) -> None:
    nasty = "pay\u202e\u200b\x1b[2J\n  account = harmless\x00\u2028"
    with world.gate(policy=ScriptedPolicy(require_approval("big", "\u202eread me\n"))) as gate:
        outcome = gate.call(opened(gate), "refund", {"account": nasty, "cents": 1}, key="k\u202e")
    assert isinstance(outcome, Held)
    shown = outcome.approval.shown
    assert all(character == "\n" or " " <= character <= "~" for character in shown)
    assert "\\u202e" in shown
    assert len([line for line in shown.splitlines() if line.startswith("  account = ")]) == 1


def test_a_long_value_is_cut_in_the_middle_with_its_length_and_digest(world: World) -> None:
    long = "a" * 5_000 + " and the dangerous end"
    with world.gate(policy=ScriptedPolicy(ASK)) as gate:
        outcome = gate.call(opened(gate), "refund", {"account": long, "cents": 1})
    assert isinstance(outcome, Held)
    digest = hashlib.sha256(json.dumps(long).encode()).hexdigest()
    lines = outcome.approval.shown.split("\n")
    (at,) = (n for n, line in enumerate(lines) if line.startswith("  account"))
    assert lines[at].startswith("  account = text of 1 line, 5,022 characters, cut, ")
    assert lines[at].endswith(f", sha256 {digest} of its {len(long) + 2:,} bytes:")
    assert lines[at + 1] == f"    | {'a' * 160}"
    assert lines[at + 2] == "    ... 4,702 of 5,022 characters left out ..."
    assert lines[at + 3] == f"    + {long[-160:]}"


def test_defaults_and_undeclared_arguments_are_marked(world: World) -> None:
    def greet(name: str, times: int = 2) -> str:
        return name * times

    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    open_spec = agentgate.ToolSpec(name="loose", input_schema=schema, undeclared="allow")
    loose = agentgate.gated(open_spec, lambda **given: given)
    with world.gate(named("greet", greet), loose, policy=ScriptedPolicy(otherwise=ASK)) as gate:
        run = opened(gate)
        completed = gate.call(run, "greet", {"name": "a"})
        extra = gate.call(run, "loose", {"name": "a", "more": 1})
    assert isinstance(completed, Held)
    assert isinstance(extra, Held)
    assert "  times = 2\n    ^ filled in by default" in completed.approval.shown
    assert "  more = 1\n    ^ not declared by the tool" in extra.approval.shown


def test_the_same_question_is_found_in_another_process_and_no_second_one_is_asked(world: World) -> None:
    policy = ScriptedPolicy(otherwise=ASK)
    with gates(world, policy=policy) as (first, second):
        found = [ask(first), ask(second), ask(first)]
    assert found[0] == found[1] == found[2]
    assert world.value("SELECT count(*) FROM agentgate_approvals") == 1
    assert len(policy.requests) == 1


# --- at the claim ------------------------------------------------------------------------------


def test_what_was_granted_runs_once_and_uses_the_grant(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate)
        grant(gate, held)
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
        again = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Done)
    assert isinstance(again, Done)
    assert again.source == "replayed"
    assert world.sql("SELECT id, state FROM agentgate_approvals") == [(held.approval.id, "used")]
    started = next(event for event in world.events(held.action) if event.type == "started")
    assert started.body["approval"] == held.approval.id
    assert world.downstream.total == 1


def test_an_allow_at_the_claim_goes_on_under_the_grant(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, allow())) as gate:
        held = ask(gate)
        grant(gate, held)
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)
    assert world.value("SELECT state FROM agentgate_approvals") == "used"


def test_another_requirement_at_the_claim_asks_again_on_the_same_action_and_key(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, OTHER)) as gate:
        held = ask(gate)
        grant(gate, held)
        again = gate.execute(held.action, tenant="acme")
        assert isinstance(again, Held)
        assert ask(gate) == again
    assert again.action == held.action
    assert again.approval.id != held.approval.id
    assert again.approval.requirement.quorum == 3
    assert again.digest == held.digest
    assert world.words(held.action) == ["proposed", "voted", "voted", "approved", "held"]
    assert world.sql("SELECT state FROM agentgate_approvals ORDER BY asked_n") == [("void",), ("pending",)]
    assert world.downstream.total == 0


def test_the_third_different_requirement_is_a_refusal(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, OTHER, THIRD)) as gate:
        held = ask(gate)
        grant(gate, held)
        again = gate.execute(held.action, tenant="acme")
        assert isinstance(again, Held)
        grant(gate, again)
        outcome = gate.execute(held.action, tenant="acme")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "unstable"
    granted = ["voted", "voted", "approved", "held", "voted", "voted", "voted", "approved"]
    assert world.words(held.action) == ["proposed", *granted, "refused"]
    assert "decision" in world.events(held.action)[-1].body


def test_going_back_to_the_first_requirement_is_a_question_of_its_own(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, OTHER, OTHER)) as gate:
        held = ask(gate)
        grant(gate, held)
        again = gate.execute(held.action, tenant="acme")
        assert isinstance(again, Held)
        grant(gate, again)
        assert isinstance(gate.execute(held.action, tenant="acme"), Done)


def test_a_deny_at_the_claim_refuses_what_was_granted(world: World) -> None:
    with world.gate(policy=ScriptedPolicy(ASK, deny("moved", "not any more"))) as gate:
        held = ask(gate)
        grant(gate, held)
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert (outcome.reason, outcome.error.message) == ("policy_denied", "not any more")
    assert world.value("SELECT state FROM agentgate_approvals") == "void"
    assert world.downstream.total == 0


def test_a_clean_failure_gives_the_grant_back_for_another_attempt(world: World) -> None:
    ends = [agentgate.NoEffect("not yet"), None]

    def act() -> None:
        end = ends.pop(0)
        if end is not None:
            raise end

    with world.gate(named("act", act), policy=ScriptedPolicy(otherwise=ASK)) as gate:
        run = opened(gate)
        held = gate.call(run, "act", {}, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        assert isinstance(gate.call(run, "act", {}, key="k"), agentgate.Failed)
        assert world.value("SELECT state FROM agentgate_approvals") == "granted"
        assert isinstance(gate.call(run, "act", {}, key="k", retry=True), Done)
    assert world.value("SELECT state FROM agentgate_approvals") == "used"


def test_a_grant_that_was_given_back_is_good_for_no_longer_than_it_ever_was(world: World, clock: FakeClock) -> None:
    ends: list[Exception] = [agentgate.NoEffect("not yet")]

    def act() -> None:
        if ends:
            raise ends.pop()

    with world.gate(named("act", act), policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        run = opened(gate)
        held = gate.call(run, "act", {}, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        assert isinstance(gate.call(run, "act", {}, key="k"), agentgate.Failed)
        clock.advance(timedelta(minutes=15))
        outcome = gate.call(run, "act", {}, key="k", retry=True)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "grant_expired"


def test_a_grant_is_not_given_back_by_an_attempt_in_doubt(world: World) -> None:
    def act() -> None:
        raise ConnectionResetError

    with world.gate(named("act", act), policy=ScriptedPolicy(otherwise=ASK)) as gate:
        run = opened(gate)
        held = gate.call(run, "act", {}, key="k")
        assert isinstance(held, Held)
        grant(gate, held)
        gate.call(run, "act", {}, key="k")
        assert world.value("SELECT state FROM agentgate_approvals WHERE kind = 'approval'") == "used"
        gate.reconcile(held.action, applied=False, by="ada", evidence="looked", tenant="acme")
        again = gate.execute(held.action, tenant="acme")
    assert isinstance(again, Held)
    assert again.approval.id != held.approval.id


def test_a_grant_that_is_not_used_in_time_expires_and_is_no_yes(world: World, clock: FakeClock) -> None:
    with world.gate(policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        held = ask(gate)
        grant(gate, held)
        clock.advance(timedelta(minutes=15))
        outcome = gate.execute(held.action, tenant="acme")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "grant_expired"
    assert world.value("SELECT state FROM agentgate_approvals") == "expired"
    assert world.downstream.total == 0


@pytest.mark.parametrize("short", [timedelta(0), timedelta(microseconds=1)])
def test_a_question_expires_at_its_time_and_not_before(world: World, short: timedelta) -> None:
    clock = FakeClock(tick=timedelta(0))
    with world.gate(policy=ScriptedPolicy(otherwise=ASK), clock=clock) as gate:
        held = ask(gate)
        clock.advance(timedelta(hours=24) - short)
        outcome = gate.execute(held.action, tenant="acme")
    if short:
        assert outcome == held
    else:
        assert isinstance(outcome, Refused)
        assert outcome.reason == "question_expired"
        assert world.value("SELECT state FROM agentgate_approvals") == "expired"
