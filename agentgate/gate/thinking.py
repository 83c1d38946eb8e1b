"""Thinking a call through before any transaction: parse, complete, check, and ask the policy.

The caller's code (policy, fact providers) runs here and in the effect, nowhere else, and never while a
transaction is open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentgate.action import Key
from agentgate.canonical import Json, canonical, parse, pointer, snapshot
from agentgate.clock import new_id
from agentgate.core.draft import RECORDED_BOUNDS, Payload
from agentgate.core.judging import Judgement
from agentgate.core.proposing import Thought, invalid
from agentgate.core.records import RunRecord
from agentgate.core.sameness import request_fingerprint
from agentgate.core.veiling import veil_of
from agentgate.digests import document_digest, fingerprint
from agentgate.errors import NotCanonical
from agentgate.gate.before import last_approved
from agentgate.gate.ledger import Ledger
from agentgate.gate.pinning import Pin
from agentgate.gate.settings import Settings
from agentgate.observation import Error
from agentgate.policy.decision import MAX_TEXT, Decision
from agentgate.policy.evaluation import Policy, evaluate
from agentgate.policy.facts import FactProvider, gather
from agentgate.policy.request import PolicyRequest, View
from agentgate.tools.declared import undeclared
from agentgate.tools.defaults import complete
from agentgate.tools.registry import ToolSet
from agentgate.tools.resource import expand, parse_template
from agentgate.tools.sensitive import public_path, sensitive_values
from agentgate.tools.spec import ToolSpec
from agentgate.tools.validation import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a caller asked for: its names are checked, its arguments are as given.

    Args:
        namespace: the tool's server.
        tool: its name.
        arguments: a value, or JSON as text or bytes.
        principal: on whose behalf.
        key: the caller's key; None for a call that is its own intent.
        provenance: where the call came from, as the caller tells it.
        supersede: whether it may take a waiting action's place.
    """

    namespace: str
    tool: str
    arguments: object = field(repr=False)
    principal: str
    key: Key | None
    provenance: object = field(default=None, repr=False)
    supersede: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """What a gate thinks with.

    Args:
        ledger: for ids, salts and time.
        settings: bounds and time-outs.
        tools: what it knows.
        policy: who may say no.
        providers: who tells the policy its facts.
        own: the facts that the gate tells it from the ledger; where that cannot be had, nobody has denied anything.
        is_pinned: whether it claims with this policy only while it is the active one.
    """

    ledger: Ledger
    settings: Settings
    tools: ToolSet
    policy: Policy
    providers: Mapping[str, FactProvider]
    own: Mapping[str, FactProvider]
    is_pinned: bool = False

    @property
    def pinned(self) -> Pin | None:
        """What a claim compares with the active policy; None where the gate is not pinned."""
        return Pin(ledger=self.ledger.id, policy=self.policy.identity.digest) if self.is_pinned else None

    @property
    def documents(self) -> tuple[tuple[bytes, str, bytes], ...]:
        """What the policy is made of, as documents to be stored where an event names them."""
        contents = (content for _, content in self.policy.identity.documents)
        return tuple((document_digest("policy", content), "policy", content) for content in contents)

    def think(self, call: Intent, fingerprint_key: bytes | None) -> Thought:
        """Parse, complete and check a call; never raises for what is in it."""
        thought = self._named(call)
        try:
            thought = self._placed(thought, call)
            supplied = self._read(call.arguments)
        except NotCanonical as error:
            return self._refused(thought, call, _uncanonical(error, thought.spec))
        spec = thought.spec
        if spec is None:
            return self._refused(thought, call, self._unknown(call))
        try:
            completed = complete(spec.checked_input, supplied)
            content = canonical(completed)
            # From here on everything reads what the canonical bytes say, which defaults may have grown.
            completed = parse(content, bounds=self.settings.bounds)
        except NotCanonical as error:  # the defaults made it too large
            return self._refused(thought, call, _uncanonical(error, spec), supplied=canonical(supplied))
        extra = undeclared(spec.checked_input, completed)
        thought = replace(
            thought,
            arguments=completed,
            completed=True,
            supplied=supplied,
            undeclared=extra,
            payloads=thought.payloads + self._payloads(_raw(call.arguments), canonical(supplied), content),
        )
        error_ = _invalid(spec, completed, extra)
        if error_ is not None:
            return replace(invalid(thought), refusal=("invalid_arguments", error_))
        return self._fingerprinted(thought, fingerprint_key)

    def _named(self, call: Intent) -> Thought:
        known = self.tools.lookup(call.namespace, call.tool)
        id_ = new_id(self.ledger.clock)
        return Thought(
            id=id_,
            namespace=call.namespace,
            tool=call.tool,
            spec=None if known is None else known.spec,
            principal=call.principal,
            key=call.key or Key(source="own", text=id_),
        )

    def _placed(self, thought: Thought, call: Intent) -> Thought:
        """Keep where the call came from, whatever becomes of its arguments: the action is bound to it."""
        if call.provenance is None:
            return thought
        content = canonical(snapshot(call.provenance, bounds=self.settings.bounds))
        payloads = (self.ledger.payload("provenance", content),)
        return replace(thought, provenance=parse(content, bounds=RECORDED_BOUNDS), payloads=payloads)

    def _read(self, arguments: object) -> Json:
        if type(arguments) is str or type(arguments) is bytes:
            return parse(arguments, bounds=self.settings.bounds)
        return snapshot(arguments, bounds=self.settings.bounds)

    def _refused(self, thought: Thought, call: Intent, error: Error, *, supplied: bytes | None = None) -> Thought:
        """Refuse the input itself; what reached a spec is kept.

        Raw input that reached none is kept where it can be sealed, and is only measured where it cannot.
        """
        reason = "unknown_tool" if error.code == "unknown_tool" else "invalid_arguments"
        raw = _raw(call.arguments)
        kept = raw is not None and len(raw) <= self.settings.bounds.max_bytes
        kept = kept and (thought.spec is not None or self.ledger.sealing is not None)
        payloads = self._payloads(raw if kept else None, supplied, None)
        measured = len(raw) if raw is not None and not kept else None
        return replace(
            invalid(thought), refusal=(reason, error), payloads=thought.payloads + payloads, raw_bytes=measured
        )

    def _unknown(self, call: Intent) -> Error:
        near = list(self.tools.near(call.namespace, call.tool))
        return Error(
            code="unknown_tool",
            message="there is no tool of this name",
            details={"near": [*near]} if near else None,
            suggested_action="use one of the registered tools, by its exact name",
        )

    def _payloads(self, *forms: bytes | None) -> tuple[Payload, ...]:
        """Keep what was raw, supplied and completed, each only where it differs from the next (docs/format.md)."""
        following = (*forms[1:], None)
        return tuple(
            self.ledger.payload(kind, content)
            for kind, content, next_one in zip(("raw", "supplied", "arguments"), forms, following, strict=True)
            if content is not None and content != next_one
        )

    def _fingerprinted(self, thought: Thought, key: bytes | None) -> Thought:
        spec = thought.spec
        if key is None or spec is None:
            return thought
        resource = None
        if spec.resource is not None:
            template = parse_template(spec.resource, tool=spec.name)
            resource = fingerprint(key, "resource", expand(template, thought.arguments).encode())
        request = request_fingerprint(key, namespace=thought.namespace, tool=thought.tool, arguments=thought.arguments)
        return replace(thought, request=request, resource=resource)

    def judge(self, thought: Thought, run: RunRecord, view: View, *, revision: int) -> Judgement:
        """Ask the policy, with the facts it declares; whatever goes wrong denies."""
        assert thought.spec is not None  # only what passed every check is asked about
        clock = self.ledger.clock
        request = PolicyRequest(
            run=run.id,
            run_name=run.name,
            action=thought.id,
            tenant=run.tenant,
            principal=thought.principal,
            namespace=thought.namespace,
            tool=thought.tool,
            spec=thought.spec,
            arguments=thought.arguments,
            provenance=thought.provenance,
            key=thought.key,
            revision=revision,
            edited_by=None if thought.edits is None else thought.edits.by,
            view=view,
            facts={},
            at_us=clock.now_us(),
        )
        names = self.policy.facts
        gathered = gather(names, self.providers, request, within=self.settings.fact_within, clock=clock, own=self.own)
        facts = canonical(dict(gathered.values))
        told = parse(facts, bounds=RECORDED_BOUNDS)  # as a recheck reads them: members in canonical order
        assert type(told) is dict
        decision = gathered.refusal or evaluate(
            self.policy, replace(request, facts=told), within=self.settings.policy_within, clock=clock
        )
        decision = _veiled(decision, thought)
        texts = decision.texts()
        asks = decision.requirement is not None  # a call that nobody is asked about costs no look at earlier ones
        previous = (
            last_approved(self.ledger, thought.spec, tenant=run.tenant, principal=thought.principal, but=thought.id)
            if asks
            else None
        )
        return Judgement(
            decision=decision,
            identity=self.policy.identity,
            view=view,
            asked_at_us=request.at_us,
            facts=self.ledger.payload("facts", facts) if names else None,
            texts=self.ledger.payload("texts", canonical({**texts})) if texts else None,
            previous=previous,
        )


