"""Each keyword's check, hardened: what jsonschema's own do, without their costs.

The library's functions put the whole instance into every message, compare `enum` and `uniqueItems` element by element,
match with `re`, and loop over the larger of schema and instance. These say only that and where a value fails
(`expectations` says what was expected, from the schema), spend from the check's allowance, and go through names in
sorted order. Their verdicts are the library's, but for `multipleOf`, which is exact: 19.99 is a multiple of 0.01.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from fractions import Fraction
from itertools import islice
from typing import Any, Final, TypeAlias

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError

from agentgate.tools.equality import all_differ, among, same
from agentgate.tools.spending import KEYWORD, SCOPE, STEP, spend
from agentgate.tools.unevaluated import fits, unevaluated_items, unevaluated_properties

Failures: TypeAlias = Iterable[ValidationError]
Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Failures]

MOST_FAILURES: Final = 20  # told of one value, and kept of one alternative


def failed(detail: str = "", *, at: tuple[str | int, ...] = (), context: Iterable[ValidationError] = ()) -> Any:
    """Make a failure; ``detail`` is a name out of the schema, never anything of the value."""
    return ValidationError(detail, path=at, context=tuple(context))


def is_of_type(value: Any, name: str) -> bool:
    """Tell whether a value is of a JSON Schema type; an integral float is an integer."""
    match name:
        case "string":
            return isinstance(value, str)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "number":
            return _is_number(value)
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _type(_validator: Any, types: Any, value: Any, _schema: Any) -> Failures:
    names = (types,) if isinstance(types, str) else types
    return () if any(is_of_type(value, name) for name in names) else (failed(),)


def _enum(_validator: Any, members: Any, value: Any, _schema: Any) -> Failures:
    return () if among(value, members) else (failed(),)


def _const(_validator: Any, constant: Any, value: Any, _schema: Any) -> Failures:
    return () if same(value, constant) else (failed(),)


def _number_limit(breaks: Callable[[Any, Any], bool]) -> Keyword:
    def limit(_validator: Any, bound: Any, value: Any, _schema: Any) -> Failures:
        return (failed(),) if _is_number(value) and breaks(value, bound) else ()

    return limit


def _size_limit(kind: type[Sized], breaks: Callable[[Any, Any], bool]) -> Keyword:
    def limit(_validator: Any, bound: Any, value: Any, _schema: Any) -> Failures:
        return (failed(),) if isinstance(value, kind) and breaks(len(value), bound) else ()

    return limit


def _multiple_of(_validator: Any, divisor: Any, value: Any, _schema: Any) -> Failures:
    if not _is_number(value):
        return ()
    if isinstance(value, int) and isinstance(divisor, int):
        return (failed(),) if value % divisor else ()
    # Both are decimal text in the record, so the decimal numbers are meant and not their nearest doubles.
    quotient = Fraction(repr(value)) / Fraction(repr(divisor))
    return () if quotient.denominator == 1 else (failed(),)


def _pattern(_validator: Any, pattern: Any, value: Any, _schema: Any) -> Failures:
    return () if not isinstance(value, str) or pattern.found_in(value) else (failed(),)


def _unique_items(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Failures:
    return () if not wanted or not isinstance(value, list) or all_differ(value) else (failed(),)


def _required(_validator: Any, names: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, dict):
        spend(len(names))
        yield from (failed(name) for name in names if name not in value)


def _dependent_required(_validator: Any, needs: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, dict):
        for name in _shared(needs, value):
            spend(len(needs[name]))
            yield from (failed(needed) for needed in needs[name] if needed not in value)


def _dependent_schemas(validator: Any, subschemas: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, dict):
        for name in _shared(subschemas, value):
            yield from validator.descend(value, subschemas[name])


def _dependencies(validator: Any, dependencies: Any, value: Any, schema: Any) -> Failures:
    names = {name: needed for name, needed in dependencies.items() if isinstance(needed, list)}
    subschemas = {name: needed for name, needed in dependencies.items() if not isinstance(needed, list)}
    yield from _dependent_required(validator, names, value, schema)
    yield from _dependent_schemas(validator, subschemas, value, schema)


def _properties(validator: Any, subschemas: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, dict):
        for name in _shared(subschemas, value):
            yield from validator.descend(value[name], subschemas[name], path=name)


def _shared(named: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[str]:
    """Go through the names that schema and value share, in order, at the cost of the smaller."""
    smaller, larger = (value, named) if len(value) < len(named) else (named, value)
    spend(len(smaller))
    return (name for name in sorted(smaller) if name in larger)


def _pattern_properties(validator: Any, patterned: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, dict):
        for name in sorted(value):
            for pattern in patterned.patterns:
                if pattern.found_in(name):
                    yield from validator.descend(value[name], patterned[pattern.text], path=name)


def _additional_properties(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
    if rule is True or not isinstance(value, dict):
        return
    spend(len(value))
    named = schema.get("properties", {})
    patterned = schema.get("patternProperties")
    for name in sorted(name for name in value if name not in named):
        if patterned is not None and patterned.matching(name):
            continue
        if rule is False:
            yield failed(at=(name,))
        else:
            yield from validator.descend(value[name], rule, path=name)


def _property_names(validator: Any, rule: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, dict):
        for name in sorted(value):
            wrong = next(validator.descend(name, rule), None)
            if wrong is not None:
                yield failed(at=(name,), context=(wrong,))


def _items(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
    if rule is not True and isinstance(value, list):
        yield from _rest(validator, rule, value, len(schema.get("prefixItems", ())))


def _items_draft_07(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
    if isinstance(rule, list):
        yield from _prefix_items(validator, rule, value, schema)
    else:
        yield from _items(validator, rule, value, {})


def _additional_items(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
    first = schema.get("items")
    if isinstance(first, list) and rule is not True and isinstance(value, list):
        yield from _rest(validator, rule, value, len(first))


def _rest(validator: Any, rule: Any, value: list[Any], start: int) -> Failures:
    if rule is False:
        if len(value) > start:
            yield failed(at=(start,))
        return
    for place in range(start, len(value)):
        yield from validator.descend(value[place], rule, path=place)


def _prefix_items(validator: Any, rules: Any, value: Any, _schema: Any) -> Failures:
    if isinstance(value, list):
        for place, (item, rule) in enumerate(zip(value, rules, strict=False)):
            yield from validator.descend(item, rule, path=place)


def _contains(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
    if not isinstance(value, list):
        return
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
    found = 0
    for item in value:
        found += fits(validator, item, rule)
        if found > most:
            yield ValidationError("", validator="maxContains", validator_value=most)
            return
    if found < least:
        yield ValidationError("", validator="minContains" if found else "contains", validator_value=least)


def _contains_draft_07(validator: Any, rule: Any, value: Any, _schema: Any) -> Failures:
    return _contains(validator, rule, value, {})


def _all_of(validator: Any, rules: Any, value: Any, _schema: Any) -> Failures:
    for rule in rules:
        yield from validator.descend(value, rule)


def _any_of(validator: Any, rules: Any, value: Any, _schema: Any) -> Failures:
    missed = []
    for rule in rules:
        failures = list(islice(validator.descend(value, rule), MOST_FAILURES))
        if not failures:
            return
        missed.append(failures)
    yield from _nearest(missed)


def _one_of(validator: Any, rules: Any, value: Any, _schema: Any) -> Failures:
    missed = []
    met = 0
    for rule in rules:
        failures = list(islice(validator.descend(value, rule), 1 if met else MOST_FAILURES))
        met += not failures
        missed.append(failures)
        if met > 1:
            yield failed("more than one")
            return
    if not met:
        yield from _nearest(missed)


def _nearest(missed: list[list[ValidationError]]) -> Failures:
    """Tell the failures of the one alternative that the value seems to aim at; if several, tell what each wants."""
    aimed = [failures for failures in missed if not any(map(_is_of_another_kind, failures))]
    if len(aimed) == 1:
        yield from aimed[0]
    else:
        yield failed(context=[failures[0] for failures in missed])


def _is_of_another_kind(failure: ValidationError) -> bool:
    """Tell a failure that means another alternative: of the value's own type, or of a tag in it."""
    depth = len(failure.path)
    return depth == 0 if failure.validator in ("type", "not") else depth <= 1 and failure.validator in ("const", "enum")


