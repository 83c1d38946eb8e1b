"""What an event binds, recomputed: digests of actions, questions, votes and policies, payloads, fingerprints.

Each function is given an event and what is known of its surroundings, and yields what does not agree, as a kind of
`agentgate.core.verification.KINDS` with a sentence that holds no value of the record.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from agentgate.action import Key, action_digest
from agentgate.approval import Requirement, approval_digest, requirement_digest, vote_digest
from agentgate.canonical import Json, canonical, parse
from agentgate.core.draft import RECORDED_BOUNDS
from agentgate.core.questions import maybe_bytes
from agentgate.core.records import ActionRecord
from agentgate.digests import PAYLOAD_KINDS, SALT_BYTES, digest, fingerprint, payload_digest
from agentgate.errors import Damaged, NotCanonical, NotPossible, Sealed, SpecRefused
from agentgate.event import Event
from agentgate.sealing import OVERHEAD, SealingKeys, is_key_id, open_sealed
from agentgate.tools.resource import expand, parse_template

Finding: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A payload as it is stored beside an event; one that was opened is as if it had never been sealed.

    Args:
        salt: NULL where it lies inside a sealed text.
        content: the bytes, or the sealed text.
        sealed_by: the key that seals it still.
        was_sealed: whether it lies sealed in the database.
    """

    salt: bytes | None = field(repr=False)
    content: bytes = field(repr=False)
    sealed_by: str | None
    was_sealed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecSaid:
    """What verification needs of a spec: whose it is, what it locks, and how long its requests are deduped."""

    namespace: str
    name: str
    resource: str | None
    parallel: bool
    dedupe_us: int | None = None
    sensitive: bool = False


def read_spec(content: bytes) -> SpecSaid | None:
    """Read a spec's document as far as verification needs it; None where it is none."""
    try:
        said = parse(content, bounds=RECORDED_BOUNDS)
    except NotCanonical:
        return None
    if type(said) is not dict:
        return None
    namespace, name, resource = said.get("namespace"), said.get("name"), said.get("resource")
    parallel, dedupe_us = said.get("parallel"), said.get("dedupe_window_us")
    if type(namespace) is not str or type(name) is not str or type(parallel) is not bool:
        return None
    if (resource is not None and type(resource) is not str) or (dedupe_us is not None and type(dedupe_us) is not int):
        return None
    sensitive = bool(said.get("sensitive"))
    return SpecSaid(
        namespace=namespace,
        name=name,
        resource=resource,
        parallel=parallel,
        dedupe_us=dedupe_us,
        sensitive=sensitive,
    )


def named_payloads(event: Event) -> Mapping[str, str]:
    """Return the payloads that an event names: kind to digest in hex."""
    named: Any = event.body.get("payloads", {})
    return dict(named)


def named_documents(event: Event) -> Iterator[tuple[str, str]]:
    """Yield the documents that an event names: (kind, digest in hex)."""
    body: Mapping[str, Any] = event.body
    if "spec" in body:
        yield "spec", body["spec"]
    if "engine" in body:
        yield from (("policy", document["document"]) for document in body["engine"]["documents"])


def check_payloads(event: Event, found: Mapping[str, Beside]) -> Iterator[Finding]:
    """Compare the payloads beside an event with those it names."""
    named = named_payloads(event)
    for kind, expected in named.items():
        beside = found.get(kind)
        if beside is None:
            yield "payload", f"its {kind} is missing"
        elif beside.sealed_by is not None:
            if not _may_be_sealed(beside):
                yield "payload", f"its {kind} is no sealed text, was changed, or is sealed by another key than it says"
        elif beside.salt is None or len(beside.salt) != SALT_BYTES:
            yield "payload", f"its {kind} has no salt of {SALT_BYTES} bytes"
        elif payload_digest(kind, beside.salt, beside.content).hex() != expected:
            yield "payload", f"its {kind} is not what the event names"
    if event.type == "succeeded" and "result" in found and _size(found["result"]) != event.body["result_bytes"]:
        yield "payload", "its result has another length than the event says"
    for kind in found:
        if kind not in named:
            told = kind if kind in PAYLOAD_KINDS else "payload of an unknown kind"
            yield "payload", f"a {told} lies beside it that it does not name"


def open_payloads(event: Event, found: Mapping[str, Beside], sealing: SealingKeys | None) -> Mapping[str, Beside]:
    """Open what lies sealed beside an event, as far as the keys are there.

    What is sealed by another key stays sealed; what is no sealed text, or was changed, stays as one that no key opens.
    """
    if not any(beside.sealed_by is not None for beside in found.values()):
        return found
    named = named_payloads(event)
    return {kind: _opened(kind, beside, named.get(kind), sealing) for kind, beside in found.items()}


