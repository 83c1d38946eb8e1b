"""What a standing grant covers, and how a policy reads the fact that tells which ones do.

A person says yes in advance: to these arguments, until a time, so many times. Its predicate is small and closed: what
is not named is not covered, and there is no test of a text's beginning, because that says nothing of what follows
(``/srv/a/../../etc``, ``https://bank.example@elsewhere``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentgate.canonical import Json, canonical
from agentgate.errors import Misuse, NotCanonical
from agentgate.policy.decision import MAX_ITEMS, Reserve
from agentgate.policy.request import PolicyRequest
from agentgate.tools.names import same_name

FACT = "standing_grants"
"""The fact that every gate provides: the grants that cover the request, soonest over first."""

MOST_SHOWN = 16
REASON = "standing_grant"
TESTS = ("equals", "one_of", "at_most", "at_least")
_ANY = "any"
_REMEDY = 'write it as {"path": "/cents", "at_most": 5000}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold of one part of the arguments.

    Args:
        path: JSON Pointer to the part; ``""`` is all of them.
        test: ``equals``, ``one_of``, ``at_most`` or ``at_least``.
        value: what it is compared with.
    """

    path: str
    test: str
    value: Json

    def holds(self, part: Json) -> bool:
        """Tell whether it holds of the part that is there."""
        if self.test == "equals":
            return canonical(part) == canonical(self.value)
        if self.test == "one_of":
            assert type(self.value) is list
            return any(canonical(part) == canonical(one) for one in self.value)
        if type(part) not in {int, float}:
            return False
        limit: Any = self.value
        number: Any = part
        return bool(number <= limit) if self.test == "at_most" else bool(number >= limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """What arguments must be like; every part of them is named, unless the rest may be anything, said on purpose."""

    where: tuple[Condition, ...]
    any_rest: bool = False

    def covers(self, arguments: Json) -> bool:
        """Tell whether these arguments are covered, all of them."""
        parts = _parts(arguments)
        for condition in self.where:
            found = parts.get(condition.path)
            if found is None or not condition.holds(found[0]):
                return False
        return self.any_rest or _named("", arguments, frozenset(one.path for one in self.where))

    def to_json(self) -> dict[str, Json]:
        """Return it as it is recorded."""
        where: list[Json] = [{"path": one.path, one.test: one.value} for one in self.where]
        return {"where": where} | ({"rest": _ANY} if self.any_rest else {})

    def names(self) -> tuple[str, ...]:
        """Return the root arguments that it names."""
        roots = (one.path.split("/")[1] for one in self.where if one.path)
        return tuple(dict.fromkeys(root.replace("~1", "/").replace("~0", "~") for root in roots))


def exactly(arguments: Json) -> Predicate:
    """Cover these arguments alone."""
    return Predicate(where=(Condition(path="", test="equals", value=arguments),))


def predicate_of(value: object) -> Predicate:
    """Read a predicate.

    Args:
        value: ``{"where": [{"path": …, "equals": …}], "rest": "any"}``, the rest left out where nothing else may come.

    Raises:
        Misuse: a field is none of these; it is named, with the remedy.
    """
    if not isinstance(value, Mapping) or not {"where"} <= value.keys() <= {"where", "rest"}:
        raise Misuse('where: give {"where": [...]}, and "rest": "any" if the other arguments may be anything')
    if value.get("rest", _ANY) != _ANY:
        raise Misuse('where.rest: write "any", or leave it out: then nothing else is covered')
    listed = value["where"]
    if type(listed) is not list or len(listed) > MAX_ITEMS:
        raise Misuse(f"where.where: give a list of at most {MAX_ITEMS} conditions")
    return Predicate(where=tuple(_condition(n, one) for n, one in enumerate(listed)), any_rest="rest" in value)


def _condition(n: int, value: object) -> Condition:
    at = f"where.where[{n}]"
    if not isinstance(value, Mapping) or len(value.keys() - {"path"}) != 1 or type(value.get("path")) is not str:
        raise Misuse(f"{at}: give a path and one of {', '.join(TESTS)}; {_REMEDY}")
    path = value["path"]
    (test,) = (name for name in value if name != "path")
    if test not in TESTS:
        raise Misuse(f"{at}: {test!r} is no test; use one of {', '.join(TESTS)}")
    if path and not path.startswith("/"):
        raise Misuse(f"{at}.path: no JSON Pointer; {_REMEDY}")
    compared = value[test]
    if test == "one_of" and (type(compared) is not list or not 0 < len(compared) <= MAX_ITEMS):
        raise Misuse(f"{at}.one_of: give a list of 1 to {MAX_ITEMS} values")
    if test in {"at_most", "at_least"} and type(compared) not in {int, float}:
        raise Misuse(f"{at}.{test}: give a number")
    try:
        canonical(compared)
    except NotCanonical as error:
        raise Misuse(f"{at}.{test}: no JSON value: {error.reason}") from error
    return Condition(path=path, test=test, value=compared)


def _parts(arguments: Json) -> dict[str, tuple[Json]]:
    """Return every part of the arguments by its pointer, as text: an array's item has one spelling, so has a member."""
    found: dict[str, tuple[Json]] = {}
    left: list[tuple[str, Json]] = [("", arguments)]
    while left:
        path, value = left.pop()
        found[path] = (value,)
        left += _below(path, value)
    return found


def _below(path: str, value: Json) -> list[tuple[str, Json]]:
    if type(value) is dict:
        return [(f"{path}/{name.replace('~', '~0').replace('/', '~1')}", item) for name, item in value.items()]
    return [(f"{path}/{n}", item) for n, item in enumerate(value)] if type(value) is list else []


def _named(path: str, value: Json, paths: frozenset[str]) -> bool:
    """Tell whether a part is named, or everything in it is."""
    if path in paths:
        return True
    below = _below(path, value)
    return bool(below) and all(_named(place, item, paths) for place, item in below)


def standing_reserve(request: PolicyRequest, *, proposer: bool = False) -> Reserve | None:
    """Return what a policy reserves to use the first standing grant that covers a request; None where none does.

    Args:
        request: of a policy that declares the fact ``standing_grants``.
        proposer: whether one counts that the action's own principal gave, or who wrote its arguments.

    Raises:
        Misuse: the policy does not declare the fact.
    """
    if FACT not in request.facts:
        raise Misuse(f"facts: declare {FACT!r}; else no standing grant is looked for")
    grants: Any = request.facts[FACT]
    own = {same_name(name) for name in (request.principal, request.edited_by) if name is not None}
    found = (one for one in grants if one["left"] > 0 and (proposer or same_name(one["by"]) not in own))
    first = next(found, None)
    return None if first is None else Reserve(account=account_of(first["id"]), amount=1)


PREFIX = "grant:"


def account_of(grant: str) -> str:
    """Name the account whose bound is the grant's uses."""
    return PREFIX + grant
