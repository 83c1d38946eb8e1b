"""What was expected where a value failed, in words made of the schema alone.

Everything here is read by a model that has to correct its call, and by people: short, and never a word of the value.
"""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from jsonschema.exceptions import ValidationError

LONGEST: Final = 200  # characters of one expectation
_LONGEST_VALUE = 60
_MOST_VALUES = 12
_MOST_ALTERNATIVES = 6
_MOST_DESCRIBED = 32

_ENCODER = json.JSONEncoder(ensure_ascii=False)

Wording = Callable[[Any, ValidationError], str]


def expectation(failure: ValidationError) -> str:
    """Say what the failed keyword wanted, as the end of a sentence that begins "expected"."""
    wording = _WORDINGS.get(str(failure.validator), _other)
    return _cut(wording(failure.validator_value, failure), LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _shown(value: Any) -> str:
    text = ""
    for piece in _ENCODER.iterencode(value if not isinstance(value, str) else value[:_LONGEST_VALUE]):
        text += piece
        if len(text) > _LONGEST_VALUE:
            break
    return _cut(text, _LONGEST_VALUE)


def _listed(values: Any) -> str:
    shown = ", ".join(_shown(value) for value in values[:_MOST_VALUES])
    return shown if len(values) <= _MOST_VALUES else f"{shown}, … ({len(values)} in all)"


def _type(types: Any, _failure: ValidationError) -> str:
    return types if isinstance(types, str) else " or ".join(types)


def _counted(count: Any, what: str, plural: str) -> str:
    return f"{count} {what if count == 1 else plural}"


def _size(word: str, what: str, plural: str) -> Wording:
    return lambda bound, _failure: f"{word} {_counted(bound, what, plural)}"


def _number(word: str) -> Wording:
    return lambda bound, _failure: f"a number {word} {_shown(bound)}"


def _property(_rule: Any, failure: ValidationError) -> str:
    return f"the property {_shown(failure.message)}"


def _alternatives(rules: Any, failure: ValidationError) -> str:
    if failure.message:
        return f"no more than one of the {len(rules)} alternatives to fit"
    wanted: list[str] = []
    for missed in islice(failure.context or (), _MOST_DESCRIBED):
        # Where inside it failed would name members of the value; that it is inside says enough.
        words = f"inside, {expectation(missed)}" if missed.relative_path else expectation(missed)
        if words not in wanted:
            wanted.append(words)
    shown = " or ".join(wanted[:_MOST_ALTERNATIVES])
    return shown if len(wanted) <= _MOST_ALTERNATIVES else f"{shown} or one of {len(wanted) - _MOST_ALTERNATIVES} more"


def _name(_rule: Any, failure: ValidationError) -> str:
    wanted = failure.context[0] if failure.context else failure
    return f"another property name: {expectation(wanted) if wanted is not failure else 'of those allowed'}"


def _nothing_like_it(rule: Any, _failure: ValidationError) -> str:
    return "nothing here" if rule == {} else "a value that the schema under `not` does not accept"


def _other(_rule: Any, failure: ValidationError) -> str:
    return f"what the keyword {failure.validator} allows"


def _always(words: str) -> Wording:
    return lambda _rule, _failure: words


_WORDINGS: Final[dict[str, Wording]] = {
    "additionalItems": _always("no further items"),
    "additionalProperties": _always("no property of this name"),
    "anyOf": _alternatives,
    "const": lambda constant, _failure: f"exactly {_shown(constant.value)}",
    "contains": lambda least, _failure: f"at least {_counted(least, 'item', 'items')} that fit `contains`",
    "dependencies": _property,
    "dependentRequired": _property,
    "enum": lambda members, _failure: f"one of {_listed(members.values)}",
    "exclusiveMaximum": _number("below"),
    "exclusiveMinimum": _number("above"),
    "items": _always("no further items"),
    "maxContains": lambda most, _failure: f"at most {_counted(most, 'item', 'items')} that fit `contains`",
    "maxItems": _size("at most", "item", "items"),
    "maxLength": _size("at most", "character", "characters"),
    "maxProperties": _size("at most", "property", "properties"),
    "maximum": _number("of at most"),
    "minContains": lambda least, _failure: f"at least {_counted(least, 'item', 'items')} that fit `contains`",
    "minItems": _size("at least", "item", "items"),
    "minLength": _size("at least", "character", "characters"),
    "minProperties": _size("at least", "property", "properties"),
    "minimum": _number("of at least"),
    "multipleOf": lambda divisor, _failure: f"a multiple of {_shown(divisor)}",
    "not": _nothing_like_it,
    "oneOf": _alternatives,
    "pattern": lambda pattern, _failure: f"text matching {pattern.text}",
    "propertyNames": _name,
    "required": _property,
    "type": _type,
    "unevaluatedItems": _always("no further items"),
    "unevaluatedProperties": _always("no property of this name"),
    "uniqueItems": _always("items that all differ"),
}
