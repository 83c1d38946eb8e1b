"""Walks through the state table: chains of one run that are legal by a small model of their own.

`Walk.possible` says which events could come next, from what the walk itself remembers; it never asks the state
table. `Walk.take` appends one through a `Draft`, as every command does.
"""

from collections.abc import Mapping

from hypothesis import strategies as st

from agentgate.canonical import Json
from agentgate.chain import Head
from agentgate.core.draft import Draft, Plan
from agentgate.core.records import ActionFile, RunRecord
from agentgate.event import Event, genesis
from support.ids import AT_US, LEDGER, RUN, an_id
from support.steps import BODIES, Model, Try

MOST_ACTIONS = 3
MOST_STEPS = 40


class Walk:
    """A run, its actions, and what has happened to them."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}
        self.events: list[Event] = []
        self.granted_uses: list[str] = []
        self.noes = 0
        self.counter = 0
        self.draft = Draft(Head(run=RUN, n=0, hash=genesis(LEDGER, RUN)), None, at_us=AT_US)
        opened: dict[str, Json] = {"tenant": "acme", "name": "ticket", "principal": "agent:a", "limits": {"actions": 9}}
        self.events.append(self.draft.add("run_opened", opened))

    def fresh(self) -> int:
        self.counter += 1
        return self.counter

    def file(self, action: str) -> ActionFile:
        return self.draft.file(action)

    def possible(self) -> list[tuple[str, str]]:
        """Return every (event, action) that may come next; what keeps an action going stands there more often."""
        begins = ("proposed.allowed", "proposed.held", "proposed.refused", "charged")
        found = [(word, "") for word in begins if len(self.models) < MOST_ACTIONS]
        for action, model in self.models.items():
            found += [(word, action) for word in _possible(model) for _ in range(_LIVELY.get(word, 1))]
        return found or [("charged", "")]

    def take(self, word: str, action: str = "", *, later: int | None = None, **said: Json) -> str:
        """Append an event, a few microseconds after the one before; return the action it was about.

        Args:
            word: its name in the state table.
            action: whom it is about.
            later: how many microseconds after the one before.
            said: what its body says instead of what it would; None leaves a field out.
        """
        self.draft.at_us += 1 + self.counter % 3 if later is None else later
        kind, _, qualifier = word.partition(".")
        if kind == "charged":
            body, _ = BODIES[kind](self.fresh, Model(state="none"), "")
            self.events.append(self.draft.add(kind, body | said))
            return ""
        if kind == "proposed":
            action = an_id(1_000 + self.fresh())
            self.models[action] = Model(state="NEW")
        model = self.models[action]
        body, payloads = BODIES[kind](self.fresh, model, qualifier)
        body = {name: value for name, value in (body | said).items() if value is not None}
        self.events.append(self.draft.add(kind, body, action=action, payloads=payloads))
        _remember(self, model, word, body)
        return action

    def commit(self) -> Plan:
        """Return what was drafted, and go on from there in a draft of its own."""
        plan = self.draft.plan()
        self.read(self.draft.run, {action: self.file(action) for action in self.models})
        return plan

    def read(self, run: RunRecord, files: Mapping[str, ActionFile]) -> None:
        """Go on from these records instead of the remembered ones."""
        self.draft = Draft(Head(run=run.id, n=run.n + 1, hash=run.head), run, at_us=run.at_us)
        for file in files.values():
            self.draft.read(file)


_LIVELY: Mapping[str, int] = {
    "started": 12, "in_doubt": 4, "failed": 2, "approved": 4, "voted": 2, "retried": 6, "question_asked": 2,
    "reconciled.not_applied": 6, "late": 2,
}  # fmt: skip


def _possible(model: Model) -> list[str]:
    words = list(_BY_STATE[model.state])
    hangs = model.state in {"HELD", "UNKNOWN"}
    if hangs and model.question == "pending":
        words += ["voted", "approved", "rejected", "question_expired"]
    if model.state in {"READY", "UNKNOWN"} and model.question == "granted":
        words += ["grant_expired", "grant_revoked"]
    if model.state == "FAILED" and model.question == "granted":
        words.append("grant_revoked")
    if hangs and model.votes:
        words.append("vote_revoked")
    if any(not one.open for one in model.tries):
        words += ["late", "late.clean"]
    if model.doubted and model.state in {"UNKNOWN", "EXECUTING", "SUCCEEDED", "REFUSED", "ABANDONED"}:
        words += ["reconciled.not_applied"] if model.state == "EXECUTING" else _ANSWERS
    return words


_ANSWERS = ["reconciled.applied", "reconciled.not_applied"]
_BY_STATE: Mapping[str, tuple[str, ...]] = {
    "HELD": ("held", "refused", "cancelled", "superseded", "waited"),
    "READY": ("held", "refused", "cancelled", "superseded", "waited", "started", "action_expired"),
    "EXECUTING": ("succeeded", "failed", "in_doubt"),
    "FAILED": ("retried", "cancelled", "replayed", "waited"),
    "UNKNOWN": ("started", "abandoned", "question_asked", "waited"),
    "SUCCEEDED": ("replayed", "confirmed", "contradicted"),
    "REFUSED": ("replayed",),
    "ABANDONED": ("replayed",),
}


def _remember(walk: Walk, model: Model, word: str, body: Mapping[str, Json]) -> None:
    """Move the model by what happened; the design's sentences, not the table."""
    walk.noes += word == "rejected" and model.state == "HELD"
    moved = _moved(model, word)
    _remember_attempt(walk, model, word, body)
    _remember_question(model, word, body)
    _remember_amounts(model, word, body)
    model.state = moved


