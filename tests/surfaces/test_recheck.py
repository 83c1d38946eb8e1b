"""Recorded decisions asked again: of the same policy, of others, and joined with what was executed."""

import hashlib
import json
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import agentgate
from support.rechecks import Story, Witness, act, allow, ask, by_word, deny

DECISIONS = 14


def test_the_same_policy_decides_the_same(story: Story) -> None:
    report = agentgate.recheck(story.url, Witness(by_word))
    assert (report.verdict, report.rechecked, report.same) == ("same", DECISIONS, DECISIONS)
    assert (report.same_policy, report.nondeterministic, report.reworded) == (DECISIONS, 0, 0)
    assert (report.differences, report.not_evaluated, report.now_denied) == ((), (), ())
    assert (report.runs, report.executed) == (2, 3)


def test_every_request_is_rebuilt_exactly_as_it_was(story: Story) -> None:
    again = Witness(by_word)
    agentgate.recheck(story.url, again)
    assert len(again.asked) == DECISIONS
    assert again.asked == story.policy.asked


def test_another_policy_is_shown_the_facts_it_declares_and_no_others(story: Story) -> None:
    shown = Witness(allow, facts=("on_call",))
    agentgate.recheck(story.url, shown)
    assert all("facts={'on_call': {'since': 9, 'who': 'ada'}}" in asked for asked in shown.asked.values())


def test_a_decision_is_found_in_every_event_that_carries_one(story: Story) -> None:
    kinds = Counter(one.type for one in agentgate.recheck(story.url, Witness(deny, name="other")).differences)
    refused_already = 3  # denied, raised, and refused at the claim: a denial then and now
    assert kinds == {"proposed": 7, "started": 2, "held": 1, "waited": 1}
    assert sum(kinds.values()) == DECISIONS - refused_already


def test_an_allowance_that_would_be_a_denial_is_tightened_and_the_reverse_loosened(story: Story) -> None:
    stricter = agentgate.recheck(story.url, Witness(deny, name="other"))
    looser = agentgate.recheck(story.url, Witness(allow, name="other"))
    assert (stricter.tightened, stricter.loosened, stricter.same) == (10, 1, 3)  # the abort is a denial now
    assert (looser.tightened, looser.loosened, looser.same) == (0, 7, 7)
    assert stricter.verdict == looser.verdict == "different"


def test_another_approval_is_neither(story: Story) -> None:
    def ask_two(request: agentgate.PolicyRequest) -> agentgate.Decision:
        if by_word(request).outcome != "require_approval":
            return by_word(request)
        return agentgate.require_approval("ask", requirement=agentgate.Requirement(quorum=2))

    report = agentgate.recheck(story.url, Witness(ask_two, name="other"))
    assert (report.approval_changed, report.rechecked - report.same) == (3, 3)
    assert {one.was.outcome for one in report.differences} == {"require_approval"}


def test_executed_but_would_now_be_denied_is_the_headline(story: Story) -> None:
    report = agentgate.recheck(story.url, Witness(deny, name="other"))
    assert (report.executed, report.executed_now_denied) == (3, 3)
    executed = {story.actions[name] for name in ("called", "apart", "doubted")}
    assert {one.action for one in report.now_denied} == executed
    for one in report.now_denied:
        assert one.refusal is not None
        assert (one.refusal.action, one.refusal.was.outcome, one.refusal.now.outcome) == (one.action, "allow", "deny")
        assert one.attempt == 1


def test_an_effect_that_only_its_proposal_would_not_have_let_pass_is_in_the_headline(story: Story) -> None:
    """A claim is asked apart: were the proposal denied, there would have been none."""

    def deny_proposal(request: agentgate.PolicyRequest) -> agentgate.Decision:
        first = request.action == story.actions["apart"] and request.view.recent[0].state != "READY"
        return agentgate.deny("no") if first else agentgate.allow()

    report = agentgate.recheck(story.url, Witness(deny_proposal, name="other"))
    assert [(one.action, one.refusal and one.refusal.type) for one in report.now_denied] == [
        (story.actions["apart"], "proposed")
    ]


def test_an_effect_that_would_now_need_a_person_is_tightened_and_not_denied(story: Story) -> None:
    report = agentgate.recheck(story.url, Witness(ask, name="other"))
    assert (report.executed_now_denied, report.now_denied) == (0, ())
    assert report.tightened == 7


def test_the_same_policy_with_another_answer_is_a_finding_of_its_own(story: Story) -> None:
    report = agentgate.recheck(story.url, Witness(deny))
    assert report.same_policy == DECISIONS
    assert (report.nondeterministic, report.reworded) == (DECISIONS, 3)  # three were denials, for another reason
    assert all(one.same_policy for one in report.differences)
    assert len(report.differences) == report.nondeterministic


