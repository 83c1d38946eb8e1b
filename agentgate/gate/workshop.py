"""What a gate is made of: one ledger, one mind, and those who propose, claim, perform and command.

Both shells stand in front of it: here is what they share, and nothing that a caller reads.
"""

import copy
import dataclasses
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from agentgate.core.draft import Plan
from agentgate.core.records import ActionFile
from agentgate.errors import Misuse, Unavailable
from agentgate.gate import covering, opening
from agentgate.gate.answers import Reader, unreadable
from agentgate.gate.batching import Batcher
from agentgate.gate.calls import Call, intent_of, intents_of
from agentgate.gate.channels import Channel, Courier
from agentgate.gate.claiming import Claim, Claimant, claim
from agentgate.gate.commands import Commander
from agentgate.gate.confirming import Checker
from agentgate.gate.executing import REPLAYED, Executor, check_within
from agentgate.gate.inquiring import Inquirer
from agentgate.gate.ledger import Ledger, Transaction, report
from agentgate.gate.opening import Run
from agentgate.gate.overdue import Sweeper
from agentgate.gate.performing import Performer, Ran
from agentgate.gate.probing import Prober
from agentgate.gate.proposing import Proposed, Proposer
from agentgate.gate.questions import Question, read_question
from agentgate.gate.settings import Settings
from agentgate.gate.staleness import Stale
from agentgate.gate.thinking import Mind
from agentgate.gate.waiting import see_through
from agentgate.heartbeat import Heartbeat
from agentgate.keyring import Keyring
from agentgate.lease import Holder
from agentgate.outcome import Outcome, Proposal
from agentgate.policy.facts import FactProvider
from agentgate.policy.grants import FACT
from agentgate.policy.loading import PolicySource, load_policy
from agentgate.process import this_process
from agentgate.secrets import Broker, SecretProvider
from agentgate.states import State
from agentgate.store import actions, runs
from agentgate.store.borrowing import borrowed
from agentgate.store.lending import lent
from agentgate.tools.decorator import AnyTool
from agentgate.tools.registry import ToolSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a proposal's transaction left behind: the action, and a claim where one was made with it."""

    file: ActionFile
    repeated: bool
    step: Claim | Ran | Outcome | None = None


