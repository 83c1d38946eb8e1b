"""Why an answer to a question would carry nothing as things stand: marks for people, which refuse and hide nothing.

What is stale at the moment need not stay so: another gate may have the tool, and a policy may be activated again. So
only a gate that meets the action ends it; a list says what it would find.
"""

from collections.abc import Iterator
from typing import Final

from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord
from agentgate.event import Event, decode
from agentgate.gate.answers import Reader
from agentgate.store import events, policies
from agentgate.tools.registry import ToolSet

SPEC_CHANGED: Final = "spec_changed"
TOOL_REMOVED: Final = "tool_removed"
POLICY_CHANGED: Final = "policy_changed"


class Stale:
    """Tell of questions, as a gate with these tools meets them, why their answers would carry nothing.

    Args:
        ledger: the ledger's id.
        tools: what the gate has; a gate that has none, as the command line's, goes by what was registered since.
    """

    def __init__(self, ledger: str, tools: ToolSet) -> None:
        self._ledger = ledger
        self._tools = tools
        self._has_tools = any(True for _ in tools)
        # The newest spec of each name, with when it was registered; read once, and only where there are no tools.
        self._registered: dict[tuple[str, str], tuple[str, int]] | None = None

    def __call__(self, reader: Reader, file: ActionFile, question: ApprovalRecord) -> tuple[str, ...]:
        """Return the marks of a question that is open, in stable words; none where its answer would carry."""
        return tuple(self._marks(reader, file.action, question))

    def _marks(self, reader: Reader, action: ActionRecord, question: ApprovalRecord) -> Iterator[str]:
        if self._has_tools:
            tool = self._tools.lookup(action.namespace, action.tool)
            if tool is None:
                yield TOOL_REMOVED
            elif tool.spec.digest != action.spec:
                yield SPEC_CHANGED
        elif self._is_outdated(reader, action, question):
            yield SPEC_CHANGED
        asked = _event(reader, question.run, question.asked_n)
        policy = None if asked is None else asked.body.get("policy")
        active = policies.governing(reader.connection, action.tenant)
        if policy is not None and active is not None and active[1].hex() != policy:
            yield POLICY_CHANGED

    def _is_outdated(self, reader: Reader, action: ActionRecord, question: ApprovalRecord) -> bool:
        if self._registered is None:
            self._registered = dict(_registered(reader, self._ledger))
        newest = self._registered.get((action.namespace, action.tool))
        if newest is None or action.spec is None:
            return False
        digest, at_us = newest
        return digest != action.spec.hex() and at_us >= question.asked_at_us


def _registered(reader: Reader, ledger: str) -> Iterator[tuple[tuple[str, str], tuple[str, int]]]:
    """Go through the ledger's own chain: which spec was registered under which name, oldest first."""
    start = 0
    while page := events.links(reader.connection, ledger, start=start):
        for link in page:
            event = decode(link.encoded)
            if event.type == "spec_registered":
                body = event.body
                yield (str(body["namespace"]), str(body["tool"])), (str(body["spec"]), event.at_us)
        start = page[-1].n + 1


def _event(reader: Reader, run: str, n: int) -> Event | None:
    link = events.link(reader.connection, run, n)
    return None if link is None else decode(link.encoded)
