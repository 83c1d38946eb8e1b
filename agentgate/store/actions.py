"""Rows of actions, their attempts and approvals; `agentgate.store.votes` has the votes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import Integer, bindparam, case, func, insert, or_, select, update
from sqlalchemy.engine import Connection

from agentgate.action import Key
from agentgate.bodies import AMOUNTS
from agentgate.canonical import Json, canonical, parse
from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord, AttemptRecord, VoteRecord
from agentgate.errors import Damaged, NotCanonical
from agentgate.states import State
from agentgate.store import votes
from agentgate.store.schema import WAITING, actions, approvals, attempts, runs
from agentgate.store.statements import Row, Statement, flag, insert_all

RECENT = 16
_BETWEEN = "\n"  # a code is printable text, which may hold a space but never a newline

_ACTION_FIELDS = tuple(field.name for field in fields(ActionRecord))
_MOVING = (
    "state", "reason", "state_n", "last_n", "attempts", "unresolved", "fence", "approval", "requirement", "asked",
    "first_started_us", "expires_at_us", "result_n", "outcome", "waited", "confirmed", "reserved", "dedupe_until_us",
)  # fmt: skip
_ATTEMPT_FIELDS = tuple(field.name for field in fields(AttemptRecord))
_APPROVAL_FIELDS = tuple(field.name for field in fields(ApprovalRecord))

_BY_ID = Statement(select(actions).where(actions.c.id == bindparam("id")))
_OF_KEY = (
    actions.c.tenant == bindparam("tenant"),
    actions.c.namespace == bindparam("namespace"),
    actions.c.tool == bindparam("tool"),
    actions.c.key_source == bindparam("source"),
    actions.c.key_scope == bindparam("scope"),
    actions.c.key_text == bindparam("text"),
)
_BY_KEY = Statement(select(actions).where(*_OF_KEY).order_by(actions.c.revision.desc()).limit(1))
_ATTEMPTED = Statement(select(actions.c.id).where(*_OF_KEY, actions.c.attempts > 0).limit(1))
_ANSWERED_LATE = Statement(
    select(actions)
    .where(
        *_OF_KEY,
        actions.c.revision < bindparam("before"),
        or_(actions.c.unresolved > 0, actions.c.reason == "happened"),
    )
    .order_by(actions.c.revision)
)
_OF_RUN = Statement(
    select(actions)
    .where(actions.c.run == bindparam("run"), actions.c.id > bindparam("after"))
    .order_by(actions.c.id)
    .limit(bindparam("size"))
)
_WAITING = Statement(select(actions.c.id).where(actions.c.run == bindparam("run"), WAITING))
_RECENT = Statement(
    select(
        actions.c.id,
        actions.c.namespace,
        actions.c.tool,
        actions.c.state,
        actions.c.reason,
        actions.c.request,
        actions.c.outcome,
    )
    .where(actions.c.run == bindparam("run"))
    .order_by(actions.c.id.desc())
    .limit(RECENT)
)
_last = (
    select(actions.c.id, actions.c.outcome)
    .where(actions.c.run == bindparam("run"))
    .order_by(actions.c.id.desc())
    .limit(RECENT)
    .subquery()
)
_ALIKE = Statement(select(func.count()).where(_last.c.outcome == bindparam("outcome"), _last.c.id != bindparam("but")))
_MOVE = Statement(
    update(actions)
    .where(
        actions.c.id == bindparam("id_"),
        actions.c.state == bindparam("was_state"),
        actions.c.last_n == bindparam("was_last_n"),
        actions.c.fence.is_not_distinct_from(bindparam("was_fence")),
    )
    .values({name: bindparam(name) for name in _MOVING})
)
_ATTEMPTS = Statement(
    select(*(attempts.c[name] for name in _ATTEMPT_FIELDS)).where(attempts.c.action == bindparam("action"))
)
_OPEN_ATTEMPT = Statement(
    insert(attempts).values({name: bindparam(name) for name in _ATTEMPT_FIELDS if name != "fence"})
)
_MOVE_ATTEMPT = Statement(
    update(attempts)
    .where(
        attempts.c.fence == bindparam("fence_"),
        attempts.c.state == bindparam("was_state"),
        attempts.c.unresolved == bindparam("was_unresolved"),
    )
    .values({name: bindparam(name) for name in ("state", "unresolved", "ended_n", "late_n")})
)
_APPROVALS = Statement(
    select(*(approvals.c[name] for name in _APPROVAL_FIELDS)).where(approvals.c.action == bindparam("action"))
)
_MOVE_APPROVAL = Statement(
    update(approvals)
    .where(approvals.c.id == bindparam("id_"), approvals.c.state == bindparam("was_state"))
    .values({name: bindparam(name) for name in ("state", "state_n", "until_us")})
)
_RENEW = Statement(
    update(attempts)
    .where(
        attempts.c.fence == bindparam("fence_"), attempts.c.holder == bindparam("holder_"), attempts.c.state == "open"
    )
    .values(
        # From the later of the ledger's clock and the run's own time, by which others judge it (design §5, Clocks):
        # a clock that was set back must not end the lease of a worker that lives.
        lease_until_us=bindparam("lease_us", type_=Integer)
        + select(case((runs.c.at_us > bindparam("now_us"), runs.c.at_us), else_=bindparam("now_us", type_=Integer)))
        .where(runs.c.id == attempts.c.run)
        .scalar_subquery()
    )
)


def _action(row: Row) -> ActionRecord:
    (id_, run, tenant, principal, namespace, tool, source, scope, text, revision, *rest) = row
    *middle, state, reason, state_n, last_n, tries, unresolved, fence, approval, requirement, asked = rest[:16]
    spec, digest, request, resource, proposed_n, proposed_at_us = middle
    first_started_us, expires_at_us, result_n, outcome, waited, confirmed, amounts, dedupe_until_us, *edit = rest[16:]
    edits, edited_by = edit
    return ActionRecord(
        id=id_,
        run=run,
        tenant=tenant,
        principal=principal,
        namespace=namespace,
        tool=tool,
        key=Key(source=source, scope=scope, text=text),
        revision=revision,
        spec=spec,
        digest=digest,
        request=request,
        resource=resource,
        proposed_n=proposed_n,
        proposed_at_us=proposed_at_us,
        state=_state(id_, state),
        reason=reason,
        state_n=state_n,
        last_n=last_n,
        attempts=tries,
        unresolved=unresolved,
        fence=fence,
        approval=approval,
        requirement=requirement,
        asked=asked,
        first_started_us=first_started_us,
        expires_at_us=expires_at_us,
        result_n=result_n,
        outcome=outcome,
        waited=tuple(waited.split(_BETWEEN)) if waited else (),
        confirmed=confirmed,
        reserved=() if amounts is None else reserved(id_, amounts),
        dedupe_until_us=dedupe_until_us,
        edits=edits,
        edited_by=edited_by,
    )


def reserved(action: str, encoded: bytes) -> tuple[tuple[str, int], ...]:
    """Read what an action reserved as its row's column holds it.

    Raises:
        Damaged: it is no list of amounts.
    """
    try:
        amounts = parse(encoded)
    except NotCanonical as error:
        raise Damaged(f"action {action}", "what it reserved is no JSON") from error
    if AMOUNTS(amounts, "") is not None:
        raise Damaged(f"action {action}", "what it reserved is no list of amounts")
    listed: Any = amounts
    return tuple((one["account"], one["amount"]) for one in listed)


def _state(action: str, word: str) -> State:
    try:
        return State(word)
    except ValueError as error:
        raise Damaged(f"action {action}", f"is in no state of an action ({word!r})") from error


def to_row(action: ActionRecord) -> dict[str, Any]:
    """Return an action as its row's columns hold it."""
    row = {name: getattr(action, name) for name in _ACTION_FIELDS if name != "key"}
    row["state"], row["waited"] = action.state.value, _BETWEEN.join(action.waited)
    amounts: list[Json] = [{"account": account, "amount": amount} for account, amount in action.reserved]
    row["reserved"] = canonical(amounts) if amounts else None
    row["key_source"], row["key_scope"], row["key_text"] = action.key.source, action.key.scope, action.key.text
    return row


