"""What somebody who may write the whole database can try, and what comes of it: the table of docs/approvals.md."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agentgate.canonical import Json, canonical
from agentgate.core.sameness import request_fingerprint
from agentgate.digests import fingerprint, payload_digest
from support.forging import appended, edited, without
from support.rewriting import Document
from support.scenes import YEAR_US, Scene, action_of, asked_anew, granted, set_payload, voted
from support.signers import signer

# --- rows alone -----------------------------------------------------------------------------------


def state(scene: Scene) -> str:
    scene.set("actions", "held", state="READY")
    return "held"


def approval_granted(scene: Scene) -> str:
    there = scene.row("actions", "granted")
    scene.set("approvals", "held", state="granted", until_us=scene.approval("granted")["until_us"])
    moved = {name: there[name] for name in ("state", "reason", "expires_at_us")}
    scene.set("actions", "held", **moved)
    return "held"


def votes_inserted(scene: Scene) -> str:
    approval_granted(scene)
    given = scene.approval("held")
    (told,) = scene.told("held", "voted")
    row = next(one for one in scene.copy.rows("votes") if one["n"] == told["n"])
    row |= {"approver": "person:bob", "n": row["n"] + 1, "approval": given["id"]}
    scene.copy.insert("votes", row)
    return "held"


def vote_roles(scene: Scene) -> str:
    row = next(one for one in scene.copy.rows("votes") if one["approval"] == scene.approval("granted")["id"])
    scene.copy.set("votes", "roles", row["rowid"], canonical(["ceo", "finance"]))
    return "granted"


def vote_signature(scene: Scene) -> str:
    row = next(one for one in scene.copy.rows("votes") if one["approval"] == scene.approval("granted")["id"])
    scene.copy.set("votes", "signature", row["rowid"], bytes(64))
    return "granted"


def action_digest_row(scene: Scene) -> str:
    scene.set("actions", "granted", digest=bytes(32))
    return "granted"


def arguments(scene: Scene) -> str:
    set_payload(scene, "arguments", b'{"account":"mallory","cents":1}')
    return "granted"


def arguments_and_event(scene: Scene) -> str:
    """The payload, the event that names it with a hash of its own, and the action's digest in event and row."""
    content = b'{"account":"mallory","cents":1}'
    salt = set_payload(scene, "arguments", content)
    (told,) = scene.told("granted", "proposed")
    body = told["body"]
    body["payloads"]["arguments"] = payload_digest("arguments", salt, content).hex()
    digest = action_of(scene, told)
    body["digest"] = digest.hex()
    encoded = canonical(told)
    hash_ = hashlib.sha256(b"agentgate/event/v1\0" + encoded).digest()
    row = next(one for one in scene.copy.rows("events") if (one["run"], one["n"]) == (told["run"], told["n"]))
    scene.copy.set("events", "event", row["rowid"], encoded)
    scene.copy.set("events", "hash", row["rowid"], hash_)
    scene.set("actions", "granted", digest=digest)
    return "granted"


def presentation(scene: Scene) -> str:
    set_payload(scene, "presentation", b"tool pay: nothing of importance")
    return "granted"


def decision(scene: Scene) -> str:
    """The proposal's own bytes, under the hash of those that stood there."""
    (told,) = scene.told("granted", "proposed")
    told["body"]["decision"] = {**told["body"]["decision"], "outcome": "allow"}
    row = next(one for one in scene.copy.rows("events") if (one["run"], one["n"]) == (told["run"], told["n"]))
    scene.copy.set("events", "event", row["rowid"], canonical(told))
    return "granted"


def event_alone(scene: Scene) -> str:
    """When it was granted, says the event, under the hash of what it said before; no row holds that."""
    (told,) = scene.told("granted", "approved")
    row = next(one for one in scene.copy.rows("events") if (one["run"], one["n"]) == (told["run"], told["n"]))
    scene.copy.set("events", "event", row["rowid"], canonical(told | {"at_us": told["at_us"] + 1}))
    return "granted"


def expiry(scene: Scene) -> str:
    scene.later = timedelta(days=30)
    until_us = scene.approval("granted")["until_us"] + YEAR_US
    scene.set("approvals", "granted", until_us=until_us)
    scene.set("actions", "granted", expires_at_us=until_us)
    return "granted"


def rewound(scene: Scene) -> str:
    """The action's row, its approval's and its attempt's, as they were before the effect."""
    (told,) = scene.told("used", "approved")
    scene.set("approvals", "used", state="granted", state_n=told["n"])
    scene.copy.delete("attempts", scene.row("attempts", "used")["rowid"])
    before = {"state": "READY", "reason": None, "state_n": told["n"], "last_n": told["n"], "attempts": 0}
    before |= {"fence": None, "first_started_us": None, "result_n": None, "outcome": None}
    scene.set("actions", "used", **before, expires_at_us=told["body"]["until_us"])
    return "used"


