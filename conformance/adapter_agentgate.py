"""agentgate as an implementation under test: reads a question a line from stdin, writes an answer a line to stdout."""

import base64
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentgate.action import Key, action_digest
from agentgate.approval import Requirement, approval_digest, requirement_digest, vote_digest
from agentgate.canonical import Bounds, canonical, parse
from agentgate.chain import Head, Link, follow, start
from agentgate.core.attempts import took_us
from agentgate.core.counting import fold_run
from agentgate.core.draft import Payload
from agentgate.core.fold import fold_action, with_tenant
from agentgate.core.records import ActionFile, RunRecord, counted
from agentgate.core.sameness import Asked, outcome_fingerprint, request_fingerprint, same_arguments
from agentgate.digests import digest, document_digest, fingerprint, idempotency_key, payload_digest
from agentgate.errors import Damaged, Misuse, NotCanonical, PolicyRefused, SpecRefused
from agentgate.event import EVENT_BOUNDS, decode, event_hash, genesis, offence
from agentgate.keyring import addition_digest
from agentgate.observation import Error, Observation
from agentgate.policy.identity import PolicyIdentity
from agentgate.publickeys import ApproverKey
from agentgate.sealing import SealingKey, SealingKeys
from agentgate.signing import SigningKey, Vote, verify
from agentgate.states import RunState, State, advance, advance_run
from agentgate.tools.defaults import complete
from agentgate.tools.recovery import FunctionName, Retry, recovery_from_json
from agentgate.tools.resource import expand, parse_template
from agentgate.tools.schemas import admit
from agentgate.tools.spec import ToolSpec, from_document

Fields = dict[str, Any]


class Refusal(Exception):
    """What the format refuses, with the members of the answer."""

    def __init__(self, **said: Any) -> None:
        super().__init__(said)
        self.said = said


def answer(op: str, given: Fields) -> Fields:
    """Answer one question: {out} or {refused}."""
    try:
        return {"out": OPS[op](given)}
    except Refusal as refusal:
        return {"refused": refusal.said}
    except NotCanonical as error:
        return {"refused": {"reason": error.reason, "path": error.path}}
    except (SpecRefused, PolicyRefused) as error:
        return {"refused": {"reason": error.code, "path": error.path}}
    except Misuse as error:
        return {"refused": {"reason": error.code}}


def _bytes(given: Fields) -> bytes:
    return base64.b64decode(given["base64"], validate=True)


def _hex(given: Fields, name: str) -> bytes | None:
    return bytes.fromhex(given[name]) if name in given else None


def _canonical(given: Fields) -> Fields:
    raw = given["text"] if "text" in given else _bytes(given)
    return {"text": canonical(parse(raw, bounds=Bounds(**given.get("bounds", {})))).decode()}


def _seal(given: Fields) -> Fields:
    ring = SealingKeys(SealingKey(bytes.fromhex(given["key"])))
    payload = Payload(kind=given["kind"], salt=bytes.fromhex(given["salt"]), content=_bytes(given))
    stored = payload.sealed(ring, nonce=bytes.fromhex(given["nonce"]))
    return {"base64": base64.b64encode(stored.content).decode(), "sealed_by": stored.sealed_by}


def _open(given: Fields) -> Fields:
    first, *others = (SealingKey(bytes.fromhex(key)) for key in given["keys"])
    stored = Payload(kind=given["kind"], salt=b"", content=_bytes(given), sealed_by=given["sealed_by"])
    try:
        opened = stored.opened(SealingKeys(first, tuple(others)), digest=bytes.fromhex(given["digest"]))
    except Damaged as error:
        raise Refusal(reason=error.code) from error
    return {"base64": base64.b64encode(opened.content).decode(), "salt": opened.salt.hex()}


def _spec(given: Fields) -> Fields:
    fields = _spans(given["declared"])
    if "recovery" in fields:
        fields["recovery"] = recovery_from_json(fields["recovery"])
    if "retry" in fields:
        fields["retry"] = Retry(**_spans(fields["retry"]))
    fields |= {name: FunctionName(**fields[name]) for name in ("confirm", "probe") if name in fields}
    spec = ToolSpec(**fields)
    return {"document": spec.document().decode(), "digest": spec.digest.hex()}


def _spans(fields: Fields) -> Fields:
    """Turn microseconds, which documents speak in, into the timedeltas that declarations speak in."""
    return {
        name.removesuffix("_us"): timedelta(microseconds=value) if name.endswith("_us") else value
        for name, value in fields.items()
    }


