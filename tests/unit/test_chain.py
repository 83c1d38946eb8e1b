"""A run's chain: each link follows, and each kind of break is called by its name."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from agentgate.canonical import Json, canonical, parse
from agentgate.chain import Head, Link, follow, start
from agentgate.core.draft import Draft
from agentgate.errors import Damaged
from agentgate.event import event_hash, genesis
from support.ids import AT_US, LEDGER, RUN, a_hash, an_id

LENGTH = 5


def _links(*, ledger: str = LEDGER, run: str = RUN, who: str = "agent:a") -> list[Link]:
    draft = Draft(start(ledger, run), None, at_us=AT_US)
    draft.add("run_opened", {"tenant": "acme", "name": "x", "principal": who, "limits": {}})
    for number in range(1, LENGTH):
        draft.add("charged", {"charges": [{"account": "money", "amount": number}], "by": "a"})
    return list(draft.plan().links)


def _read(links: list[Link]) -> Head:
    head = start(LEDGER, RUN)
    for link in links:
        _, head = follow(head, link)
    return head


def _edited(link: Link, **fields: Json) -> Link:
    """Change an event and hash it again, as somebody would who can write the database."""
    document = parse(link.encoded)
    assert type(document) is dict
    encoded = canonical(document | fields)
    return Link(n=link.n, hash=event_hash(encoded), encoded=encoded)


def test_an_unbroken_chain_is_followed_to_its_head() -> None:
    links = _links()
    assert _read(links) == Head(run=RUN, n=LENGTH, hash=links[-1].hash)


def test_the_first_link_follows_the_genesis_of_its_own_ledger_and_run() -> None:
    assert start(LEDGER, RUN) == Head(run=RUN, n=0, hash=genesis(LEDGER, RUN))
    with pytest.raises(Damaged) as caught:
        follow(start(LEDGER, RUN), _links(ledger=an_id(77))[0])
    assert caught.value.what == "prev"


Break = Callable[[list[Link]], list[Link]]
BREAKS: dict[str, tuple[str, Break]] = {
    "an event is gone": ("gap", lambda links: links[:2] + links[3:]),
    "the first event is gone": ("gap", lambda links: links[1:]),
    "two events are swapped": ("gap", lambda links: [links[0], links[2], links[1], *links[3:]]),
    "an event stands there twice": ("gap", lambda links: [*links[:3], links[2], *links[3:]]),
    "two events are swapped with their places": (
        "position",
        lambda links: [links[0], replace(links[2], n=1), replace(links[1], n=2), *links[3:]],
    ),
    "a byte is flipped": (
        "hash",
        lambda links: [*links[:2], replace(links[2], encoded=links[2].encoded.replace(b"money", b"honey")), *links[3:]],
    ),
    "a hash is flipped": ("hash", lambda links: [*links[:2], replace(links[2], hash=a_hash("other")), *links[3:]]),
    "a hash is cut short": ("hash", lambda links: [replace(links[0], hash=links[0].hash[:31]), *links[1:]]),
    "an event is replaced, hash and all": ("prev", lambda links: [*links[:2], _edited(links[2], at_us=7), *links[3:]]),
    "an event of another run": ("run", lambda links: [*links[:2], _links(run=an_id(5))[2], *links[3:]]),
    "an event of another chain of that run": ("prev", lambda links: [*links[:2], _links(who="b")[2], *links[3:]]),
    "an event says it stands elsewhere": ("position", lambda links: [*links[:2], _edited(links[2], n=3), *links[3:]]),
    "an event of another version": ("event", lambda links: [*links[:2], _edited(links[2], v=2), *links[3:]]),
    "an event with an unknown field": ("event", lambda links: [*links[:2], _edited(links[2], extra=1), *links[3:]]),
    "bytes that are no event": (
        "event",
        lambda links: [*links[:2], Link(n=2, hash=event_hash(b"x"), encoded=b"x"), *links[3:]],
    ),
}


@pytest.mark.parametrize("broken", list(BREAKS))
def test_each_break_is_found_and_named(broken: str) -> None:
    word, broke = BREAKS[broken]
    with pytest.raises(Damaged) as caught:
        _read(broke(_links()))
    assert caught.value.what == word


def test_every_word_for_a_break_is_shown_by_one_of_them() -> None:
    assert {word for word, _ in BREAKS.values()} == {"gap", "hash", "event", "run", "position", "prev"}


def test_a_cut_tail_cannot_be_seen_in_the_chain_alone() -> None:
    # design §9: the log sees it. Here it is only a shorter chain, whose head is not the one of the run's row.
    links = _links()
    assert _read(links[:-1]).hash != _read(links).hash


def test_stored_bytes_are_hashed_as_they_are_and_must_be_the_canonical_ones() -> None:
    link = _links()[0]
    spaced = link.encoded.replace(b'"v":1}', b'"v": 1}')
    assert spaced != link.encoded
    for hash_, broken in ((link.hash, "hash"), (event_hash(spaced), "event")):
        with pytest.raises(Damaged) as caught:
            follow(start(LEDGER, RUN), Link(n=0, hash=hash_, encoded=spaced))
        assert caught.value.what == broken
