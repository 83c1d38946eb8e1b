"""Events: the bytes and the hash of each type, and what a reader of version 1 refuses."""

from typing import Any

from cases.bodies import DECIDED, LEAST, MOST, OUTCOMES, event
from cases.case import RUN, Case, accepted, refused
from independent import event_hash, jcs

DECIDABLE = ("proposed", "held", "refused", "waited", "started")

# field of a `proposed` event's envelope, a value it cannot have
ENVELOPE: list[tuple[str, Any]] = [
    ("v", 2),
    ("v", "1"),
    ("v", True),
    ("run", RUN.upper().replace("0000000B", "0000000b", 1).replace("-", "")),
    ("run", RUN.replace("b", "B")),
    ("run", RUN + "0"),
    ("n", -1),
    ("n", "4"),
    ("n", 0.5),
    ("prev", "ab"),
    ("prev", "A" * 64),
    ("type", "exploded"),
    ("type", ["proposed"]),
    ("at_us", -1),
    ("action", "mine"),
    ("body", []),
]
# type, path of a body's field, a value it cannot have
BODY: list[tuple[str, str, Any]] = [
    ("proposed", "v", 2),
    ("proposed", "outcome", "allow"),
    ("proposed", "digest", "0" * 63),
    ("proposed", "digest", "G" * 64),
    ("proposed", "revision", 0),
    ("proposed", "tool", 7),
    ("proposed", "key/source", "provider"),
    ("proposed", "key/scope", 0),
    ("proposed", "payloads/secret", "0" * 64),
    ("proposed", "payloads/raw", "0"),
    ("proposed", "decision/outcome", "maybe"),
    ("proposed", "decision/reasons", ["over_limit"]),
    ("proposed", "decision/requirement", {"kind": "approval"}),
    ("proposed", "engine/kind", "ajar"),
    ("proposed", "view/counters/taken", 0.5),
    ("proposed", "view/recent/0/request", "none"),
    ("started", "fence", 0),
    ("started", "attempt", 0),
    ("started", "holder", ""),
    ("started", "holder", "a\nb"),
    ("started", "lease_until_us", -1),
    ("started", "reserves", {"refunds": 1}),
    ("started", "reserves/0/account", ""),
    ("started", "reserves/0/amount", "1250"),
    ("started", "reserves/0/amount", 12.5),
    ("started", "dedupe_until_us", -1),
    ("voted", "verdict", "abstain"),
    ("voted", "nonce", "0" * 31),
    ("voted", "signature", "0" * 64),
    ("failed", "retryable", "no"),
    ("failed", "code", "x" * 201),
    ("reconciled", "verdict", "unclear"),
    ("reconciled", "attempts", [0]),
    ("succeeded", "settled/0/amount", "3"),
    ("run_opened", "limits/patience", 1),
    ("run_opened", "limits/actions", -1),
    ("run_opened", "limits/retries", "3"),
    ("switched", "scope/kind", "world"),
    ("switched", "paused", 1),
    ("limited", "scope/kind", "all"),
    ("limited", "scope/tenant", 7),
    ("limited", "scope/run", RUN),
    ("limited", "limits/retries", 1),
    ("limited", "limits/wall_us", 1),
    ("limited", "limits/amount", -1),
    ("limited", "limits", ["actions"]),
    ("standing_granted", "uses", 0),
    ("standing_granted", "spec", "refund"),
    ("standing_granted", "tool", 7),
    ("standing_granted", "request", "0" * 64),
    ("standing_revoked", "id", "the first"),
    ("erased", "kinds", ["everything"]),
    ("ledger_created", "format", 2),
]
BROKEN: list[tuple[str, str]] = [
    ("no JSON", "{"),
    ("nothing", ""),
    ("a member twice", jcs(event("replayed"))[:-1].decode() + ',"v":1}'),
    ("an array", "[]"),
    ("null", "null"),
]


def cases() -> list[Case]:
    """Build the group."""
    found = [_good(f"the least of {kind}", event(kind)) for kind in LEAST]
    found += [_good(f"the most of {kind}", event(kind, most=True)) for kind in MOST]
    found += [_good(f"proposed, {name}", event("proposed", body={"v": 1, **body})) for name, body in OUTCOMES.items()]
    found += [
        _good("text is kept as given", event("charged", body={**LEAST["charged"], "v": 1, "by": "A\u030a \u0007 😀"})),
        _good("the first of a chain", event("run_opened", n=0)),
        _good("the largest numbers", event("restored", n=2**53 - 1, at_us=2**53 - 1)),
        _good("the ledger's own chain erases too", event("erased", run=RUN)),
        _good("a tool without a namespace is bounded", _limited({"kind": "tool", "tenant": "acme", "tool": "refund"})),
        _good("an account is bounded", _limited({"kind": "account", "tenant": "acme", "account": "refunds eu"})),
    ]
    return [*found, *_envelopes(), *_bodies(), *_decisions(), *_broken()]


