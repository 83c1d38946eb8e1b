"""What ``--json`` writes of runs, actions and events: stable names, times in microseconds UTC, digests in hex.

docs/cli.md shows each document.
"""

from dataclasses import asdict
from datetime import UTC, datetime

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.gate.inbox import Waiting
from agentgate.gate.views import ActionSummary, ActionView, ApprovalView, AttemptView, EventView, RunSummary, Step
from agentgate.outcome import Late

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run_document(run: RunSummary) -> dict[str, Json]:
    """Write a run."""
    return {
        "id": run.id,
        "tenant": run.tenant,
        "name": run.name,
        "principal": run.principal,
        "goal": run.goal,
        "state": run.state,
        "reason": run.reason,
        "opened_at_us": at_us(run.opened_at),
        "last_at_us": at_us(run.last_at),
        "events": run.events,
        "limits": dict(run.limits),
        "counters": asdict(run.counters),
    }


def waiting_document(waiting: Waiting) -> dict[str, Json]:
    """Write something that waits for a person."""
    return {
        "kind": waiting.kind,
        "since_us": at_us(waiting.since),
        "until_us": None if waiting.until is None else at_us(waiting.until),
        "reason": waiting.reason,
        "tenant": waiting.tenant,
        "run": waiting.run,
        "name": waiting.name,
        "action": waiting.action,
        "namespace": waiting.namespace,
        "tool": waiting.tool,
        "approval": waiting.approval,
        "late": waiting.late,
    }


def event_document(event: EventView) -> dict[str, Json]:
    """Write an event as it is hashed, beside its hash."""
    return {"hash": event.hash, "event": dict(event.document)}


def summary_document(action: ActionSummary) -> dict[str, Json]:
    """Write an action of a list."""
    return {
        "id": action.id,
        "run": action.run,
        "namespace": action.namespace,
        "tool": action.tool,
        "key": action.key.to_json(),
        "revision": action.revision,
        "state": action.state,
        "reason": action.reason,
        "attempts_made": action.attempts,
        "proposed_at_us": at_us(action.proposed_at),
    }


def action_document(action: ActionView) -> dict[str, Json]:
    """Write an action with all that is recorded of it."""
    return summary_document(action.summary) | {
        "run": {"id": action.run.id, "name": action.run.name, "tenant": action.run.tenant, "state": action.run.state},
        "principal": action.principal,
        "digest": action.digest,
        "risk": action.risk,
        "expires_at_us": None if action.expires_at is None else at_us(action.expires_at),
        "waited": list(action.waited),
        "sealed": list(action.sealed),
        "unresolved": action.unresolved,
        "proposed": dict(action.proposed),
        "observation": None if action.observation is None else action.observation.to_json(),
        "attempts": [_attempt(attempt) for attempt in action.attempts],
        "approvals": [_approval(approval) for approval in action.approvals],
        "steps": [_step(step) for step in action.steps],
    }


def _attempt(attempt: AttemptView) -> dict[str, Json]:
    return {
        "number": attempt.number,
        "fence": attempt.fence,
        "state": attempt.state,
        "unresolved": attempt.unresolved,
        "holder": attempt.holder,
        "started_at_us": at_us(attempt.started_at),
        "ended_at_us": None if attempt.ended_at is None else at_us(attempt.ended_at),
        "lease_until_us": at_us(attempt.lease_until),
        "late": None if attempt.late is None else _late(attempt.late),
    }


def _late(late: Late) -> dict[str, Json]:
    return {
        "status": late.status,
        "code": late.code,
        "at_us": at_us(late.at),
        "observation": None if late.observation is None else late.observation.to_json(),
    }


def _approval(approval: ApprovalView) -> dict[str, Json]:
    return {
        "id": approval.id,
        "kind": approval.kind,
        "state": approval.state,
        "digest": approval.digest,
        "asked_at_us": at_us(approval.asked_at),
        "expires_at_us": at_us(approval.expires_at),
        "shown": approval.shown,
    }


def _step(step: Step) -> dict[str, Json]:
    document: dict[str, Json] = {
        "n": step.event.n,
        "type": step.event.type,
        "at_us": at_us(step.event.at),
        "texts": dict(step.texts),
        "evidence": step.evidence,
    }
    if step.decision is not None:
        reasons: list[Json] = [{"code": reason.code, "text": reason.text} for reason in step.decision.reasons]
        document["decision"] = step.decision.to_json() | {"reasons": reasons}
    return document


def at_us(at: datetime) -> int:
    """Turn a time back into what the record holds."""
    return to_us(at - _EPOCH)
