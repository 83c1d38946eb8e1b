"""Keeping an observation: the payload it becomes, and what a tenant recognises it by."""

from agentgate.core import recording
from agentgate.core.recording import Kept
from agentgate.core.records import ActionFile
from agentgate.core.sameness import outcome_fingerprint
from agentgate.gate.ledger import Ledger
from agentgate.observation import Observation


def kept(
    ledger: Ledger, key: bytes | None, file: ActionFile, observation: Observation, *, kind: str = "result"
) -> Kept:
    """Make an observation's payload and its outcome fingerprint."""
    content = recording.observed(observation)
    request = file.action.request
    outcome = None
    if key is not None and request is not None:
        outcome = outcome_fingerprint(key, request=request, observation=observation)
    return Kept(payload=ledger.payload(kind, content), outcome=outcome, size=len(content))
