"""Rules decide by what they match, the strictest wins, and a file that says anything unknown is refused."""

import subprocess
import sys
import timeit
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from agentgate.approval import Requirement
from agentgate.errors import PolicyRefused
from agentgate.policy.decision import Decision, Reason, Reserve
from agentgate.policy.evaluation import Policy, evaluate
from agentgate.policy.loading import load_policy
from agentgate.policy.rules import RulePolicy, parse_rules, read_rules
from support.asking import Watch, request, rules, spec

DEMO = """\
version: 1
rules:
  - name: reading-is-free
    match: {risk: read_only}
    outcome: allow
  - name: small-refunds
    match:
      tool: refund
      arguments: {properties: {cents: {type: integer, maximum: 5000}}, required: [cents]}
    outcome: allow
    reserves:
      - {account: refunds, amount: 1}
  - name: large-refunds
    match:
      tool: refund
      arguments: {properties: {cents: {type: integer, minimum: 5001}}, required: [cents]}
    outcome: require_approval
    reason: large_refund
    text: A refund over 50 needs two people of finance.
    requirement: {quorum: 2, roles: [finance], signed: true, obligations: [call_back]}
    obligations: [notify_owner]
  - name: never-in-the-sandbox
    match: {tenant: sandbox, tags: [money, "pii*"]}
    outcome: deny
  - name: stop-the-intern
    match: {principal: "agent:intern*", risk: [destructive, credential]}
    outcome: abort
    reason: out_of_bounds
"""


@pytest.fixture(scope="module")
def demo() -> RulePolicy:
    return parse_rules(DEMO.encode())


def refusal(text: str) -> PolicyRefused:
    with pytest.raises(PolicyRefused) as caught:
        parse_rules(text.encode(), source="demo.yaml")
    return caught.value


def refused_rule(text: str) -> PolicyRefused:
    return refusal(f"version: 1\nrules:\n  - {text}\n")


def outcome(policy: RulePolicy, **fields: Any) -> tuple[str, str]:
    decision = policy.decide(request(**fields))
    return decision.outcome, decision.rule


# --- deciding -----------------------------------------------------------------------------------


def test_what_no_rule_allows_is_denied(demo: RulePolicy) -> None:
    assert demo.decide(request(tool=spec("other"))) == Decision(
        outcome="deny", rule="default", reasons=(Reason(code="no_rule_matched"),)
    )
    assert outcome(rules("  []"), tool=spec(risk="read_only")) == ("deny", "default")


def test_a_rule_says_all_that_its_file_says(demo: RulePolicy) -> None:
    assert demo.decide(request(arguments={"cents": 5001})) == Decision(
        outcome="require_approval",
        rule="large-refunds",
        reasons=(Reason(code="large_refund", text="A refund over 50 needs two people of finance."),),
        requirement=Requirement(quorum=2, roles=("finance",), signed=True, obligations=("call_back",)),
        obligations=("notify_owner",),
    )
    small = demo.decide(request(arguments={"cents": 5000}))
    assert (small.outcome, small.reserves) == ("allow", (Reserve(account="refunds", amount=1),))


def test_a_rule_without_a_reason_gives_its_name_unless_it_allows(demo: RulePolicy) -> None:
    denied = demo.decide(request(tenant="sandbox", tool=spec(tags=["money"])))
    assert denied.reasons == (Reason(code="never-in-the-sandbox"),)
    assert demo.decide(request(tool=spec("x", risk="read_only"))).reasons == ()


def test_an_abort_outdoes_every_other_rule(demo: RulePolicy) -> None:
    tool = spec(risk="destructive", tags=["pii.address"])
    asked: dict[str, Any] = {"tool": tool, "tenant": "sandbox", "principal": "agent:intern-7"}

    assert outcome(demo, **asked, arguments={"cents": 1}) == ("abort", "stop-the-intern")
    assert outcome(demo, **asked | {"principal": "agent:x"}) == ("deny", "never-in-the-sandbox")


