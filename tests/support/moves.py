"""What anybody can do to a run with one key in it: the moves that `support.exploring` follows.

Each drafts with the real core what the gate's command of that name writes; the guards are the commands' own. People's
answers are written as the events that they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import agentgate
from agentgate.action import Key
from agentgate.approval import Requirement, requirement_digest
from agentgate.canonical import Json
from agentgate.core import claiming, inquiring, proposing, recording
from agentgate.core.draft import Draft, Payload
from agentgate.core.judging import Judgement
from agentgate.core.proposing import Chance, Thought
from agentgate.core.recording import Ended, Kept
from agentgate.core.records import ActionFile, ApprovalRecord
from agentgate.errors import KeyConflict
from agentgate.gate import standing
from agentgate.observation import Observation
from agentgate.policy.decision import Decision
from agentgate.policy.identity import stated
from agentgate.policy.request import View
from agentgate.states import RunState, State, advance
from agentgate.tools.spec import ToolSpec
from support.abouts import About, Move, Shop
from support.exploring import HOUR_US, WINDOW_US, Mark, Point, Revision, Step, normal
from support.ids import AT_US, LEDGER, a_hash, an_id

BY: dict[str, Json] = {"by": "person:ada"}
NEXT = an_id(777)
_SALT = a_hash("salt")
_KEPT = Kept(payload=Payload(kind="result", salt=_SALT, content=b"{}"), outcome=None, size=2)
_EVIDENCE = Payload(kind="evidence", salt=_SALT, content=b"{}")
_CHANCE = Chance(
    ledger=LEDGER, approval=NEXT, salts=(_SALT, _SALT), ready_us=HOUR_US, question_us=HOUR_US,
    grant_us=HOUR_US,
)  # fmt: skip
_LEASE = claiming.Lease(holder="host/1/2/gate", lease_us=HOUR_US, timeout_us=HOUR_US)
_ENDS = {
    "succeeded": Ended(known="succeeded", observation=Observation(status="ok")),
    "failed": Ended(known="failed", observation=None, code="not_found"),
    "in_doubt": Ended(known="in_doubt", observation=None, code="timeout"),
}
_LATE = {"late ok": "succeeded", "late error": "in_doubt", "late nothing": "failed"}
_OPERATORS = Requirement(kind="question")
_REQUIREMENTS = tuple(Requirement(quorum=quorum) for quorum in (1, 2, 3))
_DECISIONS = {"allow": agentgate.allow(), "deny": agentgate.deny("no"), "abort": agentgate.abort("no")}


def moves(shop: Shop) -> Callable[[Point], Iterator[Step]]:
    """Return what follows from a state, by every move there is.

    A move is about one revision and reads of the others only what stands in its way, so that it is drafted once for
    all the states in which this revision, the run and what is in the way are the same.
    """
    spec = shop.spec
    drafted: dict[Mark, tuple[Move, ...]] = {}

    def follow(point: Point) -> Iterator[Step]:
        for number, revision in enumerate(point.revisions or (None,), 1):
            about = _about(shop, spec, point, number, revision)
            for draw, key in ((_of_everybody, about.all_around), (_of_people, about.own)):
                if key not in drafted:
                    drafted[key] = tuple(draw(about))
                for move in drafted[key]:
                    revisions = (*point.revisions[: number - 1], *move.revisions, *point.revisions[number:])
                    target = Point(run=move.run or point.run, revisions=revisions)
                    yield Step(name=move.name, number=number, target=target, events=move.events)

    return follow


def _about(shop: Shop, spec: ToolSpec, point: Point, number: int, revision: Revision | None) -> About:
    before = [one.file.action for one in point.revisions[: number - 1]]
    held = next((one for one in before if one.unresolved), None)
    around = claiming.Surroundings(paused=False, earlier=claiming.earlier(before))
    # What is unknown has its own lock, and was blocked by nobody when it took it.
    if held is not None and not shop.parallel and revision is not None and revision.state is not State.UNKNOWN:
        around = replace(around, resource_held_by=held.id, holder_unknown=True)
    return About(
        shop=shop,
        spec=spec,
        run=point.run,
        number=number,
        revision=revision,
        newest=number >= len(point.revisions),
        attempts_left=shop.attempts - point.attempts,
        around=around,
    )


def _of_everybody(about: About) -> Iterator[Move]:
    if about.newest:  # of the others, nothing is READY, HELD or EXECUTING
        yield from _of_run(about)
        yield from _proposals(about)
    startable = about.revision is not None and about.state in {State.READY, State.UNKNOWN, State.FAILED}
    if startable and about.run is RunState.OPEN and about.attempts_left:
        yield from _claims(about)


def _of_people(about: About) -> Iterator[Move]:
    if about.revision is not None:
        yield from _of_state(about)
        yield from _of_questions(about)
        yield from _of_doubts(about)


# --- the run, and its proposals ------------------------------------------------------------------


def _of_run(about: About) -> Iterator[Move]:
    if about.run is RunState.OPEN:
        draft = about.draft()
        proposing.halt(draft, "no_progress")
        _refuse_waiting(draft, about)
        yield about.took("halt", draft)
    draft = about.draft()
    if about.run is not RunState.CLOSED and not draft.run.counters.executing:
        draft.add("run_closed", {"reason": "closed", **BY})
        _refuse_waiting(draft, about)
        yield about.took("close", draft)


def _refuse_waiting(draft: Draft, about: About) -> None:
    """Refuse what waits in a run that is not open any more, as each of the gate's commands does."""
    if draft.run.state is RunState.OPEN or about.revision is None:
        return
    reason = "run_halted" if draft.run.state is RunState.HALTED else "run_closed"
    now = draft.file(about.id)
    if now.action.state in {State.READY, State.HELD}:
        claiming.refuse(draft, now, reason)


