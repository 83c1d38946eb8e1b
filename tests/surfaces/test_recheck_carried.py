"""Who carries a recheck, and what is told meanwhile, changes nothing of what is found."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import agentgate
from agentgate.core.findings import RecheckProgress
from support.rechecks import Witness, act, by_word, deny

RUNS, CALLS = 40, 3
RULES = """
version: 1
rules:
  - {name: everything, match: {}, outcome: allow}
  - {name: twice, match: {arguments: {type: object, properties: {times: {minimum: 2}}}}, outcome: deny}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold a ledger of many runs, and rules to ask."""
    made = tmp_path_factory.mktemp("carried")
    agentgate.migrate(f"sqlite:///{made}/agent.db")
    (made / "rules.yaml").write_text(RULES, "utf-8")
    with agentgate.Gate.open(f"sqlite:///{made}/agent.db", policy=made / "rules.yaml", tools=[act]) as gate:
        for run in range(RUNS):
            one = gate.run(f"run {run}", principal="agent:a")
            for times in range(CALLS):
                gate.propose(one, "act", {"do": "it", "times": times})
    (made / "stricter.yaml").write_text(RULES.replace("minimum: 2", "minimum: 1"), "utf-8")
    return made


@pytest.fixture(scope="module", params=["threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made = (
        ThreadPoolExecutor(2)
        if request.param == "threads"
        else ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    )
    with made:
        yield made


def test_whoever_carries_it_the_report_is_the_same(folder: Path, executor: Executor) -> None:
    url = f"sqlite:///{folder}/agent.db"
    alone = agentgate.recheck(url, folder / "stricter.yaml")
    assert (alone.runs, alone.rechecked, alone.tightened) == (RUNS, RUNS * CALLS, RUNS)
    assert agentgate.recheck(url, folder / "stricter.yaml", executor=executor) == alone


def test_a_function_that_its_module_names_is_carried_to_another_process(folder: Path, executor: Executor) -> None:
    url = f"sqlite:///{folder}/agent.db"
    report = agentgate.recheck(url, deny, run="run 7", executor=executor)
    assert (report.runs, report.rechecked, report.tightened) == (1, CALLS, CALLS - 1)


def test_progress_is_told_and_only_grows(folder: Path) -> None:
    told: list[RecheckProgress] = []
    report = agentgate.recheck(f"sqlite:///{folder}/agent.db", folder / "rules.yaml", on_progress=told.append)
    assert told == sorted(told, key=lambda one: (one.runs, one.decisions))
    assert (told[-1].runs, told[-1].decisions) == (report.runs, report.rechecked)


def test_what_is_told_of_progress_can_end_it(folder: Path) -> None:
    class EnoughError(Exception):
        pass

    def stop(progress: RecheckProgress) -> None:
        if progress.runs == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        agentgate.recheck(f"sqlite:///{folder}/agent.db", folder / "rules.yaml", on_progress=stop)


def test_a_run_that_grows_meanwhile_is_read_as_far_as_it_went(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    agentgate.migrate(url)
    facts = {"phase": lambda _: "", "on_call": lambda _: "ada"}
    with agentgate.Gate.open(url, policy=Witness(by_word), tools=[act], facts=facts) as gate:
        run = gate.run("r", principal="agent:a")
        for _ in range(250):  # more than a page
            gate.propose(run, "act", {"do": "allow"})

        def propose(_progress: RecheckProgress) -> None:
            gate.propose(run, "act", {"do": "allow"})

        report = agentgate.recheck(url, Witness(by_word), on_progress=propose)
    assert (report.verdict, report.rechecked) == ("same", 250)
    assert agentgate.recheck(url, Witness(by_word)).rechecked > 250


def test_a_policy_is_asked_while_no_transaction_is_open(tmp_path: Path) -> None:
    """A writer in DELETE mode would wait for a reader: the policy here is one, on the ledger it is asked about."""
    url = f"sqlite:///{tmp_path}/agent.db?journal=delete"
    agentgate.migrate(url)
    facts = {"phase": lambda _: "", "on_call": lambda _: "ada"}
    with agentgate.Gate.open(url, policy=Witness(by_word), tools=[act], facts=facts) as gate:
        run = gate.run("r", principal="agent:a")
        gate.propose(run, "act", {"do": "allow"})

        def writes(request: agentgate.PolicyRequest) -> agentgate.Decision:
            gate.propose(run, "act", {"do": "allow"})
            return by_word(request)

        report = agentgate.recheck(url, Witness(writes))
    assert report.verdict == "same"


def test_refusals_that_were_let_go_of_are_counted_all_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    agentgate.migrate(url)
    facts = {"phase": lambda _: "", "on_call": lambda _: "ada"}
    with agentgate.Gate.open(url, policy=Witness(by_word), tools=[act], facts=facts) as gate:
        run = gate.run("r", principal="agent:a")
        proposals = [gate.propose(run, "act", {"do": "allow"}) for _ in range(3)]
        for proposal in proposals:
            gate.execute(proposal)

    def deny_proposals(request: agentgate.PolicyRequest) -> agentgate.Decision:
        return agentgate.deny("no") if request.view.counters["proposed"] < 3 else agentgate.allow()

    report = agentgate.recheck(url, Witness(deny_proposals, name="other"), kept=2)
    assert report.executed_now_denied == 3
    assert [one.refusal and one.refusal.action for one in report.now_denied] == [None, proposals[1].action]
