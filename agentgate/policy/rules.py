"""Rules in a YAML file as a policy: every rule that matches counts, and what none allows is denied.

    version: 1
    rules:
      - name: large-refunds                # a stable word; the decision's rule
        match:                             # all that is named must hold; {} matches every action
          tool: refund                     # a name or a list; bare, it means no namespace
          namespace: ""                    # a trailing * matches a beginning: 'mail.*', '*'
          risk: [external, destructive]    # words of `agentgate.tools.spec.Risk`
          tags: [money]                    # one of the tool's tags is named
          tenant: acme
          principal: "agent:*"
          arguments: {properties: {cents: {minimum: 5001}}, required: [cents]}    # a JSON Schema
        outcome: require_approval          # allow, require_approval, deny, abort
        reason: large_refund               # its code; the rule's name where it is left out
        text: Over 50 needs finance.       # for people; erasable
        requirement: {quorum: 2, roles: [finance], proposer: false, signed: false, obligations: [call_back]}
        obligations: [notify_owner]
        reserves: [{account: refunds, amount: 1}]
        standing: true                     # a standing grant that covers the call answers instead of people

Pure and bounded, so it is asked without a deadline's thread. How several answers become one is in
`agentgate.policy.precedence`; what YAML is taken is in `agentgate.policy.rulefile`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TypeAlias, get_args

from agentgate.approval import Requirement
from agentgate.canonical import Json
from agentgate.errors import PolicyRefused, SpecRefused
from agentgate.policy import rulefields as form
from agentgate.policy.decision import MAX_ITEMS, OUTCOMES, Decision, Reason, Reserve, allow, deny
from agentgate.policy.grants import FACT, standing_reserve
from agentgate.policy.grants import REASON as STANDING_GRANT
from agentgate.policy.identity import PolicyIdentity
from agentgate.policy.matching import WILDCARD, Match, Names
from agentgate.policy.precedence import DEFAULT_RULE, strictest
from agentgate.policy.request import PolicyRequest
from agentgate.policy.rulefields import Place
from agentgate.policy.rulefile import read
from agentgate.tools.schemas import admit
from agentgate.tools.spec import Risk
from agentgate.tools.validation import CheckedSchema, check

ENGINE = "agentgate.rules"
ENGINE_VERSION = "1"
FORM_VERSION = 1
MAX_RULES = 1_000
MAX_PATTERNS = 1_000

_FILE = ("version", "rules")
_RULE = ("name", "match", "outcome", "reason", "text", "requirement", "obligations", "reserves", "standing")
_MATCH = ("tool", "namespace", "risk", "tags", "tenant", "principal", "arguments")
_REQUIREMENT = ("quorum", "roles", "proposer", "signed", "obligations")
_RESERVE = ("account", "amount")
Places: TypeAlias = Mapping[str, Place]

_UNCHECKED = frozenset({"$cost", "$internal"})  # `agentgate.tools.validation.Violation.keyword`
_TAKEN = ("gate", DEFAULT_RULE)  # names of denials that no rule of a file makes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: what it matches, and the answer it then gives to every request.

    Args:
        name: a stable word, once in a file; a decision's ``rule``.
        match: what must hold.
        decision: what it says.
        standing: whether a standing grant that covers the request lets it run without asking anybody.
        arguments: the arguments' schema as it was written, for `agentgate.policy.linting`.
    """

    name: str
    match: Match
    decision: Decision
    standing: bool = False
    arguments: Json = field(default=None, repr=False)

    def answer(self, request: PolicyRequest) -> Decision | None:
        """Return the decision where everything matches, else None.

        Arguments that cannot be judged deny, whatever the rule says: else they would slip past one that denies.
        """
        if not self.match.covers(request):
            return None
        wrong = () if self.match.arguments is None else check(self.match.arguments, request.arguments)
        if not wrong:
            return self._said(request)
        if any(violation.keyword in _UNCHECKED for violation in wrong):
            return deny("arguments_unchecked", "judging the arguments costs more than is allowed", rule=self.name)
        return None

    def _said(self, request: PolicyRequest) -> Decision:
        """Say what the rule says; where people would be asked, one who has said yes in advance is heard."""
        requirement = self.decision.requirement
        if not self.standing or requirement is None:
            return self.decision
        use = standing_reserve(request, proposer=requirement.proposer)
        if use is None:
            return self.decision
        return allow(
            STANDING_GRANT,
            rule=self.name,
            obligations=dict.fromkeys((*self.decision.obligations, *requirement.obligations)),
            reserves=(*self.decision.reserves, use),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePolicy:
    """A file of rules that can be asked; made by `parse_rules` or `read_rules`.

    Args:
        identity: over the file's bytes; its name does not matter.
        source: where it was read, for messages.
        rules: in the file's order.
        facts: ``standing_grants`` where a rule lets one answer; rules read nothing else from outside the request.
    """

    identity: PolicyIdentity
    source: str
    rules: tuple[Rule, ...] = field(repr=False)
    facts: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        # Compiled schemas do not travel between processes; the file's bytes do.
        return partial(parse_rules, source=self.source), (self.identity.documents[0][1],)

    def decide(self, request: PolicyRequest) -> Decision:
        answers = (rule.answer(request) for rule in self.rules)
        return strictest(answer for answer in answers if answer is not None)


def read_rules(path: str | PathLike[str]) -> RulePolicy:
    """Read a rule file.

    Raises:
        PolicyRefused: it cannot be read, or `parse_rules` refuses it.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PolicyRefused(str(path), "", f"cannot be read ({error.strerror})", "give a readable file") from error
    except ValueError as error:  # NUL, or half of a UTF-16 pair
        raise PolicyRefused(ascii(path), "", "names no file that there can be", "give a readable file") from error
    return parse_rules(content, source=str(path))


def parse_rules(content: bytes, *, source: str = "policy.yaml") -> RulePolicy:
    """Make a policy of a rule file's bytes.

    Args:
        content: YAML 1.2, UTF-8, at most 256 KiB; its digest is the policy's identity.
        source: the file's name, for errors.

    Raises:
        PolicyRefused: with the place (``/rules/2/match/tol``), the line, what is wrong there, and a remedy.
    """
    file = read(content, source=source)
    top = form.members(Place(file=file, path="", value=file.value), known=_FILE, needed=_FILE)
    if form.count(top["version"]) != FORM_VERSION:
        raise top["version"].refusal("a version that is not known here", f"write version: {FORM_VERSION}")
    rules: dict[str, Rule] = {}
    for place in form.items(top["rules"], most=MAX_RULES):
        rule = _rule(place)
        if rule.name in rules or rule.name in _TAKEN:
            raise place.refusal(f"the name {rule.name!r} is taken", "give each rule a name of its own")
        rules[rule.name] = rule
    documents = (("rules", content),)
    identity = PolicyIdentity(kind="closed", engine=ENGINE, engine_version=ENGINE_VERSION, documents=documents)
    facts = (FACT,) if any(rule.standing for rule in rules.values()) else ()
    return RulePolicy(identity=identity, source=source, rules=tuple(rules.values()), facts=facts)


def _rule(place: Place) -> Rule:
    stated = form.members(place, known=_RULE, needed=("name", "match", "outcome"))
    matched = form.members(stated["match"], known=_MATCH)
    return Rule(
        name=form.word(stated["name"]),
        match=_match(matched),
        decision=_decision(stated),
        standing=_standing(stated),
        arguments=matched["arguments"].value if "arguments" in matched else None,
    )


def _match(stated: Places) -> Match:
    namespace = _names(stated.get("namespace"))
    if namespace is None and "tool" in stated:
        namespace = Names(whole=frozenset({""}))  # a bare tool name means no namespace (design §2)
    return Match(
        namespace=namespace,
        tool=_names(stated.get("tool")),
        risk=_risks(stated.get("risk")),
        tags=_names(stated.get("tags")),
        tenant=_names(stated.get("tenant")),
        principal=_names(stated.get("principal")),
        arguments=_schema(stated.get("arguments")),
    )


def _names(place: Place | None) -> Names | None:
    if place is None:
        return None
    stated = [_pattern(item) for item in form.some(place, most=MAX_PATTERNS)]
    return Names(
        whole=frozenset(name for name in stated if not name.endswith(WILDCARD)),
        beginnings=tuple(name.removesuffix(WILDCARD) for name in stated if name.endswith(WILDCARD)),
    )


def _pattern(place: Place) -> str:
    if not isinstance(place.value, str):
        raise place.refusal("no text", "write a name, in quotes where YAML needs them")
    if WILDCARD in place.value[:-1]:
        raise place.refusal(
            f"a {WILDCARD} that is not the end", f"{WILDCARD} stands last alone, as in 'mail.{WILDCARD}'"
        )
    return place.value


def _risks(place: Place | None) -> frozenset[str] | None:
    if place is None:
        return None
    return frozenset(form.one_of(item, get_args(Risk)) for item in form.some(place, most=len(get_args(Risk))))


def _schema(place: Place | None) -> CheckedSchema | None:
    if place is None:
        return None
    if not isinstance(place.value, dict):
        raise place.refusal("no JSON Schema", "write a mapping, as {properties: {cents: {maximum: 5000}}}")
    try:
        return admit(place.value, tool="", path=place.path)
    except SpecRefused as error:
        raise place.file.refusal(error.path, error.problem, error.remedy) from error


def _decision(stated: Places) -> Decision:
    outcome = form.one_of(stated["outcome"], OUTCOMES)
    if "requirement" in stated and outcome != "require_approval":
        raise stated["requirement"].refusal(f"{outcome} asks nobody", "leave it out, or write require_approval")
    if "reserves" in stated and outcome in ("deny", "abort"):
        raise stated["reserves"].refusal("a refusal spends nothing", "leave it out")
    return Decision(
        outcome=outcome,
        rule=form.word(stated["name"]),
        reasons=_reasons(stated, outcome),
        requirement=_requirement(stated.get("requirement")) if outcome == "require_approval" else None,
        obligations=_each(stated.get("obligations"), form.word),
        reserves=_reserves(stated.get("reserves")),
    )


def _standing(stated: Places) -> bool:
    """Take whether a standing grant may answer: only where people would be asked, and nobody has to sign."""
    place = stated.get("standing")
    if place is None or not form.flag(place):
        return False
    decision = _decision(stated)
    if decision.requirement is None:
        raise place.refusal(f"{decision.outcome} asks nobody", "leave it out, or write require_approval")
    if decision.requirement.signed:
        raise place.refusal("a standing grant is not signed", "leave it out, or the signature")
    if len(decision.reserves) >= MAX_ITEMS:
        raise place.refusal(f"with its use there are more than {MAX_ITEMS} reserves", "leave one of them out")
    return True


def _reasons(stated: Places, outcome: str) -> tuple[Reason, ...]:
    """Take the reason; what is no plain allow has one, the rule's name where none is stated."""
    if outcome == "allow" and "reason" not in stated and "text" not in stated:
        return ()
    code = form.word(stated.get("reason", stated["name"]))
    return (Reason(code=code, text=form.text(stated["text"]) if "text" in stated else ""),)


def _requirement(place: Place | None) -> Requirement:
    stated = {} if place is None else form.members(place, known=_REQUIREMENT)
    return Requirement(
        quorum=form.count(stated["quorum"]) if "quorum" in stated else 1,
        roles=_each(stated.get("roles"), form.name),
        proposer="proposer" in stated and form.flag(stated["proposer"]),
        signed="signed" in stated and form.flag(stated["signed"]),
        obligations=_each(stated.get("obligations"), form.word),
    )


def _reserves(place: Place | None) -> tuple[Reserve, ...]:
    reserves: dict[str, Reserve] = {}
    for item in [] if place is None else form.items(place, most=MAX_ITEMS):
        stated = form.members(item, known=_RESERVE, needed=_RESERVE)
        reserve = Reserve(account=form.name(stated["account"]), amount=form.count(stated["amount"]))
        if reserve.account in reserves:
            raise stated["account"].refusal("the account stands twice", "add its amounts up")
        reserves[reserve.account] = reserve
    return tuple(reserves.values())


def _each(place: Place | None, take: Callable[[Place], str]) -> tuple[str, ...]:
    return () if place is None else tuple(take(item) for item in form.some(place, most=MAX_ITEMS))
