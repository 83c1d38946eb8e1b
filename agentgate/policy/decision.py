"""What a policy answers: one of four words, why, who must agree, and what it spends.

A decision that exists is valid and can be recorded as it is. Codes and names are stable words that stand in
clear for ever; what is written for people is a reason's ``text``, kept apart in the ``texts`` payload.
How several answers become one is in `agentgate.policy.precedence`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from agentgate.approval import Requirement
from agentgate.canonical import Json
from agentgate.errors import Damaged, PolicyRefused
from agentgate.shape import Shape, code, flag, integer, listing, misfit, one_of, ordinal, record, text

Outcome: TypeAlias = Literal["allow", "require_approval", "deny", "abort"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""Every word a policy may say, the strictest last."""

MAX_TEXT = 2_000
MAX_NAME = 120
MAX_ITEMS = 64
MAX_NUMBER = 2**53 - 1
_WORD = re.compile(r"[a-z0-9_.:/-]{1,120}")

_REQUIREMENT: Shape = {
    "kind": one_of("approval", "question"),
    "quorum": ordinal,
    "roles": listing(text),
    "proposer": flag,
    "signed": flag,
    "obligations": listing(code),
    "question_us?": ordinal,
    "grant_us?": ordinal,
}
_DECISION: Shape = {
    "outcome": one_of(*OUTCOMES),
    "rule": code,
    "reasons": listing(record({"code": code})),
    "requirement?": record(_REQUIREMENT),
    "obligations": listing(code),
    "reserves": listing(record({"account": code, "amount": integer})),
}


def check_word(value: object, path: str) -> None:
    """Refuse what is no stable word: 1 to 120 characters of a-z, 0-9 and ``_ . : / -``, as a plain str.

    Raises:
        PolicyRefused: it is anything else; ``path`` is where it stands.
    """
    if type(value) is not str or _WORD.fullmatch(value) is None:
        raise _refusal(path, "no stable word", "use 1 to 120 of a-z, 0-9, '_', '.', ':', '/' and '-', as a plain str")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why, for a program and for a person.

    Args:
        code: a stable word, hashed and shown in clear.
        text: a sentence for people, at most 2,000 characters; it may be personal and can be erased.
    """

    code: str
    text: str = ""

    def __post_init__(self) -> None:
        check_word(self.code, "/code")
        _check_text(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """What running the action spends; the claim takes it or refuses.

    Args:
        account: the account's name, 1 to 120 printable characters, in clear for ever.
        amount: in the account's own unit, from 1 to 2^53 - 1.
    """

    account: str
    amount: int

    def __post_init__(self) -> None:
        _check_name(self.account, "/account")
        _check_number(self.amount, "/amount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A policy's whole answer about one action.

    Args:
        outcome: ``deny`` refuses this action, ``abort`` also halts its run.
        rule: which rule decided, as a stable word.
        reasons: why, in the policy's order.
        requirement: who must agree; there exactly when the outcome is ``require_approval``.
        obligations: stable words that whoever runs the action takes on, in the policy's order.
        reserves: what the action spends, each account once; none on a refusal.

    Raises:
        PolicyRefused: a field is not one of these; its JSON Pointer and the remedy are in the error.
    """

    outcome: Outcome
    rule: str
    reasons: tuple[Reason, ...] = ()
    requirement: Requirement | None = None
    obligations: tuple[str, ...] = ()
    reserves: tuple[Reserve, ...] = ()

    def __post_init__(self) -> None:
        _check_outcome(self.outcome)
        check_word(self.rule, "/rule")
        _check_tuple(self.reasons, Reason, "/reasons")
        _check_words(self.obligations, "/obligations")
        _check_requirement(self.outcome, self.requirement)
        _check_reserves(self)

    def to_json(self) -> dict[str, Json]:
        """Return the decision as it stands in an event; the reasons' texts are apart, in `texts`."""
        body: dict[str, Json] = {
            "outcome": self.outcome,
            "rule": self.rule,
            "reasons": [{"code": reason.code} for reason in self.reasons],
            "obligations": list(self.obligations),
            "reserves": [{"account": reserve.account, "amount": reserve.amount} for reserve in self.reserves],
        }
        if self.requirement is not None:
            body["requirement"] = self.requirement.to_json()
        return body

    def texts(self) -> dict[str, str]:
        """Return what was written for people, as fields of the ``texts`` payload: ``{"reasons.0": …}``."""
        return {f"reasons.{index}": reason.text for index, reason in enumerate(self.reasons) if reason.text}

    @classmethod
    def from_json(cls, value: Json, texts: Mapping[str, str] | None = None) -> "Decision":
        """Read a recorded decision, with its reasons' texts where they are still there.

        Args:
            value: the ``decision`` of an event.
            texts: the event's ``texts`` payload; whatever else is in it is passed over.

        Raises:
            Damaged: a field is unknown, missing or not what a decision may hold.
        """
        offence = misfit(_DECISION, value)
        if offence is not None:
            raise Damaged("decision", f"{offence or '/'} is not what this version records")
        try:
            return _recorded(value, texts or {})
        except (PolicyRefused, ValueError) as error:
            raise Damaged("decision", f"what is recorded is no decision: {error}") from error


