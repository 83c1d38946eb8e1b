"""A well-formed body for each event of a walk, made from what the walk's model remembers of the action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentgate.canonical import Json
from agentgate.core.draft import Payload
from support.bodies import DECIDED, REQUIREMENT
from support.ids import AT_US, a_hash, an_id

TTL_US = 3_600_000_000


@dataclass(slots=True)
class Try:
    """What the model remembers of one attempt."""

    fence: int
    under: str | None
    open: bool = True
    doubted: bool = False


@dataclass(slots=True)
class Model:
    """What the model remembers of one action."""

    state: str
    tries: list[Try] = field(default_factory=list)
    asked: str | None = None
    question: str = "none"
    digest: str = ""
    votes: list[str] = field(default_factory=list)
    reserved: dict[str, int] = field(default_factory=dict)
    dedupe_until_us: Json = None
    confirmed: str | None = None

    @property
    def doubted(self) -> list[Json]:
        return [number for number, one in enumerate(self.tries, 1) if one.doubted]


Fresh = Callable[[], int]
Made = tuple[dict[str, Json], tuple[Payload, ...]]


def _bare(_fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {}, ()


def _by(_fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"by": "person:ada"}, ()


def _proposed(fresh: Fresh, _model: Model, outcome: str) -> Made:
    number = fresh()
    body: dict[str, Json] = {
        "outcome": outcome,
        "digest": a_hash(number).hex(),
        "principal": "agent:a",
        "namespace": "",
        "tool": "refund",
        "key": {"source": "caller", "scope": "", "text": f"key-{number}"},
        "revision": 1,
        "spec": a_hash("spec").hex(),
        "request": a_hash(f"request {number % 3}").hex(),
    }
    if outcome == "refused":
        body["reason"] = "policy_denied"
    if outcome == "held":
        body |= {"approval": _question(fresh), **DECIDED}
    if outcome == "allowed":
        body["expires_at_us"] = AT_US + TTL_US
    return body, (_payload(fresh, "arguments"),)


def _question(fresh: Fresh) -> dict[str, Json]:
    number = fresh()
    return {
        "id": an_id(2_000 + number),
        "requirement": a_hash(f"requirement {number}").hex(),
        "presentation": a_hash(f"presentation {number}").hex(),
        "digest": a_hash(f"approval {number}").hex(),
        "expires_at_us": AT_US + TTL_US,
        "grant_us": TTL_US,
    }


def _payload(fresh: Fresh, kind: str) -> Payload:
    return Payload(kind=kind, salt=a_hash(f"salt {fresh()}"), content=b"{}")


def _held(fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"proposed": 1, "approval": _question(fresh), **DECIDED}, ()


def _asked(fresh: Fresh, model: Model, _qualifier: str) -> Made:
    requirement = REQUIREMENT | {"kind": "question"}
    return {"approval": _question(fresh), "requirement": requirement, "attempt": len(model.tries)}, ()


def _of_question(_fresh: Fresh, model: Model, _qualifier: str) -> Made:
    return {"approval": model.asked}, ()


def _of_question_by(_fresh: Fresh, model: Model, _qualifier: str) -> Made:
    return {"approval": model.asked, "by": "person:ada"}, ()


def _approved(_fresh: Fresh, model: Model, _qualifier: str) -> Made:
    return {"approval": model.asked, "votes": [*model.votes], "until_us": AT_US + TTL_US}, ()


def _voted(fresh: Fresh, model: Model, _qualifier: str) -> Made:
    number = fresh()
    body: dict[str, Json] = {
        "approval": model.asked,
        "shown": model.digest,
        "vote": a_hash(f"vote {number}").hex(),
        "verdict": "approve",
        "approver": f"person:{number}",
        "roles": ["finance"],
        "nonce": f"{number:032x}",
    }
    if number % 2:
        body |= {"key": a_hash("key").hex(), "signature": "ab" * 64}
    return body, ()


def _vote_revoked(_fresh: Fresh, model: Model, _qualifier: str) -> Made:
    return {"approval": model.asked, "vote": model.votes[-1], "by": "person:ada"}, ()


def _refused(_fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"reason": "spec_changed", "proposed": 1}, ()


def _waited(fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"reason": ("paused", "busy", "blocked")[fresh() % 3], "proposed": 1}, ()


def amounts(**spent: int) -> list[Json]:
    """Return amounts as events hold them."""
    return [{"account": account, "amount": amount} for account, amount in spent.items()]


def _charged(fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    number = fresh()
    spent: list[Json] = [*amounts(tokens=number, money=number - 5, stamps=1), *amounts(tokens=2)]
    return {"charges": spent[: number % 5], "by": "a"}, ()


def _started(fresh: Fresh, model: Model, _qualifier: str) -> Made:
    number = fresh()
    body: dict[str, Json] = {
        "proposed": 1,
        "digest": a_hash("action").hex(),
        "attempt": len(model.tries) + 1,
        "fence": number,
        "holder": "host/1/2/gate",
        "lease_until_us": AT_US + 1,
        "deadline_us": AT_US + 2,
    }
    if model.question == "granted":
        body["approval"] = model.asked
    if model.state == "READY" and number % 4:  # never again of what it took already
        body["reserves"] = amounts(refunds=number, eu=-number, calls=1)[: number % 4]
    if number % 3:
        body["dedupe_until_us"] = AT_US + number
    return body, ()


def _settled(fresh: Fresh) -> list[Json]:
    number = fresh()
    return amounts(eu=number, fees=3)[: number % 3]


def _attempt(model: Model, number: int) -> dict[str, Json]:
    return {"attempt": number, "fence": model.tries[number - 1].fence}


def _succeeded(fresh: Fresh, model: Model, _qualifier: str) -> Made:
    body = _attempt(model, len(model.tries)) | {"outcome": a_hash("ok").hex(), "result_bytes": 2}
    return body | {"notes": [], "settled": _settled(fresh)}, (_payload(fresh, "result"),)


def _failed(fresh: Fresh, model: Model, _qualifier: str) -> Made:
    body = _attempt(model, len(model.tries)) | {"code": "not_found", "retryable": False, "settled": []}
    return body | {"outcome": a_hash("no").hex()}, (_payload(fresh, "result"),)


def _in_doubt(_fresh: Fresh, model: Model, _qualifier: str) -> Made:
    return _attempt(model, len(model.tries)) | {"code": "timeout", "by": "gate"}, ()


def _late(fresh: Fresh, model: Model, qualifier: str) -> Made:
    ended = [number for number, one in enumerate(model.tries, 1) if not one.open]
    body = _attempt(model, ended[fresh() % len(ended)])
    return body | {"status": "error" if qualifier else "ok", "clean": bool(qualifier)}, (_payload(fresh, "evidence"),)


def _retried(_fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"until_us": AT_US + TTL_US, "by": "person:ada"}, ()


def _reconciled(fresh: Fresh, model: Model, verdict: str) -> Made:
    body: dict[str, Json] = {"verdict": verdict, "attempts": model.doubted, "worker_known_dead": True}
    if verdict == "not_applied":
        body["until_us"] = AT_US + TTL_US
    return body | {"settled": _settled(fresh), "by": "person:ada"}, ()


def _checked(_fresh: Fresh, model: Model, _qualifier: str) -> Made:
    return {"attempt": max(1, len(model.tries)), "name": "check", "version": "1"}, ()


def _superseded(_fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"successor": an_id(9)}, ()


def _replayed(_fresh: Fresh, _model: Model, _qualifier: str) -> Made:
    return {"principal": "agent:a"}, ()


BODIES: Mapping[str, Callable[[Fresh, Model, str], Made]] = {
    "proposed": _proposed,
    "held": _held,
    "approved": _approved,
    "voted": _voted,
    "vote_revoked": _vote_revoked,
    "rejected": _of_question_by,
    "question_asked": _asked,
    "question_expired": _of_question,
    "grant_expired": _of_question,
    "grant_revoked": _of_question_by,
    "action_expired": _bare,
    "cancelled": _by,
    "superseded": _superseded,
    "refused": _refused,
    "waited": _waited,
    "replayed": _replayed,
    "started": _started,
    "succeeded": _succeeded,
    "failed": _failed,
    "in_doubt": _in_doubt,
    "late": _late,
    "retried": _retried,
    "reconciled": _reconciled,
    "abandoned": _by,
    "confirmed": _checked,
    "contradicted": _checked,
    "charged": _charged,
}
