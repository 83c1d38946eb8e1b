"""What a key stands for when a call comes with it: nothing yet, the same action, another call's, or a place to take.

The rules of design §8, for a call on its own and for each of a batch. A repeat is compared with the newest revision.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from agentgate.canonical import canonical
from agentgate.core.proposing import Thought
from agentgate.core.reasons import REVISABLE
from agentgate.core.records import ActionRecord
from agentgate.core.sameness import Asked, same_arguments
from agentgate.errors import Damaged, KeyConflict, Sealed
from agentgate.event import decode
from agentgate.sealing import SealingKeys
from agentgate.states import State
from agentgate.store import actions, events

MOST_EDITS = 32
"""How many edits of edits a repeat is compared with, from the newest back; as many may be made in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a key stands for when a call comes with it.

    Args:
        repeat: the action it repeats.
        supersedes: the waiting action whose place it takes, of any run of the tenant.
        revision: the revision it would be, where it is a new action.
    """

    repeat: ActionRecord | None = None
    supersedes: ActionRecord | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The newest action under a call's key, compared with the call.

    Args:
        action: as it was read.
        same: whether the call asks for the same.
        attempted: whether any revision of the key has ever started; asked only where it matters.
    """

    action: ActionRecord
    same: bool
    attempted: bool


def newest(connection: Connection, tenant: str, thought: Thought) -> ActionRecord | None:
    """Read the newest action under a call's key; a call without a key is its own, and new."""
    if thought.key.source == "own":
        return None
    return actions.newest(connection, tenant=tenant, namespace=thought.namespace, tool=thought.tool, key=thought.key)


def known(
    connection: Connection, tenant: str, thought: Thought, *, supersede: bool, sealing: SealingKeys | None
) -> Known | None:
    """Find what a call's key stands for, and compare.

    Raises:
        KeyConflict: another principal's; nothing more of it was read, so that nothing more can be told.
    """
    found = newest(connection, tenant, thought)
    if found is None:
        return None
    check_principal(found.principal, thought)
    same = _is_repeat(connection, found, thought, sealing)
    return Known(
        action=found,
        same=same,
        attempted=not same and supersede and actions.was_attempted(connection, found),
    )


def check_principal(principal: str, thought: Thought) -> None:
    """Compare with whose key it is, before anything else is.

    Raises:
        KeyConflict: another principal's.
    """
    if principal != thought.principal:
        raise KeyConflict(thought.tool, thought.key.text)


def stand(found: ActionRecord, thought: Thought, *, same: bool, attempted: bool, supersede: bool) -> Standing:
    """Tell what follows from the newest action under a call's key.

    Args:
        found: the action as it stands.
        thought: the call.
        same: whether it asks for the same.
        attempted: whether any revision of the key has ever started.
        supersede: whether it may take a waiting action's place.

    Raises:
        KeyConflict: another intent.
    """
    if same:
        return Standing(revision=found.revision + 1) if is_revisable(found) else Standing(repeat=found)
    if not supersede or attempted:
        raise KeyConflict(thought.tool, thought.key.text)
    waits = found.state in {State.HELD, State.READY}
    return Standing(supersedes=found if waits else None, revision=found.revision + 1)


def is_revisable(action: ActionRecord) -> bool:
    """Tell whether the same key may be tried again as a new revision: it ended by nobody's no, and is in no doubt."""
    return action.state is State.REFUSED and action.reason in REVISABLE and not action.unresolved


def asked(thought: Thought) -> Asked:
    """Return what a call asks for, as bytes to be compared."""
    supplied, arguments = canonical(thought.supplied), canonical(thought.arguments)
    return Asked(supplied=supplied, arguments=arguments, request=thought.request)


def _is_repeat(connection: Connection, found: ActionRecord, thought: Thought, sealing: SealingKeys | None) -> bool:
    """Compare with the newest action, and, where a person changed a call's arguments into its own, with that call.

    The loop does not know of the edit: it comes back with what it had proposed, and is handed what became of it.
    """
    for _ in range(MOST_EDITS):
        if same_arguments_as(connection, found, thought, sealing):
            return True
        edited = None if found.edits is None else actions.read(connection, found.edits)
        # Of the same key alone, whatever its row says: by it another's outcome would be handed out.
        if edited is None or (edited.tenant, edited.principal, edited.key) != (
            found.tenant,
            found.principal,
            found.key,
        ):
            return False
        found = edited
    return False


def same_arguments_as(
    connection: Connection, found: ActionRecord, thought: Thought, sealing: SealingKeys | None
) -> bool:
    """Compare with what was recorded: as supplied, or as completed; where they cannot be read, by fingerprint."""
    new = asked(thought)
    supplied, arguments = (_content(connection, found, kind, sealing) for kind in ("supplied", "arguments"))
    recorded = Asked(supplied=supplied, arguments=arguments, request=found.request)
    if same_arguments(new, recorded):
        return True
    # A payload that was never there is the next one (docs/format.md); one that was erased is not.
    return supplied is None and new.supplied == arguments and "supplied" not in _named(connection, found)


def _content(connection: Connection, found: ActionRecord, kind: str, sealing: SealingKeys | None) -> bytes | None:
    payload = events.payload(connection, found.run, found.proposed_n, kind)
    if payload is None or not payload.is_sealed:
        return None if payload is None else payload.content
    try:
        return payload.opened(sealing, digest=bytes.fromhex(_named(connection, found).get(kind, ""))).content
    except Sealed:
        return None


def _named(connection: Connection, found: ActionRecord) -> Mapping[str, str]:
    """Return the payloads that the action's proposal names: kind to digest in hex."""
    link = events.link(connection, found.run, found.proposed_n)
    if link is None:
        raise Damaged(f"run {found.run}", f"its event {found.proposed_n} is missing")
    named: Any = decode(link.encoded).body["payloads"]
    return named if type(named) is dict else {}