def allow(
    code: str | None = None,
    text: str = "",
    *,
    rule: str = "policy",
    obligations: Iterable[str] = (),
    reserves: Iterable[Reserve] = (),
) -> Decision:
    """Let the action run; a reason is optional."""
    return Decision(
        outcome="allow",
        rule=rule,
        reasons=() if code is None else (Reason(code=code, text=text),),
        obligations=tuple(obligations),
        reserves=tuple(reserves),
    )


def deny(code: str, text: str = "", *, rule: str = "policy") -> Decision:
    """Refuse this action; its run goes on."""
    return Decision(outcome="deny", rule=rule, reasons=(Reason(code=code, text=text),))


def abort(code: str, text: str = "", *, rule: str = "policy") -> Decision:
    """Refuse this action and halt its run."""
    return Decision(outcome="abort", rule=rule, reasons=(Reason(code=code, text=text),))


def require_approval(
    code: str,
    text: str = "",
    *,
    rule: str = "policy",
    requirement: Requirement | None = None,
    obligations: Iterable[str] = (),
    reserves: Iterable[Reserve] = (),
) -> Decision:
    """Hold the action until people agree; with no requirement given, one approver who is not the proposer."""
    return Decision(
        outcome="require_approval",
        rule=rule,
        reasons=(Reason(code=code, text=text),),
        requirement=requirement or Requirement(),
        obligations=tuple(obligations),
        reserves=tuple(reserves),
    )


def _recorded(body: Any, texts: Mapping[str, str]) -> Decision:
    codes = [reason["code"] for reason in body["reasons"]]
    return Decision(
        outcome=body["outcome"],
        rule=body["rule"],
        reasons=tuple(Reason(code=code, text=texts.get(f"reasons.{n}", "")) for n, code in enumerate(codes)),
        requirement=Requirement.from_json(body["requirement"]) if "requirement" in body else None,
        obligations=tuple(body["obligations"]),
        reserves=tuple(Reserve(**reserve) for reserve in body["reserves"]),
    )


def _check_outcome(value: object) -> None:
    if type(value) is not str or value not in OUTCOMES:
        raise _refusal("/outcome", "an unknown word", f"use one of {', '.join(OUTCOMES)}")


def _check_text(value: object) -> None:
    if type(value) is not str or len(value) > MAX_TEXT:
        raise _refusal("/text", "no text", f"give a plain str of at most {MAX_TEXT} characters")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _refusal("/text", "it holds a lone surrogate", "give text that UTF-8 can encode")


def _check_name(value: object, path: str) -> None:
    if type(value) is not str or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise _refusal(path, "no name", f"give 1 to {MAX_NAME} printable characters, as a plain str")


def _check_number(value: object, path: str) -> None:
    if type(value) is not int or not 1 <= value <= MAX_NUMBER:
        raise _refusal(path, "no positive integer", "give a plain int from 1 to 2**53 - 1")


def _check_flag(value: object, path: str) -> None:
    if type(value) is not bool:
        raise _refusal(path, "neither True nor False", "give one of them")


def _check_tuple(value: object, kind: type, path: str) -> None:
    if type(value) is not tuple or len(value) > MAX_ITEMS or any(type(item) is not kind for item in value):
        raise _refusal(path, "not the collection expected", f"give a tuple of at most {MAX_ITEMS} {kind.__name__}")


def _check_words(value: tuple[str, ...], path: str) -> None:
    _check_tuple(value, str, path)
    for index, word in enumerate(value):
        check_word(word, f"{path}/{index}")


def _check_requirement(outcome: Outcome, requirement: object) -> None:
    if (outcome == "require_approval") != (requirement is not None):
        raise _refusal("/requirement", "it stands with require_approval alone", "give both, or neither")
    if requirement is None:
        return
    if type(requirement) is not Requirement or requirement.kind != "approval":
        raise _refusal("/requirement/kind", "a policy asks for approval alone", "give a Requirement of kind 'approval'")
    check_who(requirement)


def check_who(requirement: Requirement) -> None:
    """Refuse a requirement that no event could hold, of either kind.

    Raises:
        PolicyRefused: a field is not what it must be.
    """
    _check_number(requirement.quorum, "/requirement/quorum")
    _check_flag(requirement.proposer, "/requirement/proposer")
    _check_flag(requirement.signed, "/requirement/signed")
    _check_tuple(requirement.roles, str, "/requirement/roles")
    for index, role in enumerate(requirement.roles):
        _check_name(role, f"/requirement/roles/{index}")
    _check_words(requirement.obligations, "/requirement/obligations")


def _check_reserves(decision: Decision) -> None:
    _check_tuple(decision.reserves, Reserve, "/reserves")
    if decision.reserves and decision.outcome in ("deny", "abort"):
        raise _refusal("/reserves", "a refusal spends nothing", "leave reserves out")
    if len({reserve.account for reserve in decision.reserves}) < len(decision.reserves):
        raise _refusal("/reserves", "an account stands twice", "add its amounts up in one Reserve")


def _refusal(path: str, problem: str, remedy: str) -> PolicyRefused:
    return PolicyRefused("decision", path, problem, remedy)
