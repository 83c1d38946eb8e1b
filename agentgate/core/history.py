"""What a run's chain says of one action, and whether the action's rows say the same: the look before a claim.

Whoever writes the database can write any row. No effect begins on a row alone: every event that is about the action is
read, and folded by the function that wrote the rows. That the whole chain hangs together is `verify`'s to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from agentgate.approval import requirement_digest
from agentgate.chain import Link
from agentgate.core.fold import fold_action, with_tenant
from agentgate.core.records import ActionFile, RunRecord
from agentgate.core.voting import demanded
from agentgate.errors import Damaged
from agentgate.event import Event, decode, event_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """An action as its events tell it.

    Args:
        file: what they add up to.
        events: those that are about it, from its proposal on, each what its hash says.
    """

    file: ActionFile
    events: tuple[Event, ...]

    def event(self, n: int) -> Event | None:
        """Return the one at a place of the chain, where it is about the action."""
        return next((event for event in self.events if event.n == n), None)


def told(run: RunRecord, file: ActionFile, links: Sequence[Link], *, stored: int) -> History:
    """Return an action's history, which its rows agree with.

    Args:
        run: its run's row; nothing has been drafted yet.
        file: its own rows.
        links: those from its proposal on that name it, in order, and the run's last one.
        stored: how many links there are from its proposal on.

    Raises:
        Damaged: a link is missing or not what its hash says, or a row says what no event says.
    """
    action, where = file.action, f"action {file.action.id}"
    if stored != run.n + 1 - action.proposed_n or not links or links[-1].n != run.n or links[-1].hash != run.head:
        raise Damaged(where, f"its run does not hold every event from {action.proposed_n} to {run.n}")
    events = tuple(_checked(run, link) for link in links)
    own = tuple(event for event in events if event.action == action.id)
    folded: ActionFile | None = None
    for event in own:
        folded = fold_action(folded, event)
    if folded is None:
        raise Damaged(where, "no event of its run is about it")
    folded = with_tenant(folded, run.tenant)
    difference = _difference(file, folded)
    if difference is not None:
        raise Damaged(where, f"{difference} is not what its events say")
    for asked in folded.approvals.values():
        if requirement_digest(demanded(asked), action=folded.action.digest, attempt=asked.attempt) != asked.requirement:
            raise Damaged(f"approval {asked.id}", "it was not asked about this action")
    return History(file=folded, events=own)


def _checked(run: RunRecord, link: Link) -> Event:
    if event_hash(link.encoded) != link.hash:
        raise Damaged(f"run {run.id}", f"its event {link.n} is not what its hash says")
    event = decode(link.encoded)
    if event.run != run.id or event.n != link.n:
        raise Damaged(f"run {run.id}", f"its event {link.n} is another one's")
    return event


def _difference(file: ActionFile, folded: ActionFile) -> str | None:
    """Name the first thing in which the rows and the events differ; how long a lease lasts, no event determines."""
    row, said = file.action, folded.action
    for field in fields(row):
        if getattr(row, field.name) != getattr(said, field.name):
            return f"its {field.name}"
    leases = {number: attempt.lease_until_us for number, attempt in file.attempts.items()}
    attempts = {
        number: replace(attempt, lease_until_us=leases.get(number, attempt.lease_until_us))
        for number, attempt in folded.attempts.items()
    }
    beside = {
        "attempts": (file.attempts, MappingProxyType(attempts)),
        "approvals": (file.approvals, folded.approvals),
        "votes": (file.votes, folded.votes),
    }
    return next((f"what its {name} say" for name, (rows, events) in beside.items() if rows != events), None)
