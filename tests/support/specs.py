"""A bare spec, and one that states every field."""

from datetime import timedelta
from typing import Any

from agentgate.tools.recovery import FunctionName, Keyed, Retry
from agentgate.tools.spec import ToolSpec

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "cents": {"type": "integer", "minimum": 1}},
    "required": ["account", "cents"],
}
FULL: dict[str, Any] = {
    "name": "refund",
    "namespace": "shop",
    "version": "3",
    "description": "Give money back.",
    "input_schema": SCHEMA,
    "output_schema": {"type": "object"},
    "risk": "external",
    "recovery": Keyed(hours=24),
    "timeout": timedelta(seconds=20),
    "max_output_bytes": 1_000,
    "resource": "account:{account}",
    "parallel": True,
    "permissions": ["refunds.write"],
    "tags": ["money"],
    "sensitive": ["/account"],
    "undeclared": "allow",
    "errors": "no_effect",
    "retry": Retry(attempts=3),
    "confirm": FunctionName(name="check", version="1"),
    "dedupe_window": timedelta(minutes=5),
}


def made(**changes: Any) -> ToolSpec:
    return ToolSpec(**{"name": "refund", "input_schema": SCHEMA, **changes})