def _moved(model: Model, word: str) -> str:
    earlier = [one for one in model.tries if one.doubted and not one.open]
    if word == "failed":
        return "UNKNOWN" if earlier else "FAILED"
    if word == "late":
        return "UNKNOWN" if model.state in {"HELD", "READY", "FAILED"} else model.state
    if word.startswith("reconciled."):
        answered = "SUCCEEDED" if word == "reconciled.applied" else "READY"
        return answered if model.state == "UNKNOWN" else model.state
    if model.state == "UNKNOWN" and word not in {"started", "abandoned"}:
        return model.state
    if model.state == "FAILED" and word == "grant_revoked":
        return model.state
    return _LEADS.get(word, model.state)


_LEADS: Mapping[str, str] = {
    "proposed.allowed": "READY",
    "proposed.held": "HELD",
    "proposed.refused": "REFUSED",
    "held": "HELD",
    "approved": "READY",
    "started": "EXECUTING",
    "succeeded": "SUCCEEDED",
    "in_doubt": "UNKNOWN",
    "retried": "READY",
    "abandoned": "ABANDONED",
    **dict.fromkeys(
        ("rejected", "question_expired", "cancelled", "superseded", "refused", "grant_expired", "grant_revoked"),
        "REFUSED",
    ),
    "action_expired": "REFUSED",
}


def _remember_attempt(walk: Walk, model: Model, word: str, body: Mapping[str, Json]) -> None:
    if word == "started":
        model.tries.append(
            Try(fence=_number(body["fence"]), under=None if body.get("approval") is None else str(body["approval"]))
        )
        if model.tries[-1].under is not None:
            walk.granted_uses.append(str(model.tries[-1].under))
    if word in {"succeeded", "failed", "in_doubt"}:
        model.tries[-1].open, model.tries[-1].doubted = False, word == "in_doubt"
    if word == "succeeded":
        for one in model.tries:
            one.doubted = False
    if word == "failed" and model.tries[-1].under is not None:
        walk.granted_uses.remove(model.tries[-1].under)
    if word == "late":
        model.tries[_number(body["attempt"]) - 1].doubted = True
    if word.startswith("reconciled."):
        for one in model.tries:
            one.doubted = False


def _remember_question(model: Model, word: str, body: Mapping[str, Json]) -> None:
    if word in {"proposed.held", "held", "question_asked"}:
        asked = body["approval"]
        assert type(asked) is dict
        model.asked, model.digest, model.question, model.votes = str(asked["id"]), str(asked["digest"]), "pending", []
    elif word == "voted":
        model.votes.append(str(body["vote"]))
    elif word == "vote_revoked":
        model.votes.remove(str(body["vote"]))
    elif word == "approved":
        model.question = "granted"
    elif word == "failed" and model.tries[-1].under is not None:
        # "`failed` gives the grant back": to use again, unless another question hangs there since.
        model.question = "granted" if model.asked == model.tries[-1].under else model.question
    elif word == "started" and model.tries[-1].under is not None:
        model.question = "used"
    elif word == "started" or word in _ENDS or (word, model.state) in _LATE_ENDS:
        model.question = "ended" if model.question in {"pending", "granted"} else model.question


def _remember_amounts(model: Model, word: str, body: Mapping[str, Json]) -> None:
    """ "Reserved by a start from READY; settled by its end; the last check counts"."""
    if word == "started":
        model.reserved = _amounts(body.get("reserves", [])) if model.state == "READY" else model.reserved
        model.dedupe_until_us = body.get("dedupe_until_us")
    if word in {"succeeded", "reconciled.applied", "reconciled.not_applied"}:
        model.reserved |= _amounts(body["settled"])
    if word in {"confirmed", "contradicted"}:
        model.confirmed = "yes" if word == "confirmed" else "no"


def _amounts(listed: Json) -> dict[str, int]:
    assert type(listed) is list
    found: dict[str, int] = {}
    for one in listed:
        assert type(one) is dict
        found[str(one["account"])] = _number(one["amount"])
    return found


_LATE_ENDS = {("late", state) for state in ("HELD", "READY", "FAILED", "UNKNOWN")} | {("late.clean", "UNKNOWN")}
_ENDS = frozenset(_LEADS) - {"proposed.allowed", "proposed.refused", "succeeded", "in_doubt", "retried"} | {
    "reconciled.applied",
    "reconciled.not_applied",
}


def _number(value: Json) -> int:
    assert type(value) is int
    return value


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """Random legal walks of a run with several actions."""
    walk = Walk()
    for _ in range(draw(st.integers(1, MOST_STEPS))):
        walk.take(*draw(st.sampled_from(walk.possible())))
    return walk


def walked(*words: str) -> tuple[Walk, str]:
    """Walk one action along these events."""
    walk, action = Walk(), ""
    for word in words:
        action = walk.take(word, action)
    return walk, action
