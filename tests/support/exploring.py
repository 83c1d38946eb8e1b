"""Every state that the actions of one key can be in, found by going breadth-first through what anybody can do.

The moves are the real core's (`support.moves`): they draft events, and the fold makes records of them. Here they are
followed from state to state. Each state is made comparable first: numbers and times that no rule reads are
forgotten, attempts that differ in nothing change places, so that what is left is finite.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from agentgate.approval import Requirement, requirement_digest
from agentgate.canonical import parse
from agentgate.core.reasons import REVISABLE
from agentgate.core.records import ActionFile, ActionRecord, ApprovalRecord, AttemptRecord
from agentgate.states import TERMINAL, RunState, State
from support.ids import AT_US, a_hash, an_id

HOUR_US = 3_600_000_000
WINDOW_US = 24 * HOUR_US
HEAD = a_hash("head")
LIVE = frozenset({"pending", "granted"})
WORLD = frozenset({"succeeded", "failed", "in_doubt", "late ok", "late error", "late nothing"})
"""What nobody can command: how an effect ends, and when its worker is heard of again."""

Mark = tuple[object, ...]
Record = TypeVar("Record", AttemptRecord, ApprovalRecord)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Revision:
    """One revision of the key: its action, and what the records do not say of it.

    Args:
        file: the action, with attempts and questions.
        awaited: attempts whose worker has not been heard of; it may still answer.
        known: attempts that are known to have happened, and of which nobody has said otherwise since.
        key: what makes it the one it is.
    """

    file: ActionFile
    awaited: frozenset[int] = frozenset()
    known: frozenset[int] = frozenset()
    key: Mark = ()

    @property
    def state(self) -> State:
        return self.file.action.state


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Point:
    """A run, and the revisions of one key in it, from 1."""

    run: RunState = RunState.OPEN
    revisions: tuple[Revision, ...] = ()

    @property
    def key(self) -> Mark:
        return (self.run, *(revision.key for revision in self.revisions))

    @property
    def attempts(self) -> int:
        return sum(revision.file.action.attempts for revision in self.revisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One move: its name, the revision it is about (0: the run), where it leads, and the events it wrote."""

    name: str
    number: int
    target: Point
    events: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (revision {self.number})" if self.number > 1 else self.name


@dataclass(slots=True)
class Graph:
    """What was found: a point for each state, the moves between them, and how each was reached first."""

    points: dict[Mark, Point] = field(default_factory=dict)
    edges: dict[Mark, list[tuple[Step, Mark]]] = field(default_factory=dict)
    parents: dict[Mark, tuple[Mark, Step] | None] = field(default_factory=dict)

    @property
    def transitions(self) -> int:
        return sum(map(len, self.edges.values()))

    def path(self, key: Mark) -> str:
        """Tell how a state is reached, in the fewest moves."""
        names: list[str] = []
        while (parent := self.parents[key]) is not None:
            key, step = parent
            names.append(str(step))
        return " > ".join(reversed(names)) or "nothing has happened"


def explored(moves: Callable[[Point], Iterator[Step]]) -> Graph:
    """Follow every move from every state until there is no new one."""
    *_, graph = growing(moves)
    return graph


def growing(moves: Callable[[Point], Iterator[Step]]) -> Iterator[Graph]:
    """Explore, and show the graph each time twice as many states have been left, and when there is no new one.

    Until then some of its points have no edges yet.
    """
    first = Point()
    graph = Graph(points={first.key: first}, parents={first.key: None})
    waiting, shown = deque([first.key]), 1
    while waiting:
        if len(graph.edges) >= 2 * shown:
            shown = len(graph.edges)
            yield graph
        here = waiting.popleft()
        graph.edges[here] = found = []
        for step in moves(graph.points[here]):
            there = step.target.key
            found.append((step, there))
            if there not in graph.points:
                graph.points[there] = step.target
                graph.parents[there] = (here, step)
                waiting.append(there)
    yield graph


def is_commanded(step: Step) -> bool:
    """Tell whether somebody's command, or the passing of time, can take it."""
    return step.name not in WORLD


def stuck(graph: Graph, is_end: Callable[[Point], bool]) -> list[str]:
    """Return the ways to states from which no sequence of commands leads to an end."""
    back: dict[Mark, list[Mark]] = {key: [] for key in graph.points}
    for source, edges in graph.edges.items():
        for taken, target in edges:
            if is_commanded(taken):
                back[target].append(source)
    safe = {key for key, point in graph.points.items() if is_end(point)}
    waiting = deque(safe)
    while waiting:
        for source in back[waiting.popleft()]:
            if source not in safe:
                safe.add(source)
                waiting.append(source)
    return [graph.path(key) for key in graph.points if key not in safe]


# --- making states comparable --------------------------------------------------------------------


