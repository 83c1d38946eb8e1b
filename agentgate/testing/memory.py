"""A whole gate without a file: the same code on a ledger in memory, for tests that need no second process.

It is one connection, so nothing of it can be looked at from outside while a transaction is open, it is not carried
into a forked child, and what a crash leaves behind cannot be tried with it: use a file for that.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from agentgate.clock import Clock, SystemClock
from agentgate.gate.channels import Channel, check_channels
from agentgate.gate.face import Gate
from agentgate.gate.ledger import Ledger
from agentgate.gate.settings import Settings
from agentgate.policy.facts import FactProvider
from agentgate.policy.loading import PolicySource
from agentgate.sealing import SealingSource, sealing_keys
from agentgate.secrets import SecretProvider
from agentgate.store.engine import Database
from agentgate.testing.script import ScriptedPolicy
from agentgate.tools.decorator import AnyTool


@contextmanager
def memory_gate(
    *,
    policy: PolicySource | None = None,
    tools: Iterable[AnyTool] = (),
    facts: Mapping[str, FactProvider] | None = None,
    settings: Settings | None = None,
    clock: Clock | None = None,
    secrets: SecretProvider | None = None,
    sealing: SealingSource | None = None,
    channels: Iterable[Channel] = (),
) -> Iterator[Gate]:
    """Hold a gate on a fresh ledger in memory, gone when the block ends.

    Args:
        policy: as for `Gate.open`; without one everything is allowed.
        tools: made by `tool` or `gated`.
        facts: who tells the policy what it declares to need, by name.
        settings: times to live and bounds.
        clock: a `FakeClock`, to say when things expire.
        secrets: as for `Gate.open`.
        sealing: as for `Gate.open`.
        channels: as for `Gate.open`.
    """
    from agentgate.store.migration import upgrade_in  # alembic: a second that an import should not cost

    told = clock or SystemClock()
    database = Database("sqlite://")
    try:
        founded = upgrade_in(database, clock=told)
        gate = Gate(
            Ledger(database, clock=told, id=founded.ledger, sealing=sealing_keys(sealing)),
            policy=ScriptedPolicy() if policy is None else policy,
            tools=tools,
            facts=facts or {},
            settings=settings or Settings(),
            secrets=secrets,
            channels=check_channels(channels),
        )
        with gate:
            yield gate
    finally:
        database.close()