def test_a_policy_that_raises_denies_and_is_counted(story: Story) -> None:
    def fails(_request: agentgate.PolicyRequest) -> agentgate.Decision:
        raise RuntimeError

    report = agentgate.recheck(story.url, Witness(fails, name="other"))
    assert (report.policy_failures, report.rechecked) == ({"policy_raised": DECISIONS}, DECISIONS)
    assert report.executed_now_denied == 3


def test_a_policy_that_is_late_was_not_heard(story: Story) -> None:
    def sleeps(request: agentgate.PolicyRequest) -> agentgate.Decision:
        time.sleep(0.2 if request.action == story.actions["abort"] else 0)
        return by_word(request)

    report = agentgate.recheck(story.url, Witness(sleeps), within=timedelta(milliseconds=50))
    assert (report.reasons, report.same) == ({"policy_timeout": 1}, DECISIONS - 1)
    assert report.verdict == "incomplete"


def test_a_fact_that_was_not_recorded_cannot_be_answered_for(story: Story) -> None:
    report = agentgate.recheck(story.url, Witness(allow, name="other", facts=("phase", "weather")))
    assert (report.rechecked, report.cannot_evaluate) == (0, DECISIONS)
    assert report.reasons == {"fact_not_recorded:weather": DECISIONS}
    assert report.verdict == "incomplete"
    assert report.executed_not_evaluated == report.executed == 3


def test_a_fact_that_could_not_be_had_then_is_not_made_up_now(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    agentgate.migrate(url)
    with agentgate.Gate.open(url, policy=Witness(by_word), tools=[act], facts={"on_call": lambda _: "ada"}) as gate:
        denied = gate.call(gate.run("r", principal="agent:a"), "act", {"do": "allow"})
    assert isinstance(denied, agentgate.Refused)
    report = agentgate.recheck(url, Witness(by_word))
    assert (report.verdict, report.rechecked) == ("incomplete", 0)
    assert report.reasons == {"fact_not_recorded:phase": 1}
    assert agentgate.recheck(url, Witness(deny, name="other", facts=("on_call",))).same == 1


def test_nothing_rechecked_is_not_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    agentgate.migrate(url)
    report = agentgate.recheck(url, Witness(allow))
    assert (report.verdict, report.rechecked, report.runs) == ("nothing", 0, 0)


def test_a_run_is_asked_about_by_its_name_or_its_id(story: Story) -> None:
    named = agentgate.recheck(story.url, Witness(deny, name="other"), run="aborted")
    assert (named.runs, named.rechecked) == (1, 1)
    by_id = agentgate.recheck(story.url, Witness(deny, name="other"), run=named.differences[0].run)
    assert by_id == named
    with pytest.raises(agentgate.NotFound):
        agentgate.recheck(story.url, Witness(allow), run="no such run")


def test_a_tenant_is_asked_about_alone(story: Story) -> None:
    assert agentgate.recheck(story.url, Witness(by_word), tenant="acme").rechecked == DECISIONS
    assert agentgate.recheck(story.url, Witness(by_word), tenant="other").verdict == "nothing"


def test_findings_beyond_those_that_are_kept_are_counted(story: Story) -> None:
    few = agentgate.recheck(story.url, Witness(deny, name="other"), kept=1)
    all_of_them = agentgate.recheck(story.url, Witness(deny, name="other"))
    assert (len(few.differences), len(few.now_denied)) == (1, 1)
    assert (few.tightened, few.executed_now_denied) == (all_of_them.tightened, all_of_them.executed_now_denied)


def test_a_recheck_leaves_every_byte_of_the_folder_as_it_was(story: Story) -> None:
    def bytes_of() -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in story.path.parent.iterdir()}

    before = bytes_of()
    agentgate.recheck(story.url, Witness(deny, name="other"))
    assert bytes_of() == before


def test_a_report_travels_as_json(story: Story) -> None:
    report = agentgate.recheck(story.url, Witness(deny, name="other"))
    told = json.loads(json.dumps(report.to_json()))
    assert told["executed_now_denied"] == 3
    assert told["now_denied"][0]["refusal"]["now"]["outcome"] == "deny"
    assert told["verdict"] == "different"


@pytest.mark.parametrize("wrong", [{"kept": -1}, {"within": timedelta(0)}])
def test_a_bound_that_makes_no_sense_is_refused(story: Story, wrong: dict[str, int]) -> None:
    with pytest.raises(agentgate.Misuse, match="kept"):
        agentgate.recheck(story.url, Witness(allow), **wrong)  # type: ignore[arg-type]
