"""What an event does to the state tables: one function for the writer and for `verify`.

`fold_action` (and `counting.fold_run`) turn the records before an event into those after it. The store writes what
changed; verification folds a stored chain again and compares. An event that the state table has no
row for is `Damaged`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from agentgate.action import Key
from agentgate.core.attempts import (
    confirmed,
    contradicted,
    failed,
    in_doubt,
    late,
    reconciled,
    started,
    succeeded,
)
from agentgate.core.questions import (
    Body,
    answers,
    approved,
    ask,
    ends,
    held,
    maybe_bytes,
    question_asked,
    vote_revoked,
    voted,
)
from agentgate.core.records import ActionFile, ActionRecord
from agentgate.errors import Damaged
from agentgate.event import Event
from agentgate.states import State, advance

_QUALIFIED = {"proposed": "outcome", "reconciled": "verdict"}


def state_event(event: Event, file: ActionFile | None) -> str:
    """Name the event as the state table does, with its qualifier where one decides."""
    field = _QUALIFIED.get(event.type)
    if field is not None:
        return f"{event.type}.{event.body[field]}"
    if event.type == "late":
        return "late.clean" if event.body["clean"] else "late"
    if event.type == "failed" and file is not None and file.action.unresolved:
        return "failed.unresolved"
    return event.type


def fold_action(file: ActionFile | None, event: Event) -> ActionFile:
    """Return an action's records after ``event``.

    Raises:
        Damaged: the state table has no row for this event here.
    """
    before = State.NEW if file is None else file.action.state
    word = state_event(event, file)
    after = advance(before, word)
    if after is None:
        raise Damaged(f"action {event.action}", f"event {event.n} ({word}) cannot follow {before}")
    if file is None:
        return _proposed(event, after)
    change = _CHANGES.get(event.type)
    changed = file if change is None else change(file, event, event.body)
    return replace(changed, action=_moved(file.action, changed.action, event, after))


def _moved(before: ActionRecord, changed: ActionRecord, event: Event, after: State) -> ActionRecord:
    """Set what every event sets: where the action stands and which event said so."""
    fields: dict[str, Any] = {"last_n": event.n}
    if before.state is not after or event.type == "held":
        fields |= {"state": after, "state_n": event.n, "reason": _reason(event, after), "waited": ()}
        fields["expires_at_us"] = _expiry(event, after)
    elif after is State.REFUSED and event.type == "reconciled" and event.body["verdict"] == "applied":
        fields["reason"] = "happened"  # whatever it was refused for, its key opens no other revision
    return replace(changed, **fields)


def _reason(event: Event, after: State) -> str | None:
    if event.type in {"proposed", "refused"}:
        reason = event.body.get("reason")
        return None if reason is None else str(reason)
    if event.type in {"failed", "in_doubt"}:
        return str(event.body["code"])
    if event.type == "reconciled" and after is State.SUCCEEDED:
        return event.type
    return event.type if after in {State.REFUSED, State.UNKNOWN, State.ABANDONED} else None


def _expiry(event: Event, after: State) -> int | None:
    """READY ends by itself; the event that leads there says when."""
    if after is not State.READY:
        return None
    body: Body = event.body
    until = body.get("expires_at_us", body.get("until_us"))
    return None if until is None else int(until)


def _proposed(event: Event, after: State) -> ActionFile:
    body: Body = event.body
    action = ActionRecord(
        id=str(event.action),
        run=event.run,
        tenant="",  # the run's: `fold_run` knows it, see `with_tenant`
        principal=body["principal"],
        namespace=body["namespace"],
        tool=body["tool"],
        key=Key(**body["key"]),
        revision=body["revision"],
        spec=maybe_bytes(body.get("spec")),
        digest=bytes.fromhex(body["digest"]),
        request=maybe_bytes(body.get("request")),
        resource=maybe_bytes(body.get("resource")),
        proposed_n=event.n,
        proposed_at_us=event.at_us,
        state=after,
        reason=_reason(event, after),
        state_n=event.n,
        last_n=event.n,
        expires_at_us=_expiry(event, after),
        edits=body["edits"]["action"] if "edits" in body else None,
        edited_by=body["edits"]["by"] if "edits" in body else None,
    )
    file = ActionFile(action=action)
    return ask(file, event, body, kind="approval") if "approval" in body else file


def waited(file: ActionFile, _event: Event, body: Body) -> ActionFile:
    """Remember why it waits, so that each reason is recorded once while it stands where it stands."""
    if body["reason"] in file.action.waited:
        return file
    return replace(file, action=replace(file.action, waited=(*file.action.waited, body["reason"])))


_CHANGES: Mapping[str, Callable[[ActionFile, Event, Body], ActionFile]] = MappingProxyType(
    {
        "held": held,
        "question_asked": question_asked,
        "approved": approved,
        "voted": voted,
        "vote_revoked": vote_revoked,
        "rejected": answers("pending", "rejected"),
        "question_expired": answers("pending", "expired"),
        "grant_expired": answers("granted", "expired"),
        "grant_revoked": answers("granted", "revoked"),
        "action_expired": ends("void"),
        "cancelled": ends("void"),
        "superseded": ends("void"),
        "refused": ends("void"),
        "abandoned": ends("void"),
        "started": started,
        "succeeded": succeeded,
        "failed": failed,
        "in_doubt": in_doubt,
        "late": late,
        "reconciled": reconciled,
        "waited": waited,
        "confirmed": confirmed,
        "contradicted": contradicted,
    }
)


def with_tenant(file: ActionFile, tenant: str) -> ActionFile:
    """Give a freshly proposed action its run's tenant, which its own event does not repeat."""
    return replace(file, action=replace(file.action, tenant=tenant))
