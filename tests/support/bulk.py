"""A run of very many executed actions, by the gate's own functions, hundreds to a transaction instead of two each.

What it leaves is what that many gated calls would have left: every row, event and payload; it verifies.
"""

from dataclasses import replace
from functools import partial

import agentgate
from agentgate.action import Key
from agentgate.core import classifying, recording
from agentgate.core.proposing import propose
from agentgate.gate.claiming import Claim, Claimant, claim
from agentgate.gate.keeping import kept
from agentgate.gate.ledger import Transaction
from agentgate.gate.proposing import chance, view_of
from agentgate.gate.thinking import Intent
from agentgate.tools.decorator import AnyTool

BATCH = 500


def load(url: str, *, run: str, principal: str, actions: int, tool: AnyTool) -> None:
    """Let ``actions`` calls of ``tool`` have been executed in a run.

    Args:
        url: of a migrated ledger.
        run: its name.
        principal: the run's.
        actions: how many.
        tool: takes ``account`` and ``cents``.
    """
    policy = agentgate.python_policy(_allowed, identity="bulk")
    with agentgate.Gate.open(url, policy=policy, tools=[tool]) as gate:
        opened = gate.run(run, principal=principal)
        for first in range(0, actions, BATCH):
            numbers = range(first, min(first + BATCH, actions))
            work = partial(_batch, gate=gate, run=opened, tool=tool, numbers=numbers)
            gate._shop.ledger.change(opened.id, work, documents=gate._shop.mind.documents)


def _allowed(_request: agentgate.PolicyRequest) -> agentgate.Decision:
    return agentgate.allow()


def _batch(
    transaction: Transaction, *, gate: agentgate.Gate, run: agentgate.Run, tool: AnyTool, numbers: range
) -> None:
    spec = tool.spec
    view = view_of(transaction.connection, transaction.draft.run, namespace=spec.namespace, tool=spec.name)
    for number in numbers:
        call = Intent(
            namespace=tool.spec.namespace,
            tool=tool.spec.name,
            arguments={"account": "a1", "cents": number},
            principal=run.principal,
            key=Key(source="caller", text=f"bulk-{number}"),
        )
        fingerprint_key = gate._shop.key(run.tenant)
        thought = gate._shop.mind.think(call, fingerprint_key)
        judgement = gate._shop.mind.judge(thought, transaction.draft.run, view, revision=1)
        thought = replace(thought, judgement=judgement)
        file = propose(transaction.draft, thought, chance(gate._shop.ledger, gate._shop.settings), revision=1)
        arguments = thought.payload("arguments")
        assert arguments is not None
        claimant = Claimant(
            holder=str(gate._shop.this_process()),
            lease_us=60_000_000,
            tool=tool,
            content=arguments.content,
            reserves=(),
            salt=bytes(32),
            operators=gate._shop.settings.operators,
        )
        claimed = claim(transaction, file, claimant, None)
        assert isinstance(claimed, Claim)
        ended = classifying.returned(number, tool.spec)
        assert ended.observation is not None
        result = kept(gate._shop.ledger, fingerprint_key, claimed.file, ended.observation)
        recording.end(transaction.draft, claimed.file, claimed.attempt, ended, result, by=claimed.attempt.holder)
