"""Chains: the first link's predecessor, good chains, and one break of each kind."""

from typing import Any

from cases.bodies import ALLOWED, LEAST
from cases.case import ACTION, AT_US, LEDGER, RUN, Case, a_hash, accepted, refused
from independent import chained, event_hash, genesis, jcs, read

Links = list[dict[str, Any]]


def said(kind: str, *, later: int = 0, action: str | None = None, **body: Any) -> dict[str, Any]:
    """Return an event without its place in a chain."""
    document: dict[str, Any] = {"type": kind, "at_us": AT_US + later, "body": {"v": 1, **LEAST[kind], **body}}
    return document if action is None else document | {"action": action}


def _good() -> Links:
    return chained(
        LEDGER,
        RUN,
        [
            said("run_opened"),
            said("proposed", action=ACTION, **ALLOWED),
            said("started", action=ACTION, later=1),
            said("succeeded", action=ACTION, later=2),
            said("run_closed", later=3),
        ],
    )


def cases() -> list[Case]:
    """Build the group."""
    pairs = [(LEDGER, RUN), (LEDGER, LEDGER), (RUN, LEDGER)]
    found = [
        accepted(
            f"genesis of {run[:8]} in {ledger[:8]}",
            "genesis",
            {"ledger": ledger, "run": run},
            digest=genesis(ledger, run),
        )
        for ledger, run in pairs
    ]
    good = _good()
    own = chained(LEDGER, LEDGER, [said("ledger_created"), said("spec_registered"), said("switched")])
    found += [
        _follows("no link yet", [], RUN, genesis(LEDGER, RUN)),
        _follows("one link", good[:1], RUN, good[0]["hash"]),
        _follows("five links", good, RUN, good[-1]["hash"]),
        _follows("the ledger's own chain", own, LEDGER, own[-1]["hash"]),
        _follows("a chain cut off at its end is whole: only the log sees that", good[:3], RUN, good[2]["hash"]),
    ]
    return [*found, *_breaks(good)]


def _breaks(good: Links) -> list[Case]:
    """Break one link in one way, and name the first position at which it must be seen."""
    other = chained(LEDGER, LEDGER, [said("ledger_created"), *(said("spec_registered") for _ in range(4))])
    foreign = chained(RUN, RUN, [said("run_opened")])
    edited = _edited(good[2], lambda event: event["body"].update(fence=8))
    return [
        _broken("a link is missing in the middle", [*good[:2], *good[3:]], "gap", 2),
        _broken("the first link is missing", good[1:], "gap", 0),
        _broken("two links change places", [good[0], good[2], good[1]], "gap", 1),
        _broken("a link twice", [*good[:2], good[1]], "gap", 2),
        _broken("an event edited, its hash left", [*good[:2], {**edited, "hash": good[2]["hash"]}], "hash", 2),
        _broken("a hash edited, its event left", [*good[:2], {**good[2], "hash": a_hash("x")}], "hash", 2),
        _broken("white space added, its hash left", [{**good[0], "event": good[0]["event"] + " "}], "hash", 0),
        _broken("other bytes of the same event, hashed as they are", [_stored(0, good[0]["event"] + " ")], "event", 0),
        _broken("an event edited with its hash, the next one left", [*good[:2], edited, good[3]], "prev", 3),
        _broken("a predecessor edited with its hash", [good[0], _edited(good[1], _forget)], "prev", 1),
        _broken("a first link of another ledger", foreign, "prev", 0, run=RUN, ledger=LEDGER),
        _broken("a link of another run, of the same position", [*good[:2], other[2]], "run", 2),
        _broken("an event that says another position", [*good[:2], _edited(good[2], _misplace)], "position", 2),
        _broken(
            "a stored position changed, and the rest of its row left", [good[0], {**good[2], "n": 1}], "position", 1
        ),
        _broken("bytes that are no event, hashed as they are", [*good[:2], _stored(2, "{}")], "event", 2),
        _broken("bytes that are no JSON, hashed as they are", [*good[:2], _stored(2, "{")], "event", 2),
        _broken(
            "an event of another version", [*good[:2], _edited(good[2], lambda event: event.update(v=2))], "event", 2
        ),
        _broken("an unknown field in a body", [*good[:2], _edited(good[2], _add)], "event", 2),
        _broken("an unknown type", [*good[:2], _edited(good[2], lambda event: event.update(type="x"))], "event", 2),
    ]


def _forget(event: dict[str, Any]) -> None:
    event["prev"] = "0" * 64


def _misplace(event: dict[str, Any]) -> None:
    event["n"] = 3


def _add(event: dict[str, Any]) -> None:
    event["body"]["surprise"] = 1


def _edited(link: dict[str, Any], edit: Any) -> dict[str, Any]:
    event = read(link["event"])
    edit(event)
    return _stored(link["n"], jcs(event).decode())


def _stored(n: int, text: str) -> dict[str, Any]:
    return {"n": n, "hash": event_hash(text.encode()), "event": text}


def _follows(name: str, links: Links, run: str, head: str) -> Case:
    return accepted(name, "chain", {"ledger": LEDGER, "run": run, "links": links}, n=len(links), hash=head)


def _broken(name: str, links: Links, reason: str, at: int, *, run: str = RUN, ledger: str = LEDGER) -> Case:
    given = {"ledger": ledger, "run": run, "links": links}
    return refused(f"{reason}: {name}", "chain", given, reason, at=at)
