"""Requests, clocks and rule files for tests that ask a policy; no database, no gate."""

from typing import Any

from agentgate.action import Key
from agentgate.policy.request import PolicyRequest, View
from agentgate.policy.rules import RulePolicy, parse_rules
from agentgate.tools.spec import ToolSpec


class Watch:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.at_us = 1_000_000

    def now_us(self) -> int:
        return self.at_us

    def monotonic_us(self) -> int:
        return self.at_us

    def random(self, size: int) -> bytes:
        return bytes(size)

    def sleep(self, span_us: int, *, wake: object = None) -> None:
        raise AssertionError(f"nobody sleeps by this clock: {span_us}, {wake}")


def spec(name: str = "refund", **fields: Any) -> ToolSpec:
    return ToolSpec(name=name, **{"input_schema": {"type": "object"}, "undeclared": "allow"} | fields)


def request(*, tool: ToolSpec | None = None, **fields: Any) -> PolicyRequest:
    """Return a request about ``tool``, else about a refund."""
    asked = tool or spec()
    usual: dict[str, Any] = {
        "run": "0197b6c2-0000-7000-8000-000000000001",
        "run_name": "ticket-1",
        "action": "0197b6c2-0000-7000-8000-000000000002",
        "tenant": "acme",
        "principal": "agent:support",
        "namespace": asked.namespace,
        "tool": asked.name,
        "spec": asked,
        "arguments": {"cents": 1250},
        "key": Key(source="caller", text="refund-1"),
        "revision": 1,
        "view": View(n=3),
        "at_us": 1_700_000_000_000_000,
    }
    return PolicyRequest(**usual | fields)


def rules(text: str) -> RulePolicy:
    """Return the policy of a rule file, given its list of rules."""
    return parse_rules(f"version: 1\nrules:\n{text}".encode())