def _opened(kind: str, beside: Beside, expected: str | None, sealing: SealingKeys | None) -> Beside:
    if beside.sealed_by is None:
        return beside
    if beside.salt is not None or expected is None or kind not in PAYLOAD_KINDS:
        return replace(beside, was_sealed=True, content=b"")
    try:
        digest = bytes.fromhex(expected)
        salt, content = open_sealed(sealing, kind, beside.content, digest=digest, by=beside.sealed_by)
    except Sealed:
        return replace(beside, was_sealed=True)
    except Damaged:
        return replace(beside, was_sealed=True, content=b"")
    return Beside(salt=salt, content=content, sealed_by=None, was_sealed=True)


def legible(found: Mapping[str, Beside]) -> Mapping[str, Beside]:
    """Return the payloads that are not sealed any more: those whose bytes can be compared."""
    return {kind: beside for kind, beside in found.items() if beside.sealed_by is None}


def _may_be_sealed(beside: Beside) -> bool:
    """Tell whether this is a text that some key could open; one that cannot be was emptied by `open_payloads`."""
    return beside.salt is None and is_key_id(beside.sealed_by) and len(beside.content) >= OVERHEAD


def _size(beside: Beside) -> int:
    return len(beside.content) - (OVERHEAD if beside.sealed_by is not None else 0)


def check_sealed(found: Mapping[str, Beside], spec: SpecSaid | None) -> Iterator[Finding]:
    """Check that what must be sealed is, and that nothing hides behind a seal that nobody asked for.

    Args:
        found: the payloads beside an event about an action.
        spec: the action's; None where it has none, or it is not stored: then nothing is known of it.
    """
    for kind, beside in found.items() if spec is not None else ():
        if spec is not None and spec.sensitive and not beside.was_sealed:
            yield "payload", f"its {kind} lies there unsealed, and its tool has sensitive arguments"
        elif spec is not None and not spec.sensitive and kind != "raw" and beside.was_sealed:
            yield "payload", f"its {kind} is sealed, and its tool has no sensitive arguments"


def check_said(event: Event, *, ledger: str) -> Iterator[Finding]:
    """Recompute what an event binds by itself: the policy's identity, a question, a vote."""
    body: Mapping[str, Any] = event.body
    if "engine" in body:
        yield from _check_policy(body)
    asked = body.get("approval")
    if type(asked) is dict:
        yield from _check_question(body, asked, ledger)
    if event.type == "voted":
        vote = vote_digest(
            approval=bytes.fromhex(body["shown"]),
            verdict=body["verdict"],
            approver=body["approver"],
            key=maybe_bytes(body.get("key")),
            nonce=bytes.fromhex(body["nonce"]),
        )
        if vote.hex() != body["vote"]:
            yield "digest", "the vote digest is not made of the vote"


def _check_policy(body: Mapping[str, Any]) -> Iterator[Finding]:
    engine = body["engine"]
    bound: dict[str, Json] = {
        "kind": engine["kind"],
        "engine": engine["name"],
        "engine_version": engine["version"],
        "documents": engine["documents"],
    }
    if digest("policy", bound).hex() != body["policy"]:
        yield "digest", "the policy's identity is not made of its engine and documents"


def _check_question(body: Mapping[str, Any], asked: Mapping[str, Any], ledger: str) -> Iterator[Finding]:
    bound = approval_digest(
        ledger=ledger,
        id=asked["id"],
        requirement=bytes.fromhex(asked["requirement"]),
        presentation=bytes.fromhex(asked["presentation"]),
        expires_at_us=asked["expires_at_us"],
    )
    if bound.hex() != asked["digest"]:
        yield "digest", "the approval digest is not made of the question"
    if body["payloads"].get("presentation") != asked["presentation"]:
        yield "digest", "the question binds another presentation than the one beside it"


def check_action(event: Event, action: ActionRecord, *, ledger: str) -> Iterator[Finding]:
    """Recompute what an event binds of its action.

    Args:
        event: about the action.
        action: as the event leaves it.
        ledger: the ledger's id.
    """
    body: Mapping[str, Any] = event.body
    if event.type == "proposed" and _proposed_digest(event, action, ledger) != action.digest:
        yield "digest", "the action digest is not made of what was proposed"
    if event.type == "started" and body["digest"] != action.digest.hex():
        yield "digest", "it starts another action than the one proposed"
    if "spec" in body and maybe_bytes(body["spec"]) != action.spec:
        yield "digest", "it was decided about another spec than the one proposed"
    if event.type in {"proposed", "held"} and "approval" in body:
        required = body.get("decision", {}).get("requirement")
        if required is None or not _is_bound(required, body, action):
            yield "digest", "the requirement digest is not made of what the policy asked for"
    if event.type == "question_asked" and not _is_bound(body["requirement"], body, action):
        yield "digest", "the requirement digest is not made of who must agree"


def _is_bound(required: Any, body: Mapping[str, Any], action: ActionRecord) -> bool:
    """Tell whether a question binds who must agree, about this action and the attempt that it names."""
    made = requirement_digest(Requirement.from_json(required), action=action.digest, attempt=body.get("attempt"))
    return bool(made.hex() == body["approval"]["requirement"])


