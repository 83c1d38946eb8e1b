"""Rebuilding what a policy was asked from what was recorded, and nothing else.

Pure: what was read is handed in as a `Case`. Whatever of it is missing, or is not what the chain says, is a `Gap`:
a decision is asked about exactly as it was made, or not at all. What another answer means is
`agentgate.core.comparing`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentgate.action import Key
from agentgate.canonical import Json
from agentgate.core.draft import Payload
from agentgate.digests import SALT_BYTES, document_digest
from agentgate.errors import Damaged, NotCanonical, SpecRefused
from agentgate.event import Event
from agentgate.policy.decision import Decision
from agentgate.policy.request import PolicyRequest, View
from agentgate.tools.spec import ToolSpec, from_document

# Every form in which the input was recorded. A policy sees the arguments and the provenance alone; but where another
# form is gone without an `erased` event, the record was tampered with, and what is left of it proves nothing.
INPUTS = ("raw", "supplied", "arguments", "provenance")


class Gap(Exception):
    """A decision cannot be evaluated; ``reason`` is a stable word, with the name it is about after a colon."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a run's first event says of it."""

    run: str
    name: str
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A recorded decision with everything beside it that was there to be read.

    Args:
        event: what carries the decision; its chain was followed.
        proposed: the event that it names as its action's proposal; None where there is none of that position.
        payloads: of the proposal, by kind, as stored.
        facts: the ``facts`` payload of ``event``, as stored.
        spec: the spec's document, as stored: its kind and content.
    """

    event: Event
    proposed: Event | None
    payloads: Mapping[str, Payload]
    facts: Payload | None
    spec: tuple[str, bytes] | None


def is_decision(event: Event) -> bool:
    """Tell whether a policy's answer is recorded in an event."""
    return "decision" in event.body


def opened_by(event: Event) -> Opened | None:
    """Read a run's first event; None where it is another one."""
    if event.type != "run_opened":
        return None
    return Opened(run=event.run, name=str(event.body["name"]), tenant=str(event.body["tenant"]))


def proposal_n(event: Event) -> int | None:
    """Return the position of the proposal that an event is about; None where it names none before it."""
    if event.type == "proposed":
        return event.n
    n = event.body.get("proposed")
    return n if type(n) is int and n < event.n else None


def named_inputs(proposed: Event) -> tuple[str, ...]:
    """Return the kinds of input payloads that a proposal names."""
    return tuple(kind for kind in INPUTS if kind in _named(proposed))


def recorded(case: Case) -> Decision:
    """Read what was decided.

    Raises:
        Gap: it is no decision that this version knows.
    """
    try:
        return Decision.from_json(case.event.body["decision"])
    except Damaged as error:
        raise Gap("damaged:decision") from error


def rebuild(opened: Opened, case: Case, *, facts: tuple[str, ...]) -> PolicyRequest:
    """Rebuild the request that a policy was asked, byte for byte.

    Args:
        opened: the run.
        case: the decision.
        facts: the names of what the policy that is to be asked needs; it is shown these and no others, as in a gate.

    Raises:
        Gap: something of it is missing or was changed, or a fact was never recorded.
    """
    event, proposed = case.event, case.proposed
    if proposed is None or proposed.type != "proposed" or proposed.action != event.action:
        raise Gap("proposal_missing")
    if proposed.body.get("spec") != event.body["spec"]:  # an action has one spec from its proposal to its end
        raise Gap("damaged:spec")
    read = {kind: _checked(proposed, kind, case.payloads.get(kind)) for kind in named_inputs(proposed)}
    if "arguments" not in read:
        raise Gap("payload_missing:arguments")
    body: Mapping[str, Any] = proposed.body  # its shape was checked when it was read
    # Asked about as what it would have become: it was refused that place, and does not bear the key.
    displaced = "intended" in body and "intended_revision" in body
    return PolicyRequest(
        run=event.run,
        run_name=opened.name,
        action=str(event.action),
        tenant=opened.tenant,
        principal=body["principal"],
        namespace=body["namespace"],
        tool=body["tool"],
        spec=_spec(event, case.spec),
        arguments=_value(read["arguments"]),
        provenance=_value(read["provenance"]) if "provenance" in read else None,
        key=Key(**body["intended"] if displaced else body["key"]),
        revision=body["intended_revision"] if displaced else body["revision"],
        edited_by=body["edits"]["by"] if "edits" in body else None,
        view=_view(event),
        facts=_facts(case, facts),
        at_us=_asked_at(event),
    )


def _named(event: Event) -> Mapping[str, Json]:
    named = event.body["payloads"]
    assert type(named) is dict  # checked by the body's shape
    return named


def _checked(event: Event, kind: str, payload: Payload | None) -> Payload:
    """Return a payload that is what its event says."""
    if payload is None:
        raise Gap(f"payload_missing:{kind}")
    if payload.is_sealed:
        raise Gap(f"payload_sealed:{kind}")
    if len(payload.salt) != SALT_BYTES or payload.digest.hex() != _named(event)[kind]:
        raise Gap(f"payload_damaged:{kind}")
    return payload


def _value(payload: Payload) -> Json:
    try:
        return payload.value()
    except NotCanonical as error:
        raise Gap(f"payload_damaged:{payload.kind}") from error


def _spec(event: Event, stored: tuple[str, bytes] | None) -> ToolSpec:
    if stored is None:
        raise Gap("document_missing:spec")
    kind, content = stored
    if kind != "spec" or document_digest("spec", content).hex() != event.body["spec"]:
        raise Gap("document_damaged:spec")
    try:
        return from_document(content)
    except SpecRefused as error:
        raise Gap("spec_refused") from error


def _view(event: Event) -> View:
    try:
        return View.from_json(event.body["view"])
    except Damaged as error:
        raise Gap("damaged:view") from error


def _facts(case: Case, names: tuple[str, ...]) -> Mapping[str, Json]:
    known: Json = {}
    if "facts" in _named(case.event):
        known = _value(_checked(case.event, "facts", case.facts))
    if type(known) is not dict:
        raise Gap("payload_damaged:facts")
    missing = next((name for name in names if name not in known), None)
    if missing is not None:
        raise Gap(f"fact_not_recorded:{missing}")
    return {name: value for name, value in known.items() if name in names}


def _asked_at(event: Event) -> int:
    at_us = event.body["asked_at_us"]
    assert type(at_us) is int  # checked by the body's shape
    return at_us
