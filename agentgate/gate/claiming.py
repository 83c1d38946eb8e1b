"""Claiming: the last look before an effect, and the commit without which there is none."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy.engine import Connection

from agentgate.approval import Requirement
from agentgate.breaker import Breaker
from agentgate.clock import to_us
from agentgate.core import budgets
from agentgate.core.breaking import broken
from agentgate.core.claiming import (
    INACTIVE,
    Earlier,
    Lease,
    Stop,
    Surroundings,
    Wait,
    earlier,
    expire,
    halt_where_over,
    hindrance,
    hold,
    opening,
    refuse,
    start,
    wait,
)
from agentgate.core.draft import Payload
from agentgate.core.inquiring import goes_on
from agentgate.core.judging import Judgement
from agentgate.core.proposing import Thought
from agentgate.core.reasons import doubt, error_for
from agentgate.core.recording import observed
from agentgate.core.records import ActionFile, ActionRecord, AttemptRecord, RunRecord
from agentgate.gate.activating import governs
from agentgate.gate.closing import refuse_waiting
from agentgate.gate.covering import is_gone as grant_is_gone
from agentgate.gate.grounds import Grounds
from agentgate.gate.ledger import Transaction
from agentgate.gate.pinning import Pin
from agentgate.keyring import Keyring
from agentgate.lease import Holder
from agentgate.observation import Observation
from agentgate.outcome import Outcome, Refused, Unknown
from agentgate.policy.decision import Reserve
from agentgate.process import is_gone
from agentgate.states import State
from agentgate.store import actions, locks, outcomes
from agentgate.store import budgets as budget_rows
from agentgate.store.rejections import was_rejected
from agentgate.tools.decorator import AnyTool
from agentgate.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An effect that may begin, because this was committed.

    Args:
        file: the action as claimed.
        attempt: with its fence.
        tool: what to run.
        content: the canonical bytes of its arguments.
        tenant: of the run.
        asked_us: the monotonic clock before the lease began: nothing starts a lease's length after it.
    """

    file: ActionFile
    attempt: AttemptRecord
    tool: AnyTool
    content: bytes = field(repr=False)
    tenant: str
    asked_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """Who claims what.

    Args:
        holder: this gate, as its leases name it.
        lease_us: how long a lease lasts.
        tool: the tool, as this gate knows it.
        content: the canonical bytes of the arguments.
        reserves: what the policy says the action spends.
        salt: for what a refusal says, drawn before the transaction.
        breaker: when a tool that keeps failing is left alone, where the gate says so.
        pinned: the policy that must be the active one, where the gate is pinned to its own.
        operators: who must agree that what is unknown runs once more, where no policy says so.
        keyring: whose signatures count, from outside the database; None where the gate has none.
    """

    holder: str
    lease_us: int
    tool: AnyTool
    content: bytes = field(repr=False)
    reserves: tuple[Reserve, ...]
    salt: bytes
    breaker: Breaker | None = None
    pinned: Pin | None = None
    operators: Requirement
    keyring: Keyring | None = None


def claim(
    transaction: Transaction, file: ActionFile, claimant: Claimant, judgement: Judgement | None
) -> Claim | Outcome | None:
    """Start an action that is READY or UNKNOWN, or record why it does not start.

    Args:
        transaction: open on the action's run; ``file`` was read or made in it.
        file: the action.
        claimant: who claims.
        judgement: what the policy said at this claim; None where it spoke in this same transaction.

    Returns:
        The claim; an outcome where the action waits; None where it ended, as the record then says.
    """
    draft, spec = transaction.draft, claimant.tool.spec
    action, reserves = file.action, {one.account: one.amount for one in claimant.reserves}
    place = budgets.tool(action.namespace, action.tool)
    bounds = transaction.budgets(budgets.TENANT, place, *map(budgets.account, reserves))
    around = surroundings(
        transaction.connection,
        draft.run,
        file,
        spec,
        at_us=draft.at_us,
        bounds=bounds,
        breaker=claimant.breaker,
        pinned=claimant.pinned,
    )
    hindered = hindrance(draft.run, action, around, draft.at_us, reserves=reserves)
    if hindered is None and action.state is State.READY and grant_is_gone(transaction, action, reserves):
        hindered = Stop(reason="standing_gone")
    if hindered is not None and file.action.state is State.UNKNOWN:
        answer = doubtful(transaction, file, hindered.reason, judgement)
        halt_where_over(draft, hindered.reason)
        refuse_waiting(transaction)
        return answer
    if isinstance(hindered, Wait):
        wait(draft, file, hindered)
        return waiting(file, hindered)
    if isinstance(hindered, Stop):
        refuse(draft, file, hindered.reason, payloads=_names_earlier(hindered, claimant))
        refuse_waiting(transaction)
        return None
    lease = Lease(holder=claimant.holder, lease_us=claimant.lease_us, timeout_us=to_us(spec.timeout))
    fence = actions.open_attempt(transaction.connection, opening(draft, file, lease))
    _lock(transaction, file, spec, fence)
    dedupe_us = None if spec.dedupe_window is None else to_us(spec.dedupe_window)
    started = start(draft, file, lease, fence=fence, judgement=judgement, dedupe_us=dedupe_us, reserves=reserves)
    attempt = started.current
    assert attempt is not None  # `started` made it
    return Claim(
        file=started,
        attempt=attempt,
        tool=claimant.tool,
        content=claimant.content,
        tenant=draft.run.tenant,
        asked_us=transaction.asked_us,
    )


