"""Whether an action may start now, and the events that start it, hold it again, or end it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from agentgate.approval import Requirement, requirement_digest
from agentgate.canonical import Json
from agentgate.chain import Link
from agentgate.clock import to_us
from agentgate.core.budgets import Budget, exhausted, shortfall
from agentgate.core.draft import Draft, Payload
from agentgate.core.fold import state_event
from agentgate.core.judging import Judgement
from agentgate.core.proposing import Chance, Thought, ask, asked_enough, denial, halt
from agentgate.core.reasons import error_for
from agentgate.core.records import ActionFile, ActionRecord, AttemptRecord, RunRecord
from agentgate.errors import Damaged
from agentgate.event import decode, event_hash
from agentgate.observation import Error
from agentgate.states import MOVES, WAITING_FOR_A_PERSON, RunState, State
from agentgate.tools.recovery import Keyed, Repeat
from agentgate.tools.spec import ToolSpec

MOST_REQUIREMENTS = 2
"""How many different things a policy may ask people about one action; the third is `unstable` (design §6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """It may not start now, and stays as it was; ``blocking`` names the action it waits for."""

    reason: str
    blocking: str | None = None


# A pinned gate waits for its policy to be the active one; until then it decides nothing about what others claim.
INACTIVE: Final = Wait(reason="policy_inactive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """It will not start: a reason code that ends it; ``earlier`` names the action that it repeats."""

    reason: str
    earlier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier revision of the same key that answered late: in doubt again, or known to have happened."""

    action: str
    happened: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a claim reads beside the action: the switch, who holds its resource, and what others may spend with it.

    Args:
        paused: whether the switch stops it.
        inactive: whether the gate is pinned, and its policy is not the active one.
        resource_held_by: the action that works on its resource.
        holder_unknown: whether that one's outcome is unknown.
        repeats: the earlier action that it repeats within its tool's window.
        budgets: of its tenant, its tool, and the accounts that it reserves from, where any are set.
        tool_fails: whether its tool has failed as often in a row as it may.
        broken: what the breaker says, where there is one.
        earlier: the revision of its key that stands in its way.
    """

    paused: bool
    inactive: bool = False
    resource_held_by: str | None = None
    holder_unknown: bool = False
    repeats: str | None = None
    budgets: tuple[Budget, ...] = ()
    tool_fails: bool = False
    broken: Wait | None = None
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who claims, until when, and by when the effect must have ended."""

    holder: str
    lease_us: int
    timeout_us: int


def check_row(action: ActionRecord, link: Link | None) -> None:
    """Refuse an action whose row says something else than its last state event.

    Raises:
        Damaged: always ``damaged``, whoever wrote the row.
    """
    where = f"action {action.id}"
    if link is None or event_hash(link.encoded) != link.hash:
        raise Damaged(where, f"its event {action.state_n} is missing or not what its hash says")
    event = decode(link.encoded)
    if event.action != action.id or event.n != action.state_n or event.run != action.run:
        raise Damaged(where, f"event {event.n} is not its own")
    word = state_event(event, None)
    words = {word, "failed.unresolved"} if word == "failed" else {word}
    reachable = {target for (_, moved), target in MOVES.items() if moved in words}
    if action.state not in reachable:
        raise Damaged(where, f"its row says {action.state}, its event {event.n} says {word}")


def earlier(revisions: Iterable[ActionRecord]) -> Earlier | None:
    """Return the revision that stands in the way of a later one of its key, where one does.

    They were all refused before the later one was opened, with nothing in doubt; but a worker may answer after that.

    Args:
        revisions: those before the one that is to start.
    """
    late = [one for one in revisions if one.reason == "happened" or one.unresolved]
    happened = next((one for one in late if one.reason == "happened"), None)
    if happened is not None:
        return Earlier(action=happened.id, happened=True)
    return Earlier(action=late[0].id, happened=False) if late else None


def hindrance(
    run: RunRecord,
    action: ActionRecord,
    around: Surroundings,
    at_us: int,
    *,
    reserves: Mapping[str, int] = MappingProxyType({}),
) -> Wait | Stop | None:
    """Return what keeps an action from starting now, or None.

    Args:
        run: its run.
        action: READY or UNKNOWN.
        around: switch, earlier revisions, resource and budgets.
        at_us: ledger time.
        reserves: how much of which account it takes, where it is READY: what is unknown has taken it already.
    """
    if run.state is not RunState.OPEN:
        return Stop(reason="run_halted" if run.state is RunState.HALTED else "run_closed")
    if around.paused:
        return Wait(reason="paused")
    if around.inactive:
        return INACTIVE
    if around.earlier is not None:
        # A late success after "not applied" lets the effect run again under no revision.
        stop = around.earlier.happened
        return Stop(reason="happened") if stop else Wait(reason="blocked", blocking=around.earlier.action)
    over = _run_limit(run, action, at_us) or _shared_limit(action, around, reserves)
    if over is not None:
        return over
    if around.repeats is not None:  # before the resource: a repeat of what is at work there is no turn to wait for
        return Stop(reason="duplicate", earlier=around.repeats)
    if around.resource_held_by is not None and around.resource_held_by != action.id:
        return Wait(reason="blocked" if around.holder_unknown else "busy", blocking=around.resource_held_by)
    return around.broken  # last: it makes things stricter, and turns no refusal off


def _run_limit(run: RunRecord, action: ActionRecord, at_us: int) -> Wait | Stop | None:
    counters = run.counters
    bounded = (
        ("wall_us", at_us - run.opened_at_us, "limit_wall"),
        ("active_us", counters.active_us, "limit_active"),
        # An action whose outcome is unknown is counted already.
        ("actions", counters.taken if action.state is State.READY else -1, "limit_actions"),
        ("failures", counters.failures, "limit_failures"),
        ("tokens", counters.tokens, "limit_tokens"),
        ("money", counters.money, "limit_money"),
    )
    for name, used, reason in bounded:
        if name in run.limits and used >= run.limits[name]:
            return Stop(reason=reason)
    if "parallel" in run.limits and counters.executing >= run.limits["parallel"]:
        return Wait(reason="limit_parallel")
    return None


def _shared_limit(action: ActionRecord, around: Surroundings, reserves: Mapping[str, int]) -> Wait | Stop | None:
    """Look at what the run shares with others: its tenant's budgets, its tool's, and the accounts."""
    taking = ("actions",) if action.state is State.READY else ()
    over = exhausted(around.budgets, *taking, "tokens", "money")
    if over is not None:
        return Stop(reason=f"limit_{over.place.kind}_{over.measure}")
    if around.tool_fails:
        return Stop(reason="limit_tool_failures")
    if action.state is State.READY:
        short = shortfall(around.budgets, reserves)
        if short is not None:
            return Stop(reason=short)
    return None if exhausted(around.budgets, "parallel") is None else Wait(reason="limit_parallel")


def may_retry(run: RunRecord) -> bool:
    """Tell whether another of the run's failures may be made ready again, as far as its limit on retries goes."""
    return "retries" not in run.limits or run.counters.retried < run.limits["retries"]


def may_run_again(spec: ToolSpec, action: ActionRecord, at_us: int) -> bool:
    """Tell whether an unknown outcome may be tried again without asking anybody (design §5)."""
    if isinstance(spec.recovery, Repeat):
        return True
    if isinstance(spec.recovery, Keyed) and action.first_started_us is not None:
        return at_us < action.first_started_us + to_us(spec.recovery.window)
    return False


def start(
    draft: Draft,
    file: ActionFile,
    lease: Lease,
    *,
    fence: int,
    judgement: Judgement | None,
    dedupe_us: int | None = None,
    reserves: Mapping[str, int] = MappingProxyType({}),
) -> ActionFile:
    """Record that the effect may begin.

    Args:
        draft: the transaction.
        file: the action, READY or UNKNOWN.
        lease: who, and for how long.
        dedupe_us: how long from now the same request is a duplicate, where the tool says so.
        fence: as given by `opening`'s row.
        judgement: what the policy said at this claim; None where it spoke in this same transaction.
        reserves: how much of which account it takes; only what is READY takes.
    """
    opened = opening(draft, file, lease)
    body: dict[str, Json] = {
        "proposed": file.action.proposed_n,
        "digest": file.action.digest.hex(),
        "attempt": opened.number,
        "fence": fence,
        "holder": opened.holder,
        "lease_until_us": opened.lease_until_us,
        "deadline_us": opened.deadline_us,
    }
    if opened.approval is not None:
        body["approval"] = opened.approval
    if dedupe_us is not None:
        body["dedupe_until_us"] = draft.at_us + dedupe_us
    if reserves and file.action.state is State.READY:
        body["reserves"] = [{"account": account, "amount": amount} for account, amount in reserves.items()]
    if judgement is not None:
        body |= judgement.at_claim(file.action.spec)
    payloads = () if judgement is None else judgement.payloads
    draft.add("started", body, action=file.action.id, payloads=payloads)
    return draft.file(file.action.id)


def opening(draft: Draft, file: ActionFile, lease: Lease) -> AttemptRecord:
    """Return the attempt that `start` will record next, before it has a fence."""
    question = file.question
    granted = question is not None and question.state == "granted"
    return AttemptRecord(
        fence=0,
        run=file.action.run,
        action=file.action.id,
        number=file.action.attempts + 1,
        state="open",
        unresolved=False,
        holder=lease.holder,
        started_at_us=draft.at_us,
        lease_until_us=draft.at_us + lease.lease_us,
        deadline_us=draft.at_us + lease.timeout_us,
        approval=question.id if granted and question is not None else None,
        started_n=draft.next_n,
        ended_n=None,
        late_n=None,
    )


def wait(
    draft: Draft, file: ActionFile, why: Wait, judgement: Judgement | None = None, *, payloads: tuple[Payload, ...] = ()
) -> None:
    """Record that it waits; each reason once while the action stands where it stands."""
    if why.reason in file.action.waited:
        return
    body: dict[str, Json] = {"reason": why.reason, "proposed": file.action.proposed_n}
    if why.blocking is not None:
        body["blocking"] = why.blocking
    if judgement is not None:
        body |= judgement.at_claim(file.action.spec)
        payloads = (*payloads, *judgement.payloads)
    draft.add("waited", body, action=file.action.id, payloads=payloads)


def refuse(
    draft: Draft,
    file: ActionFile,
    reason: str,
    judgement: Judgement | None = None,
    *,
    payloads: tuple[Payload, ...] = (),
) -> Error:
    """Record that it will not run, and return the words for the loop."""
    body: dict[str, Json] = {"reason": reason, "proposed": file.action.proposed_n}
    error = error_for(reason)
    if judgement is not None:
        body |= judgement.at_claim(file.action.spec)
        error = denial(judgement)[1] if reason in {"policy_denied", "aborted"} else error
        payloads = (*payloads, *judgement.payloads)
    draft.add("refused", body, action=file.action.id, payloads=payloads)
    halt_where_over(draft, reason)
    return error


def outdate(draft: Draft, file: ActionFile, spec: ToolSpec | None) -> bool:
    """End an action that people are asked about, where a gate that comes with its call knows the tool by another spec.

    Whatever they answer, it would not run as it was shown to them. Its key is free for another revision.
    """
    if spec is None or file.action.state is not State.HELD or file.action.spec == spec.digest:
        return False
    refuse(draft, file, "spec_changed")
    return True


def halt_where_over(draft: Draft, reason: str) -> None:
    """Halt the run where the reason ends the run, not one action alone (design §3)."""
    if reason in _HALTING and draft.run.state is RunState.OPEN:
        halt(draft, reason)


def hold(draft: Draft, file: ActionFile, thought: Thought, chance: Chance, *, rejected: bool = False) -> ActionFile:
    """Ask for another approval on the same action and key; a third different one is a refusal (design §6).

    Args:
        draft: the transaction.
        file: the action, READY or HELD.
        thought: the call, with what the policy said at this claim.
        chance: ids and salts.
        rejected: whether people have said no, in this run, to the same request: then they are not asked again.
    """
    judgement = thought.judgement
    assert judgement is not None
    assert judgement.decision.requirement is not None
    refused = "rejected_before" if rejected else _unaskable(draft, file, judgement.decision.requirement)
    if refused is not None:
        refuse(draft, file, refused, judgement)
        return draft.file(file.action.id)
    asked, shown = ask(
        draft,
        thought,
        chance,
        judgement.decision.requirement,
        digest=file.action.digest,
        revision=file.action.revision,
    )
    body = {"proposed": file.action.proposed_n, "approval": asked, **judgement.at_claim(file.action.spec)}
    draft.add("held", body, action=file.action.id, payloads=(*judgement.payloads, shown))
    return draft.file(file.action.id)


def _unaskable(draft: Draft, file: ActionFile, requirement: Requirement) -> str | None:
    """Return why people are not asked for this: a third requirement that differs, or too many questions already."""
    asked = {one.requirement for one in file.approvals.values() if one.kind == "approval"}
    asked.add(requirement_digest(requirement, action=file.action.digest))
    if len(asked) > MOST_REQUIREMENTS:
        return "unstable"
    return asked_enough(draft, namespace=file.action.namespace, tool=file.action.tool)


def expire(draft: Draft, file: ActionFile) -> str | None:
    """Record that the time of the action, or of what hangs on it, is over; return the event that says so, if it is."""
    over = over_event(file, draft.at_us)
    if over is None:
        return None
    question = file.question
    about: dict[str, Json] = {} if over == "action_expired" or question is None else {"approval": question.id}
    draft.add(over, about, action=file.action.id)
    return over


def over_event(file: ActionFile, at_us: int) -> str | None:
    """Name the event; a question about an unknown outcome ends, and leaves it unknown."""
    action, question = file.action, file.question
    asked = "" if question is None else question.state
    if action.state in WAITING_FOR_A_PERSON and question is not None and asked == "pending":
        return "question_expired" if question.expires_at_us <= at_us else None
    if action.state is State.UNKNOWN and question is not None and asked == "granted":
        return "grant_expired" if question.until_us is not None and question.until_us <= at_us else None
    if action.state is State.READY and action.expires_at_us is not None and action.expires_at_us <= at_us:
        return "grant_expired" if asked == "granted" else "action_expired"
    return None


_HALTING = frozenset({"aborted", "limit_active", "limit_wall", "no_progress"})
