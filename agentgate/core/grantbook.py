"""Standing grants as the ledger's own chain tells of them: given once, taken back once, each with its bound."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentgate.core.binding import Finding
from agentgate.event import Event
from agentgate.policy.grants import PREFIX, account_of

GRANT_EVENTS = frozenset({"standing_granted", "standing_revoked"})

Said = tuple[Any, ...]


class GrantBook:
    """Every standing grant by its id, as the row of the table holds it."""

    def __init__(self) -> None:
        self.rows: dict[str, Said] = {}

    def take(self, event: Event) -> Iterator[Finding]:
        """Follow an event, and say what is wrong with it."""
        body: Mapping[str, Any] = event.body
        if event.type == "standing_revoked":
            yield from self._revoked(body["id"], event.n)
            return
        if body["id"] in self.rows:
            yield "forbidden", "a grant of this id was given before"
            return
        if body["until_us"] <= event.at_us:
            yield "time", "it ends before it begins"
        self.rows[body["id"]] = row_of(event)

    def _revoked(self, grant: str, n: int) -> Iterator[Finding]:
        row = self.rows.get(grant)
        if row is None or row[-1] is not None:
            yield "forbidden", "no grant of this id stood then"
            return
        self.rows[grant] = (*row[:-1], n)

    def misbound(self, bounds: Mapping[tuple[str, str, str, str, str], tuple[int, int]]) -> Iterator[str]:
        """Name the grants whose accounts are not bounded by their uses, and the bounds of no grant's accounts."""
        expected = {
            (row[1], "account", "", account_of(grant), "amount"): 0 if row[-1] is not None else row[6]
            for grant, row in self.rows.items()
        }
        set_ = {place: most for place, (most, _) in bounds.items() if place[3].startswith(PREFIX)}
        for place in expected.keys() | {place for place in set_ if place[1] == "account"}:
            if expected.get(place) != set_.get(place):
                yield place[3].removeprefix(PREFIX)


def row_of(event: Event) -> Said:
    """Return the row of the table that a grant's event makes, its columns in their order."""
    body: Mapping[str, Any] = event.body
    return (
        body["id"],
        body["tenant"],
        body.get("principal"),
        body["namespace"],
        body["tool"],
        bytes.fromhex(body["spec"]),
        body["uses"],
        body["until_us"],
        body["by"],
        body.get("like"),
        event.n,
        None,
    )