def normal(number: int, file: ActionFile, awaited: frozenset[int], known: frozenset[int]) -> Revision:
    """Forget what no rule reads, and put attempts that only their number tells apart into one order.

    Args:
        number: of the revision.
        file: as the fold left it.
        awaited: as in `Revision`.
        known: as in `Revision`.
    """
    file = _normal_file(number, file)

    def rank(attempt: int) -> tuple[object, ...]:
        one = file.attempts[attempt]
        under = one.approval or ""
        last = one.state == "open"
        return last, one.state, one.unresolved, under, attempt in awaited, attempt in known

    order = sorted(file.attempts, key=rank)
    attempts = {
        new: _with(file.attempts[old], number=new, fence=100 * number + new) for new, old in enumerate(order, 1)
    }
    awaited = frozenset(new for new, old in enumerate(order, 1) if old in awaited)
    known = frozenset(new for new, old in enumerate(order, 1) if old in known)
    file = replace(file, attempts=MappingProxyType(attempts))
    return Revision(file=file, awaited=awaited, known=known, key=(awaited, known, *_file_key(file)))


def _normal_file(number: int, file: ActionFile) -> ActionFile:
    action, question = file.action, file.question
    hangs = question is not None and (question.state in LIVE or action.state is State.EXECUTING)
    kept = [question] if question is not None and hangs else []
    if action.state not in TERMINAL:  # what was asked before counts while something may be asked again
        asked = sorted((one for one in file.approvals.values() if one.kind == "approval"), key=_requirement)
        kept += [one for place, one in enumerate(asked) if _requirement(one) not in map(_requirement, asked[:place])]
    ids = {approval.id: an_id(1_000 * number + place) for place, approval in enumerate(kept)}
    approvals = {
        new: _normal_approval(_of_first(file.approvals[old], action), new, hangs=hangs and old == action.approval)
        for old, new in ids.items()
    }
    attempts = {place: _normal_attempt(one, ids, file) for place, one in file.attempts.items()}
    action = replace(
        action,
        reason=_normal_reason(action),
        proposed_n=1,
        proposed_at_us=AT_US,
        state_n=2,
        last_n=2,
        approval=ids[str(action.approval)] if hangs else None,
        requirement=None,
        asked=0,
        fence=None,
        first_started_us=_normal_start(action),
        expires_at_us=None if action.expires_at_us is None else AT_US + HOUR_US,
        result_n=None,
        outcome=None,
        waited=(),
    )
    return ActionFile(action=action, attempts=MappingProxyType(attempts), approvals=MappingProxyType(approvals))


def _requirement(approval: ApprovalRecord) -> bytes:
    return approval.requirement


def _normal_reason(action: ActionRecord) -> str | None:
    """Of all reasons, the key's rules read those of refusals, and tell three kinds apart."""
    if action.state is not State.REFUSED or action.reason == "happened":
        return action.reason if action.state is State.REFUSED else None
    return "cancelled" if action.reason in REVISABLE else "rejected"


def _normal_start(action: ActionRecord) -> int | None:
    """Tell of the first start whether its window is over."""
    if action.first_started_us is None:
        return None
    inside = action.first_started_us + WINDOW_US > AT_US or action.state in TERMINAL
    return AT_US if inside else AT_US - 2 * WINDOW_US


def _of_first(approval: ApprovalRecord, action: ActionRecord) -> ApprovalRecord:
    """Let a question be about the first attempt: which of those in doubt it names, no rule reads."""
    if approval.attempt in (None, 1):
        return approval
    demands = Requirement.from_json(parse(approval.demands))
    return replace(approval, attempt=1, requirement=requirement_digest(demands, action=action.digest, attempt=1))


def _normal_approval(approval: ApprovalRecord, id_: str, *, hangs: bool) -> ApprovalRecord:
    return _with(
        approval,
        id=id_,
        presentation=HEAD,
        digest=HEAD,
        asked_n=2,
        state_n=2,
        asked_at_us=AT_US,
        expires_at_us=AT_US + HOUR_US,
        until_us=None if approval.until_us is None or not hangs else AT_US + HOUR_US,
        state=approval.state if hangs else "void",
    )


def _normal_attempt(attempt: AttemptRecord, ids: Mapping[str, str], file: ActionFile) -> AttemptRecord:
    under = attempt.approval if attempt.approval == file.action.approval else None
    state = attempt.state
    if state == "in_doubt" and not attempt.unresolved and under is None:
        state = "failed"  # as good as: what somebody has answered for is in doubt no more
    return _with(
        attempt,
        state=state,
        started_at_us=AT_US,
        lease_until_us=AT_US + HOUR_US,
        deadline_us=AT_US + HOUR_US,
        approval=ids.get(under or ""),
        started_n=2,
        ended_n=None if attempt.ended_n is None else 2,
        late_n=None,
    )


def _with(record: Record, **fields: Any) -> Record:
    """Change a record where it is not so already: most of them were made comparable before."""
    return (
        record if all(getattr(record, name) == value for name, value in fields.items()) else replace(record, **fields)
    )


def _file_key(file: ActionFile) -> Mark:
    action = file.action
    return (
        *(action.state, action.reason, action.unresolved, action.approval, action.first_started_us),
        tuple((one.state, one.unresolved, one.approval) for one in file.attempts.values()),
        tuple((one.kind, one.requirement, one.state) for one in file.approvals.values()),
    )
