"""Which argument names a schema declares at its root, so that a call cannot smuggle in ones it does not.

*Declared* is a name in ``properties``, or one that matches ``patternProperties``, of the root or of a subschema that
applies to the same value: through $ref, $dynamicRef, allOf, anyOf, oneOf, if/then/else and dependent schemas, not
through not. An explicit ``additionalProperties`` or ``unevaluatedProperties`` other than false declares every name.
Whether a declared argument is acceptable is `validation`'s business.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agentgate.canonical import Json
from agentgate.tools.dialects import in_force
from agentgate.tools.patterns import Pattern
from agentgate.tools.positions import Document
from agentgate.tools.spending import TooCostly, allowance
from agentgate.tools.validation import CheckedSchema


def undeclared(schema: CheckedSchema, value: Json) -> tuple[str, ...]:
    """Tell which root arguments the schema does not name.

    Args:
        schema: as admitted.
        value: the arguments; what is no object has no names.

    Returns:
        The names, in code point order. A name that would cost too much to match counts as not declared.
    """
    if schema.open or not isinstance(value, dict):
        return ()
    unnamed = sorted(name for name in value if name not in schema.names)
    if not schema.name_patterns:
        return tuple(unnamed)
    with allowance():
        return tuple(name for name in unnamed if not _matched(schema.name_patterns, name))


def declarations(document: Document, root: dict[str, Any]) -> tuple[frozenset[str], tuple[Pattern, ...], bool]:
    """Collect what a document declares at its root: names, patterns of names, and whether every name is declared."""
    names: set[str] = set()
    patterns: dict[str, Pattern] = {}
    every = False
    for schema in (in_force(each, document.dialect) for each in _applied(document, root)):
        names.update(schema.get("properties", ()))
        patterns.update((pattern.text, pattern) for pattern in _patterns(schema))
        every = every or any(
            schema.get(keyword, False) is not False for keyword in ("additionalProperties", "unevaluatedProperties")
        )
    return frozenset(names), tuple(patterns.values()), every


def _patterns(schema: Mapping[str, Any]) -> tuple[Pattern, ...]:
    return schema["patternProperties"].patterns if "patternProperties" in schema else ()


def _applied(document: Document, root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [id(root)]
    met = set(waiting)
    while waiting:
        place = waiting.pop()
        yield document.positions[place].schema
        for keyword, target in document.edges[place]:
            if keyword != "not" and target not in met:
                met.add(target)
                waiting.append(target)


def _matched(patterns: tuple[Pattern, ...], name: str) -> bool:
    try:
        return any(pattern.found_in(name) for pattern in patterns)
    except TooCostly:
        return False
