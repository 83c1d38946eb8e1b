"""What a running effect may know of itself, and how it learns that its time or its lease is over.

How it is run is `agentgate.work`'s. Nothing here knows a database; a transactional effect is handed its connection.
"""

import threading
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, NoReturn

from sqlalchemy.engine import Connection

from agentgate.clock import Clock
from agentgate.errors import Misuse
from agentgate.observation import NoEffect, ToolError
from agentgate.secrets import NOBODY, Broker, Handed


class Effect:
    """What a running effect may know of itself; a tool gets it by annotating a parameter with this class.

    Args:
        action_id: the action's id.
        idempotency_key: 64 hex digits, stable over attempts, processes and resumes; hand it downstream.
        attempt: from 1.
        fence: grows over all actions of the ledger; a downstream that remembers the highest per resource can refuse
            a worker that was stopped and woke up late.
        deadline: when the gate stops waiting.
        tenant: the run's tenant.
        principal: on whose behalf.
    """

    __agentgate_effect__: ClassVar[bool] = True

    def __init__(
        self,
        *,
        action_id: str,
        idempotency_key: str,
        attempt: int,
        fence: int,
        deadline: datetime,
        tenant: str,
        principal: str,
        clock: Clock,
        until_us: int,
        lease_until_us: int,
        broker: Broker = NOBODY,
        handed: Handed | None = None,
        reserves: Mapping[str, int] = MappingProxyType({}),
        spent: dict[str, int] | None = None,
    ) -> None:
        self.action_id = action_id
        self.idempotency_key = idempotency_key
        self.attempt = attempt
        self.fence = fence
        self.deadline = deadline
        self.tenant = tenant
        self.principal = principal
        self._clock = clock
        self._until_us = until_us
        self._lease_until_us = lease_until_us
        self._lost = threading.Event()
        self._sent = False
        self._said: tuple[float, str] | None = None
        self._broker = broker
        self._handed: Handed = {} if handed is None else handed
        self._reserves = reserves
        self._spent: dict[str, int] = {} if spent is None else spent
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        return f"Effect(action_id={self.action_id!r}, attempt={self.attempt}, fence={self.fence})"

    def check(self) -> None:
        """Stop here if the lease is lost or the time is over; what was done so far stays in doubt.

        Raises:
            ToolError: ``lease_lost`` or ``timeout``, with ``effect="unknown"``.
        """
        over = self._over()
        if over is not None:
            raise ToolError(over[0], over[1], effect="unknown")

    def _over(self) -> tuple[str, str] | None:
        now_us = self._clock.monotonic_us()
        # Its own clock decides, not the heartbeat alone: a process that was stopped wakes up in here first.
        if self._lost.is_set() or now_us >= self._lease_until_us:
            return "lease_lost", "the lease is lost: another worker may have this action"
        if now_us >= self._until_us:
            return "timeout", "the time for this effect is over"
        return None

    def sending(self) -> None:
        """Call this just before the first byte leaves: it checks lease and deadline once more.

        Raises:
            NoEffect: at its first call, where nothing has left yet.
            ToolError: at a later one, as `check`.
        """
        over = self._over()
        if over is not None and not self._sent:
            raise NoEffect(over[1], code=over[0])
        self._sent = True
        self.check()

    def secret(self, name: str) -> str:
        """Fetch a secret as text; ask for it before the first byte leaves.

        It is never recorded, and taken out of whatever this attempt returns, raises or says later.

        Args:
            name: letters, digits, dots, dashes and underscores.

        Raises:
            NoEffect: ``secret_missing``, or ``secret_unavailable`` where its provider failed or was too slow.
            ToolError: the same codes with ``effect="unknown"`` once `sending` was called; or as `check`.
        """
        value = self._fetched(name)
        if isinstance(value, str):
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            self._fail(NoEffect(f"the secret {name!r} is no text: ask for secret_bytes", code="secret_unavailable"))

    def secret_bytes(self, name: str) -> bytes:
        """Fetch a secret as bytes, one that is text as UTF-8; the rest as `secret`."""
        value = self._fetched(name)
        return value.encode() if isinstance(value, str) else value

    def _fetched(self, name: str) -> str | bytes:
        self.check()
        left_us = min(self._until_us, self._lease_until_us) - self._clock.monotonic_us()
        value = self._broker.fetch(name, seconds=left_us / 1e6)
        if isinstance(value, ToolError):
            self._fail(value)
        if value not in self._handed.get(name, ()):
            self._handed[name] = (*self._handed.get(name, ()), value)
        return value

    def _fail(self, error: ToolError) -> NoReturn:
        """Raise it as what it proves: nothing was done, unless the tool said that it begins."""
        if self._sent:
            raise ToolError(error.code, error.message, suggested_action=error.suggested_action, effect="unknown")
        raise error

    @property
    def handed(self) -> Mapping[str, tuple[str | bytes, ...]]:
        """The secrets that were handed out so far, by name; for the gate, which takes them out of what is said."""
        return dict(self._handed)

    def settle(self, account: str, amount: int) -> None:
        """Say what was spent in the end of what the policy reserved; the rest is given back once this has succeeded.

        Said again for the same account, the last word counts. An account that nothing is said of keeps the whole.

        Args:
            account: one that was reserved from.
            amount: from 0 to what was reserved.

        Raises:
            Misuse: another account, or another amount. Like any error of a tool, it may leave the outcome in doubt.
        """
        if type(account) is not str or account not in self._reserves:
            known = ", ".join(self._reserves) or "none"
            raise Misuse(f"account: nothing was reserved from it for this action; reserved from: {known}")
        if type(amount) is not int or not 0 <= amount <= self._reserves[account]:
            raise Misuse(f"amount: give a whole number from 0 to {self._reserves[account]}, which was reserved")
        self._spent[account] = amount

    @property
    def connection(self) -> Connection:
        """The transaction of the claim and the record, for what a transactional effect writes.

        Raises:
            Misuse: the tool does not declare ``recovery=Transactional()``, or its effect has ended.
        """
        if self._connection is None:
            raise Misuse("effect.connection: only while an effect of a tool with recovery=Transactional() runs")
        return self._connection

    def lend(self, connection: Connection | None) -> None:
        """Give the effect its connection, or take it back; for whoever runs it."""
        self._connection = connection

    def progress(self, fraction: float, note: str = "") -> None:
        """Say how far the effect is, from 0 to 1; kept for whoever asks, never recorded."""
        self._said = (min(max(fraction, 0.0), 1.0), note)

    @property
    def said(self) -> tuple[float, str] | None:
        """What the effect last said of its progress."""
        return self._said

    def lose(self) -> None:
        """Tell the effect that its lease is gone; for the heartbeat."""
        self._lost.set()

    def keep(self, until_us: int) -> None:
        """Tell the effect that its lease was renewed, and until when on the monotonic clock; for the heartbeat."""
        self._lease_until_us = until_us
