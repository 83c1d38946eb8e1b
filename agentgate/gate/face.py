"""The gate: what a loop calls. Everything it does is in the modules beside it."""

import dataclasses
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from agentgate.action import Key
from agentgate.clock import Clock, SystemClock
from agentgate.core.records import ActionFile
from agentgate.gate import closing, opening
from agentgate.gate.answers import Reader
from agentgate.gate.claiming import Claim, Claimant, claim
from agentgate.gate.commands import Commander
from agentgate.gate.executing import REPLAYED, Executor
from agentgate.gate.handles import check_run, named
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.gate.names import DEFAULT_TENANT, check_key, check_name, check_tenant, check_text, recordable
from agentgate.gate.opening import Run
from agentgate.gate.performing import Performer
from agentgate.gate.proposing import Proposed, Proposer
from agentgate.gate.settings import Settings
from agentgate.gate.thinking import Call, Mind
from agentgate.heartbeat import Heartbeat
from agentgate.lease import Holder
from agentgate.limits import Limits
from agentgate.outcome import Outcome, Proposal
from agentgate.policy.facts import FactProvider
from agentgate.policy.loading import PolicySource, load_policy
from agentgate.process import this_process
from agentgate.states import State
from agentgate.store import actions, runs
from agentgate.tools.decorator import AnyTool
from agentgate.tools.registry import ToolSet


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """What a proposal's transaction left behind: the action, and a claim where one was made with it."""

    file: ActionFile
    repeated: bool
    step: Claim | Outcome | None = None


