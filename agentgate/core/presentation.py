"""What people are shown before they decide: plain text made from canonical bytes, the same for every surface.

Everything but printable ASCII is escaped, so that no control, bidi or invisible character reaches an eye or a
terminal; a long value is cut in the middle and says so, with its length and digest; the last line is the gate's.
"""

import hashlib
import json

from agentgate.approval import Requirement
from agentgate.canonical import Json, canonical
from agentgate.tools.sensitive import MARK

LONGEST = 400
_KEPT = 160


def present(
    *,
    tool: str,
    namespace: str,
    tenant: str,
    principal: str,
    run: str,
    action: bytes,
    key: str,
    revision: int,
    risk: str,
    arguments: Json,
    supplied: Json,
    undeclared: tuple[str, ...],
    requirement: Requirement,
    reasons: str,
) -> bytes:
    """Write the text that an approval is bound to.

    Args:
        tool: the tool's name.
        namespace: its server.
        tenant: the run's tenant.
        principal: on whose behalf.
        run: the caller's name of the run.
        action: the action digest, which the last line repeats.
        key: the key's text.
        revision: of the key.
        risk: what the tool's spec declares.
        arguments: exactly what would run, its sensitive values masked.
        supplied: what was sent, to mark what defaults filled in.
        undeclared: names of root arguments that the schema does not declare.
        requirement: who must agree.
        reasons: the policy's words.
    """
    lines = [
        f"tool       {_plain(tool)}" + (f" of {_plain(namespace)}" if namespace else ""),
        f"risk       {risk}",
        f"for        {_plain(principal)} in run {_plain(run)} of tenant {_plain(tenant)}",
        f"key        {_plain(key)}, revision {revision}",
        f"because    {_plain(reasons)}",
        f"approvers  {_who(requirement)}",
        "arguments",
        *_arguments(arguments, supplied, undeclared),
        f"agentgate: approving runs exactly this, once. action {action.hex()}",
    ]
    return "\n".join(lines).encode("ascii")


def _who(requirement: Requirement) -> str:
    roles = " or ".join(_plain(role) for role in requirement.roles) or "anybody allowed to vote"
    proposer = "" if requirement.proposer else ", not the proposer"
    signed = ", signed" if requirement.signed else ""
    duties = "".join(f"; obliged to {_plain(duty)}" for duty in requirement.obligations)
    return f"{requirement.quorum} of {roles}{proposer}{signed}{duties}"


def _arguments(arguments: Json, supplied: Json, undeclared: tuple[str, ...]) -> list[str]:
    if type(arguments) is not dict:
        return [f"  {_value(arguments)}"]
    given = supplied if type(supplied) is dict else {}
    lines = []
    for name in sorted(arguments):
        if name == MARK:  # they may be sensitive ones, misspelt: `agentgate.tools.sensitive` hides their names too
            lines.append(f"  {arguments[name]}: {MARK}")
            continue
        marks = [" (filled in by default)"] if name not in given else []
        marks += [" (not declared by the tool)"] if name in undeclared else []
        lines.append(f"  {_plain(name)} = {_value(arguments[name])}{''.join(marks)}")
    return lines or ["  none"]


def _plain(text: str) -> str:
    """Escape everything but printable ASCII, and the backslash that escapes."""
    return json.dumps(text)[1:-1].replace("\x7f", "\\u007f")


def _value(value: Json) -> str:
    if value == MARK:
        return MARK
    text = json.dumps(value, sort_keys=True).replace("\x7f", "\\u007f")
    if len(text) <= LONGEST:
        return text
    whole = canonical(value)
    digest = hashlib.sha256(whole).hexdigest()
    return f"{text[:_KEPT]} [cut: {len(whole)} bytes, sha256 {digest}] {text[-_KEPT:]}"