def test_the_order_of_rules_does_not_matter() -> None:
    said = [
        "  - {name: a, match: {}, outcome: allow, reserves: [{account: money, amount: 2}]}\n",
        "  - {name: b, match: {}, outcome: require_approval, requirement: {quorum: 2}}\n",
        "  - {name: c, match: {tool: refund}, outcome: deny}\n",
    ]
    for order in permutations(said):
        assert outcome(rules("".join(order))) == ("deny", "c")
        assert outcome(rules("".join(order)), tool=spec("other")) == ("require_approval", "b")


MATCHES: list[tuple[str, dict[str, Any], bool]] = [
    ("{}", {}, True),
    ("{tool: refund}", {}, True),
    ("{tool: Refund}", {}, False),
    ("{tool: [send, refund]}", {}, True),
    ("{tool: 're*'}", {}, True),
    ("{tool: 'refund*'}", {}, True),
    ("{tool: '*'}", {}, True),
    ("{tool: refunds}", {}, False),
    ("{tool: refund}", {"tool": spec(namespace="mcp")}, False),
    ("{tool: '*'}", {"tool": spec(namespace="mcp")}, False),
    ("{tool: refund, namespace: mcp}", {"tool": spec(namespace="mcp")}, True),
    ("{tool: refund, namespace: 'm*'}", {"tool": spec(namespace="mcp")}, True),
    ("{tool: refund, namespace: ['', mcp]}", {}, True),
    ("{namespace: mcp}", {"tool": spec(namespace="mcp")}, True),
    ("{namespace: mcp}", {}, False),
    ("{namespace: ''}", {}, True),
    ("{risk: external}", {}, True),
    ("{risk: [read_only, destructive]}", {}, False),
    ("{risk: read_only}", {"tool": spec(risk="read_only")}, True),
    ("{tags: money}", {}, False),
    ("{tags: money}", {"tool": spec(tags=["a", "money"])}, True),
    ("{tags: ['x', 'mon*']}", {"tool": spec(tags=["a", "money"])}, True),
    ("{tenant: acme}", {}, True),
    ("{tenant: 'ac*'}", {"tenant": "beta"}, False),
    ("{principal: 'agent:*'}", {}, True),
    ("{principal: 'user:*'}", {}, False),
    ("{tenant: acme, principal: nobody}", {}, False),
    ("{arguments: {properties: {cents: {const: 1250}}}}", {}, True),
    ("{arguments: {properties: {cents: {const: 1251}}}}", {}, False),
    ("{arguments: {properties: {to: {const: a}}}}", {}, True),
    ("{arguments: {required: [to]}}", {}, False),
    ("{arguments: {type: array}}", {"arguments": [1]}, True),
    ("{arguments: {type: 'null'}}", {"arguments": None}, True),
    ("{arguments: {properties: {to: {pattern: '@acme\\.test$'}}}}", {"arguments": {"to": "x@acme.test"}}, True),
    ("{arguments: {properties: {to: {pattern: '@acme\\.test$'}}}}", {"arguments": {"to": "x@acme.test\n"}}, False),
]


@pytest.mark.parametrize(("match", "fields", "expected"), MATCHES)
def test_a_rule_matches_when_all_that_it_names_holds(match: str, fields: Any, expected: object) -> None:
    policy = rules(f"  - {{name: r, match: {match}, outcome: allow}}\n")
    assert outcome(policy, **fields) == (("allow", "r") if expected else ("deny", "default"))


def test_arguments_that_cannot_be_judged_do_not_slip_past_a_rule_that_denies() -> None:
    schema = "{properties: {list: {items: {properties: {a: {minimum: 0}}}}}}"
    policy = rules(
        "  - {name: all, match: {}, outcome: allow}\n"
        f"  - {{name: no, match: {{arguments: {schema}}}, outcome: deny}}\n"
    )
    hostile = request(arguments={"list": [{"a": index} for index in range(9_000)]})

    decision = policy.decide(hostile)
    assert (decision.outcome, decision.rule, decision.reasons[0].code) == ("deny", "no", "arguments_unchecked")


def test_a_rule_policy_is_asked_like_any_other(demo: RulePolicy) -> None:
    assert isinstance(demo, Policy)
    watch = Watch()
    assert evaluate(demo, request(), within=timedelta(seconds=1), clock=watch).rule == "small-refunds"


