"""Spec documents, read and written, and policy identities."""

from typing import Any

from cases.case import Case, accepted, encoded, refused
from independent import document, jcs, policy_identity, read, spec_document

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"account": {"type": "string"}}, "required": ["account"]}
PLAIN: dict[str, Any] = {"name": "refund", "input_schema": SCHEMA}
FULL: dict[str, Any] = {
    "name": "refund money/{now}",
    "namespace": "crm.example",
    "version": "2026-01",
    "description": "Gives back.\nÜberall.",
    "input_schema": {
        **SCHEMA,
        "properties": {**SCHEMA["properties"], "note": {"default": None}, "n": {"maximum": 1e21}},
    },
    "output_schema": {"type": "object"},
    "risk": "destructive",
    "recovery": {"class": "probe"},
    "timeout_us": 20_000_000,
    "max_output_bytes": 1,
    "resource": "account:{account}",
    "parallel": True,
    "permissions": ["write", "read"],
    "tags": ["b", "a"],
    "sensitive": ["/account"],
    "undeclared": "allow",
    "errors": "no_effect",
    "retry": {"attempts": 3, "wait_us": 0, "longest_wait_us": 5, "within_us": 7},
    "confirm": {"name": "is_refunded", "version": "1"},
    "probe": {"name": "was_refunded", "version": "1"},
    "dedupe_window_us": 1,
}
DECLARED: list[tuple[str, dict[str, Any]]] = [
    ("every default is written out", PLAIN),
    ("every field given", FULL),
    ("a read-only tool may repeat and runs in parallel", {**PLAIN, "risk": "read_only"}),
    ("what follows from the risk can be said otherwise", {**PLAIN, "risk": "read_only", "parallel": False}),
    ("a window makes it keyed", {**PLAIN, "recovery": {"class": "keyed", "window_us": 86_400_000_000}}),
    ("transactional", {**PLAIN, "recovery": {"class": "transactional"}}),
    ("part of retry leaves the rest at its default", {**PLAIN, "retry": {"attempts": 2}}),
    ("sets are sorted by code point, without repeats", {**PLAIN, "tags": ["b", "a", "é", "B", "a", "\uffee", "😀"]}),
    ("a schema may be true", {**PLAIN, "input_schema": True}),
    ("a schema may be empty", {**PLAIN, "input_schema": {}}),
    ("a schema is kept as given, a null in it too", {**PLAIN, "input_schema": {"enum": [None, 1.0, 1.5]}}),
    ("an output schema that is given stands there", {**PLAIN, "output_schema": False}),
]
# name, what changes in PLAIN, path
UNDECLARABLE: list[tuple[str, dict[str, Any], str]] = [
    ("keyed without a window", {"recovery": {"class": "keyed"}}, "/recovery/window_us"),
    ("a risk that is none", {"risk": "harmless"}, "/risk"),
    ("a time-out of nothing", {"timeout_us": 0}, "/timeout_us"),
    ("an empty name", {"name": ""}, "/name"),
    ("a name of agentgate's own", {"name": "$ledger"}, "/name"),
    ("an invisible character in a name", {"name": "a\u202eb"}, "/name"),
    ("a retry within no time", {"retry": {"within_us": 0}}, "/retry/within_us"),
    ("a retry within more than ten years", {"retry": {"within_us": 316_224_000_000_001}}, "/retry/within_us"),
    ("a probe that nobody would ask", {"probe": {"name": "p", "version": "1"}}, "/probe"),
    ("recovery by a probe that is not named", {"recovery": {"class": "probe"}}, "/probe"),
    ("a resource of an argument that is not required", {"resource": "note:{note}"}, "/resource"),
    ("a pointer that is none", {"sensitive": ["account"]}, "/sensitive"),
]


def cases() -> list[Case]:
    """Build the group."""
    found = [_declared(name, declared) for name, declared in DECLARED]
    found += [
        refused(name, "spec_document", {"declared": {**PLAIN, **change}}, "spec_refused", path=path)
        for name, change, path in UNDECLARABLE
    ]
    found += [_read(f"read back: {name}", spec_document(declared)) for name, declared in DECLARED]
    return found + _misread() + _identities()


def _declared(name: str, declared: dict[str, Any]) -> Case:
    written = spec_document(declared)
    out = {"document": written.decode(), "digest": document("spec", written)}
    return accepted(name, "spec_document", {"declared": declared}, **out)