def _limited(scope: dict[str, Any]) -> dict[str, Any]:
    return event("limited", body={"v": 1, **LEAST["limited"], "scope": scope, "limits": {"amount": 100_000}})


def _good(name: str, document: dict[str, Any]) -> Case:
    encoded = jcs(document)
    return accepted(name, "event", {"event": document}, text=encoded.decode(), hash=event_hash(encoded))


def _bad(name: str, document: Any, path: str) -> Case:
    return refused(name, "event", {"event": document}, "event", path=path)


def _envelopes() -> list[Case]:
    found = [
        _bad(f"{field} cannot be {value!r}", {**event("proposed"), field: value}, f"/{field}")
        for field, value in ENVELOPE
    ]
    found += [
        _bad(
            f"without {field}", {name: value for name, value in event("proposed").items() if name != field}, f"/{field}"
        )
        for field in ("v", "run", "n", "prev", "type", "at_us", "body")
    ]
    found += [
        _bad("an unknown field", event("proposed", colour="red"), "/colour"),
        _bad("an unknown field whose name ends in a question mark", {**event("proposed"), "action?": RUN}, "/action?"),
        _bad("an action where there is none to name", event("run_opened", action=RUN), "/action"),
        _bad("an action where there is none to name, in the ledger's chain", event("switched", action=RUN), "/action"),
        _bad("no action where there is one", event("succeeded", action=None), "/action"),
    ]
    for kind, other in (("started", "proposed"), ("succeeded", "failed"), ("run_opened", "ledger_created")):
        document = event(kind, body={"v": 1, **LEAST[other]})
        found.append(refused(f"{kind} with a body of {other}", "event", {"event": document}, "event"))
    return found


def _bodies() -> list[Case]:
    found = []
    for kind, path, value in BODY:
        document = event(kind, most=True)
        _put(document["body"], path.split("/"), value)
        where = {"decision/reasons": "decision/reasons/0", "decision/requirement": "decision/requirement/quorum"}
        where |= {"attempts": "attempts/0", "kinds": "kinds/0"}
        found.append(_bad(f"{kind}: {path} cannot be {value!r}", document, f"/body/{where.get(path, path)}"))
    for kind in LEAST:
        field = min(set(LEAST[kind]) - {"payloads"} - set(DECIDED) or {"payloads"})
        document = event(kind)
        del document["body"][field]
        found.append(_bad(f"{kind} without {field}", document, f"/body/{field}"))
        document = event(kind)
        document["body"]["surprise"] = 0
        found.append(_bad(f"{kind} with a field of another version", document, "/body/surprise"))
    null = event("proposed", most=True)
    null["body"]["spec"] = None
    found.append(_bad("null is never an absent field", null, "/body/spec"))
    return found


def _decisions() -> list[Case]:
    found = []
    for kind in DECIDABLE:
        for field in DECIDED:
            document = event(kind, most=True)
            del document["body"][field]
            found.append(_bad(f"{kind}: half a decision, without its {field}", document, f"/body/{field}"))
    return found


def _put(body: Any, steps: list[str], value: Any) -> None:
    *way, last = (int(step) if step.isdecimal() else step for step in steps)
    for step in way:
        body = body[step]
    body[last] = value


def _broken() -> list[Case]:
    good = event("proposed", most=True)
    encoded = jcs(good)
    found = [accepted("read as stored", "event_read", {"text": encoded.decode()}, hash=event_hash(encoded))]
    for name, text in _spelled_otherwise(good):
        found.append(refused(f"stored: not canonical, {name}", "event_read", {"text": text}, "event", path=""))
    for name, text in BROKEN:
        found.append(refused(f"stored: {name}", "event_read", {"text": text}, "event", path=_place(name)))
    return found


def _place(name: str) -> str:
    return "/v" if name == "a member twice" else ""


def _spelled_otherwise(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Say the same event in other bytes."""
    text = jcs(document).decode()
    turned = "{" + ",".join(jcs({name: document[name]}).decode()[1:-1] for name in sorted(document, reverse=True)) + "}"
    return [
        ("white space", text.replace(",", ", ", 1)),
        ("another order of members", turned),
        ("an escape that nothing needs", text.replace('"type"', '"\\u0074ype"')),
        ("a number with a point", text.replace('"v":1', '"v":1.0', 1)),
    ]
