"""What a rule file says that cannot be meant: a misspelt tool or argument matches nothing, silently.

A report for people and for CI: findings are values, and a policy with findings still decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agentgate.canonical import Json, pointer
from agentgate.policy.matching import Match, Names
from agentgate.policy.rulefields import closest
from agentgate.policy.rules import Rule, RulePolicy
from agentgate.tools.declared import undeclared
from agentgate.tools.registry import ToolSet
from agentgate.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing in a rule that is probably a mistake.

    Args:
        rule: the rule's name.
        path: JSON Pointer into the file.
        code: ``unknown_tool``, ``unknown_namespace``, ``unknown_tag``, ``unknown_argument`` or ``useless_standing``.
        problem: what is wrong, as a clause.
        remedy: what was probably meant.
    """

    rule: str
    path: str
    code: str
    problem: str
    remedy: str


def lint(policy: RulePolicy, toolset: ToolSet) -> tuple[Finding, ...]:
    """Compare a rule file with the tools it is to guard.

    Args:
        policy: as read.
        toolset: every tool of the gate.

    Returns:
        findings in the file's order; none means that every name in a rule is some tool's, and that a standing grant
        can answer wherever a rule lets it.
    """
    tools = tuple(tool.spec for tool in toolset)
    found: list[Finding] = []
    for index, rule in enumerate(policy.rules):
        path = pointer("rules", index, "match")
        found.extend(_unknown_names(rule, path, tools))
        found.extend(_unknown_arguments(rule, path, tools))
        found.extend(_useless_standing(rule, pointer("rules", index, "standing"), policy.rules, tools))
    return tuple(found)


def _unknown_names(rule: Rule, path: str, tools: tuple[ToolSpec, ...]) -> Iterator[Finding]:
    match = rule.match
    namespaces = {spec.namespace for spec in tools}
    inside = {spec.name for spec in tools if match.namespace is None or match.namespace.cover(spec.namespace)}
    tags = {tag for spec in tools for tag in spec.tags}
    if match.namespace is not None and match.tool is None:
        yield from _unknown(rule, match.namespace, namespaces, path, "namespace")
    if match.tool is not None:
        yield from _unknown(rule, match.tool, inside, path, "tool")
    if match.tags is not None:
        yield from _unknown(rule, match.tags, tags, path, "tags")


def _unknown(rule: Rule, names: Names, known: set[str], path: str, key: str) -> Iterator[Finding]:
    beginnings = (start for start in names.beginnings if not any(name.startswith(start) for name in known))
    for stated in (*sorted(names.whole - known), *(f"{start}*" for start in beginnings)):
        kind = key.removesuffix("s")
        yield Finding(
            rule=rule.name,
            path=path + pointer(key),
            code=f"unknown_{kind}",
            problem=f"no {kind} here is named {stated!r}",
            remedy=closest(stated, sorted(known)),
        )


def _unknown_arguments(rule: Rule, path: str, tools: tuple[ToolSpec, ...]) -> Iterator[Finding]:
    """Find arguments that a rule's schema names at its root and none of its tools declares."""
    matched = [spec for spec in tools if rule.match.covers_tool(spec.namespace, spec.name)]
    stated = _root_names(rule.arguments)
    if not matched or not stated:
        return
    unknown = set(stated)
    for spec in matched:
        unknown &= set(undeclared(spec.checked_input, dict.fromkeys(stated)))
    for name in sorted(unknown):
        yield Finding(
            rule=rule.name,
            path=path + pointer("arguments"),
            code="unknown_argument",
            problem=f"no tool of this rule has an argument {name!r}",
            remedy=closest(name, sorted({known for spec in matched for known in spec.checked_input.names})),
        )


def _root_names(schema: Json) -> list[str]:
    """Return the arguments that a schema names at its root, by ``properties`` and ``required``."""
    if not isinstance(schema, dict):
        return []
    properties, required = schema.get("properties"), schema.get("required")
    names = list(properties) if isinstance(properties, dict) else []
    names += [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return list(dict.fromkeys(names))


def _useless_standing(rule: Rule, path: str, rules: tuple[Rule, ...], tools: tuple[ToolSpec, ...]) -> Iterator[Finding]:
    """Find that a standing grant never answers, because others ask or refuse whatever the rule matches."""
    matched = [spec for spec in tools if rule.standing and _covers(rule.match, spec)]
    stricter = [one for one in rules if one.decision.outcome != "allow" and not one.standing]
    found = [next((one for one in stricter if _always(one.match, rule.match, spec)), None) for spec in matched]
    if not found or None in found:
        return
    names = ", ".join(repr(name) for name in dict.fromkeys(one.name for one in found if one is not None))
    yield Finding(
        rule=rule.name,
        path=path,
        code="useless_standing",
        problem=f"a standing grant never answers: {names} asks or refuses whatever this rule matches",
        remedy="leave standing out, or narrow what those match",
    )


def _covers(match: Match, spec: ToolSpec) -> bool:
    """Tell whether a rule can match a tool's calls."""
    return (
        match.covers_tool(spec.namespace, spec.name)
        and (match.risk is None or spec.risk in match.risk)
        and (match.tags is None or match.tags.cover_any(spec.tags))
    )


def _always(other: Match, match: Match, spec: ToolSpec) -> bool:
    """Tell whether another rule matches every call of a tool that the rule matches."""
    return (
        _covers(other, spec)
        and other.arguments is None
        and other.tenant in (None, match.tenant)
        and other.principal in (None, match.principal)
    )