def _read(name: str, written: bytes) -> Case:
    return accepted(name, "spec_read", {"document": written.decode()}, digest=document("spec", written))


def _misread() -> list[Case]:
    """Build what no reader may take for a spec document, each wrong in one place."""
    good: dict[str, Any] = {**PLAIN, "tags": ["a", "b"], "recovery": {"class": "operator"}, "parallel": False}
    whole = read(spec_document(good))
    wrong: list[tuple[str, bytes, str]] = [
        ("not canonical: white space", spec_document(good) + b"\n", ""),
        ("not canonical: another order of members", _reversed(whole), ""),
        ("an unknown field", jcs({**whole, "colour": "red"}), "/colour"),
        ("an unknown field inside", jcs({**whole, "recovery": {"class": "operator", "why": ""}}), "/recovery/why"),
        ("a missing field", jcs(_without(whole, "undeclared")), "/undeclared"),
        ("null for a field that may be absent", jcs({**whole, "resource": None}), "/resource"),
        ("a number for a text", jcs({**whole, "version": 1}), "/version"),
        ("a text for a number", jcs({**whole, "timeout_us": "1"}), "/timeout_us"),
        ("a set out of order", jcs({**whole, "tags": ["b", "a"]}), ""),
        ("a set with a repeat", jcs({**whole, "tags": ["a", "a"]}), ""),
        ("a retry without an end", jcs({**whole, "retry": _without(whole["retry"], "within_us")}), "/retry/within_us"),
        ("a retry that ends at once", jcs({**whole, "retry": {**whole["retry"], "within_us": 0}}), "/retry/within_us"),
        ("a recovery that is none", jcs({**whole, "recovery": {"class": "hope"}}), "/recovery/class"),
        ("keyed without a window", jcs({**whole, "recovery": {"class": "keyed"}}), "/recovery/window_us"),
        (
            "a window without keyed",
            jcs({**whole, "recovery": {"class": "repeat", "window_us": 1}}),
            "/recovery/window_us",
        ),
        ("no object", b"[]", ""),
        ("no JSON", b"{", ""),
        ("a member twice", spec_document(good)[:-1] + b',"version":""}', "/version"),
    ]
    return [
        refused(f"not read: {name}", "spec_read", {"document": written.decode()}, "spec_refused", path=path)
        for name, written, path in wrong
    ]


def _without(whole: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if name != field}


def _reversed(whole: dict[str, Any]) -> bytes:
    parts = [jcs({name: whole[name]})[1:-1] for name in sorted(whole, reverse=True)]
    return b"{" + b",".join(parts) + b"}"


def _identities() -> list[Case]:
    given: list[tuple[str, str, str, str, dict[str, bytes]]] = [
        ("a rule file", "closed", "agentgate.rules", "1", {"rules": b"version: 1\nrules: []\n"}),
        ("no document", "closed", "e", "1", {}),
        ("an open policy, stated", "open", "python", "1", {"stated": b"2026-01"}),
        ("several documents, sorted by name", "closed", "cedar", "4.2", {"b": b"2", "a": b"1", "é": b"", "B": b"3"}),
        ("names are sorted by code point", "closed", "e", "1", {"\uffee": b"1", "😀": b"2"}),
        ("bytes that are no text", "closed", "e", "1", {"wasm": b"\x00\xff"}),
        ("another version is another policy", "closed", "agentgate.rules", "2", {"rules": b"version: 1\nrules: []\n"}),
    ]
    found = [
        accepted(
            f"identity: {name}",
            "policy_identity",
            _identity(kind, engine, version, list(documents.items())),
            digest=policy_identity(kind, engine, version, documents),
        )
        for name, kind, engine, version, documents in given
    ]
    twice = _identity("closed", "e", "1", [("a", b"1"), ("a", b"2")])
    found.append(refused("identity: a name twice", "policy_identity", twice, "policy_refused", path="/documents"))
    for field, value in (("kind", "ajar"), ("engine", ""), ("engine_version", "")):
        given_ = {**_identity("closed", "e", "1", []), field: value}
        name = f"identity: {field} {value!r}"
        found.append(refused(name, "policy_identity", given_, "policy_refused", path=f"/{field}"))
    return found


def _identity(kind: str, engine: str, version: str, documents: list[tuple[str, bytes]]) -> dict[str, Any]:
    listed = [{"name": name, "base64": encoded(content)} for name, content in documents]
    return {"kind": kind, "engine": engine, "engine_version": version, "documents": listed}