def _proposals(about: About) -> Iterator[Move]:
    number = about.number + (about.revision is not None)
    if number > about.shop.revisions:
        return
    for verb in ("propose", "supersede"):
        if not _is_new(about, supersede=verb == "supersede"):
            continue
        for answer, decision in _answers(about, None) if about.run is RunState.OPEN else [("refused", None)]:
            draft = about.draft()
            if verb == "supersede":
                draft.add("superseded", {"successor": an_id(number)}, action=about.id)
            thought = replace(_thought(about.spec, number), judgement=None if decision is None else _judged(decision))
            proposing.propose(draft, thought, _CHANCE, revision=number)
            _refuse_waiting(draft, about)
            yield about.took(f"{verb}, {answer}", draft)


def _is_new(about: About, *, supersede: bool) -> bool:
    """Tell whether the same call, or another that may take a waiting one's place, makes a new action."""
    if about.revision is None:
        return not supersede
    attempted = about.attempts_left < about.shop.attempts
    try:
        stands = standing.stand(
            about.file.action,
            _thought(about.spec, about.number),
            same=not supersede,
            attempted=attempted,
            supersede=supersede,
        )
    except KeyConflict:
        return False
    return stands.repeat is None and (stands.supersedes is not None) == supersede


def _thought(spec: ToolSpec, revision: int) -> Thought:
    arguments: Json = {"account": "a", "cents": 1}
    return Thought(
        id=an_id(revision),
        namespace=spec.namespace,
        tool=spec.name,
        spec=spec,
        principal="agent:a",
        key=Key(source="caller", scope="", text="k"),
        arguments=arguments,
        completed=True,
        supplied=arguments,
        payloads=(Payload(kind="arguments", salt=_SALT, content=b'{"account":"a","cents":1}'),),
        request=a_hash("request"),
        resource=a_hash("resource"),
    )


def _judged(decision: Decision) -> Judgement:
    return Judgement(decision=decision, identity=stated("people"), view=View(n=99), asked_at_us=AT_US)