def _policy(given: Fields) -> Fields:
    documents = tuple((one["name"], _bytes(one)) for one in given["documents"])
    return {"digest": PolicyIdentity(**{**given, "documents": documents}).digest.hex()}


def _action(given: Fields) -> Fields:
    bound = {name: _hex(given, name) for name in ("spec", "arguments", "provenance")}
    return {"digest": action_digest(**{**given, **bound, "key": Key(**given["key"])}).hex()}


def _requirement(given: Fields) -> Fields:
    said = {name: given[name] for name in ("kind", "quorum", "proposer", "signed")}
    required = Requirement(**said, roles=tuple(given["roles"]), obligations=tuple(given["obligations"]))
    action = bytes.fromhex(given["action"])
    return {"digest": requirement_digest(required, action=action, attempt=given.get("attempt")).hex()}


def _approval(given: Fields) -> Fields:
    bound = {name: _hex(given, name) for name in ("requirement", "presentation")}
    return {"digest": approval_digest(**{**given, **bound}).hex()}


def _vote(given: Fields) -> Fields:
    bound = {name: _hex(given, name) for name in ("approval", "nonce", "key")}
    return {"digest": vote_digest(**{**given, **bound}).hex()}


def _signed(given: Fields) -> Fields:
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given.pop("seed"))))
    bound = {name: _hex(given, name) for name in ("approval", "nonce")}
    digest = Vote(**{**given, **bound, "key": key.hash}).digest
    told = {"public": key.public, "key": key.hash, "digest": digest, "signature": key.sign(digest)}
    return {name: value.hex() for name, value in told.items()}


def _verify(given: Fields) -> Fields:
    return {"valid": verify(*(bytes.fromhex(given[name]) for name in ("public", "signature", "message")))}


def _addition(given: Fields) -> Fields:
    ledger = given.pop("ledger")
    key = ApproverKey(**{**given, "public": bytes.fromhex(given["public"]), "roles": tuple(given["roles"])})
    return {"digest": addition_digest(ledger, key).hex()}


def _same(given: Fields) -> Fields:
    new, recorded = (
        Asked(**{name: call[name].encode() if name in call else None for name in ("supplied", "arguments", "request")})
        for call in (given["new"], given["recorded"])
    )
    return {"same": same_arguments(new, recorded)}


def _request(given: Fields) -> Fields:
    asked = {"namespace": given["namespace"], "tool": given["tool"], "arguments": parse(given["arguments"])}
    return {"fingerprint": request_fingerprint(bytes.fromhex(given["key"]), **asked).hex()}


def _outcome(given: Fields) -> Fields:
    status, result = given["status"], given["result"]
    seen = Observation(status="ok", value=result) if status == "ok" else _failed(result)
    key, request = bytes.fromhex(given["key"]), bytes.fromhex(given["request"])
    return {"fingerprint": outcome_fingerprint(key, request=request, observation=seen).hex()}


def _failed(result: Fields) -> Observation:
    return Observation(status="error", error=Error.from_json(result))


def _resource(given: Fields) -> Fields:
    name = expand(parse_template(given["template"], tool="t"), parse(given["arguments"]))
    key = bytes.fromhex(given["key"])
    return {"resource": name, "fingerprint": fingerprint(key, "resource", name.encode()).hex()}


def _complete(given: Fields) -> Fields:
    return {"text": canonical(complete(admit(given["schema"], tool="t"), parse(given["value"]))).decode()}


def _read(encoded: bytes) -> Fields:
    try:
        decode(encoded)
    except Damaged as error:
        raise Refusal(reason=error.what, path=_misplaced(encoded)) from error
    return {"hash": event_hash(encoded).hex()}


def _misplaced(encoded: bytes) -> str:
    try:
        return offence(parse(encoded, bounds=EVENT_BOUNDS)) or ""
    except NotCanonical as error:
        return error.path


def _event(given: Fields) -> Fields:
    encoded = canonical(given["event"])
    return {"text": encoded.decode(), **_read(encoded)}


def _state(given: Fields) -> Fields:
    return _led(advance(State(given["state"]), given["event"]))


def _run_state(given: Fields) -> Fields:
    return _led(advance_run(RunState(given["state"]), given["event"]))


def _led(target: State | RunState | None) -> Fields:
    if target is None:
        raise Refusal(reason="no_row")
    return {"state": target.value}


