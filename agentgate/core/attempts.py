"""What events do to an action's attempts: started, ended, doubted, answered."""

from dataclasses import replace
from types import MappingProxyType

from agentgate.core.questions import Body, end, hanging, maybe_bytes
from agentgate.core.records import ActionFile, AttemptRecord, AttemptState
from agentgate.errors import Damaged
from agentgate.event import Event
from agentgate.states import State


def started(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Open the next attempt; a grant it runs under is used, any other question is void."""
    attempt = AttemptRecord(
        fence=body["fence"],
        run=event.run,
        action=str(event.action),
        number=body["attempt"],
        state="open",
        unresolved=False,
        holder=body["holder"],
        started_at_us=event.at_us,
        lease_until_us=body["lease_until_us"],
        deadline_us=body["deadline_us"],
        approval=body.get("approval"),
        started_n=event.n,
        ended_n=None,
        late_n=None,
    )
    if attempt.number != file.action.attempts + 1:
        raise Damaged(f"action {event.action}", f"event {event.n} starts attempt {attempt.number} out of turn")
    if attempt.approval is not None:
        hanging(file, event, attempt.approval, "granted")
    file = end(file, event, "used" if attempt.approval is not None else "void")
    taken = tuple((one["account"], one["amount"]) for one in body.get("reserves", ()))
    if taken and file.action.state is State.UNKNOWN:  # what it took when it was READY still stands
        raise Damaged(f"action {event.action}", f"event {event.n} reserves twice")
    action = replace(
        file.action,
        reserved=file.action.reserved if file.action.state is State.UNKNOWN else taken,
        dedupe_until_us=body.get("dedupe_until_us"),
        attempts=attempt.number,
        fence=attempt.fence,
        first_started_us=file.action.first_started_us or event.at_us,
    )
    return replace(file, action=action, attempts=MappingProxyType({**file.attempts, attempt.number: attempt}))


def _end_attempt(file: ActionFile, event: Event, body: Body, *, state: AttemptState, unresolved: bool) -> ActionFile:
    attempt = file.attempts.get(body["attempt"])
    if attempt is None or attempt.state != "open" or attempt.fence != body["fence"]:
        raise Damaged(f"action {event.action}", f"event {event.n} ends an attempt that is not open")
    ended = replace(attempt, state=state, ended_n=event.n, unresolved=unresolved)
    action = replace(
        file.action,
        unresolved=file.action.unresolved + unresolved - attempt.unresolved,
        result_n=event.n if "result" in body["payloads"] else file.action.result_n,
        outcome=maybe_bytes(body.get("outcome")) or file.action.outcome,
    )
    return replace(file, action=action, attempts=MappingProxyType({**file.attempts, ended.number: ended}))


def succeeded(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """End the attempt well, which answers every earlier doubt about the action: it has happened."""
    ended = _end_attempt(file, event, body, state="succeeded", unresolved=False)
    return _resolved(_settled(ended, body), numbers=None)


def _settled(file: ActionFile, body: Body) -> ActionFile:
    """Take note of what was spent in the end; accounts that are not named keep what was reserved."""
    if not body["settled"]:
        return file
    spent = {one["account"]: one["amount"] for one in body["settled"]}
    reserved = tuple((account, spent.pop(account, amount)) for account, amount in file.action.reserved)
    return replace(file, action=replace(file.action, reserved=(*reserved, *spent.items())))


def failed(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """End the attempt with nothing done: its grant is as good as new (design §3)."""
    file = _end_attempt(file, event, body, state="failed", unresolved=False)
    current = file.attempts[body["attempt"]]
    grant = file.approvals.get(current.approval or "")
    if grant is None or grant.state != "used":
        return file
    given_back = replace(grant, state="granted", state_n=event.n)
    return replace(file, approvals=MappingProxyType({**file.approvals, grant.id: given_back}))


def in_doubt(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """End the attempt without knowing whether it happened; its grant stays used."""
    return _end_attempt(file, event, body, state="in_doubt", unresolved=True)


def late(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Keep an earlier attempt's result; unless it proves that nothing happened, the attempt is open to doubt again."""
    attempt = file.attempts.get(body["attempt"])
    if attempt is None or attempt.state == "open" or attempt.fence != body["fence"]:
        raise Damaged(f"action {event.action}", f"event {event.n} is a late result of no attempt that has ended")
    reopened = not body["clean"] or attempt.unresolved
    action = replace(file.action, unresolved=file.action.unresolved + reopened - attempt.unresolved)
    attempts = {**file.attempts, attempt.number: replace(attempt, unresolved=reopened, late_n=event.n)}
    file = replace(file, action=action, attempts=MappingProxyType(attempts))
    voids = {State.UNKNOWN} if body["clean"] else {State.HELD, State.READY, State.FAILED, State.UNKNOWN}
    return end(file, event, "void") if file.action.state in voids else file


def _resolved(file: ActionFile, *, numbers: frozenset[int] | None) -> ActionFile:
    """Take the doubt from these attempts, or from all of them."""
    answered = {
        number: replace(attempt, unresolved=False)
        for number, attempt in file.attempts.items()
        if attempt.unresolved and (numbers is None or number in numbers)
    }
    left = 0 if numbers is None else file.action.unresolved - len(answered)
    return replace(
        file,
        action=replace(file.action, unresolved=left),
        attempts=MappingProxyType({**file.attempts, **answered}),
    )


def reconciled(file: ActionFile, event: Event, body: Body) -> ActionFile:
    """Take the doubt from the attempts that somebody answered for; a question that this answers is used."""
    doubted = {number for number, attempt in file.attempts.items() if attempt.unresolved}
    # An answer that moves the action must leave no doubt behind: READY and SUCCEEDED block nothing.
    if not doubted.issuperset(body["attempts"]) or (
        file.action.state is State.UNKNOWN and doubted != set(body["attempts"])
    ):
        raise Damaged(f"action {event.action}", f"event {event.n} answers for other attempts than those in doubt")
    if "approval" in body:
        hanging(file, event, body["approval"], "pending")
    ended = _settled(_resolved(file, numbers=frozenset(body["attempts"])), body)
    file = end(ended, event, "used" if "approval" in body else "void")
    action = replace(
        file.action,
        result_n=event.n if "result" in body["payloads"] else file.action.result_n,
        outcome=maybe_bytes(body.get("outcome")) or file.action.outcome,
    )
    return replace(file, action=action)


def confirmed(file: ActionFile, _event: Event, _body: Body) -> ActionFile:
    """Remember that the tool's check found the world as it should be."""
    return replace(file, action=replace(file.action, confirmed="yes"))


def contradicted(file: ActionFile, _event: Event, _body: Body) -> ActionFile:
    """Remember that the tool's check did not."""
    return replace(file, action=replace(file.action, confirmed="no"))


def took_us(file: ActionFile | None, event: Event) -> int:
    """Return how long the attempt that an event ends has lasted; 0 for every other event."""
    if file is None or event.type not in {"succeeded", "failed", "in_doubt"}:
        return 0
    attempt = file.current
    return 0 if attempt is None else max(0, event.at_us - attempt.started_at_us)