def rewound_and_deleted(scene: Scene) -> str:
    """The same, and what the chain says of the attempt is gone."""
    rewound(scene)
    for kind in ("started", "succeeded"):
        (told,) = scene.told("used", kind)
        row = next(one for one in scene.copy.rows("events") if (one["run"], one["n"]) == (told["run"], told["n"]))
        scene.copy.delete("events", row["rowid"])
    return "used"


# --- rows and events, which agree --------------------------------------------------------------------


def granted_by_nobody(scene: Scene) -> str:
    scene.forge(appended(granted(scene, "held", [])))
    return "held"


def granted_by_one_twice(scene: Scene) -> str:
    (told,) = scene.told("held", "voted")
    scene.forge(appended(granted(scene, "held", [told["body"]["vote"]] * 2)))
    return "held"


def votes_nobody_gave(scene: Scene) -> str:
    """Everything in them is as it must be but the signature, which nobody without the key can make."""
    given = [voted(scene, "held", name) for name in ("bob", "eve")]
    scene.forge(appended(*given, granted(scene, "held", [one["body"]["vote"] for one in given])))
    return "held"


def votes_of_keys_in_the_table(scene: Scene) -> str:
    """Two keys that somebody wrote into the ledger's table, signing as they like."""
    names, signature = ("mallory", "trudy"), {"signer": signer("ada").hash, "signature": bytes(64), "n": 1}
    for name in names:
        key = signer(name)
        row = {"key": key.hash, "public": key.public, "name": f"person:{name}", "roles": canonical(["finance"])}
        scene.copy.insert("keys", row | {"from_us": 0, "until_us": None} | signature)
    given = [voted(scene, "held", name, signs=True) for name in names]
    scene.forge(appended(*given, granted(scene, "held", [one["body"]["vote"] for one in given])))
    return "held"


def votes_of_another_approval(scene: Scene) -> str:
    """The true votes of the same two people, with their signatures, on another call."""
    shown = scene.approval("held")["digest"].hex()
    copied = [
        {**one, "action": scene.actions["held"], "body": one["body"] | {"approval": scene.approval("held")["id"]}}
        for one in scene.told("other", "voted")
    ]
    for one in copied:
        one["body"]["shown"] = shown
        del one["n"], one["at_us"]
    scene.forge(appended(*copied, granted(scene, "held", [one["body"]["vote"] for one in copied])))
    return "held"


def lowered_requirement(scene: Scene) -> str:
    """One vote is enough, says the question; every digest is made anew."""

    def lower(body: dict[str, Any]) -> None:
        body["decision"]["requirement"]["quorum"] = 1

    asked_anew(scene, "held", lower)
    one = voted(scene, "held", "bob")
    scene.forge(appended(one, granted(scene, "held", [one["body"]["vote"]])))
    return "held"


def never_asked(scene: Scene) -> str:
    """The policy has allowed it, says the proposal."""
    body: dict[str, Any] = scene.told("held", "proposed")[0]["body"]

    def allow(told: Document) -> None:
        told["body"] = {name: value for name, value in body.items() if name != "approval"}
        told["body"] |= {"outcome": "allowed", "expires_at_us": told["at_us"] + YEAR_US}
        told["body"]["decision"] = {**body["decision"], "outcome": "allow"}
        del told["body"]["decision"]["requirement"]

    action = scene.actions["held"]
    change = edited("proposed", allow, action=action)
    scene.forge(lambda documents: without("voted", action=action)(change(documents)))
    return "held"


def other_arguments(scene: Scene) -> str:
    """The people's votes stand; what they were on is another call, and every digest is made anew."""
    arguments: dict[str, Json] = {"account": "mallory", "cents": 1}
    content = canonical(arguments)
    salt = set_payload(scene, "arguments", content)
    (key,) = (row["fingerprint_key"] for row in scene.copy.rows("tenants") if row["tenant"] == "acme")

    def swap(body: dict[str, Any]) -> None:
        body["payloads"]["arguments"] = payload_digest("arguments", salt, content).hex()
        body["request"] = request_fingerprint(key, namespace="", tool="pay", arguments=arguments).hex()
        body["resource"] = fingerprint(key, "resource", b"account:mallory").hex()

    asked_anew(scene, "granted", swap)
    return "granted"


def stands_for_longer(scene: Scene) -> str:
    """A grant that nobody used in its 15 minutes stands for a year."""
    scene.later = timedelta(days=30)

    def stretch(told: Document) -> None:
        told["body"]["until_us"] += YEAR_US

    def asked(told: Document) -> None:
        told["body"]["approval"]["grant_us"] += YEAR_US

    action = scene.actions["granted"]
    grant, question = edited("approved", stretch, action=action), edited("proposed", asked, action=action)
    scene.forge(lambda documents: question(grant(documents)))
    return "granted"


