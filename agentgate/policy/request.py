"""What a policy is asked: one action, its run's view, the time and the facts, as frozen values.

Pure: nothing here fetches or decides. JSON in it (arguments, provenance, facts, counters) is plain dicts and
lists, because that is what a policy's author expects; `PolicyRequest.private` gives each evaluation its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentgate.action import Key
from agentgate.canonical import Json
from agentgate.errors import Damaged
from agentgate.shape import Shape, code, count, hash32, integer, listing, mapping, misfit, record, text
from agentgate.tools.spec import ToolSpec

RECENT = 16
"""How many of the run's last actions a view holds, so that the cost of a call does not grow with its run."""

_RECENT: Shape = {
    "namespace": text,
    "tool": text,
    "state": code,
    "reason?": code,
    "request?": hash32,
    "outcome?": hash32,
}
_VIEW: Shape = {
    "n": count,
    "counters": mapping(integer),
    "budgets": mapping(integer),
    "recent": listing(record(_RECENT)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """One of the run's last actions.

    Args:
        namespace: the tool's.
        tool: its name.
        state: where the action stands, a word of `agentgate.states`.
        reason: why it ended so, where there is a reason.
        request: its request fingerprint in hex, where it has one.
        outcome: its outcome fingerprint in hex, once it has ended.
    """

    namespace: str
    tool: str
    state: str
    reason: str | None = None
    request: str | None = None
    outcome: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return it as it stands in a view; what is not known is left out."""
        body: dict[str, Json] = {"namespace": self.namespace, "tool": self.tool, "state": self.state}
        known = {"reason": self.reason, "request": self.request, "outcome": self.outcome}
        return body | {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a policy sees of the run, as it was read.

    Args:
        n: the run's last event when it was read.
        counters: the run's counts by name.
        budgets: what is left of each bound that is set, by name: the run's own (``run.actions``), its tenant's
            (``tenant.money``), the tool's (``tool.parallel``) and the tenant's accounts (``account.refunds``, the first
            64 by name).
        recent: the last actions, newest first, at most `RECENT`.
    """

    n: int
    counters: Mapping[str, int] = field(default_factory=dict)
    budgets: Mapping[str, int] = field(default_factory=dict)
    recent: tuple[Recent, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the view as an event records it."""
        return {
            "n": self.n,
            "counters": dict(self.counters),
            "budgets": dict(self.budgets),
            "recent": [action.to_json() for action in self.recent],
        }

    @classmethod
    def from_json(cls, value: Json) -> "View":
        """Read a recorded view.

        Raises:
            Damaged: a field is unknown, missing or not what this version records.
        """
        offence = misfit(_VIEW, value)
        if offence is not None:
            raise Damaged("view", f"{offence or '/'} is not what this version records")
        body: Any = value
        recent = tuple(Recent(**action) for action in body["recent"])
        return cls(n=body["n"], counters=body["counters"], budgets=body["budgets"], recent=recent)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """Everything a decision may depend on; a recheck rebuilds exactly this.

    Args:
        run: the run's id.
        run_name: the caller's name for it.
        action: the action's id.
        tenant: the run's tenant.
        principal: on whose behalf the action is proposed.
        namespace: the tool's server, ``""`` when none.
        tool: the tool's name.
        spec: the tool's spec.
        arguments: as completed and parsed anew from their canonical bytes.
        provenance: what the proposer said about where the call came from.
        key: the caller's name for the intent.
        revision: of that key, from 1.
        edited_by: who wrote these arguments, where they are not the loop's: see `Gate.approvals.edit`.
        view: the run as it was read.
        facts: what the policy declared to need, by name.
        at_us: the time of asking, microseconds UTC.
    """

    run: str
    run_name: str
    action: str
    tenant: str
    principal: str
    namespace: str
    tool: str
    spec: ToolSpec
    arguments: Json = field(repr=False)  # no log line of a policy quotes them by accident
    provenance: Json = field(default=None, repr=False)
    key: Key
    revision: int
    edited_by: str | None = None
    view: View
    facts: Mapping[str, Json] = field(default_factory=dict, repr=False)
    at_us: int

    def private(self) -> "PolicyRequest":
        """Return an equal request that shares no dict or list with this one: whoever changes it changes nothing."""
        view = replace(self.view, counters=dict(self.view.counters), budgets=dict(self.view.budgets))
        return replace(
            self,
            arguments=copied(self.arguments),
            provenance=copied(self.provenance),
            facts={name: copied(value) for name, value in self.facts.items()},
            view=view,
        )


def copied(value: Json) -> Json:
    """Return the same JSON in dicts and lists of its own."""
    if type(value) is dict:
        return {name: copied(item) for name, item in value.items()}
    if type(value) is list:
        return [copied(item) for item in value]
    return value
