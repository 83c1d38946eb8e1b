"""Who has written an action's arguments: whoever edited it, and whoever edited what that edit began with."""

from typing import Any

from sqlalchemy.engine import Connection

from agentgate.core.records import ActionRecord
from agentgate.errors import Damaged
from agentgate.event import decode, event_hash
from agentgate.gate.standing import MOST_EDITS
from agentgate.store import actions, events


def editors_before(connection: Connection, action: ActionRecord) -> frozenset[str]:
    """Name who edited the actions that an action is an edit of; its own editor stands on its row.

    What they changed may stand in it still, whatever the last one changed. Each is read from the proposal's event.

    Raises:
        Damaged: an edit names an action that is not there, or whose proposal is not what its hash says.
    """
    found: set[str] = set()
    edited = action.edits
    for _ in range(MOST_EDITS):
        if edited is None:
            break
        before = actions.read(connection, edited)
        link = None if before is None else events.link(connection, before.run, before.proposed_n)
        if link is None or event_hash(link.encoded) != link.hash:
            raise Damaged(f"action {action.id}", f"it is an edit of {edited}, whose proposal is not on record")
        event = decode(link.encoded)
        if event.action != edited or event.type != "proposed":
            raise Damaged(f"action {action.id}", f"it is an edit of {edited}, whose proposal is another's")
        edit: Any = event.body.get("edits")
        if edit is None:
            break
        found.add(edit["by"])
        edited = edit["action"]
    return frozenset(found)