def _not(validator: Any, rule: Any, value: Any, _schema: Any) -> Failures:
    return (failed(),) if fits(validator, value, rule) else ()


def _if(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
    branch = "then" if fits(validator, value, rule) else "else"
    if branch in schema:
        yield from validator.descend(value, schema[branch])


def _counted(check: Keyword) -> Keyword:
    def counted(validator: Any, rule: Any, value: Any, schema: Any) -> Failures:
        spend(KEYWORD)
        return check(validator, rule, value, schema)

    return counted


def _followed(follow: Keyword) -> Keyword:
    """Let the library follow a reference, at the cost of its length, its steps and the scope it is resolved in."""

    def followed(validator: Any, reference: Any, value: Any, schema: Any) -> Failures:
        scope = sum(1 for _ in validator._resolver.dynamic_scope())  # noqa: SLF001 - the library has no other door to it
        spend(KEYWORD + len(reference) // 4 + STEP * reference.count("/") + SCOPE * scope)
        return follow(validator, reference, value, schema)

    return followed


_SHARED: Final[dict[str, Keyword]] = {
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "enum": _enum,
    "exclusiveMaximum": _number_limit(operator.ge),
    "exclusiveMinimum": _number_limit(operator.le),
    "if": _if,
    "maxItems": _size_limit(list, operator.gt),
    "maxLength": _size_limit(str, operator.gt),
    "maxProperties": _size_limit(dict, operator.gt),
    "maximum": _number_limit(operator.gt),
    "minItems": _size_limit(list, operator.lt),
    "minLength": _size_limit(str, operator.lt),
    "minProperties": _size_limit(dict, operator.lt),
    "minimum": _number_limit(operator.lt),
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique_items,
}
_OF_2020_12: Final[dict[str, Keyword]] = {
    "contains": _contains,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "items": _items,
    "prefixItems": _prefix_items,
    "unevaluatedItems": unevaluated_items,
    "unevaluatedProperties": unevaluated_properties,
}
_OF_DRAFT_07: Final[dict[str, Keyword]] = {
    "additionalItems": _additional_items,
    "contains": _contains_draft_07,
    "dependencies": _dependencies,
    "items": _items_draft_07,
}


def _table(*parts: Mapping[str, Keyword], library: Any, references: tuple[str, ...]) -> dict[str, Keyword]:
    followed = {name: _followed(library.VALIDATORS[name]) for name in references}
    return {name: _counted(check) for part in parts for name, check in part.items()} | followed


KEYWORDS_2020_12: Final = _table(_SHARED, _OF_2020_12, library=Draft202012Validator, references=("$ref", "$dynamicRef"))
KEYWORDS_DRAFT_07: Final = _table(_SHARED, _OF_DRAFT_07, library=Draft7Validator, references=("$ref",))
