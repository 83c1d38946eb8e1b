"""What ``unevaluatedItems`` and ``unevaluatedProperties`` leave over, at a cost that is counted.

The library's own search for what was evaluated counts nothing and matches with `re`; nested, it is exponential. This
one gives the same answers, and every subschema it enters draws on the check's allowance.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from jsonschema.exceptions import ValidationError
from referencing.jsonschema import DRAFT202012

from agentgate.tools.spending import KEYWORD, spend

Applied: TypeAlias = tuple[Any, dict[str, Any]]  # a validator, and a schema that it applies to the value at hand


def fits(validator: Any, value: Any, schema: Any) -> bool:
    """Tell whether a value is valid under a subschema, up to its first error."""
    return next(validator.descend(value, schema), None) is None


def unevaluated_properties(validator: Any, rule: Any, value: Any, schema: Any) -> Iterable[ValidationError]:
    """Apply a rule to the properties that no other keyword has looked at."""
    if not isinstance(value, dict):
        return
    seen: set[str] = set()
    for by, applied in _applied(validator, value, schema):
        seen |= _properties_seen(by, value, applied)
    for name in sorted(value.keys() - seen):
        if rule is False:
            yield ValidationError("", path=[name])
        else:
            yield from validator.descend(value[name], rule, path=name)


def unevaluated_items(validator: Any, _rule: Any, value: Any, schema: Any) -> Iterable[ValidationError]:
    """Refuse items that no other keyword has looked at; those the rule itself accepts count as looked at."""
    if not isinstance(value, list):
        return
    seen: set[int] = set()
    for by, applied in _applied(validator, value, schema):
        seen |= _items_seen(by, value, applied)
    yield from (ValidationError("", path=[place]) for place in range(len(value)) if place not in seen)


def _applied(validator: Any, value: Any, schema: Any) -> Iterator[Applied]:
    """Find every schema that applies to the same value and accepts it, the starting one included."""
    spend(KEYWORD)
    if not isinstance(schema, dict):
        return
    yield validator, schema
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            found = validator._resolver.lookup(schema[keyword])  # noqa: SLF001 - the library has no other door to it
            inner = validator.evolve(schema=found.contents, _resolver=found.resolver)
            yield from _applied(inner, value, found.contents)
    for subschema in _alternatives(validator, value, schema):
        yield from _applied(_within(validator, subschema), value, subschema)


def _within(validator: Any, schema: Any) -> Any:
    """Stand inside a subschema, whose own identifier changes what its references are relative to."""
    if not isinstance(schema, dict) or "$id" not in schema:
        return validator
    inside = validator._resolver.in_subresource(DRAFT202012.create_resource(schema))  # noqa: SLF001 - as above
    return validator.evolve(schema=schema, _resolver=inside)


def _alternatives(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (dependent for name, dependent in schema.get("dependentSchemas", {}).items() if name in value)
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from (subschema for subschema in schema.get(keyword, ()) if fits(validator, value, subschema))
    if "if" in schema:
        holds = fits(validator, value, schema["if"])
        if holds:
            yield schema["if"]
        yield from (schema[keyword] for keyword in (("then",) if holds else ("else",)) if keyword in schema)


def _properties_seen(validator: Any, value: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    spend(2 * len(value))
    seen: set[str] = schema.get("properties", {}).keys() & value.keys()
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if schema.get(keyword, False) is not False:
            seen |= {name for name, held in value.items() if fits(validator, held, schema[keyword])}
    if "patternProperties" in schema:
        seen |= {name for name in value if schema["patternProperties"].matching(name)}
    return seen


def _items_seen(validator: Any, value: list[Any], schema: dict[str, Any]) -> set[int]:
    spend(2 * len(value))
    if "items" in schema:
        return set(range(len(value)))
    seen = set(range(len(schema.get("prefixItems", ()))))
    for keyword in ("contains", "unevaluatedItems"):
        if schema.get(keyword, False) is not False:
            seen |= {place for place, item in enumerate(value) if fits(validator, item, schema[keyword])}
    return seen
