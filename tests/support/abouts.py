"""What a move is about, and what came of it: one revision in its run, drafted on by the real core."""

from dataclasses import dataclass, replace
from types import MappingProxyType

from agentgate.canonical import Json
from agentgate.chain import Head
from agentgate.core.claiming import Surroundings
from agentgate.core.draft import Draft
from agentgate.core.records import ActionFile, Counters, RunRecord
from agentgate.event import decode
from agentgate.states import RunState, State
from agentgate.tools.recovery import Recovery
from agentgate.tools.spec import ToolSpec
from support import specs
from support.exploring import HEAD, Mark, Revision, normal
from support.ids import AT_US, RUN, an_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What is bounded, and what the tool is.

    Args:
        recovery: of the tool.
        attempts: how many there may be, over all revisions.
        revisions: how many the key may come to.
        parallel: whether its actions take no lock, and are blocked by none.
        says: how much of what a policy may say it says.
    """

    recovery: Recovery
    attempts: int = 3
    revisions: int = 2
    parallel: bool = False
    says: frozenset[str] = frozenset({"allow", "deny", "abort", "ask 0", "ask 1", "ask 2"})

    @property
    def spec(self) -> ToolSpec:
        return specs.made(recovery=self.recovery, parallel=self.parallel, resource="account:{account}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What came of a move: the run where it moved, and the revision it was about, or that and a new one."""

    name: str
    run: RunState | None
    revisions: tuple[Revision, ...]
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A revision, or none yet, with all that a move on it reads.

    Args:
        shop: what is bounded.
        spec: the tool's.
        run: where the run stands.
        number: of the revision.
        revision: the revision, where there is one.
        newest: whether no later one is there.
        attempts_left: how many attempts may still start.
        around: what a claim of it meets.
    """

    shop: Shop
    spec: ToolSpec
    run: RunState
    number: int
    revision: Revision | None
    newest: bool
    attempts_left: int
    around: Surroundings

    @property
    def own(self) -> Mark:
        """What the moves on the revision itself read: of the run, only whether it is open."""
        return self.run is RunState.OPEN, self.number, None if self.revision is None else self.revision.key

    @property
    def all_around(self) -> Mark:
        """What the moves read that its run, or others, have a say in."""
        left = self.attempts_left > 0, self.attempts_left < self.shop.attempts
        return self.run, self.newest, left, self.around, *self.own

    @property
    def file(self) -> ActionFile:
        assert self.revision is not None
        return self.revision.file

    @property
    def state(self) -> State:
        return self.file.action.state

    @property
    def id(self) -> str:
        return self.file.action.id

    def draft(self, *, at_us: int = AT_US) -> Draft:
        """Begin a transaction."""
        executing = self.revision is not None and self.state is State.EXECUTING
        run = replace(_RUN, state=self.run, counters=Counters(executing=int(executing)))
        draft = Draft(Head(run=RUN, n=run.n + 1, hash=HEAD), run, at_us=at_us)
        if self.revision is not None:
            draft.read(self.file)
        return draft

    def took(
        self, name: str, draft: Draft, *, awaited: frozenset[int] | None = None, known: frozenset[int] | None = None
    ) -> Move:
        """Say what a draft did, after reading its events back as anybody would."""
        events = tuple(decode(link.encoded).type for link in draft.plan().links)
        revisions: list[Revision] = []
        if self.revision is not None:
            awaited = self.revision.awaited if awaited is None else awaited
            known = self.revision.known if known is None else known
            revisions.append(normal(self.number, draft.file(self.id), awaited, known))
        new = self.number + (self.revision is not None)
        if draft.knows(an_id(new)):
            revisions.append(normal(new, draft.file(an_id(new)), frozenset(), frozenset()))
        moved = None if draft.run.state is self.run else draft.run.state
        return Move(name=name, run=moved, revisions=tuple(revisions), events=events)

    def wrote(self, name: str, kind: str, body: dict[str, Json]) -> Move:
        """Say what one event did."""
        draft = self.draft()
        draft.add(kind, body, action=self.id)
        return self.took(name, draft)


_RUN = RunRecord(
    id=RUN,
    tenant="acme",
    name="ticket",
    principal="agent:a",
    limits=MappingProxyType({}),
    opened_at_us=AT_US,
    state=RunState.OPEN,
    reason=None,
    n=99,
    head=HEAD,
    at_us=AT_US,
    counters=Counters(),
)
