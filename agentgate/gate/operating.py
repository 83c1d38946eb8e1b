"""What people do from outside a loop: the verbs of operators, which `Gate` has beside the loop's own.

Everything they do is in the modules beside this one. Why they stand in a class of their own: docs/decisions/0010.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from agentgate.gate import activating, channels, closing, inbox, limiting, switching
from agentgate.gate.activating import Activated, ActivePolicy
from agentgate.gate.approvals import Approvals
from agentgate.gate.channels import Channel
from agentgate.gate.commands import note_payloads
from agentgate.gate.granting import Grants
from agentgate.gate.handles import check_run, named
from agentgate.gate.inbox import Waiting
from agentgate.gate.keyring import KeyTable
from agentgate.gate.limiting import Allowance
from agentgate.gate.names import DEFAULT_TENANT, check_name, check_tenant, check_text
from agentgate.gate.opening import Run
from agentgate.gate.overdue import Swept
from agentgate.gate.switching import Paused, Resumed
from agentgate.gate.workshop import Workshop
from agentgate.outcome import Proposal


class Operating:
    """Say what was found out, take back, end and stop; of an open gate."""

    _shop: Workshop

    @property
    def approvals(self) -> Approvals:
        """Questions to people: list and show them, approve, reject, edit and revoke."""
        return Approvals(self._shop)

    @property
    def keys(self) -> KeyTable:
        """People's keys in the ledger's own table: add, revoke and list them."""
        return KeyTable(self._shop.ledger)

    @property
    def grants(self) -> Grants:
        """Standing grants: a yes in advance, for what a predicate says, until a time, so many times."""
        return Grants(self._shop.ledger, self._shop.mind.tools)

    def cancel(self, action: Proposal | str, *, by: str, note: str = "", tenant: str = DEFAULT_TENANT) -> Proposal:
        """Cancel an action that has not started, or whose failure is known.

        Raises:
            NotPossible: it runs, may have happened, or has ended.
        """
        tenant, id_ = named(action, tenant)
        self._shop.commander.cancel(tenant, id_, by=check_name(by, "by"), note=check_text(note, "note") or "")
        return self._shop.proposal(tenant, id_, repeated=True)

    def reconcile(
        self,
        action: Proposal | str,
        *,
        applied: bool,
        by: str,
        evidence: object,
        result: object = None,
        worker_known_dead: bool = False,
        attempt: int | None = None,
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
            attempt: of which it was found out: `Unknown.attempt`. Where another one has started since, nothing is
                recorded. Without it the verdict is taken to be about whichever is the newest.
            tenant: of an action given by its id.

        Raises:
            NotPossible: nothing about it is in doubt, or it was found out of another attempt than its newest.
        """
        tenant, id_ = named(action, tenant)
        self._shop.executor.settle_lease(tenant, id_)
        self._shop.commander.reconcile(
            tenant,
            id_,
            applied=applied,
            by=check_name(by, "by"),
            evidence=evidence,
            result=result,
            worker_known_dead=worker_known_dead,
            attempt=attempt,
        )
        return self._shop.proposal(tenant, id_, repeated=True)

    def abandon(self, action: Proposal | str, *, by: str, note: str = "", tenant: str = DEFAULT_TENANT) -> Proposal:
        """Give up knowing whether an action happened: its key is closed, its resource is free for others.

        It counts as having happened, for every limit. A result that comes after all is kept as evidence.

        Args:
            action: a proposal, or an action's id.
            by: who gives up.
            note: why, in words.
            tenant: of an action given by its id.

        Raises:
            NotPossible: its outcome is known, or its worker may still tell.
        """
        tenant, id_ = named(action, tenant)
        self._shop.executor.settle_lease(tenant, id_)
        self._shop.commander.abandon(tenant, id_, by=check_name(by, "by"), note=check_text(note, "note") or "")
        return self._shop.proposal(tenant, id_, repeated=True)

    def pause(
        self, *, by: str, reason: str, tenant: str | None = None, tool: str | None = None, namespace: str = ""
    ) -> Paused:
        """Stop every later effect: of everybody, of a tenant, of a tool, or of a tool for one tenant.

        When it returns, nothing within the scope is claimed any more, by any gate of the ledger; what was claimed
        before may run on, and is reported. What would start waits, under its key, and loses nothing.

        Args:
            by: who pauses.
            reason: why, in words; kept beside the record.
            tenant: of this tenant alone.
            tool: of this tool alone.
            namespace: the tool's server.

        Raises:
            NotFound: the ledger knows no such tenant or tool.
            Unavailable: the database could not be had; nothing is paused by this call, unless the reason is
                ``commit``: then it may be, and to pause again does no harm.
        """
        scope = switching.scope_of(tenant, tool, namespace)
        return switching.pause(self._shop.ledger, scope, by=check_name(by, "by"), reason=reason)

    def resume(
        self, *, by: str, reason: str = "", tenant: str | None = None, tool: str | None = None, namespace: str = ""
    ) -> Resumed:
        """Take a pause back, of exactly the scope that was paused, and report what is paused still."""
        scope = switching.scope_of(tenant, tool, namespace)
        return switching.resume(self._shop.ledger, scope, by=check_name(by, "by"), reason=reason)

    def activate_policy(self, *, by: str, note: str = "", tenant: str | None = None) -> Activated:
        """Make this gate's own policy the active one, of a tenant or of every tenant that has none of its own.

        When it returns, no pinned gate that holds another policy starts anything for them; what was claimed before
        may run on. Gates that are not pinned go on with the policy they hold. Activating what is active is recorded
        once.

        Args:
            by: who activates it.
            note: why, in words; kept beside the record.
            tenant: of this tenant alone; it then goes by its own, whatever is activated for everybody.

        Raises:
            NotFound: the ledger knows no such tenant.
            Unavailable: the database could not be had; nothing is activated by this call, unless the reason is
                ``commit``: then it may be, and to activate again does no harm.
        """
        shop = self._shop
        return activating.activate(shop.ledger, shop.mind, by=check_name(by, "by"), note=note, tenant=tenant)

    def active_policies(self) -> tuple[ActivePolicy, ...]:
        """Read which policies are active: everybody's first, then those that tenants have of their own.

        Raises:
            Damaged: a row of them says something else than the event that made it.
        """
        with self._shop.ledger.database.read() as connection:
            return tuple(activating.active(connection, self._shop.ledger.id))

    def confirm(self, action: Proposal | str, *, tenant: str = DEFAULT_TENANT) -> Proposal:
        """Ask a tool's own check whether the world is as an action should have left it: the first time, or again.

        Args:
            action: a proposal, or an action's id.
            tenant: of an action given by its id.

        Returns:
            The action, whose outcome says what the latest check that could tell has said.

        Raises:
            NotPossible: it has not happened, or this gate has no tool of its definition with a confirm function.
        """
        tenant, id_ = named(action, tenant)
        self._shop.confirm(tenant, id_)
        return self._shop.proposal(tenant, id_, repeated=True)

    def sweep(self, *, on_progress: Callable[[int], object] | None = None) -> Swept:
        """Bring what nobody comes back for where it belongs: attempts of dead workers, and what has expired.

        It runs no effect and asks no policy; it may run at any time, as often as you like, beside anything.

        Args:
            on_progress: is told how many attempts, questions and actions were looked at.

        Raises:
            Unavailable: the database could not be had; what was changed until then is.
        """
        return self._shop.sweeper.sweep(on_progress=on_progress)

    def limit(
        self,
        most: Mapping[str, int],
        *,
        by: str,
        tenant: str = DEFAULT_TENANT,
        tool: str | None = None,
        namespace: str = "",
        account: str | None = None,
        note: str = "",
    ) -> Allowance:
        """Bound what a tenant, one of its tools, or one of its accounts may spend, in every gate of the ledger.

        What was used before counts. The bounds given take the place of all that were set there; ``{}`` lifts them.

        Args:
            most: the bound of each measure. A tenant: ``actions``, ``parallel``, ``pending``, ``tokens``, ``money``.
                A tool: ``actions``, ``parallel``, ``pending``, ``failures`` (its last attempts, all of which failed).
                An account, from which a policy reserves: ``amount``.
            by: who says so.
            tenant: whose.
            tool: of this tool alone.
            namespace: the tool's server.
            account: of this account alone.
            note: why, in words.

        Returns:
            The bounds as they stand now, and what is used of them.

        Raises:
            Misuse: nothing that could be bounded, or by no such measure.
            NotFound: the ledger knows no such tool.
            Unavailable: the database could not be had; nothing is bounded by this call, unless the reason is
                ``commit``: then it may be, and to bound again does no harm.
        """
        place = limiting.place_of(tool_=tool, namespace=namespace, account_=account)
        return limiting.limit(self._shop.ledger, most, tenant=tenant, place=place, by=check_name(by, "by"), note=note)

    def deliver(self, channel: Channel) -> int:
        """Tell a channel of every question that it was not told of yet, here and now, without a thread.

        Args:
            channel: what was told on it is marked by its name, in every gate of the ledger.

        Returns:
            Of how many it was told. What it could not be told is put off, and told by a later call.

        Raises:
            Misuse: it is no channel.
            Unavailable: the database could not be had; what was not marked as told by then is told again.
        """
        (one,) = channels.check_channels([channel]).values()
        return channels.deliver(self._shop.ledger, one)

    def waiting(self, *, tenant: str | None = None) -> Iterator[Waiting]:
        """Read all that waits for a person, of every run: what is paused, held, in doubt or halted.

        It is read page by page as you go through it.

        Args:
            tenant: whose; everybody's where it is left out.
        """
        return inbox.waiting(self._shop.ledger, tenant=None if tenant is None else check_tenant(tenant))

    def close_run(self, run: Run, *, by: str, note: str = "") -> None:
        """Close a run: nothing of it starts any more, what waits is refused, its keys can be used in another run.

        A run that was halted waits for somebody to look at it; closing it says that somebody has.

        Args:
            run: from `Gate.run`.
            by: who closes it.
            note: why, in words; kept beside the record.

        Raises:
            NotPossible: it is closed, or something of it executes.
        """
        texts = note_payloads(self._shop.ledger, check_text(note, "note") or "")
        close = partial(closing.close, by=check_name(by, "by"), payloads=texts)
        self._shop.ledger.change(check_run(run).id, close, tenant=run.tenant)