def _names_earlier(why: Stop, claimant: Claimant) -> tuple[Payload, ...]:
    """Keep beside a refusal which action it repeats; what came of that one is read when it is told."""
    if why.earlier is None:
        return ()
    told = replace(error_for(why.reason), details={"action": why.earlier})
    content = observed(Observation(status="error", error=told))
    return (Payload(kind="result", salt=claimant.salt, content=content),)


def claim_again(
    transaction: Transaction,
    file: ActionFile,
    claimant: Claimant,
    thought: Thought,
    grounds: Grounds,
) -> Claim | Outcome | None:
    """Claim in a transaction of its own: the policy was asked again, and its answer decides (design §6).

    Args:
        transaction: open on the action's run.
        file: the action, as it stands in the transaction's draft.
        claimant: who claims.
        thought: the call, with what the policy said at this claim.
        grounds: what people's answers are judged by, and what another question would be made with.

    Returns:
        What `claim` returns; None also where the action expired or is held again: look at it once more.
    """
    draft, judgement = transaction.draft, thought.judgement
    assert judgement is not None  # the caller asked
    if expire(draft, file):
        return None
    if is_inactive(transaction.connection, draft.run, claimant.pinned):
        # Before the policy's answer is looked at: one that is not active refuses and holds nothing either.
        if file.action.state is State.UNKNOWN:
            return doubtful(transaction, file, INACTIVE.reason, None)
        wait(draft, file, INACTIVE)
        return waiting(file, INACTIVE)
    claimant = replace(claimant, pinned=None)  # it was asked
    if file.action.state is State.UNKNOWN:
        proven = partial(grounds.proven, transaction)
        if goes_on(draft, file, thought, grounds.chance, claimant.operators, proven=proven):
            return claim(transaction, file, claimant, judgement)
        return doubtful(transaction, file, None, None)
    decision = judgement.decision
    if decision.outcome in {"deny", "abort"}:
        refuse(draft, file, "aborted" if decision.outcome == "abort" else "policy_denied", judgement)
        refuse_waiting(transaction)
        return None
    if decision.requirement is None:
        return claim(transaction, file, claimant, judgement)
    return _claim_granted(transaction, file, claimant, thought, grounds)


def _claim_granted(
    transaction: Transaction, file: ActionFile, claimant: Claimant, thought: Thought, grounds: Grounds
) -> Claim | Outcome | None:
    """Claim what people have granted, whatever its rows say of it; ask them again where they have not."""
    judgement, draft = thought.judgement, transaction.draft
    assert judgement is not None  # the caller asked
    requirement = judgement.decision.requirement
    assert requirement is not None  # and the policy asks
    answered = grounds.answers(requirement)
    why = grounds.proven(transaction, requirement) if answered else None
    if answered and why is None:
        return claim(transaction, file, claimant, judgement)
    if why is not None:  # the record tells why people are asked the same again
        wait(draft, file, Wait(reason=why))
    if why == "no_keyring":  # another gate can tell; this one must not decide what it cannot see
        return waiting(file, Wait(reason=why))
    transaction.bind(budgets.TENANT, budgets.tool(file.action.namespace, file.action.tool))
    rejected = was_rejected(transaction.connection, draft.run.id, file.action.request)
    hold(draft, file, thought, grounds.chance, rejected=rejected)
    return None


def doubtful(transaction: Transaction, file: ActionFile, reason: str | None, judgement: Judgement | None) -> Unknown:
    """Leave an unknown outcome where it is, and record what kept it from being tried again."""
    if reason is not None:
        wait(transaction.draft, file, Wait(reason=reason), judgement)
    action = file.action
    return Unknown(
        action=action.id,
        digest=action.digest.hex(),
        reason=action.reason or "unknown_outcome",
        attempt=action.attempts,
        error=doubt(action.reason),
    )


def waiting(file: ActionFile, why: Wait) -> Refused:
    """Answer that an action may not start now, and stays as it was."""
    return Refused(
        action=file.action.id,
        digest=file.action.digest.hex(),
        reason=why.reason,
        error=error_for(why.reason),
        retryable=True,
        blocking=why.blocking,
    )


