"""What follows for a run from people's no: too many of them end it (design §7, the denial budget)."""

from agentgate.core.draft import Draft
from agentgate.core.proposing import halt
from agentgate.states import RunState


def halt_where_rejected(draft: Draft) -> None:
    """Halt the run where people have said no as often as its limit allows; call it once ``rejected`` is drafted."""
    most = draft.run.limits.get("rejections")
    if most is not None and draft.run.state is RunState.OPEN and draft.run.counters.rejected >= max(1, most):
        halt(draft, "limit_rejections")