def digest_kept(scene: Scene) -> str:
    """People had a year to answer, says the question, under the digest that they were shown."""
    scene.later = timedelta(days=30)
    stands_for_longer(scene)

    def stretch(told: Document) -> None:
        told["body"]["approval"]["expires_at_us"] += YEAR_US

    scene.forge(edited("proposed", stretch, action=scene.actions["granted"]))
    return "granted"


def other_votes_named(scene: Scene) -> str:
    """The votes that were given stand there, and are enough; the grant names another."""

    def name(told: Document) -> None:
        told["body"]["votes"] = [*told["body"]["votes"], bytes(32).hex()]

    scene.forge(edited("approved", name, action=scene.actions["granted"]))
    return "granted"


def asked_for_longer(scene: Scene) -> str:
    """The same, and people had a year to answer, says the question; every digest is made anew."""
    stands_for_longer(scene)

    def stretch(body: dict[str, Any]) -> None:
        body["approval"]["expires_at_us"] += YEAR_US

    asked_anew(scene, "granted", stretch)
    return "granted"


def rewound_with_its_events(scene: Scene) -> str:
    scene.forge(without("started", "succeeded", action=scene.actions["used"]))
    return "used"


@dataclass(frozen=True)
class Forgery:
    """Something that somebody writes, and what the next claim then says.

    Args:
        what: in words.
        write: does it; returns the form of the action that it is about.
        unsigned: what the claim comes to where votes need no signature: ``Damaged``, ``Held``, ``Done``.
        signed: what it comes to where they do, whether the gate is pinned to its policy or not.
    """

    what: str
    write: Callable[[Scene], str]
    unsigned: str
    signed: str

    def comes_to(self, setting: str) -> str:
        return self.unsigned if setting == "unsigned" else self.signed


# fmt: off
ROWS = (
    Forgery("the action's state", state, "Damaged", "Damaged"),
    Forgery("state, approval and expiry, as if people had agreed", approval_granted, "Damaged", "Damaged"),
    Forgery("the same, and a second vote", votes_inserted, "Damaged", "Damaged"),
    Forgery("a vote's roles", vote_roles, "Damaged", "Damaged"),
    Forgery("a vote's signature", vote_signature, "Damaged", "Damaged"),
    Forgery("the action's digest", action_digest_row, "Damaged", "Damaged"),
    Forgery("the arguments", arguments, "Damaged", "Damaged"),
    Forgery("the arguments, their event and its hash, and the action's digest", arguments_and_event,
            "Damaged", "Damaged"),
    Forgery("what people were shown, after they voted", presentation, "Damaged", "Damaged"),
    Forgery("the recorded decision", decision, "Damaged", "Damaged"),
    Forgery("an event, under the hash of what it said before", event_alone, "Damaged", "Damaged"),
    Forgery("until when a grant stands", expiry, "Damaged", "Damaged"),
    Forgery("a used grant as if it were unused: action, approval, attempt", rewound, "Damaged", "Damaged"),
    Forgery("the same, and the attempt's events are deleted", rewound_and_deleted, "Damaged", "Damaged"),
)
CHAIN = (
    Forgery("a grant that no vote led to", granted_by_nobody, "Damaged", "Damaged"),
    Forgery("one vote named twice", granted_by_one_twice, "Damaged", "Damaged"),
    Forgery("a grant that names a vote that is not there", other_votes_named, "Damaged", "Damaged"),
    Forgery("votes that nobody gave", votes_nobody_gave, "Done", "Damaged"),
    Forgery("the same, signed by keys that somebody wrote into the ledger's table", votes_of_keys_in_the_table,
            "Held", "Held"),
    Forgery("the votes of the same people on another call", votes_of_another_approval, "Damaged", "Damaged"),
    Forgery("a question that asks for less", lowered_requirement, "Held", "Held"),
    Forgery("a proposal that was never asked about", never_asked, "Held", "Held"),
    Forgery("other arguments under the votes that were given", other_arguments, "Done", "Damaged"),
    Forgery("a grant that stands longer than people gave it", stands_for_longer, "Held", "Held"),
    Forgery("the same, and a longer time to answer, under the digest that was shown", digest_kept,
            "Damaged", "Damaged"),
    Forgery("the same, and every digest made anew", asked_for_longer, "Done", "Damaged"),
    Forgery("a used grant as if it were unused, without the attempt's events", rewound_with_its_events, "Done", "Done"),
)
# fmt: on
WORDS = {"Damaged": "refused: damaged", "Held": "people are asked again", "Done": "**runs**"}


def table() -> list[str]:
    """Write the table as docs/approvals.md has it."""
    lines = ["| written | without signatures | signed, pinned or not |", "|---|---|---|"]
    for title, forgeries in (("*rows alone*", ROWS), ("*rows and events, all of them in agreement*", CHAIN)):
        lines.append(f"| {title} | | |")
        lines += [f"| {one.what} | {WORDS[one.unsigned]} | {WORDS[one.signed]} |" for one in forgeries]
    return lines
