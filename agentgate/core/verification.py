"""What verification finds: breaks as values, bounded, and how much was looked at.

Not the looking itself: a chain is followed by `agentgate.core.following`, the tables are read by the store, and
`agentgate.gate.verifying` brings the two together.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Final

from agentgate.canonical import Json

# Columns that no event determines; docs/format.md says why a flip of one costs time and never an effect. Every
# other column of every table is proved.
VOLATILE: Final = frozenset(
    {
        "attempts.lease_until_us",
        *("notices.channel", "notices.approval", "notices.tries", "notices.again_at_us", "notices.told"),
    }
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        # the chain
        "gap": "an event is missing",
        "hash": "an event is not what the hash beside it says",
        "event": "stored bytes are no event of a version that is known",
        "prev": "an event does not follow the one before it",
        "run": "an event belongs to another run",
        "position": "an event says that it stands elsewhere",
        # what the events say
        "forbidden": "an event that could not happen there",
        "time": "time went back, or something ends before it begins or lasts after it ended",
        "fence": "a fence that does not grow",
        "digest": "an event binds something else than it says",
        "vote": "a vote that does not count, or a decision without the votes that it needs",
        "signature": "a vote was not signed by the key that it names, or the key is another's",
        "fingerprint": "a fingerprint was not made of what it stands for, or its key is gone",
        # what lies beside them
        "payload": "a payload is missing, changed, named by no event, or sealed or unsealed against its spec",
        "document": "a document is missing, changed, or named by no event",
        # the tables, against what the events add up to
        "ledger_row": "the ledger's own row",
        "tenant_row": "a tenant's row",
        "run_row": "a run's row",
        "action_row": "an action's row",
        "attempt_row": "an attempt's row",
        "approval_row": "an approval's row",
        "vote_row": "a vote's row",
        "lock_row": "a lock on a resource",
        "switch_row": "a switch",
        "key_row": "a person's key, or its revocation",
        "policy_row": "an active policy",
        "budget_row": "a bound, or what is used of it",
        "grant_row": "a standing grant",
        "unreadable": "the database does not give a row back, or one that no column could hold",
    }
)

MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One place where the record contradicts itself.

    Args:
        kind: a word of `KINDS`.
        run: the run's id; None for what belongs to none.
        n: the event's place in the run, where there is one.
        row: the row it is about, by its id or key.
        detail: what contradicts what; never a value of a column or of a payload.
    """

    kind: str
    run: str | None = None
    n: int | None = None
    row: str | None = None
    detail: str

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON; what does not apply is null."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification looked at, and what it found.

    Args:
        ledger: the ledger's id; None where nothing says it.
        runs: chains followed, the ledger's own included.
        events: links followed.
        payloads: rows compared with the events that name them.
        documents: rows compared with their digests.
        sealed: of the payloads, those whose key was not given: that they are there is all that was seen.
        signatures: of votes, checked by the keys of the keyring, or by those in the ledger.
        unverified: signatures whose key is in neither.
        breaks: the first of each kind in each run, at most `MOST`.
        omitted: breaks found beyond those.
    """

    ledger: str | None
    runs: int
    events: int
    payloads: int
    documents: int
    breaks: tuple[Break, ...]
    omitted: int = 0
    sealed: int = 0
    signatures: int = 0
    unverified: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing contradicts anything; a whole run or a tail that is gone leaves no contradiction."""
        return not self.breaks

    def to_json(self) -> dict[str, Json]:
        """Return all of it as JSON."""
        looked = ("ledger", "runs", "events", "payloads", "documents")
        named = (*looked, "sealed", "signatures", "unverified", "omitted")
        counts: dict[str, Json] = {name: getattr(self, name) for name in named}
        return counts | {"ok": self.ok, "breaks": [one.to_json() for one in self.breaks]}


class Findings:
    """The breaks found so far: the first of each kind in each run, and no more than `MOST` of them."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._found: dict[tuple[str | None, str], Break] = {}
        self.omitted = 0

    def add(self, found: Break) -> None:
        """Keep a break, unless its run has one of its kind or there are too many."""
        place = (found.run, found.kind)
        if place in self._found or len(self._found) >= self._most:
            self.omitted += 1
        else:
            self._found[place] = found

    @property
    def breaks(self) -> tuple[Break, ...]:
        """What was kept, in the order it was found."""
        return tuple(self._found.values())