def _raw(arguments: object) -> bytes | None:
    """Return the bytes received, text as UTF-8; a lone surrogate is kept as what it is."""
    if type(arguments) is bytes:
        return arguments
    return arguments.encode("utf-8", "surrogatepass") if type(arguments) is str else None


def _veiled(decision: Decision, thought: Thought) -> Decision:
    """Take sensitive arguments out of a policy's words: it sees them, and whoever reads its reasons does not."""
    assert thought.spec is not None  # only what passed every check is asked about
    veil = veil_of({}, sensitive_values(thought.spec, thought.arguments))
    if not veil:
        return decision
    reasons = (replace(reason, text=veil.text(reason.text)[:MAX_TEXT]) for reason in decision.reasons)
    return replace(decision, reasons=tuple(reasons))


def _uncanonical(error: NotCanonical, spec: ToolSpec | None) -> Error:
    # What reached no spec is not repeated: the names in a path are as much the caller's as the values.
    path = "" if spec is None else public_path(spec, error.path)
    return Error(
        code="invalid_arguments",
        message=f"not a JSON value that can be bound: {error.reason} at {path or '/'}",
        details=[{"path": path, "keyword": error.reason, "expected": error.remedy}],
        suggested_action=error.remedy,
    )


def _invalid(spec: ToolSpec, arguments: Json, extra: tuple[str, ...]) -> Error | None:
    found: list[dict[str, Json]] = [
        {"path": public_path(spec, one.path), "keyword": one.keyword, "expected": one.expected}
        for one in check(spec.checked_input, arguments)
    ]
    if spec.undeclared == "deny":
        expected = "only arguments that the tool declares"
        paths = (public_path(spec, pointer(name)) for name in extra)
        found += [{"path": path, "keyword": "undeclared", "expected": expected} for path in paths]
    if not found:
        return None
    first = found[0]
    return Error(
        code="invalid_arguments",
        message=f"{first['path'] or '/'}: expected {first['expected']}"
        + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""),
        details=[*found],
        suggested_action="correct these arguments and call again",
    )