class Gate:
    """Decide, run and record the effects of a loop; made by `Gate.open`, used by any number of threads."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        policy: PolicySource,
        tools: Iterable[AnyTool],
        facts: Mapping[str, FactProvider],
        settings: Settings,
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._keys: dict[str, bytes | None] = {}
        self._mind = Mind(
            ledger=ledger,
            settings=settings,
            tools=ToolSet(tools),
            policy=load_policy(policy),
            providers=dict(facts),
        )
        opening.register(ledger, self._mind.tools)
        self._holders: dict[int, Holder] = {}
        self._registering = threading.Lock()
        self._heartbeat = Heartbeat(self._renew, lease_us=settings.lease_us, clock=ledger.clock)
        self._performer = Performer(
            ledger=ledger, heartbeat=self._heartbeat, lease_us=settings.lease_us, fingerprint_key=self._key
        )
        self._executor = Executor(
            ledger=ledger, settings=settings, performer=self._performer, holder=self._this_process
        )
        self._proposer = Proposer(ledger, settings)
        self._commander = Commander(ledger=ledger, settings=settings, fingerprint_key=self._key)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        policy: PolicySource,
        tools: Iterable[AnyTool] = (),
        facts: Mapping[str, FactProvider] | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Open a gate on a ledger whose tables `agentgate.migrate` has made.

        Args:
            url: ``sqlite:///path/to/agent.db``.
            policy: a rule file's path, a function from `PolicyRequest` to `Decision`, or a `Policy`.
            tools: made by `tool` or `gated`.
            facts: who tells the policy what it declares to need, by name.
            settings: times to live and bounds.
            clock: for tests.

        Raises:
            WrongSchema: the tables are missing, older or newer than this code's.
            UnsafeStore: there is no such database, or it lies where a ledger must not.
            SpecRefused: two tools of one name, or names that look alike.
            PolicyRefused: the policy cannot be loaded.
        """
        ledger = opening.open_ledger(url, clock or SystemClock())
        try:
            return cls(ledger, policy=policy, tools=tools, facts=facts or {}, settings=settings or Settings())
        except BaseException:
            ledger.database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Gate({self._ledger.database.url!r}, {self._mind.tools!r})"

    @property
    def ledger(self) -> str:
        """The ledger's id."""
        return self._ledger.id

    def close(self) -> None:
        """Let go of the database; what still runs is recorded all the same when it ends."""
        self._heartbeat.stop()
        self._ledger.database.close()

    def register(self, tool: AnyTool, *, replace: bool = False) -> None:
        """Add a tool, or, on purpose, take the place of the one of its name."""
        with self._registering:
            tools = self._mind.tools.added(tool, replace=replace)
            opening.register(self._ledger, [tool])
            self._mind = dataclasses.replace(self._mind, tools=tools)

    def run(
        self,
        name: str,
        *,
        principal: str,
        tenant: str = DEFAULT_TENANT,
        goal: str | None = None,
        limits: Limits | None = None,
    ) -> Run:
        """Open a run, or attach to the one of this tenant and name, in any process.

        Args:
            name: the caller's name for it; stands in the record in clear for ever.
            principal: on whose behalf; a pseudonym where that is personal.
            tenant: whose it is.
            goal: what it is for, in words; may be personal.
            limits: what it may spend; fixed when it is opened.

        Raises:
            RunConflict: it exists with another principal, goal or limits.
        """
        return opening.open_run(
            self._ledger,
            name=check_name(name, "name"),
            tenant=check_tenant(tenant),
            principal=check_name(principal, "principal"),
            goal=check_text(goal, "goal"),
            limits=limits,
        )

    def propose(
        self,
        run: Run,
        tool: str,
        arguments: object,
        *,
        key: str | Key | None = None,
        namespace: str = "",
        principal: str | None = None,
        provenance: object = None,
        supersede: bool = False,
    ) -> Proposal:
        """Record a tool call and what the policy says of it; nothing runs.

        Args:
            run: from `Gate.run`.
            tool: the tool's exact name.
            arguments: a JSON value; text or bytes are JSON to be parsed.
            key: names the intent: the same key and arguments are the same action, from any process, for ever.
            namespace: the tool's server.
            principal: on whose behalf, where it is not the run's.
            provenance: where the call came from; recorded, and shown to the policy.
            supersede: let other arguments under the same key take a waiting action's place.

        Raises:
            KeyConflict: the key stands for another call, or for another principal's.
            Unavailable: the database could not be had; nothing was written.
        """
        settled = self._settle(
            self._mind,
            check_run(run),
            self._call(run, tool, arguments, key=key, namespace=namespace, principal=principal, provenance=provenance),
            supersede=supersede,
            then=_replayed,
        )
        return self._proposal(settled.file.action.tenant, settled.file.action.id, repeated=settled.repeated)

    def execute(self, action: Proposal | str, *, tenant: str = DEFAULT_TENANT, retry: bool = False) -> Outcome:
        """Bring an action as far as it may go now, and say where that is.

        Args:
            action: a proposal, or an action's id.
            tenant: of an action given by its id.
            retry: try a known failure again.

        Raises:
            NotFound: no such action in this tenant.
            Damaged: the action's row contradicts the record; nothing was run.
            Unavailable: the database could not be had.
        """
        tenant, id_ = named(action, tenant)
        return self._executor.execute(self._mind, tenant, id_, retry=retry)

    def call(
        self,
        run: Run,
        tool: str,
        arguments: object,
        *,
        key: str | Key | None = None,
        namespace: str = "",
        principal: str | None = None,
        provenance: object = None,
        supersede: bool = False,
        retry: bool = False,
    ) -> Outcome:
        """Propose and execute in one, with one commit fewer where the policy allows; arguments as in both."""
        # What is thought through with these tools is claimed with them, whatever is registered meanwhile.
        mind = self._mind
        settled = self._settle(
            mind,
            check_run(run),
            self._call(run, tool, arguments, key=key, namespace=namespace, principal=principal, provenance=provenance),
            supersede=supersede,
            then=partial(self._claim_at_once, mind=mind),
        )
        if isinstance(settled.step, Claim):
            return self._performer.perform(settled.step)
        if settled.step is not None:
            return self._executor.past(mind, run.tenant, settled.step)
        if settled.repeated:
            return self._executor.execute(mind, run.tenant, settled.file.action.id, retry=retry)
        proposal = self._proposal(run.tenant, settled.file.action.id, repeated=False)
        return proposal.outcome or self.execute(proposal)

    def cancel(self, action: Proposal | str, *, by: str, note: str = "", tenant: str = DEFAULT_TENANT) -> Proposal:
        """Cancel an action that has not started, or whose failure is known.

        Raises:
            NotPossible: it runs, may have happened, or has ended.
        """
        tenant, id_ = named(action, tenant)
        self._commander.cancel(tenant, id_, by=check_name(by, "by"), note=check_text(note, "note") or "")
        return self._proposal(tenant, id_, repeated=True)

    def reconcile(
        self,
        action: Proposal | str,
        *,
        applied: bool,
        by: str,
        evidence: object,
        result: object = None,
        worker_known_dead: bool = False,
        tenant: str = DEFAULT_TENANT,
    ) -> Proposal:
        """Say what was found out about an action whose outcome is unknown.

        Args:
            action: a proposal, or an action's id.
            applied: whether it happened.
            by: who says so.
            evidence: what shows it; any JSON value, kept as a payload.
            result: what the loop is told of an action that happened.
            worker_known_dead: whether its worker is known not to come back.
            tenant: of an action given by its id.

        Raises:
            NotPossible: nothing about it is in doubt.
        """
        tenant, id_ = named(action, tenant)
        self._executor.settle_lease(tenant, id_)
        self._commander.reconcile(
            tenant,
            id_,
            applied=applied,
            by=check_name(by, "by"),
            evidence=evidence,
            result=result,
            worker_known_dead=worker_known_dead,
        )
        return self._proposal(tenant, id_, repeated=True)

    def close_run(self, run: Run, *, by: str) -> None:
        """Close a run: nothing of it starts any more, what waits is refused.

        Raises:
            NotPossible: it is closed, or something of it executes.
        """
        close = partial(closing.close, by=check_name(by, "by"), payloads=())
        self._ledger.change(check_run(run).id, close, tenant=run.tenant)

    def _call(
        self,
        run: Run,
        tool: str,
        arguments: object,
        *,
        key: str | Key | None,
        namespace: str,
        principal: str | None,
        provenance: object,
    ) -> Call:
        behalf = run.principal if principal is None else check_name(principal, "principal")
        return Call(
            namespace=recordable(namespace, "namespace"),
            tool=recordable(tool, "tool"),
            arguments=arguments,
            principal=behalf,
            key=check_key(key, principal=behalf),
            provenance=provenance,
        )

    def _settle(
        self, mind: Mind, run: Run, call: Call, *, supersede: bool, then: Callable[[Transaction, Proposed], _Settled]
    ) -> _Settled:
        return self._proposer.propose(
            mind, run.id, call, fingerprint_key=self._key(run.tenant), tenant=run.tenant, supersede=supersede, then=then
        )

    def _claim_at_once(self, transaction: Transaction, proposed: Proposed, *, mind: Mind) -> _Settled:
        """Claim in the proposal's own transaction: the policy has just spoken (design §3)."""
        file, thought = proposed.file, proposed.thought
        if proposed.repeated or file.action.state is not State.READY:
            return _Settled(file=file, repeated=proposed.repeated)
        tool, arguments = mind.tools.lookup(thought.namespace, thought.tool), thought.payload("arguments")
        assert tool is not None  # an action that is READY was checked against its spec
        assert arguments is not None
        claimant = Claimant(
            holder=str(self._this_process()),
            lease_us=self._settings.lease_us,
            tool=tool,
            content=arguments.content,
            reserves=() if thought.judgement is None else thought.judgement.decision.reserves,
        )
        step = claim(transaction, file, claimant, None)
        return _Settled(file=file, repeated=False, step=step)

    def _proposal(self, tenant: str, action: str, *, repeated: bool) -> Proposal:
        with self._ledger.database.read() as connection:
            return Reader(connection=connection).proposal(tenant, action, repeated=repeated)

    def _key(self, tenant: str) -> bytes | None:
        if tenant not in self._keys:
            with self._ledger.database.read() as connection:
                self._keys[tenant] = runs.fingerprint_key(connection, tenant)
        return self._keys[tenant]

    def _this_process(self) -> Holder:
        pid = os.getpid()
        found = self._holders.get(pid)
        # One name for all threads: a lease is renewed only under the name that it was taken in.
        return found or self._holders.setdefault(pid, this_process(self._ledger.clock))

    def _renew(self, fences: tuple[int, ...]) -> frozenset[int]:
        holder = str(self._this_process())
        with self._ledger.database.write() as connection:
            now_us, lease_us = self._ledger.clock.now_us(), self._settings.lease_us
            return frozenset(
                fence
                for fence in fences
                if actions.renew(connection, fence=fence, holder=holder, now_us=now_us, lease_us=lease_us)
            )


def _replayed(transaction: Transaction, proposed: Proposed) -> _Settled:
    """Record that an outcome was handed back, where the proposal repeats an action at rest."""
    file = proposed.file
    if proposed.repeated and file.action.state in REPLAYED:
        transaction.draft.add("replayed", {"principal": proposed.thought.principal}, action=file.action.id)
    return _Settled(file=file, repeated=proposed.repeated)
