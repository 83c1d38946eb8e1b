"""What a loop asks for: a tool call as a caller writes it down, and as a gate reads it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from agentgate.action import Key
from agentgate.errors import Misuse
from agentgate.gate.given import check_flag
from agentgate.gate.handles import check_run
from agentgate.gate.names import check_key, check_name, recordable
from agentgate.gate.opening import Run
from agentgate.gate.thinking import Intent

MOST = 100
"""How many calls a batch may have: one message of a model has a few, and every one of them is thought through."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a batch; what each field means, `Gate.propose` says.

    Args:
        tool: the tool's exact name.
        arguments: a JSON value; text or bytes are JSON to be parsed.
        key: names the intent.
        namespace: the tool's server.
        principal: on whose behalf, where it is not the run's.
        provenance: where the call came from.
        supersede: let other arguments under the same key take a waiting action's place.
    """

    tool: str
    arguments: object = field(repr=False)
    _: KW_ONLY
    key: str | Key | None = None
    namespace: str = ""
    principal: str | None = None
    provenance: object = field(default=None, repr=False)
    supersede: bool = False


def intent_of(run: Run, call: Call) -> Intent:
    """Read what a caller asks for.

    Raises:
        Misuse: a name, a key or the run's handle is none.
    """
    behalf = check_run(run).principal if call.principal is None else check_name(call.principal, "principal")
    return Intent(
        namespace=recordable(call.namespace, "namespace"),
        tool=recordable(call.tool, "tool"),
        arguments=call.arguments,
        principal=behalf,
        key=check_key(call.key, principal=behalf),
        provenance=call.provenance,
        supersede=check_flag(call.supersede, "supersede"),
    )


def intents_of(run: Run, calls: Sequence[Call]) -> tuple[Intent, ...]:
    """Read the calls of a batch.

    Raises:
        Misuse: no calls, too many, or one with a name or a key that is none; it says which one.
    """
    check_run(run)
    if type(calls) not in {list, tuple}:
        raise Misuse("calls: give a list of agentgate.Call")
    if len(calls) > MOST:
        raise Misuse(f"calls: {len(calls)} are too many for one batch; give at most {MOST}, and the rest after them")
    return tuple(_intent(run, call, n) for n, call in enumerate(calls))


def _intent(run: Run, call: object, n: int) -> Intent:
    if type(call) is not Call:
        raise Misuse(f"calls[{n}]: give an agentgate.Call")
    try:
        return intent_of(run, call)
    except Misuse as error:
        raise Misuse(f"calls[{n}].{error}") from error