def read(connection: Connection, id: str) -> ActionRecord | None:
    """Read an action's row by id."""
    row = _BY_ID.row(connection, id=id)
    return None if row is None else _action(row)


def newest(connection: Connection, *, tenant: str, namespace: str, tool: str, key: Key) -> ActionRecord | None:
    """Read the newest revision of a key."""
    row = _BY_KEY.row(connection, **_of_key(tenant, namespace, tool, key))
    return None if row is None else _action(row)


def was_attempted(connection: Connection, action: ActionRecord) -> bool:
    """Tell whether any revision of an action's key has ever started."""
    named = _of_key(action.tenant, action.namespace, action.tool, action.key)
    return _ATTEMPTED.row(connection, **named) is not None


def answered_late(connection: Connection, action: ActionRecord) -> list[ActionRecord]:
    """Read the earlier revisions of an action's key that are in doubt again, or known to have happened."""
    named = _of_key(action.tenant, action.namespace, action.tool, action.key)
    return [_action(row) for row in _ANSWERED_LATE.rows(connection, **named, before=action.revision)]


def _of_key(tenant: str, namespace: str, tool: str, key: Key) -> dict[str, str]:
    named = {"source": key.source, "scope": key.scope, "text": key.text}
    return {"tenant": tenant, "namespace": namespace, "tool": tool, **named}


def of_run(connection: Connection, run: str, *, after: str = "", size: int = 200) -> list[ActionRecord]:
    """Read the next page of a run's actions, by id; the empty list is the end."""
    return [_action(row) for row in _OF_RUN.rows(connection, run=run, after=after, size=size)]