def _answers(about: About, file: ActionFile | None) -> Iterator[tuple[str, Decision]]:
    """Give what a policy may say: of the approvals it may ask for, those it has asked for and one more."""
    yield from ((answer, decision) for answer, decision in _DECISIONS.items() if answer in about.shop.says)
    asked = {one.requirement for one in file.approvals.values() if one.kind == "approval"} if file else set()
    for place, requirement in enumerate(_REQUIREMENTS):
        if f"ask {place}" in about.shop.says:
            yield f"ask {place}", agentgate.require_approval("ask", requirement=requirement)
        if file is None or requirement_digest(requirement, action=file.action.digest) not in asked:
            return


# --- starting and ending -------------------------------------------------------------------------


def _of_state(about: About) -> Iterator[Move]:
    state = about.state
    if state in {State.HELD, State.READY}:
        draft = about.draft(at_us=AT_US + 2 * HOUR_US)
        assert claiming.expire(draft, about.file)
        yield about.took("expire", draft)
    if advance(state, "cancelled") is not None:
        yield about.wrote("cancel", "cancelled", BY)
    if state is State.EXECUTING:
        yield from _ends(about)
    if state is State.UNKNOWN and about.file.action.first_started_us == AT_US:
        yield from _window(about)


def _window(about: About) -> Iterator[Move]:
    """Let the time pass in which a downstream knows the key, where the tool has such a time."""
    over = replace(about.file.action, first_started_us=AT_US - 2 * WINDOW_US)
    now = claiming.may_run_again(about.spec, about.file.action, AT_US)
    if now and not claiming.may_run_again(about.spec, over, AT_US) and about.revision is not None:
        later = normal(about.number, replace(about.file, action=over), about.revision.awaited, about.revision.known)
        yield Move(name="the window passes", run=None, revisions=(later,), events=())


def _claims(about: About) -> Iterator[Move]:
    """Ask the policy, and do what it says: as `agentgate.gate.claiming` does."""
    retried = about.state is State.FAILED
    for answer, decision in _answers(about, about.file):
        draft = about.draft()
        if retried:
            draft.add("retried", {"until_us": AT_US + HOUR_US, **BY}, action=about.id)
        before = draft.next_n
        _claim(about, draft, decision)
        _refuse_waiting(draft, about)
        if draft.next_n > before or retried:
            yield about.took(f"{'retry' if retried else 'claim'}, {answer}", draft)


def _claim(about: About, draft: Draft, decision: Decision) -> None:
    file, judgement = draft.file(about.id), _judged(decision)
    if file.action.state is State.UNKNOWN:
        thought = replace(_thought(about.spec, about.number), judgement=judgement)
        if not inquiring.goes_on(draft, file, thought, _CHANCE, _OPERATORS, proven=lambda *_: None):
            return
        file = draft.file(about.id)
    elif decision.outcome in {"deny", "abort"}:
        claiming.refuse(draft, file, "aborted" if decision.outcome == "abort" else "policy_denied", judgement)
        return
    elif decision.requirement is not None and not _granted(file, decision.requirement):
        claiming.hold(draft, file, replace(_thought(about.spec, about.number), judgement=judgement), _CHANCE)
        return
    hindered = claiming.hindrance(draft.run, file.action, about.around, draft.at_us)
    if isinstance(hindered, claiming.Stop) and file.action.state is State.READY:
        claiming.refuse(draft, file, hindered.reason)
    if hindered is None:
        fence = 100 * about.number + file.action.attempts + 1
        claiming.start(draft, file, _LEASE, fence=fence, judgement=judgement)


def _granted(file: ActionFile, requirement: Requirement) -> bool:
    required = requirement_digest(requirement, action=file.action.digest)
    return file.question is not None and file.question.state == "granted" and file.question.requirement == required


