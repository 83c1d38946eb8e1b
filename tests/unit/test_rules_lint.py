"""A rule that names what no tool here has is found before it silently matches nothing."""

import pytest

from agentgate.policy.linting import Finding, lint
from agentgate.tools.decorator import gated
from agentgate.tools.registry import ToolSet
from agentgate.tools.spec import ToolSpec
from support.asking import rules

REFUND = ToolSpec(
    name="refund",
    input_schema={"type": "object", "properties": {"account": {"type": "string"}, "cents": {"type": "integer"}}},
    tags=["money"],
)
SEND = ToolSpec(name="send", namespace="mail", input_schema={"type": "object", "additionalProperties": True})
TOOLS = ToolSet(gated(each, lambda **arguments: arguments) for each in (REFUND, SEND))


def found(match: str) -> list[tuple[str, str, str]]:
    findings = lint(rules(f"  - {{name: r, match: {match}, outcome: allow}}\n"), TOOLS)
    return [(finding.code, finding.path, finding.remedy) for finding in findings]


@pytest.mark.parametrize(
    "match",
    [
        "{}",
        "{tool: refund}",
        "{tool: 're*'}",
        "{tool: send, namespace: mail}",
        "{tool: '*', namespace: '*'}",
        "{namespace: mail}",
        "{tags: money}",
        "{tags: 'mon*'}",
        "{tool: refund, arguments: {properties: {cents: {maximum: 5}}, required: [account]}}",
        "{tool: send, namespace: mail, arguments: {properties: {anything: {}}}}",
        "{arguments: {properties: {cents: {maximum: 5}}}}",
    ],
)
def test_a_rule_of_names_that_exist_has_no_finding(match: str) -> None:
    assert found(match) == []


def test_a_rule_naming_an_unknown_tool_is_found() -> None:
    policy = rules("  - {name: ok, match: {}, outcome: allow}\n  - {name: r, match: {tool: refnd}, outcome: deny}\n")
    assert lint(policy, TOOLS) == (
        Finding(
            rule="r",
            path="/rules/1/match/tool",
            code="unknown_tool",
            problem="no tool here is named 'refnd'",
            remedy="did you mean 'refund'?",
        ),
    )


@pytest.mark.parametrize(
    ("match", "code", "key"),
    [
        ("{tool: send}", "unknown_tool", "tool"),
        ("{tool: refund, namespace: mail}", "unknown_tool", "tool"),
        ("{tool: [refund, rfund]}", "unknown_tool", "tool"),
        ("{tool: 'rx*'}", "unknown_tool", "tool"),
        ("{namespace: maill}", "unknown_namespace", "namespace"),
        ("{tags: mony}", "unknown_tag", "tags"),
        ("{tool: refund, arguments: {properties: {cent: {maximum: 5}}}}", "unknown_argument", "arguments"),
        ("{tool: refund, arguments: {required: [cent]}}", "unknown_argument", "arguments"),
    ],
)
def test_a_name_that_no_tool_has_is_found(match: str, code: str, key: str) -> None:
    assert [(what, path) for what, path, _ in found(match)] == [(code, f"/rules/0/match/{key}")]


def test_a_misspelt_argument_is_answered_with_the_tools_own() -> None:
    ((_, _, remedy),) = found("{tool: refund, arguments: {properties: {cent: {maximum: 5}}}}")
    assert remedy == "did you mean 'cents'?"


ASK = "  - {name: ask, match: {tool: 're*'}, outcome: require_approval, standing: true}\n"


@pytest.mark.parametrize(
    "other",
    [
        "match: {}, outcome: deny",
        "match: {tool: refund, namespace: ''}, outcome: abort",
        "match: {tags: money}, outcome: require_approval",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_rule_whose_standing_grants_never_answer_is_found(other: str, *, first: bool) -> None:
    others = f"  - {{name: other, {other}}}\n"
    (finding,) = lint(rules(others + ASK if first else ASK + others), TOOLS)
    assert (finding.rule, finding.code, finding.path) == ("ask", "useless_standing", f"/rules/{int(first)}/standing")
    assert finding.problem == "a standing grant never answers: 'other' asks or refuses whatever this rule matches"


@pytest.mark.parametrize(
    "other",
    [
        "match: {}, outcome: allow",
        "match: {tool: '*'}, outcome: require_approval, standing: true",
        "match: {tool: send}, outcome: deny",
        "match: {tenant: acme}, outcome: deny",
        "match: {principal: 'agent:*'}, outcome: deny",
        "match: {risk: destructive}, outcome: deny",
        "match: {arguments: {properties: {cents: {minimum: 5}}, required: [cents]}}, outcome: require_approval",
    ],
)
def test_a_rule_that_leaves_standing_grants_something_to_answer_is_not_found(other: str) -> None:
    assert not [one for one in lint(rules(f"{ASK}  - {{name: other, {other}}}\n"), TOOLS) if one.rule == "ask"]


def test_a_standing_rule_about_a_tool_that_nobody_has_is_found_by_its_tool_alone() -> None:
    stated = "  - {name: ask, match: {tool: refnd}, outcome: require_approval, standing: true}\n"
    found = lint(rules(f"{stated}  - {{name: no, match: {{}}, outcome: deny}}\n"), TOOLS)
    assert [(one.rule, one.code) for one in found] == [("ask", "unknown_tool")]