class _Theirs(Exception):
    """What a caller's own block raised, past those who would read it as an error of the ledger's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Workshop:
    """One gate's parts, put together.

    Args:
        ledger: the record.
        policy: who may say no.
        tools: what may be run.
        facts: who tells the policy what it declares to need, by name.
        settings: times to live and bounds.
        secrets: who hands out what tools ask for.
        keyring: whose signatures count, from outside the database.
        pinned: whether it claims only while its policy is the active one.
        channels: who is told of new questions, by name.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        policy: PolicySource,
        tools: Iterable[AnyTool],
        facts: Mapping[str, FactProvider],
        settings: Settings,
        secrets: SecretProvider | None = None,
        keyring: Keyring | None = None,
        pinned: bool = False,
        channels: Mapping[str, Channel] | None = None,
    ) -> None:
        self.ledger = ledger
        self.keyring = keyring
        self.settings = settings
        self.mind = Mind(
            ledger=ledger,
            settings=settings,
            tools=ToolSet(tools),
            policy=load_policy(policy),
            providers=facts,
            own={FACT: covering.provider(ledger)},
            is_pinned=pinned,
        )
        opening.register(ledger, self.mind.tools, lease=settings.lease)
        self.keys: dict[str, bytes | None] = {}  # fingerprint keys by tenant, as committed
        self._holders: dict[int, Holder] = {}
        self._registering = threading.Lock()
        self.heartbeat = Heartbeat(self._renew, lease_us=settings.lease_us, clock=ledger.clock)
        self.performer = Performer(
            ledger=ledger,
            heartbeat=self.heartbeat,
            settings=settings,
            fingerprint_key=self.key,
            broker=Broker(provider=secrets, within=settings.secret_within),
        )
        prober = Prober(ledger=ledger, settings=settings, performer=self.performer, holder=self.this_process)
        self.executor = Executor(
            ledger=ledger,
            settings=settings,
            performer=self.performer,
            prober=prober,
            holder=self.this_process,
            keyring=keyring,
        )
        self.checker = Checker(ledger=ledger, settings=settings, handle=self.performer.handle)
        self.proposer = Proposer(ledger, settings)
        self.batcher = Batcher(ledger=ledger, settings=settings)
        self.inquirer = Inquirer(ledger=ledger, settings=settings, mind=lambda: self.mind)
        self.sweeper = Sweeper(ledger=ledger, holder=self.this_process, probe=self.probe, ask=self.inquirer.ask)
        self.commander = Commander(ledger=ledger, settings=settings, fingerprint_key=self.key)
        self.courier = Courier(ledger, channels or {})
        if channels:
            ledger.turns.on_question = self.courier.wake
            self.courier.start()

    def register(self, tool: AnyTool, *, replace: bool) -> None:
        """Add a tool, or, on purpose, take the place of the one of its name."""
        with self._registering:
            tools = self.mind.tools.added(tool, replace=replace)
            opening.register(self.ledger, [tool], lease=self.settings.lease)
            self.mind = dataclasses.replace(self.mind, tools=tools)

    def close(self) -> None:
        """Let go of the database; what still runs is recorded all the same when it ends."""
        self.courier.stop()
        self.heartbeat.stop()
        self.ledger.database.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold one transaction of the ledger for the caller's own writes; what was executed in it is logged after."""
        told: list[Plan] = []
        try:
            with self.ledger.own.write() as whole, lent(whole, of="gate.transaction()", told=told) as given:
                try:
                    yield given
                except Exception as error:  # noqa: BLE001 - the caller's block: what their statements raise is theirs
                    raise _Theirs(error) from None
        except _Theirs as theirs:
            raise theirs.error from theirs.error.__cause__
        except Unavailable as error:
            self.ledger.explain(error)
            if error.reason != "commit" or not told or not self.ledger.landed(told[-1]):
                raise
        for plan in told:
            if self.ledger.landed(plan):  # the caller may have gone back to a savepoint of their own
                report(plan)

    @contextmanager
    def working(self, connection: object) -> Iterator["Workshop"]:
        """Work in transactions of the gate's own; or inside one of the caller's, where they give a connection.

        Of what a caller may still undo nothing is remembered, and nothing is logged before its commit.

        Raises:
            Misuse: the connection is of no use here, and why.
        """
        if connection is None:
            yield self
            return
        with borrowed(self.ledger.own, connection) as database:
            shop = copy.copy(self)
            shop.keys = {}
            shop.ledger = ledger = self.ledger.inside(database)
            shop.mind = dataclasses.replace(self.mind, ledger=ledger)
            shop.performer = dataclasses.replace(self.performer, ledger=ledger, within=True)
            prober = dataclasses.replace(self.executor.prober, ledger=ledger, performer=shop.performer)
            shop.executor = dataclasses.replace(self.executor, ledger=ledger, performer=shop.performer, prober=prober)
            shop.proposer = Proposer(ledger, self.settings)
            yield shop

    def propose(self, run: Run, call: Call) -> Proposal:
        """Record a call, and start nothing."""
        settled = self._settle(self.mind, run, call, then=_replayed)
        return self.proposal(settled.file.action.tenant, settled.file.action.id, repeated=settled.repeated)

    def propose_many(self, run: Run, calls: Sequence[Call]) -> list[Proposal]:
        """Record several calls in one commit, and start nothing."""
        intents = intents_of(run, calls)
        if not intents:
            return []
        key = self.key(run.tenant)
        entries = self.batcher.propose(self.mind, run.id, intents, tenant=run.tenant, fingerprint_key=key)
        with self._answering() as reader:
            return [reader.proposal(run.tenant, entry.action, repeated=entry.repeated) for entry in entries]

    def call(self, run: Run, call: Call, *, retry: bool, wait_us: int | None) -> Outcome:
        """Propose and execute in one, with one commit fewer where the policy allows."""
        # What is thought through with these tools is claimed with them, whatever is registered meanwhile.
        mind, until_us = self.mind, self._until(wait_us)
        outcome = self._call(mind, run, call, retry=retry)
        return self._see_through(mind, run.tenant, outcome, until_us)

    def execute(self, tenant: str, action: str, *, principal: str | None, retry: bool, wait_us: int | None) -> Outcome:
        """Bring an action as far as it may go, for as long as its caller waits."""
        mind, until_us = self.mind, self._until(wait_us)
        outcome = self.executor.execute(mind, tenant, action, principal=principal, by="caller" if retry else None)
        return self._see_through(mind, tenant, outcome, until_us)

    def _see_through(self, mind: Mind, tenant: str, outcome: Outcome, until_us: int | None) -> Outcome:
        if self.performer.within:  # nobody sleeps, and nobody is asked, while the caller's transaction is open
            return outcome
        seen = see_through(self.ledger, self.executor, mind, tenant, outcome, until_us=until_us)
        return self.inquirer.asked(tenant, seen)

    def _until(self, wait_us: int | None) -> int | None:
        if self.performer.within and wait_us is not None:
            raise Misuse("wait: nobody is waited for inside a transaction of yours; leave one of them out")
        return None if wait_us is None else self.ledger.clock.monotonic_us() + wait_us

    def _call(self, mind: Mind, run: Run, call: Call, *, retry: bool) -> Outcome:
        if self.performer.within:
            intent = intent_of(run, call)
            check_within(mind.tools.lookup(intent.namespace, intent.tool))
        settled = self._settle(mind, run, call, then=partial(self._claim_at_once, mind=mind))
        action = settled.file.action
        if isinstance(settled.step, Claim | Ran):
            return self.performer.perform(settled.step)
        if settled.step is not None:
            return self.executor.past(mind, run.tenant, settled.step)
        if settled.repeated:
            return self.executor.execute(mind, run.tenant, action.id, by="caller" if retry else None)
        proposal = self.proposal(run.tenant, action.id, repeated=False)
        return proposal.outcome or self.executor.execute(mind, run.tenant, action.id, by=None)

    def probe(self, tenant: str, action: str, namespace: str, tool: str) -> bool | None:
        """Ask the tool of this name about an action's attempts in doubt; tell whether it could say what happened."""
        mind = self.mind
        known = mind.tools.lookup(namespace, tool)
        return None if known is None or known.probe is None else self.executor.probe(mind, tenant, action)

    def confirm(self, tenant: str, action: str) -> None:
        """Have an action's tool check, now, whether the world is as it should have left it."""
        with self.ledger.database.read() as connection:
            found = actions.read(connection, action)
        tool = None if found is None else self.mind.tools.lookup(found.namespace, found.tool)
        self.checker.check(tool, tenant, action)

    def _settle(self, mind: Mind, run: Run, call: Call, *, then: Callable[[Transaction, Proposed], Settled]) -> Settled:
        intent = intent_of(run, call)
        key = self.key(run.tenant)
        return self.proposer.propose(mind, run.id, intent, fingerprint_key=key, tenant=run.tenant, then=then)

    def _claim_at_once(self, transaction: Transaction, proposed: Proposed, *, mind: Mind) -> Settled:
        """Claim in the proposal's own transaction: the policy has just spoken (design §3)."""
        file, thought = proposed.file, proposed.thought
        if proposed.repeated or file.action.state is not State.READY:
            return Settled(file=file, repeated=proposed.repeated)
        tool, arguments = mind.tools.lookup(thought.namespace, thought.tool), thought.payload("arguments")
        assert tool is not None  # an action that is READY was checked against its spec
        assert arguments is not None
        claimant = Claimant(
            holder=str(self.this_process()),
            lease_us=self.settings.lease_us,
            tool=tool,
            content=arguments.content,
            reserves=() if thought.judgement is None else thought.judgement.decision.reserves,
            salt=self.ledger.salt(),
            breaker=self.settings.breaker,
            pinned=mind.pinned,
            operators=self.settings.operators,
        )
        step = self.performer.settled(transaction, claim(transaction, file, claimant, None))
        return Settled(file=file, repeated=False, step=step)

    def proposal(self, tenant: str, action: str, *, repeated: bool) -> Proposal:
        """Read an action as a caller is handed it, once what they asked for is on record."""
        with self._answering() as reader:
            return reader.proposal(tenant, action, repeated=repeated)

    def stale(self) -> Stale:
        """Tell of open questions, as this gate meets them now, why their answers would carry nothing."""
        return Stale(self.ledger.id, self.mind.tools)

    def question(self, approval: str, action: str) -> Question:
        """Read a question as a caller is handed it, once what they answered is on record."""
        with self._answering() as reader:
            return read_question(reader, approval, action, stale=self.stale())

    @contextmanager
    def _answering(self) -> Iterator[Reader]:
        try:
            with self.ledger.database.read() as connection:
                yield Reader(connection=connection, sealing=self.ledger.sealing)
        except Unavailable as error:
            if self.performer.within:  # nothing is on record until the caller commits
                raise
            raise unreadable(error) from error

    def key(self, tenant: str) -> bytes | None:
        """Return a tenant's fingerprint key."""
        if tenant not in self.keys:
            with self.ledger.database.read() as connection:
                self.keys[tenant] = runs.fingerprint_key(connection, tenant)
        return self.keys[tenant]

    def this_process(self) -> Holder:
        """Name this gate in this process, as its leases do."""
        pid = os.getpid()
        found = self._holders.get(pid)
        # One name for all threads: a lease is renewed only under the name that it was taken in.
        return found or self._holders.setdefault(pid, this_process(self.ledger.clock))

    def _renew(self, fences: tuple[int, ...]) -> frozenset[int]:
        holder = str(self.this_process())
        with self.ledger.database.write() as connection:
            now_us, lease_us = self.ledger.clock.now_us(), self.settings.lease_us
            return frozenset(
                fence
                for fence in fences
                if actions.renew(connection, fence=fence, holder=holder, now_us=now_us, lease_us=lease_us)
            )


def _replayed(transaction: Transaction, proposed: Proposed) -> Settled:
    """Record that an outcome was handed back, where the proposal repeats an action at rest."""
    file = proposed.file
    if proposed.repeated and file.action.state in REPLAYED:
        transaction.draft.add("replayed", {"principal": proposed.thought.principal}, action=file.action.id)
    return Settled(file=file, repeated=proposed.repeated)
