"""The three digests of an approval: what a claim compares, what is shown, what a person sends.

The *requirement* says who must agree; the *approval* binds it to what was shown and until when; the *vote*
names the approval that its sender saw. There is no vote by position, by call id or without a digest.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from agentgate.canonical import Json
from agentgate.clock import to_us
from agentgate.digests import digest
from agentgate.errors import Damaged, Misuse
from agentgate.jcs import LARGEST_INTEGER, encodable

Verdict = Literal["approve", "reject", "again", "applied", "not_applied"]
LONGEST = timedelta(days=3_660)  # as every span that a spec may state


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Who must agree before an action may run.

    Args:
        kind: ``approval`` of an action, or an operator's ``question`` about an unknown outcome.
        quorum: how many approvers must agree, from 1.
        roles: any of which an approver must hold; empty means anybody the surface lets in.
        proposer: whether the action's own principal counts as an approver.
        signed: whether votes must carry an Ed25519 signature.
        obligations: codes an approver takes on, in the policy's order.
        question: how long people can answer; None leaves it to the gate that asks.
        grant: how long their answer stands before it is used; None leaves it to the gate that asks.

    Two requirements that differ in their times alone are the same one: what is granted to the one is granted to the
    other.

    Raises:
        Misuse: a value that is none of these; its field is named.
    """

    kind: Literal["approval", "question"] = "approval"
    quorum: int = 1
    roles: tuple[str, ...] = ()
    proposer: bool = False
    signed: bool = False
    obligations: tuple[str, ...] = ()
    question: timedelta | None = None
    grant: timedelta | None = None

    def __post_init__(self) -> None:
        given: Any = self  # of what a caller gives, the annotations are a wish
        if type(given.kind) is not str or given.kind not in ("approval", "question"):
            raise Misuse("kind: give approval or question")
        if type(given.quorum) is not int or not 1 <= self.quorum <= LARGEST_INTEGER:
            raise Misuse("quorum: give a whole number of approvers from 1: at least one must agree")
        for name in ("proposer", "signed"):
            if type(getattr(self, name)) is not bool:
                raise Misuse(f"{name}: give True or False")
        for name in ("roles", "obligations"):
            object.__setattr__(self, name, _texts(getattr(self, name), name))
        for name in ("question", "grant"):
            span = getattr(self, name)
            if span is not None and (type(span) is not timedelta or not timedelta(0) < span <= LONGEST):
                raise Misuse(f"{name}: give a positive timedelta of at most {LONGEST.days} days, or None")
        object.__setattr__(self, "roles", tuple(sorted(set(self.roles))))

    def to_json(self) -> dict[str, Json]:
        """Return the requirement as it stands in events: without the action it is asked about."""
        spans = {"question_us": self.question, "grant_us": self.grant}
        return self.bound() | {name: to_us(span) for name, span in spans.items() if span is not None}

    def bound(self) -> dict[str, Json]:
        """Return what its digest binds: all but its times, which the approval's own expiry binds."""
        return {
            "kind": self.kind,
            "quorum": self.quorum,
            "roles": list(self.roles),
            "proposer": self.proposer,
            "signed": self.signed,
            "obligations": list(self.obligations),
        }

    @classmethod
    def from_json(cls, value: Any) -> "Requirement":
        """Read a requirement out of an event whose shape was checked.

        Raises:
            Damaged: it is recorded so that nobody could have asked for it.
        """
        spans = {name: value[f"{name}_us"] for name in ("question", "grant") if f"{name}_us" in value}
        try:
            return cls(
                kind=value["kind"],
                quorum=value["quorum"],
                roles=tuple(value["roles"]),
                proposer=value["proposer"],
                signed=value["signed"],
                obligations=tuple(value["obligations"]),
                **{name: timedelta(microseconds=us) for name, us in spans.items()},
            )
        except Misuse as error:
            raise Damaged("requirement", f"what is recorded is none: {error}") from error


def _texts(given: Any, name: str) -> tuple[str, ...]:
    # A text alone would be taken letter by letter.
    listed = isinstance(given, tuple | list | set | frozenset)
    if not listed or not all(type(one) is str and encodable(one) for one in given):
        raise Misuse(f"{name}: give a tuple of texts of whole Unicode characters, as in {name}=('finance',)")
    return tuple(given)


def requirement_digest(requirement: Requirement, *, action: bytes, attempt: int | None = None) -> bytes:
    """Bind a requirement to its action, and a question to the attempt it asks about (from 1)."""
    bound = requirement.bound() | {"action": action.hex()}
    if attempt is not None:
        bound["attempt"] = attempt
    return digest("requirement", bound)


def approval_digest(*, ledger: str, id: str, requirement: bytes, presentation: bytes, expires_at_us: int) -> bytes:
    """Bind what is shown to people: the requirement, the presentation's payload digest, and the time to answer."""
    return digest(
        "approval",
        {
            "ledger": ledger,
            "id": id,
            "requirement": requirement.hex(),
            "presentation": presentation.hex(),
            "expires_at_us": expires_at_us,
        },
    )


def vote_digest(*, approval: bytes, verdict: Verdict, approver: str, key: bytes | None, nonce: bytes) -> bytes:
    """Bind a person's answer to the approval they were shown.

    Args:
        approval: the approval digest as shown.
        verdict: what they say.
        approver: who says it.
        key: SHA-256 of the 32 raw public-key bytes; None when unsigned.
        nonce: 16 random bytes.
    """
    bound: dict[str, Json] = {
        "approval": approval.hex(),
        "verdict": verdict,
        "approver": approver,
        "nonce": nonce.hex(),
    }
    if key is not None:
        bound["key"] = key.hex()
    return digest("vote", bound)