def surroundings(
    connection: Connection,
    run: RunRecord,
    file: ActionFile,
    spec: ToolSpec,
    *,
    at_us: int,
    bounds: Sequence[budgets.Budget] | None = None,
    breaker: Breaker | None = None,
    pinned: Pin | None = None,
) -> Surroundings:
    """Read what stands in an action's way: in the claim's transaction, or in a snapshot of somebody who waits.

    Args:
        connection: either.
        run: as it was read there.
        file: the action.
        spec: its tool's.
        at_us: ledger time.
        bounds: the budgets that concern it, where they were read already.
        breaker: the gate's, where it has one.
        pinned: the gate's, where it is pinned.
    """
    action = file.action
    place = budgets.tool(action.namespace, action.tool)
    if bounds is None:
        places = (budgets.TENANT, place)
        bounds = budget_rows.read(connection, tenant=run.tenant, places=places) if run.budgeted else ()
    paused = locks.paused(connection, tenant=run.tenant, namespace=action.namespace, tool=action.tool)
    resource = locked_resource(file, spec)
    held = (
        _unanswered(connection, file, spec, at_us=at_us)
        if resource is None
        else locks.holder(connection, tenant=run.tenant, resource=resource)
    )
    deduped = spec.dedupe_window is not None and action.state is State.READY
    return Surroundings(
        paused=paused,
        inactive=is_inactive(connection, run, pinned),
        resource_held_by=None if held is None else held[0],
        holder_unknown=held is not None and held[1],
        repeats=locks.earlier(connection, action, at_us=at_us) if deduped else None,
        budgets=tuple(bounds),
        tool_fails=_fails(connection, run.tenant, place, bounds),
        broken=_broken(connection, action, breaker, at_us=at_us),
        earlier=_earlier(connection, action, spec),
    )


def is_inactive(connection: Connection, run: RunRecord, pinned: Pin | None) -> bool:
    """Tell whether a gate is pinned, and its policy is not the active one of the run's tenant."""
    return pinned is not None and not governs(connection, pinned.ledger, tenant=run.tenant, policy=pinned.policy)


def _earlier(connection: Connection, action: ActionRecord, spec: ToolSpec) -> Earlier | None:
    if action.revision == 1 or spec.risk == "read_only":
        return None
    return earlier(actions.answered_late(connection, action))


def _fails(connection: Connection, tenant: str, place: budgets.Place, bounds: Sequence[budgets.Budget]) -> bool:
    """Tell whether the tool has failed as often in a row as it may: looked up where anybody bounded that."""
    most = next((one.most for one in bounds if (one.place, one.measure) == (place, "failures")), None)
    return most is not None and budget_rows.all_failed(connection, tenant=tenant, place=place, most=most)


def _broken(connection: Connection, action: ActionRecord, breaker: Breaker | None, *, at_us: int) -> Wait | None:
    """Ask the breaker, where there is one: what came of the tool's last actions, in one statement."""
    if breaker is None:
        return None
    tried = outcomes.last(connection, action, most=breaker.of)
    trying = [one for one in tried if one.ended is None and one.lease_until_us > at_us and not _is_gone(one.holder)]
    return broken(breaker, tried, trying=trying[0].action if trying else None, at_us=at_us)


def _unanswered(connection: Connection, file: ActionFile, spec: ToolSpec, *, at_us: int) -> tuple[str, bool] | None:
    """Return the action that this one may repeat without anybody knowing, where it has no resource (design §5).

    An outcome that is unknown blocks; a worker that is gone is in the way until somebody takes over from it.
    """
    if spec.risk == "read_only" or file.action.resource is not None or file.action.state is not State.READY:
        return None
    found = locks.unanswered(connection, file.action)
    doubted = next((id_ for id_, holder, _ in found if holder is None), None)
    if doubted is not None:
        return doubted, True
    left = (id_ for id_, holder, until_us in found if until_us <= at_us or _is_gone(holder))
    behind = next(left, None)
    return None if behind is None else (behind, False)


def _is_gone(holder: str) -> bool:
    named = Holder.parse(holder)
    return named is not None and is_gone(named)


def locked_resource(file: ActionFile, spec: ToolSpec) -> bytes | None:
    """Return the resource that an attempt takes for itself; reads that run in parallel take none."""
    return None if spec.parallel else file.action.resource


def _lock(transaction: Transaction, file: ActionFile, spec: ToolSpec, fence: int) -> None:
    resource, run = locked_resource(file, spec), transaction.draft.run
    if resource is not None:
        locks.take(
            transaction.connection,
            tenant=run.tenant,
            resource=resource,
            run=run.id,
            action=file.action.id,
            fence=fence,
        )
