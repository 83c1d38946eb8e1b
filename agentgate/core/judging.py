"""What a policy was asked and what it said, ready to be recorded."""

from dataclasses import dataclass

from agentgate.canonical import Json
from agentgate.core.draft import Payload
from agentgate.core.presenting.shown import Previous
from agentgate.policy.decision import Decision
from agentgate.policy.identity import PolicyIdentity
from agentgate.policy.request import View
from agentgate.tools.validation import VALIDATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A decision with everything a recheck needs beside the action itself.

    Args:
        decision: what the policy said.
        identity: which policy it was.
        view: the run as the policy saw it.
        asked_at_us: the time it was told.
        facts: the ``facts`` payload, where it declared any.
        texts: the ``texts`` payload, where its reasons have words.
        previous: where it asks people, the last call of the tool that they approved; shown to them, and not recorded.
    """

    decision: Decision
    identity: PolicyIdentity
    view: View
    asked_at_us: int
    facts: Payload | None = None
    texts: Payload | None = None
    previous: Previous | None = None

    def fields(self) -> dict[str, Json]:
        """Return the part of an event's body that records it."""
        return {
            "decision": self.decision.to_json(),
            "policy": self.identity.digest.hex(),
            "engine": self.identity.to_json(),
            "shadow": [],
            "view": self.view.to_json(),
            "asked_at_us": self.asked_at_us,
        }

    def at_claim(self, spec: bytes | None) -> dict[str, Json]:
        """Return those fields with what was decided about, for an event that is no proposal."""
        assert spec is not None  # a policy is asked about registered tools alone
        return self.fields() | {"spec": spec.hex(), "validator": validator()}

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The payloads that go with those fields."""
        return tuple(payload for payload in (self.facts, self.texts) if payload is not None)


def words(decision: Decision) -> str:
    """Return a policy's own words, or its codes where it has none."""
    said = [reason.text or reason.code for reason in decision.reasons]
    return "; ".join(said) or decision.rule


def validator() -> dict[str, Json]:
    """Return which validator judged the arguments, as events record it."""
    return {"name": VALIDATOR[0], "version": VALIDATOR[1]}
