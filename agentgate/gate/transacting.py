"""Running an effect inside a transaction: the one of its claim and its record, all of them together or none.

The transaction may be the gate's own, or a caller's that it was lent. What the effect wrote is undone alone where it
fails, so that the failure is on record; where it is interrupted, or the database ends the transaction, nothing is.
"""

from collections.abc import Callable
from functools import partial

from sqlalchemy.engine import Connection

from agentgate.canonical import parse
from agentgate.core import classifying
from agentgate.core.draft import RECORDED_BOUNDS
from agentgate.core.recording import Ended
from agentgate.core.veiling import Veil
from agentgate.effects import Effect
from agentgate.gate.claiming import Claim
from agentgate.observation import NoEffect, ToolError
from agentgate.store.lending import Attempt, lent
from agentgate.tools.recovery import Transactional
from agentgate.tools.spec import ToolSpec
from agentgate.work import Raised, Returned, run_here


def is_transactional(spec: ToolSpec) -> bool:
    """Tell whether a tool's effect is part of its record's transaction."""
    return isinstance(spec.recovery, Transactional)


def attempt(connection: Connection, claim: Claim, effect: Effect, *, veil: Callable[[], Veil]) -> Ended:
    """Run a claimed effect in its transaction, and undo what it wrote where it did not succeed in time.

    Args:
        connection: in the transaction.
        claim: as drafted in it.
        effect: what the tool may know of the attempt.
        veil: what takes secrets out of whatever the tool says, asked once it has ended.

    Raises:
        BaseException: an interruption; whoever has the transaction undoes it.
        Unavailable: the database ended the transaction inside the effect.
    """
    spec, place = claim.tool.spec, Attempt(connection)
    place.begin()
    with lent(connection, of=f"the effect of action {claim.file.action.id}") as given:
        effect.lend(given)
        try:
            end = _run(claim, effect)
        finally:
            effect.lend(None)
    place.check()
    ended = _ended(end, effect, spec, veil())
    if ended.known == "succeeded":
        place.keep()
        return ended
    place.undo()
    return classifying.undone(ended)


def _run(claim: Claim, effect: Effect) -> Returned | Raised:
    try:
        args, named = claim.tool.bind(parse(claim.content, bounds=RECORDED_BOUNDS), effect)
    except NoEffect as error:
        return Raised(error)
    return run_here(partial(claim.tool.fn, *args, **named))


def _ended(end: Returned | Raised, effect: Effect, spec: ToolSpec, veil: Veil) -> Ended:
    if isinstance(end, Raised):
        return classifying.raised(end.error, spec, veil)
    try:
        effect.check()
    except ToolError as error:  # nobody could stop it in its own thread, but what it wrote can be undone
        return classifying.too_late(error)
    return classifying.returned(end.value, spec, veil)