def test_ten_rules_are_decided_within_a_fraction_of_a_millisecond() -> None:
    text = "".join(
        f"  - {{name: r{index}, match: {{tool: [t{index}, 'x{index}*'], tags: a{index}}}, outcome: deny}}\n"
        for index in range(9)
    )
    policy = rules(text + "  - {name: last, match: {arguments: {required: [cents]}}, outcome: allow}\n")
    asked = request()
    best = min(timeit.repeat(lambda: policy.decide(asked), number=50, repeat=20)) / 50
    assert policy.decide(asked).rule == "last"
    assert best < 0.000_5  # seen: 0.000_03; the bound only catches a change of kind


# --- identity -----------------------------------------------------------------------------------


def test_the_identity_is_the_files_content_and_not_its_name(tmp_path: Path) -> None:
    for name, content in (("a.yaml", DEMO), ("b.yml", DEMO), ("c.yaml", DEMO + "# a comment\n")):
        (tmp_path / name).write_text(content)
    first, second, third = (read_rules(tmp_path / name) for name in ("a.yaml", "b.yml", "c.yaml"))

    assert (first.identity.kind, first.identity.engine) == ("closed", "agentgate.rules")
    assert first.identity == second.identity == parse_rules(DEMO.encode()).identity
    assert first.identity.digest != third.identity.digest
    assert first.identity.documents == (("rules", DEMO.encode()),)


# --- refused at load ------------------------------------------------------------------------------


def test_a_misspelt_key_is_refused_with_its_file_place_line_and_a_remedy() -> None:
    error = refusal(DEMO.replace("tool: refund\n", "tol: refund\n", 1))

    assert (error.source, error.path) == ("demo.yaml", "/rules/1/match/tol")
    assert error.problem == "line 8: an unknown key 'tol'"
    assert error.remedy == "did you mean 'tool'?"
    assert str(error) == "demo.yaml at /rules/1/match/tol: line 8: an unknown key 'tol'; did you mean 'tool'?"


REFUSED: list[tuple[str, str]] = [
    ("[]", "/rules/0"),
    ("{name: r, match: {}, outcome: allow, then: x}", "/rules/0/then"),
    ("{match: {}, outcome: allow}", "/rules/0"),
    ("{name: r, outcome: allow}", "/rules/0"),
    ("{name: r, match: {}}", "/rules/0"),
    ("{name: r, match: , outcome: allow}", "/rules/0/match"),
    ("{name: Two words, match: {}, outcome: allow}", "/rules/0/name"),
    ("{name: 7, match: {}, outcome: allow}", "/rules/0/name"),
    ("{name: gate, match: {}, outcome: allow}", "/rules/0"),
    ("{name: default, match: {}, outcome: allow}", "/rules/0"),
    ("{name: r, match: {}, outcome: alow}", "/rules/0/outcome"),
    ("{name: r, match: {}, outcome: true}", "/rules/0/outcome"),
    ("{name: r, match: {}, outcome: [allow]}", "/rules/0/outcome"),
    ("{name: r, match: {tool: []}, outcome: allow}", "/rules/0/match/tool"),
    ("{name: r, match: {tool: [a, 1]}, outcome: allow}", "/rules/0/match/tool/1"),
    ("{name: r, match: {tool: {a: b}}, outcome: allow}", "/rules/0/match/tool"),
    ("{name: r, match: {tool: 'a*b'}, outcome: allow}", "/rules/0/match/tool"),
    ("{name: r, match: {tool: '*b'}, outcome: allow}", "/rules/0/match/tool"),
    ("{name: r, match: {tool: 'a**'}, outcome: allow}", "/rules/0/match/tool"),
    ("{name: r, match: {risk: readonly}, outcome: allow}", "/rules/0/match/risk"),
    ("{name: r, match: {risk: [external, readonly]}, outcome: allow}", "/rules/0/match/risk/1"),
    ("{name: r, match: {risk: '*'}, outcome: allow}", "/rules/0/match/risk"),
    ("{name: r, match: {arguments: true}, outcome: allow}", "/rules/0/match/arguments"),
    ("{name: r, match: {arguments: {type: integr}}, outcome: allow}", "/rules/0/match/arguments/type"),
    ("{name: r, match: {arguments: {pattern: '(?<=a)b'}}, outcome: allow}", "/rules/0/match/arguments/pattern"),
    ("{name: r, match: {}, outcome: allow, reason: Not A Word}", "/rules/0/reason"),
    ("{name: r, match: {}, outcome: deny, text: 5}", "/rules/0/text"),
    ("{name: r, match: {}, outcome: allow, requirement: {}}", "/rules/0/requirement"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {quorm: 2}}", "/rules/0/requirement/quorm"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {quorum: 0}}", "/rules/0/requirement/quorum"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {quorum: true}}", "/rules/0/requirement/quorum"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {quorum: 1.5}}", "/rules/0/requirement/quorum"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {signed: yes}}", "/rules/0/requirement/signed"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {roles: []}}", "/rules/0/requirement/roles"),
    ("{name: r, match: {}, outcome: require_approval, requirement: {roles: [1]}}", "/rules/0/requirement/roles/0"),
    ("{name: r, match: {}, outcome: require_approval, requirement: 2}", "/rules/0/requirement"),
    ("{name: r, match: {}, outcome: deny, reserves: [{account: a, amount: 1}]}", "/rules/0/reserves"),
    ("{name: r, match: {}, outcome: allow, reserves: {account: a, amount: 1}}", "/rules/0/reserves"),
    ("{name: r, match: {}, outcome: allow, reserves: [{account: a}]}", "/rules/0/reserves/0"),
    ("{name: r, match: {}, outcome: allow, reserves: [{account: a, amount: -1}]}", "/rules/0/reserves/0/amount"),
    (
        "{name: r, match: {}, outcome: allow, reserves: [{account: a, amount: 1}, {account: a, amount: 1}]}",
        "/rules/0/reserves/1/account",
    ),
    ("{name: r, match: {}, outcome: allow, obligations: [Do It]}", "/rules/0/obligations/0"),
]