def _chain(given: Fields) -> Fields:
    head = start(given["ledger"], given["run"])
    for link in given["links"]:
        try:
            head = follow(head, _link(link))[1]
        except Damaged as error:
            raise Refusal(reason=error.what, at=head.n) from error
    return {"n": head.n, "hash": head.hash.hex()}


def _link(link: Fields) -> Link:
    return Link(n=link["n"], hash=bytes.fromhex(link["hash"]), encoded=link["event"].encode())


def _fold(given: Fields) -> Fields:
    head = start(given["ledger"], given["run"])
    run: RunRecord | None = None
    files: dict[str, ActionFile] = {}
    for link in given["links"]:
        try:
            head, run = _step(head, run, files, _link(link))
        except Damaged as error:
            raise Refusal(reason=error.code, at=head.n) from error
    assert run is not None
    return {"run": _run(run), **_files(files)}


def _step(head: Head, run: RunRecord | None, files: dict[str, ActionFile], link: Link) -> tuple[Head, RunRecord]:
    event, head = follow(head, link)
    was = now = None
    took = 0
    if event.action is not None:
        before = files.get(event.action)
        took = took_us(before, event)
        file = fold_action(before, event)
        files[event.action] = file if before is not None or run is None else with_tenant(file, run.tenant)
        was, now = State.NEW if before is None else before.action.state, file.action.state
    return head, fold_run(run, event, head.hash, was=was, now=now, took_us=took)


def _run(run: RunRecord) -> Fields:
    counters = {name: count for name, count in counted(run.counters).items() if count}
    return _present(state=run.state.value, reason=run.reason, counters=counters)


def _files(files: dict[str, ActionFile]) -> Fields:
    found: Fields = {"actions": {}, "attempts": {}, "approvals": {}, "votes": {}}
    for id_, file in files.items():
        row = file.action
        found["actions"][id_] = _present(
            state=row.state.value,
            state_n=row.state_n,
            reason=row.reason,
            attempts=row.attempts,
            unresolved=row.unresolved,
            expires_at_us=row.expires_at_us,
            result_n=row.result_n,
            waited=list(row.waited),
            reserved=[{"account": account, "amount": amount} for account, amount in row.reserved] or None,
            confirmed=row.confirmed,
            dedupe_until_us=row.dedupe_until_us,
        )
        for attempt in file.attempts.values():
            found["attempts"][str(attempt.fence)] = {"state": attempt.state, "unresolved": attempt.unresolved}
        found["approvals"] |= {approval.id: approval.state for approval in file.approvals.values()}
        found["votes"] |= {str(n): vote.counted for n, vote in file.votes.items()}
    return found


def _present(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


OPS: dict[str, Callable[[Fields], Fields]] = {
    "canonical": _canonical,
    "digest": lambda given: {"digest": digest(given["domain"], parse(given["text"])).hex()},
    "payload_digest": lambda given: {
        "digest": payload_digest(given["kind"], bytes.fromhex(given["salt"]), _bytes(given)).hex()
    },
    "sealing_key": lambda given: {"id": SealingKey(bytes.fromhex(given["key"])).id},
    "seal": _seal,
    "open": _open,
    "document_digest": lambda given: {"digest": document_digest(given["kind"], _bytes(given)).hex()},
    "spec_document": _spec,
    "spec_read": lambda given: {"digest": from_document(given["document"].encode()).digest.hex()},
    "policy_identity": _policy,
    "action_digest": _action,
    "requirement_digest": _requirement,
    "approval_digest": _approval,
    "vote_digest": _vote,
    "sign_vote": _signed,
    "verify": _verify,
    "addition_digest": _addition,
    "idempotency_key": lambda given: {"key": idempotency_key(**given)},
    "same_arguments": _same,
    "fingerprint": lambda given: {
        "fingerprint": fingerprint(bytes.fromhex(given["key"]), given["kind"], _bytes(given)).hex()
    },
    "request_fingerprint": _request,
    "outcome_fingerprint": _outcome,
    "resource_fingerprint": _resource,
    "complete": _complete,
    "event": _event,
    "event_read": lambda given: _read(given["text"].encode()),
    "genesis": lambda given: {"digest": genesis(given["ledger"], given["run"]).hex()},
    "state": _state,
    "run_state": _run_state,
    "chain": _chain,
    "fold": _fold,
}


def serve() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin.buffer:
        question = json.loads(line)
        said = {"id": question["id"], **answer(question["op"], question["in"])}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
