"""What a claim reads before it believes its rows: the action's events, and the keys of whoever answered."""

from dataclasses import dataclass

from agentgate.approval import Requirement, Verdict
from agentgate.core.history import History, told
from agentgate.core.proposing import Chance
from agentgate.core.proving import is_granted, prove
from agentgate.core.records import ActionFile
from agentgate.gate.editors import editors_before
from agentgate.gate.keyring import trusted
from agentgate.gate.ledger import Transaction
from agentgate.keyring import Keyring
from agentgate.store import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What people's answers are judged by, at a claim that rests on them.

    Args:
        history: the action's, which its rows agree with.
        keyring: whose signatures count, from outside the database; None where the gate has none.
        chance: the ledger's id, and how long an answer stands; what another question would be made with.
    """

    history: History
    keyring: Keyring | None
    chance: Chance

    def answers(self, requirement: Requirement) -> bool:
        """Tell whether what hangs on the action asks for exactly this, and was granted."""
        return is_granted(self.history.file, requirement)

    def proven(self, transaction: Transaction, requirement: Requirement, verdict: Verdict = "approve") -> str | None:
        """Say why what was granted carries nothing; None where everything about it is as it must be.

        Args:
            transaction: the claim's.
            requirement: of the policy that claims; what was granted `answers` it.
            verdict: what people must have said.

        Returns:
            ``no_keyring`` where this gate cannot tell; any other reason voids the answer: see `core.proving.prove`.

        Raises:
            Damaged: the record contradicts itself.
        """
        at_us, ledger, ring = transaction.draft.at_us, self.chance.ledger, self.keyring
        if ring is not None and any(vote.key is not None for vote in self.history.file.votes.values()):
            ring = trusted(transaction.connection, ring, ledger=ledger, now_us=at_us)
        return prove(
            self.history,
            requirement,
            verdict=verdict,
            ledger=ledger,
            keyring=ring,
            at_us=at_us,
            grant_us=self.chance.grant_us,
            editors=editors_before(transaction.connection, self.history.file.action),
        )


def read_history(transaction: Transaction, file: ActionFile) -> History:
    """Read what the chain says of an action, in one statement; its rows must agree with it.

    Args:
        transaction: open on the action's run, with nothing drafted yet.
        file: its rows, as they were read there.

    Raises:
        Damaged: they do not.
    """
    run = transaction.draft.run
    links, stored = events.naming(
        transaction.connection, run.id, file.action.id, start=file.action.proposed_n, last=run.n
    )
    return told(run, file, links, stored=stored)