@pytest.mark.parametrize(("rule", "path"), REFUSED)
def test_a_rule_that_could_be_misread_is_refused_where_it_stands(rule: str, path: str) -> None:
    error = refused_rule(rule)
    assert error.path == path
    assert error.problem.startswith("line 3: ")
    assert error.remedy


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[]", ""),
        ("rules: []", ""),
        ("version: 1", ""),
        ("version: 2\nrules: []", "/version"),
        ("version: '1'\nrules: []", "/version"),
        ("version: true\nrules: []", "/version"),
        ("version: 1\nrules: {}", "/rules"),
        ("version: 1\nrules:", "/rules"),
        ("version: 1\nrules: []\nrule: []", "/rule"),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, path: str) -> None:
    assert refusal(text).path == path


def test_a_name_that_stands_twice_is_refused() -> None:
    error = refusal(DEMO + "  - {name: small-refunds, match: {}, outcome: allow}\n")
    assert error.path == "/rules/5"


# --- loading --------------------------------------------------------------------------------------


def by_function(_request: object) -> Decision:
    return Decision(outcome="allow", rule="r")


def test_a_policy_is_loaded_from_a_file_a_function_or_itself(tmp_path: Path, demo: RulePolicy) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(DEMO)

    assert load_policy(path).identity == load_policy(str(path)).identity == demo.identity
    assert load_policy(by_function).identity.kind == "open"
    assert load_policy(demo) is demo


class NoIdentity:
    identity = "v1"
    facts = ()

    def decide(self, _request: object) -> None: ...


class OneFact(NoIdentity):
    identity = parse_rules(DEMO.encode()).identity  # type: ignore[assignment]
    facts = "freeze"  # type: ignore[assignment]


@pytest.mark.parametrize(("source", "path"), [(3, ""), (NoIdentity(), "/identity"), (OneFact(), "/facts")])
def test_what_is_no_policy_is_refused(source: Any, path: str) -> None:
    with pytest.raises(PolicyRefused) as caught:
        load_policy(source)
    assert caught.value.path == path


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyRefused) as caught:
        read_rules(tmp_path / "none.yaml")
    assert caught.value.source == str(tmp_path / "none.yaml")


def test_the_yaml_parser_is_imported_by_who_reads_a_file_alone() -> None:
    code = "import sys, agentgate.policy.loading; sys.exit('ruamel' in sys.modules or 'difflib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
