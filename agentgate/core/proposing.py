"""From what was thought about a call to the events that record it."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from agentgate.action import Key, action_digest
from agentgate.approval import Requirement, approval_digest, requirement_digest
from agentgate.canonical import Json, canonical
from agentgate.clock import to_us
from agentgate.core import budgets
from agentgate.core.draft import Draft, Payload
from agentgate.core.judging import Judgement, validator, words
from agentgate.core.presenting.masking import mask
from agentgate.core.presenting.rendering import present
from agentgate.core.presenting.shown import Doubt, Shown
from agentgate.core.reasons import error_for
from agentgate.core.records import ActionFile, ActionRecord
from agentgate.observation import Error, Observation
from agentgate.policy.decision import Decision
from agentgate.states import RunState, State
from agentgate.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """That somebody changed an action's arguments: which one's, and who."""

    action: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A call as it was thought through before any transaction.

    Args:
        id: the action's id.
        namespace: the tool's server.
        tool: its name as proposed.
        spec: the tool's spec; None where the tool is unknown.
        principal: on whose behalf.
        key: the key it asks for; ``own`` with the action's id where none was given.
        intended: the key that it asked for and does not bind: its input is invalid, or it was refused a place.
        intended_revision: the revision of that key that the policy was asked about; None where it was not asked.
        arguments: the completed arguments, None where there are none to complete (see ``completed``).
        completed: whether there are arguments.
        supplied: what was sent, before defaults.
        provenance: where the call came from, as the caller tells it.
        undeclared: names of root arguments that the schema does not declare and the spec allows.
        payloads: raw, supplied, arguments and provenance, as far as there are any.
        raw_bytes: length of a raw input that was not kept.
        request: request fingerprint.
        resource: resource fingerprint.
        refusal: (reason, error) where the input itself is refused.
        judgement: what the policy said; None where it was not asked.
        doubts: earlier attempts of the action that may have happened.
        edits: the action whose arguments a person changed into these, and who; None where a loop sent them.
    """

    id: str
    namespace: str
    tool: str
    spec: ToolSpec | None
    principal: str
    key: Key
    intended: Key | None = None
    intended_revision: int | None = None
    arguments: Json = field(default=None, repr=False)
    completed: bool = False
    supplied: Json = field(default=None, repr=False)
    provenance: Json = field(default=None, repr=False)
    undeclared: tuple[str, ...] = field(default=(), repr=False)
    payloads: tuple[Payload, ...] = ()
    raw_bytes: int | None = None
    request: bytes | None = None
    resource: bytes | None = None
    refusal: tuple[str, Error] | None = None
    judgement: Judgement | None = None
    doubts: tuple[Doubt, ...] = ()
    edits: Edit | None = None

    def payload(self, kind: str) -> Payload | None:
        """Return one of its payloads."""
        return next((payload for payload in self.payloads if payload.kind == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Ids, salts and times to live that a proposal may need, drawn before the transaction.

    Args:
        ledger: the ledger's id.
        approval: id of the approval, should one be asked for.
        salts: for the payloads that are made inside: presentation, result.
        ready_us: how long a READY action stays.
        question_us: how long a question can be answered.
        grant_us: how long an answer stands.
    """

    ledger: str
    approval: str
    salts: tuple[bytes, bytes]
    ready_us: int
    question_us: int
    grant_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An action whose place a proposal takes: READY or HELD, in the draft of its own run."""

    draft: Draft
    action: ActionRecord


def propose(
    draft: Draft,
    thought: Thought,
    chance: Chance,
    *,
    revision: int,
    supersedes: Waiting | None = None,
    rejected: bool = False,
) -> ActionFile:
    """Record a proposal, and what was decided about it.

    Args:
        draft: the transaction.
        thought: the call.
        chance: ids and salts.
        revision: of the key, from 1.
        supersedes: whose place it takes, unless it is refused: what is refused takes nobody's place, nor its key.
        rejected: whether people have said no, in this run, to the same request: then they are not asked again.

    Returns:
        The action as it stands: READY, HELD or REFUSED.
    """
    refusal = thought.refusal or _refused_by_run(draft) or _refused_by_policy(thought)
    judgement = thought.judgement
    if refusal is None and judgement is not None and judgement.decision.requirement is not None:
        enough = "rejected_before" if rejected else _asked_enough_but(draft, thought, supersedes)
        refusal = None if enough is None else (enough, error_for(enough))
    if supersedes is not None and refusal is not None:
        thought, revision = _unplaced(thought, revision), 1
    elif supersedes is not None:
        supersedes.draft.add("superseded", {"successor": thought.id}, action=supersedes.action.id)
    digest = _digest(draft, thought, chance, revision)
    body = _body(thought, digest, revision)
    payloads = thought.payloads
    if judgement is not None:
        body |= judgement.fields()
        payloads += judgement.payloads
    if refusal is not None:
        reason, error = refusal
        told = Payload(kind="result", salt=chance.salts[1], content=_told(error))
        draft.add(
            "proposed", body | {"outcome": "refused", "reason": reason}, action=thought.id, payloads=(*payloads, told)
        )
        if judgement is not None and judgement.decision.outcome == "abort" and draft.run.state is RunState.OPEN:
            halt(draft, "aborted")
    elif judgement is not None and judgement.decision.requirement is not None:
        asked, shown = ask(draft, thought, chance, judgement.decision.requirement, digest=digest, revision=revision)
        body |= {"outcome": "held", "approval": asked}
        draft.add("proposed", body, action=thought.id, payloads=(*payloads, shown))
    else:
        body |= {"outcome": "allowed", "expires_at_us": draft.at_us + chance.ready_us}
        draft.add("proposed", body, action=thought.id, payloads=payloads)
    return draft.file(thought.id)


def halt(draft: Draft, reason: str) -> None:
    """Halt the run; nothing of it starts any more."""
    draft.add("run_halted", {"reason": reason})


def _digest(draft: Draft, thought: Thought, chance: Chance, revision: int) -> bytes:
    arguments, provenance = thought.payload("arguments"), thought.payload("provenance")
    return action_digest(
        ledger=chance.ledger,
        run=draft.run.id,
        tenant=draft.run.tenant,
        principal=thought.principal,
        namespace=thought.namespace,
        tool=thought.tool,
        spec=None if thought.spec is None else thought.spec.digest,
        arguments=None if arguments is None else arguments.digest,
        key=thought.key,
        revision=revision,
        provenance=None if provenance is None else provenance.digest,
    )


def _body(thought: Thought, digest: bytes, revision: int) -> dict[str, Json]:
    body: dict[str, Json] = {
        "digest": digest.hex(),
        "principal": thought.principal,
        "namespace": thought.namespace,
        "tool": thought.tool,
        "key": thought.key.to_json(),
        "revision": revision,
    }
    optional: tuple[tuple[str, Json], ...] = (
        ("spec", None if thought.spec is None else thought.spec.digest.hex()),
        ("validator", None if thought.spec is None else validator()),
        ("intended", None if thought.intended is None else thought.intended.to_json()),
        ("intended_revision", thought.intended_revision),
        ("edits", None if thought.edits is None else {"action": thought.edits.action, "by": thought.edits.by}),
        ("raw_bytes", thought.raw_bytes),
        ("request", None if thought.request is None else thought.request.hex()),
        ("resource", None if thought.resource is None else thought.resource.hex()),
    )
    return body | {name: value for name, value in optional if value is not None}


def _refused_by_run(draft: Draft) -> tuple[str, Error] | None:
    state = draft.run.state
    if state is RunState.OPEN:
        return None
    reason = "run_halted" if state is RunState.HALTED else "run_closed"
    return reason, error_for(reason)


def _refused_by_policy(thought: Thought) -> tuple[str, Error] | None:
    judgement = thought.judgement
    if judgement is None or judgement.decision.outcome not in {"deny", "abort"}:
        return None
    return denial(judgement)


def denial(judgement: Judgement) -> tuple[str, Error]:
    """Return a policy's refusal as a reason code and as words for the loop."""
    reason = "aborted" if judgement.decision.outcome == "abort" else "policy_denied"
    return reason, denial_words(judgement.decision)


def denial_words(decision: Decision) -> Error:
    """Put a policy's refusal into words for the loop: its own, or its codes where it has none."""
    codes: list[Json] = [one.code for one in decision.reasons]
    details: dict[str, Json] = {"rule": decision.rule, "reasons": codes}
    return Error(code="policy_denied", message=words(decision), details=details)


def _asked_enough_but(draft: Draft, thought: Thought, supersedes: Waiting | None) -> str | None:
    """Tell the same of a proposal that may take the place of a question: of the same tool, and maybe of its run."""
    frees = supersedes is not None and supersedes.action.state is State.HELD
    in_run = supersedes is not None and supersedes.draft is draft
    return asked_enough(
        draft, namespace=thought.namespace, tool=thought.tool, run_frees=int(frees and in_run), frees=int(frees)
    )


def asked_enough(draft: Draft, *, namespace: str, tool: str, run_frees: int = 0, frees: int = 0) -> str | None:
    """Return the reason code of why no more may be asked of people; None where it may.

    As many actions wait for them as may: of the run, or of its tenant or the tool, whose budgets the draft knows.

    Args:
        draft: of the run.
        namespace: the tool's server.
        tool: its name.
        run_frees: how many of the run's are about to end.
        frees: how many of the tenant's and the tool's are.
    """
    limit = draft.run.limits.get("pending")
    if limit is not None and draft.run.counters.pending - run_frees >= limit:
        return "limit_pending"
    known = draft.book.left(budgets.TENANT, budgets.tool(namespace, tool))
    over = budgets.exhausted((replace(one, used=one.used - frees) for one in known), "pending")
    return None if over is None else f"limit_{over.place.kind}_pending"


def ask(
    draft: Draft,
    thought: Thought,
    chance: Chance,
    requirement: Requirement,
    *,
    digest: bytes,
    revision: int,
    attempt: int | None = None,
) -> tuple[dict[str, Json], Payload]:
    """Make the question: what an event says of it, and the presentation that it is bound to.

    Args:
        draft: the transaction.
        thought: the call; what a policy said of it is shown, where one was asked.
        chance: ids and salts.
        requirement: who must agree.
        digest: of the action.
        revision: of its key.
        attempt: the attempt that an operator's question is about; None where people approve the action.
    """
    assert thought.spec is not None  # only registered tools are asked about
    judgement = thought.judgement
    expires_at_us = draft.at_us + span_us(requirement.question, chance.question_us)
    grant_us = span_us(requirement.grant, chance.grant_us)
    text = present(
        Shown(
            tool=thought.tool,
            namespace=thought.namespace,
            description=thought.spec.description,
            risk=thought.spec.risk,
            tenant=draft.run.tenant,
            principal=thought.principal,
            run=draft.run.name,
            action=digest,
            key=thought.key,
            revision=revision,
            reasons="" if judgement is None else words(judgement.decision),
            requirement=requirement,
            arguments=mask(thought.spec, thought.arguments),
            supplied=mask(thought.spec, thought.supplied),
            undeclared=() if thought.spec.sensitive else thought.undeclared,
            previous=None if judgement is None else judgement.previous,
            doubts=thought.doubts,
            asks_about=attempt,
            edited_by=None if thought.edits is None else thought.edits.by,
            expires_at_us=expires_at_us,
            grant_us=grant_us,
        )
    )
    shown = Payload(kind="presentation", salt=chance.salts[0], content=text)
    required = requirement_digest(requirement, action=digest, attempt=attempt)
    bound = approval_digest(
        ledger=chance.ledger,
        id=chance.approval,
        requirement=required,
        presentation=shown.digest,
        expires_at_us=expires_at_us,
    )
    asked: dict[str, Json] = {
        "id": chance.approval,
        "requirement": required.hex(),
        "presentation": shown.digest.hex(),
        "digest": bound.hex(),
        "expires_at_us": expires_at_us,
        "grant_us": grant_us,
    }
    return asked, shown


def span_us(asked: timedelta | None, usual_us: int) -> int:
    """Return what a requirement asks for, or, where it leaves that open, what the gate says."""
    return usual_us if asked is None else to_us(asked)


def _told(error: Error) -> bytes:
    return canonical(Observation(status="error", error=error).to_json())


def invalid(thought: Thought) -> Thought:
    """Let go of the key: an input refused as invalid binds none (design §8)."""
    if thought.key.source == "own":
        return thought
    return replace(thought, intended=thought.key, key=Key(source="own", text=thought.id))


def _unplaced(thought: Thought, revision: int) -> Thought:
    """Let go of the key that a waiting action keeps, and remember as what the policy was asked about this one."""
    asked = None if thought.judgement is None else revision
    return replace(invalid(thought), intended_revision=asked)
