"""Two and a half thousand real specs registered, six thousand real calls proposed, every decision asked again."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import agentgate
from agentgate.canonical import Json, parse
from agentgate.tools.declared import undeclared
from support import realcalls
from support.realcalls import ALLOW_ALL, Line, Recorded, Witness

TOOLS, CALLS = 2_516, 5_959
# What the meta-schema itself refuses; calls of these carry the verdict `bad-schema`.
BROKEN = {
    "8f30a262341638ae": "/input_schema/properties/options/properties/issuer/type",
    "b8625c202b06fefd": "/input_schema/properties/limit/enum",
    "86d1418bc62768ae": "/input_schema/properties/limit/enum",
}
OUTCOMES = {
    "valid": ("READY", None),
    "invalid": ("REFUSED", "invalid_arguments"),
    "no-tool": ("REFUSED", "unknown_tool"),
    "bad-schema": ("REFUSED", "unknown_tool"),
}
STRICTER = """
version: 1
rules:
  - {name: everything, match: {}, outcome: allow}
  - {name: no-booking, match: {namespace: airline, tool: book_reservation}, outcome: deny}
  - name: long-queries
    match: {arguments: {type: object, properties: {query: {type: string, minLength: 20}}, required: [query]}}
    outcome: require_approval
"""


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder in memory where the host has one: a disk's syncs are not what is tested here."""
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def elsewhere(corpora: Path, memory: Path) -> Iterator["subprocess.Popen[str]"]:
    """A second process that records the same, with other hash seeds, while this one does."""
    folder = memory / "elsewhere"
    folder.mkdir()
    program = [sys.executable, realcalls.__file__, str(corpora), str(folder)]
    paths = f"{Path(realcalls.__file__).parents[1]}:{Path(agentgate.__file__).parents[1]}"
    process = subprocess.Popen(
        program,
        env={"PYTHONPATH": paths, "PYTHONHASHSEED": "7"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def recorded(corpora: Path, folder: Path, *, undeclared: realcalls.Undeclared) -> Recorded:
    folder.mkdir()
    return realcalls.record(corpora, folder, undeclared=undeclared)


@pytest.fixture(scope="module")
def allowed(corpora: Path, memory: Path, elsewhere: object) -> Recorded:
    assert elsewhere  # it runs meanwhile
    return recorded(corpora, memory / "allow", undeclared="allow")


@pytest.fixture(scope="module")
def strict(corpora: Path, memory: Path) -> Recorded:
    return recorded(corpora, memory / "deny", undeclared="deny")


def arguments_of(call: Line) -> Json:
    value: Json = parse(call["arguments_raw"]) if "arguments_raw" in call else call["arguments"]
    return value


def test_every_real_spec_is_on_record_but_the_truly_broken_ones(allowed: Recorded) -> None:
    assert {each: refusal.path for each, refusal in allowed.refused.items()} == BROKEN
    assert all(refusal.remedy for refusal in allowed.refused.values())
    assert len(allowed.specs) == TOOLS - len(BROKEN)
    named = {(spec.namespace, spec.name) for spec in allowed.specs.values()}
    assert len(named) == 2_208  # 143 names have several specs; each is registered in its turn, on purpose
    registered = realcalls.events_of(allowed.url, "spec_registered")
    assert {event["body"]["spec"] for event in registered} == {spec.digest.hex() for spec in allowed.specs.values()}


def test_no_real_call_raises(allowed: Recorded, strict: Recorded) -> None:
    assert [allowed.raised, strict.raised] == [[], []]
    assert [len(allowed.proposals), len(strict.proposals)] == [CALLS, CALLS]


def test_every_real_call_is_judged_as_two_other_validators_judged_it(allowed: Recorded) -> None:
    for call, proposal in allowed.proposals:
        reason = None if proposal.outcome is None else proposal.outcome.reason
        assert (proposal.state, reason) == OUTCOMES[call["verdict"]], call
    judged = Counter(call["verdict"] for call, _ in allowed.proposals)
    assert judged == {"valid": 5_447, "invalid": 183, "no-tool": 311, "bad-schema": 18}


def test_undeclared_arguments_are_refused_by_default_and_nothing_else_is(strict: Recorded) -> None:
    refused = {"valid": 0, "invalid": 0}
    for call, proposal in strict.proposals:
        if call["verdict"] not in refused:
            continue
        extra = undeclared(strict.specs[call["tool_id"]].checked_input, arguments_of(call))
        refused[call["verdict"]] += bool(extra)
        expected = ("REFUSED", "invalid_arguments") if extra else OUTCOMES[call["verdict"]]
        assert (proposal.state, proposal.outcome and proposal.outcome.reason) == expected, call
        if extra and call["verdict"] == "valid":
            assert isinstance(proposal.outcome, agentgate.Refused)
            details = proposal.outcome.error.details
            assert isinstance(details, list)
            assert [one["path"] for one in details if isinstance(one, dict)] == [f"/{name}" for name in extra]
    assert refused == {"valid": 138, "invalid": 11}


def test_counting_only_names_at_the_root_would_refuse_real_calls(strict: Recorded) -> None:
    wrongly = [
        call
        for call, proposal in strict.proposals
        if proposal.state == "READY" and not _named_at_the_root(strict.specs[call["tool_id"]], arguments_of(call))
    ]
    assert len(wrongly) == 24


def _named_at_the_root(spec: agentgate.ToolSpec, arguments: Json) -> bool:
    schema = spec.input_schema
    assert isinstance(schema, dict)
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    if not isinstance(arguments, dict) or schema.get("additionalProperties", False) is not False:
        return True
    return set(arguments) <= set(properties)


def test_a_second_process_hashes_every_event_the_same(allowed: Recorded, elsewhere: "subprocess.Popen[str]") -> None:
    there, complaints = elsewhere.communicate(timeout=300)
    assert elsewhere.returncode == 0, complaints
    assert there.split() == [realcalls.digest_of(allowed.url)]


def test_the_policy_that_decided_decides_the_same_again_on_the_very_same_requests(allowed: Recorded) -> None:
    again = Witness(ALLOW_ALL)
    report = agentgate.recheck(allowed.url, again)
    assert (report.verdict, report.rechecked, report.same_policy) == ("same", 5_447, 5_447)
    assert (report.differences, report.not_evaluated, report.reworded) == ((), (), 0)
    assert again.asked == allowed.policy.asked


def test_another_policy_differs_exactly_where_it_should(allowed: Recorded) -> None:
    expected = {}
    for call, proposal in allowed.proposals:
        arguments = arguments_of(call)
        query = arguments.get("query") if isinstance(arguments, dict) else None
        spec = allowed.specs.get(call["tool_id"])
        if proposal.state != "READY" or spec is None:
            continue
        if (spec.namespace, spec.name) == ("airline", "book_reservation"):
            expected[proposal.action] = "deny"
        elif isinstance(query, str) and len(query) >= 20:
            expected[proposal.action] = "require_approval"
    report = agentgate.recheck(allowed.url, Witness(STRICTER))
    assert {one.action: one.now.outcome for one in report.differences} == expected
    assert {one.verdict for one in report.differences} == {"tightened"}
    assert (report.tightened, report.same) == (len(expected), 5_447 - len(expected))
    assert Counter(expected.values()).keys() == {"deny", "require_approval"}
    assert report.executed == 0