def _proposed_digest(event: Event, action: ActionRecord, ledger: str) -> bytes:
    named = named_payloads(event)
    return action_digest(
        ledger=ledger,
        run=event.run,
        tenant=action.tenant,
        principal=action.principal,
        namespace=action.namespace,
        tool=action.tool,
        spec=action.spec,
        arguments=maybe_bytes(named.get("arguments")),
        key=Key(source=action.key.source, scope=action.key.scope, text=action.key.text),
        revision=action.revision,
        provenance=maybe_bytes(named.get("provenance")),
    )


def check_fingerprints(
    event: Event, action: ActionRecord, key: bytes, found: Mapping[str, Beside], spec: SpecSaid | None
) -> Iterator[Finding]:
    """Recompute an event's fingerprints from the payloads beside it, as far as they are there.

    Args:
        event: about the action.
        action: as the event leaves it.
        key: the tenant's.
        found: the payloads beside the event.
        spec: the action's spec.
    """
    body: Mapping[str, Any] = event.body
    if event.type == "proposed":
        arguments = found.get("arguments")
        if arguments is None:
            return
        if "request" in body and _request(key, action, arguments.content) != body["request"]:
            yield "fingerprint", "the request fingerprint is not made of the arguments with the tenant's key"
        if "resource" in body and _resource(key, spec, arguments.content) != body["resource"]:
            yield "fingerprint", "the resource fingerprint is not made of the arguments with the tenant's key"
    elif "outcome" in body and "result" in found and _outcome(key, action, found["result"]) != body["outcome"]:
        yield "fingerprint", "the outcome fingerprint is not made of the result with the tenant's key"


def check_deduped(event: Event, spec: SpecSaid | None) -> Iterator[Finding]:
    """Compare until when a start says that its request is deduped with the tool's window."""
    if spec is None:
        return
    until_us = None if spec.dedupe_us is None else event.at_us + spec.dedupe_us
    if event.body.get("dedupe_until_us") != until_us:
        yield "time", "it is deduped for another time than its tool's window"


def is_fingerprinted(event: Event) -> bool:
    """Tell whether an event carries a fingerprint that `check_fingerprints` can recompute."""
    if event.type == "proposed":
        return "request" in event.body or "resource" in event.body
    return event.type in _ENDS and "outcome" in event.body


_ENDS = frozenset({"succeeded", "failed", "in_doubt", "reconciled"})


def _request(key: bytes, action: ActionRecord, arguments: bytes) -> str:
    """Fingerprint a request; the arguments are canonical already, so that this is its canonical form."""
    namespace, tool = canonical(action.namespace), canonical(action.tool)
    whole = b'{"arguments":' + arguments + b',"namespace":' + namespace + b',"tool":' + tool + b"}"
    return fingerprint(key, "request", whole).hex()


def _resource(key: bytes, spec: SpecSaid | None, arguments: bytes) -> str | None:
    if spec is None or spec.resource is None:
        return None
    try:
        template = parse_template(spec.resource, tool=spec.name)
        text = expand(template, parse(arguments, bounds=RECORDED_BOUNDS))
    except (NotCanonical, NotPossible, SpecRefused):
        return None
    return fingerprint(key, "resource", text.encode("utf-8", "surrogatepass")).hex()


def _outcome(key: bytes, action: ActionRecord, result: Beside) -> str | None:
    said = _observation(result)
    if action.request is None:
        return None
    named: dict[str, Json] = {
        "request": action.request.hex(),
        "status": said.get("status"),
        "result": said.get("value", said.get("error")),
    }
    return fingerprint(key, "outcome", canonical(named)).hex()


def _observation(beside: Beside) -> dict[str, Json]:
    """Read what came of an effect; nothing where the payload is no observation."""
    try:
        said = parse(beside.content, bounds=RECORDED_BOUNDS)
    except NotCanonical:
        return {}
    return said if type(said) is dict else {}


def check_told(event: Event, found: Mapping[str, Beside]) -> Iterator[Finding]:
    """Compare what an event says of an effect's end with the observation beside it, where there is one."""
    beside = found.get("evidence" if event.type == "late" else "result")
    if event.type not in _TOLD or beside is None:
        return
    said, body = _observation(beside), event.body
    status, error = said.get("status"), said.get("error")
    code = error.get("code") if type(error) is dict else None
    expected = body["status"] if event.type == "late" else _TOLD[event.type]
    if status != expected or body.get("code", code) != code:
        yield "payload", "the observation beside it says something else"
    if event.type == "late" and body["clean"] and status == "ok":
        yield "forbidden", "what succeeded cannot prove that nothing happened"


_TOLD: Mapping[str, str] = {"succeeded": "ok", "failed": "error", "in_doubt": "error", "late": ""}