def _ends(about: About) -> Iterator[Move]:
    attempt, revision = about.file.current, about.revision
    assert attempt is not None
    assert revision is not None
    own = frozenset({attempt.number})
    for name, ended in _ENDS.items():
        draft = about.draft()
        recording.end(draft, about.file, attempt, ended, _KEPT if name == "succeeded" else None, by="gate")
        awaited = revision.awaited | own if name == "in_doubt" else revision.awaited  # its thread may go on
        known = revision.known | own if name == "succeeded" else revision.known
        yield about.took(name, draft, awaited=awaited, known=known)
    draft = about.draft()
    recording.take_over(draft, about.file, attempt, code="lease_lost", by="gate")
    yield about.took("take over", draft, awaited=revision.awaited | own)


# --- people's answers ----------------------------------------------------------------------------


def _of_questions(about: About) -> Iterator[Move]:
    state, question = about.state, about.file.question
    if inquiring.is_for_operators(about.spec, about.file, AT_US, untold=True):
        draft = about.draft()
        thought = _thought(about.spec, about.number)
        inquiring.inquire(draft, about.file, thought, _CHANCE, inquiring.asked_of(about.file, _OPERATORS))
        yield about.took("ask an operator", draft)
    if question is None or state not in {State.HELD, State.UNKNOWN, State.READY, State.FAILED}:
        return
    named: dict[str, Json] = {"approval": question.id}
    if question.state == "granted" and state is State.FAILED:  # given back: it can be taken back as well
        yield about.wrote("revoke", "grant_revoked", named | BY)
        return
    if question.state == "pending":
        yield from _voted(about, question, named)
    if question.state == "granted":
        yield about.wrote("grant expires", "grant_expired", named)
        yield about.wrote("revoke", "grant_revoked", named | BY)


def _voted(about: About, question: ApprovalRecord, named: dict[str, Json]) -> Iterator[Move]:
    draft = about.draft()
    vote: dict[str, Any] = {
        "approval": question.id,
        "shown": question.digest.hex(),
        "vote": a_hash("vote").hex(),
        "verdict": "again" if question.kind == "question" else "approve",
        "approver": "person:ada",
        "roles": [],
        "nonce": "0" * 32,
    }
    draft.add("voted", vote, action=about.id)
    votes: list[Json] = [vote["vote"]]
    draft.add("approved", named | {"votes": votes, "until_us": AT_US + HOUR_US}, action=about.id)
    yield about.took("approve", draft)
    yield about.wrote("reject", "rejected", named | BY)
    if about.state is State.UNKNOWN:
        yield about.wrote("question expires", "question_expired", named)


# --- what may have happened ----------------------------------------------------------------------


def _of_doubts(about: About) -> Iterator[Move]:
    revision, action = about.revision, about.file.action
    assert revision is not None
    for number in sorted(revision.awaited):
        attempt = about.file.attempts[number]
        for name, known in _LATE.items():
            draft = about.draft()
            recording.keep_late(draft, about.file, attempt, _ENDS[known], _EVIDENCE)
            happened = revision.known | {number} if name == "late ok" else revision.known
            yield about.took(name, draft, awaited=revision.awaited - {number}, known=happened)
    for applied, word in ((True, "reconciled.applied"), (False, "reconciled.not_applied")):
        if action.unresolved and advance(action.state, word) is not None:
            yield _reconciled(about, revision, applied=applied)
    if advance(action.state, "abandoned") is not None:
        yield about.wrote("abandon", "abandoned", BY)


def _reconciled(about: About, revision: Revision, *, applied: bool) -> Move:
    doubted = frozenset(number for number, one in about.file.attempts.items() if one.unresolved)
    draft = about.draft()
    recording.reconcile(
        draft,
        about.file,
        applied=applied,
        by="person:ada",
        worker_known_dead=False,
        ready_us=HOUR_US,
        result=_KEPT if applied and about.state is State.UNKNOWN else None,
        payloads=(_EVIDENCE,),
    )
    name = "reconcile, applied" if applied else "reconcile, not applied"
    return about.took(name, draft, known=revision.known | doubted if applied else revision.known - doubted)