def recent(connection: Connection, run: str) -> list[Row]:
    """Read the newest actions of a run, newest first: (id, namespace, tool, state, reason, request, outcome)."""
    return _RECENT.rows(connection, run=run)


def alike(connection: Connection, run: str, *, outcome: bytes, but: str) -> int:
    """Count which of a run's newest actions, one left out, came to the same outcome."""
    row = _ALIKE.row(connection, run=run, outcome=outcome, but=but)
    return 0 if row is None else int(row[0])


def waiting(connection: Connection, run: str) -> list[str]:
    """Read the ids of a run's actions that are READY or HELD."""
    return [row[0] for row in _WAITING.rows(connection, run=run)]


def file(connection: Connection, id: str) -> ActionFile | None:
    """Read an action with its attempts, approvals and votes."""
    action = read(connection, id)
    if action is None:
        return None
    tries = [_attempt(row) for row in _ATTEMPTS.rows(connection, action=id)] if action.attempts else []
    asked: Mapping[str, ApprovalRecord] = MappingProxyType({})
    answered: Mapping[int, VoteRecord] = MappingProxyType({})
    if action.approval is not None:
        found = [
            ApprovalRecord(**dict(zip(_APPROVAL_FIELDS, row, strict=True)))
            for row in _APPROVALS.rows(connection, action=id)
        ]
        asked = MappingProxyType({one.id: one for one in found})
        answered = MappingProxyType({vote.n: vote for vote in votes.of_action(connection, id)})
    numbered = MappingProxyType({attempt.number: attempt for attempt in tries})
    return ActionFile(action=action, attempts=numbered, approvals=asked, votes=answered)


def _attempt(row: Row) -> AttemptRecord:
    attempt = AttemptRecord(**dict(zip(_ATTEMPT_FIELDS, row, strict=True)))
    return replace(attempt, unresolved=flag(f"attempt {attempt.fence}", attempt.unresolved))


def add(connection: Connection, files: Sequence[ActionFile]) -> None:
    """Write new actions, and what was asked about them; what else they have, `write` writes."""
    insert_all(connection, actions, [to_row(file.action) for file in files])
    insert_all(connection, approvals, [asdict(asked) for file in files for asked in file.approvals.values()])


def write(connection: Connection, before: ActionFile | None, after: ActionFile) -> bool:
    """Write what changed of an action that is there; return False if another transaction moved it.

    A new attempt is there already, open: `open_attempt` wrote it, to be given its fence.
    """
    if before is None:
        before = replace(after, attempts=MappingProxyType({}), votes=MappingProxyType({}))  # the rest `add` has written
    elif before.action is not after.action and not _move(connection, before.action, after.action):
        return False
    return (
        _write_attempts(connection, before, after)
        and _write_approvals(connection, before, after)
        and votes.write(connection, before.votes, after.votes)
    )


def _move(connection: Connection, before: ActionRecord, after: ActionRecord) -> bool:
    row = to_row(after)
    where = {
        "id_": after.id,
        "was_state": before.state.value,
        "was_last_n": before.last_n,
        "was_fence": before.fence,
    }
    return _MOVE.write(connection, {name: row[name] for name in _MOVING} | where) == 1


def _write_attempts(connection: Connection, before: ActionFile, after: ActionFile) -> bool:
    for number, attempt in after.attempts.items():
        was = before.attempts.get(number) or replace(attempt, state="open", unresolved=False, ended_n=None, late_n=None)
        if was == attempt:
            continue
        moved = {
            "fence_": attempt.fence,
            "was_state": was.state,
            "was_unresolved": int(was.unresolved),
            "state": attempt.state,
            "unresolved": int(attempt.unresolved),
            "ended_n": attempt.ended_n,
            "late_n": attempt.late_n,
        }
        if _MOVE_ATTEMPT.write(connection, moved) != 1:
            return False
    return True


def _write_approvals(connection: Connection, before: ActionFile, after: ActionFile) -> bool:
    for id_, approval in after.approvals.items():
        was = before.approvals.get(id_)
        if was is None:
            insert_all(connection, approvals, [asdict(approval)])
        elif was != approval:
            moved = {"id_": id_, "was_state": was.state, "state": approval.state, "state_n": approval.state_n}
            if _MOVE_APPROVAL.write(connection, moved | {"until_us": approval.until_us}) != 1:
                return False
    return True


def open_attempt(connection: Connection, attempt: AttemptRecord) -> int:
    """Write a new attempt and return its fence: the next of one ledger-wide sequence."""
    row = asdict(attempt) | {"unresolved": 0}
    del row["fence"]
    return _OPEN_ATTEMPT.insert_one(connection, row)


def renew(connection: Connection, *, fence: int, holder: str, now_us: int, lease_us: int) -> bool:
    """Extend an open attempt's lease to a whole one from now; return False where it is no longer ours."""
    moved = {"fence_": fence, "holder_": holder, "now_us": now_us, "lease_us": lease_us}
    return _RENEW.write(connection, moved) == 1
