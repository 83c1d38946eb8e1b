"""The gate: what a loop calls. Everything it does is in the modules beside it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from sqlalchemy.engine import Connection

from agentgate.action import Key
from agentgate.clock import Clock, SystemClock
from agentgate.gate import opening
from agentgate.gate.answering import wait_for_people
from agentgate.gate.calls import Call
from agentgate.gate.channels import Channel, check_channels
from agentgate.gate.given import check_facts, check_flag, check_keyring, check_limits, check_settings, check_tools
from agentgate.gate.handles import named
from agentgate.gate.ledger import Ledger
from agentgate.gate.names import DEFAULT_TENANT, check_name, check_tenant, check_text
from agentgate.gate.opening import Run
from agentgate.gate.operating import Operating
from agentgate.gate.settings import Settings
from agentgate.gate.waiting import Span, check_wait
from agentgate.gate.workshop import Workshop
from agentgate.keyring import Keyring, KeyringSource
from agentgate.limits import Limits
from agentgate.outcome import Outcome, Proposal
from agentgate.policy.facts import FactProvider
from agentgate.policy.loading import PolicySource
from agentgate.sealing import SealingSource
from agentgate.secrets import SecretProvider
from agentgate.tools.decorator import AnyTool


class Gate(Operating):
    """Decide, run and record the effects of a loop; made by `Gate.open`, used by any number of threads."""

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
        self._shop = Workshop(
            ledger,
            policy=policy,
            tools=tools,
            facts=facts,
            settings=settings,
            secrets=secrets,
            keyring=keyring,
            pinned=pinned,
            channels=channels,
        )

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
        secrets: SecretProvider | None = None,
        sealing: SealingSource | None = None,
        keyring: KeyringSource | None = None,
        pinned: bool = False,
        channels: Iterable[Channel] = (),
    ) -> Self:
        """Open a gate on a ledger whose tables `agentgate.migrate` has made.

        Args:
            url: ``sqlite:///path/to/agent.db``.
            policy: a rule file's path, a function from `PolicyRequest` to `Decision`, or a `Policy`.
            tools: made by `tool` or `gated`.
            facts: who tells the policy what it declares to need, by name.
            settings: times to live and bounds.
            clock: for tests.
            secrets: who hands out what tools ask for with `Effect.secret`: `EnvironmentSecrets`, `FileSecrets`, or a
                function from a name to the secret.
            sealing: the keys that seal the payloads of tools with sensitive arguments, kept outside the database.
            keyring: the keys of people whose signatures count, or the path of their file; kept outside the database.
            pinned: start effects only while this very policy is the active one of the run's tenant
                (`activate_policy`), read in each claim's own transaction; until then everything waits.
            channels: who is told of every new question, whoever asks it, at least once; each in a thread of its own.

        Raises:
            WrongSchema: the tables are missing, older or newer than this code's.
            UnsafeStore: there is no such database, or it lies where a ledger must not.
            SpecRefused: two tools of one name, or names that look alike.
            PolicyRefused: the policy cannot be loaded.
            KeyringRefused: the keyring cannot be loaded.
            Misuse: tools, facts or settings that are none.
        """
        told, known, bounds = check_facts(facts), check_tools(tools), check_settings(settings)
        ring, tied = check_keyring(keyring), check_flag(pinned, "pinned")
        told_of = check_channels(channels)
        ledger = opening.open_ledger(url, clock or SystemClock(), sealing=sealing)
        try:
            return cls(
                ledger,
                policy=policy,
                tools=known,
                facts=told,
                settings=bounds,
                secrets=secrets,
                keyring=ring,
                pinned=tied,
                channels=told_of,
            )
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
        return f"Gate({self._shop.ledger.database.url!r}, {self._shop.mind.tools!r})"

    @property
    def ledger(self) -> str:
        """The ledger's id."""
        return self._shop.ledger.id

    def close(self) -> None:
        """Let go of the database; what still runs is recorded all the same when it ends."""
        self._shop.close()

    def register(self, tool: AnyTool, *, replace: bool = False) -> None:
        """Add a tool, or, on purpose, take the place of the one of its name."""
        self._shop.register(tool, replace=check_flag(replace, "replace"))

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
            self._shop.ledger,
            name=check_name(name, "name"),
            tenant=check_tenant(tenant),
            principal=check_name(principal, "principal"),
            goal=check_text(goal, "goal"),
            limits=check_limits(limits),
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
            Unavailable: the database could not be had. Nothing was written, unless the reason is ``answer`` (it is on
                record) or ``commit`` (it may be): propose it again with the same key.
        """
        call = Call(
            tool,
            arguments,
            key=key,
            namespace=namespace,
            principal=principal,
            provenance=provenance,
            supersede=supersede,
        )
        return self._shop.propose(run, call)

    def propose_many(self, run: Run, calls: Sequence[Call]) -> list[Proposal]:
        """Record several tool calls and what the policy says of each, in one commit; nothing runs.

        They are decided in order, each on what those before it leave, as if they were proposed one after the other:
        an invalid call is its own refusal, a held one holds nobody up, and a policy that ends the run refuses those
        after it and those before it that wait.

        Args:
            run: from `Gate.run`.
            calls: at most 100.

        Returns:
            A proposal for each call, in their order; execute them in any order, in any thread.

        Raises:
            KeyConflict: a key stands for another call, or for another principal's; nothing of the batch was recorded.
            Unavailable: the database could not be had. Nothing was written, unless the reason is ``answer`` (all of it
                is on record) or ``commit`` (all of it may be): propose it again with the same keys.
        """
        return self._shop.propose_many(run, calls)

    def execute(
        self,
        action: Proposal | str,
        *,
        tenant: str = DEFAULT_TENANT,
        principal: str | None = None,
        retry: bool = False,
        connection: object = None,
        wait: Span = None,
    ) -> Outcome:
        """Bring an action as far as it may go now, and say where that is.

        Args:
            action: a proposal, or an action's id. Who has an id may ask: hand it to nobody who may not, or say whom
                you ask for.
            tenant: of an action given by its id.
            principal: for whom; another principal's action is not found, and nothing of it is told.
            retry: try a known failure again, whatever the tool's own retry says.
            wait: how long to wait, as a timedelta or in seconds: for its turn at a resource, for whatever else keeps it
                from starting now, or for another worker's end; then the last answer is handed back. No retry of the
                tool's own sleeps longer. None waits for no turn, and lets retries take as long as the tool says.
            connection: a transaction of the caller's, to claim, run and record in: what `transaction` gave, or a
                connection of their own to the ledger's database, SQLAlchemy's or the DBAPI's. The outcome is true once
                they commit; their rollback leaves the action as it was. Only for tools that are `Transactional`.

        Raises:
            NotFound: no such action in this tenant, or of this principal.
            Damaged: the action's row contradicts the record; nothing was run.
            Unavailable: the database could not be had.
            Misuse: the connection cannot be used, or the tool's effect cannot be part of its transaction.
        """
        tenant, id_ = named(action, tenant)
        behalf, again = None if principal is None else check_name(principal, "principal"), check_flag(retry, "retry")
        with self._shop.working(connection) as shop:
            return shop.execute(tenant, id_, principal=behalf, retry=again, wait_us=check_wait(wait))

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
        connection: object = None,
        wait: Span = None,
    ) -> Outcome:
        """Propose and execute in one, with one commit fewer where the policy allows; arguments as in both."""
        call = Call(
            tool,
            arguments,
            key=key,
            namespace=namespace,
            principal=principal,
            provenance=provenance,
            supersede=supersede,
        )
        with self._shop.working(connection) as shop:
            return shop.call(run, call, retry=check_flag(retry, "retry"), wait_us=check_wait(wait))

    def wait(self, action: Proposal | str, *, timeout: Span, tenant: str = DEFAULT_TENANT) -> Proposal:
        """Wait until people have decided about an action, or can no longer; nothing is run.

        Args:
            action: a proposal, or an action's id.
            timeout: how long, as a timedelta or in seconds; 0 looks once; None waits for as long as its question can
                be answered.
            tenant: of an action given by its id.

        Returns:
            The action as it stands: HELD still, where the time was over first. One that waits for nobody is handed back
            at once. Hand it to `execute`.

        Raises:
            NotFound: no such action in this tenant.
            Misuse: no span, or a transaction of this thread's is open: nobody could decide meanwhile.
            Unavailable: the database could not be had; nothing is lost, and to wait again does no harm.
        """
        tenant, id_ = named(action, tenant)
        timeout_us = check_wait(timeout, "timeout", none="to wait for as long as it can be answered")
        wait_for_people(self._shop.ledger, tenant, id_, timeout_us=timeout_us)
        return self._shop.proposal(tenant, id_, repeated=True)

    def transaction(self) -> AbstractContextManager[Connection]:
        """Hold one writing transaction on the ledger's database, for a unit of work of the caller's own.

        It commits when the block ends well, and is undone when the block raises. Give its connection to `execute` or
        `call`, and what they did is committed or undone with it. Nobody else writes meanwhile: keep it short.

        Raises:
            Unavailable: the lock or the database could not be had. With the reason ``commit`` it is not known whether
                the transaction was committed: look before you repeat it.
            Misuse: this thread has one already.
        """
        return self._shop.transaction()
