"""Filling in defaults: an algorithm that is part of the format, because what it returns is hashed as the arguments.

Input: a schema S of a known dialect, and a JSON value V. Output: the completed value.

0. In draft-07 a schema with ``$ref`` consists of that keyword alone; what stands beside it does not exist.
1. A **default is admissible** when it stands in a subschema that accepts it (formats not asserted). Defaults that are
   not admissible are never filled; they are listed by `refused_defaults`.
2. The **sources** of a list of schemas, for one object: go through the list in order; a schema that is an object and
   was not met before is a source, followed by the sources of its ``$ref``, then by those of its ``allOf`` members in
   order. ``$dynamicRef``, anyOf, oneOf, not, if/then/else and dependentSchemas lead nowhere.
3. **fill(list, V)**: if V is no object, it is as it is. Else let its sources be s₁ … sₙ.
   a. For each source in order, for each name of its ``properties`` in code point order: if V had no such member and
      none was added, and that property's subschema has an admissible default, add a member of that name with the
      default as it stands. It is not completed itself.
   b. For each member that V had, replace its value W by fill(list of the subschemas that the sources' ``properties``
      hold for that name, in order, W). Items of arrays are not entered.
4. The result of fill([S], V) is the completed value, with two exceptions, in which V is: more than 20,000 sources were
   met in all, or the members added have more than 262,144 bytes together, each counted as the canonical form of its
   name and of its default; and S accepts V but not the result (a default may clash with maxProperties, oneOf, not, …):
   filling never turns a valid value invalid.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentgate.canonical import Json, canonical
from agentgate.tools.dialects import Dialect, in_force
from agentgate.tools.evaluation import failures
from agentgate.tools.positions import Document, Position, Refusal
from agentgate.tools.spending import TooCostly, allowance
from agentgate.tools.validation import CheckedSchema, check

MOST_SOURCES: Final = 20_000
MOST_BYTES: Final = 262_144


class _TooMuch(Exception):
    """Step 4's first exception."""


@dataclass(slots=True)
class _Filling:
    schema: CheckedSchema
    sources: int = 0
    size: int = 0


def complete(schema: CheckedSchema, value: Json) -> Json:
    """Fill a value's missing members from the schema's defaults, as this module's docstring defines.

    Args:
        schema: as admitted.
        value: is not changed.

    Returns:
        The completed value; the very ``value`` where there is nothing to fill. It may be larger and deeper than the
        value was: whoever bounds values bounds this one too.
    """
    if not schema.fills:
        return value
    try:
        completed = _fill(_Filling(schema), (schema.root,), value)
    except _TooMuch:
        return value
    if completed is not value and check(schema, completed) and not check(schema, value):
        return value
    return completed


def refused_defaults(schema: CheckedSchema) -> tuple[str, ...]:
    """Return pointers into the schema to the defaults that their own subschemas refuse, to warn operators of."""
    return schema.refused_defaults


def admissible_defaults(document: Document) -> tuple[Mapping[int, tuple[tuple[str, bytes], ...]], tuple[str, ...]]:
    """Judge every default of a document by its own subschema.

    Returns:
        For each place with properties that have admissible defaults: those, by name, in canonical form. And pointers
        to the defaults that are not admissible, sorted.

    Raises:
        Refusal: judging them costs more than a check may.
    """
    admissible: set[int] = set()
    refused: list[str] = []
    try:
        with allowance():
            for place, position in document.positions.items():
                if _is_stated(position, document):
                    if _is_accepted(position, document):
                        admissible.add(place)
                    else:
                        refused.append(f"{position.path}/default")
    except TooCostly:
        raise Refusal("", "defaults that cost too much to check", "state smaller ones, or fewer") from None
    fills = {
        place: filled
        for place, position in document.positions.items()
        if (filled := tuple(_fills(_properties(position.schema, document.dialect), admissible)))
    }
    return fills, tuple(sorted(refused))


def merged_places(document: Document) -> Mapping[int, tuple[int, ...]]:
    """List, for each place, the places whose properties count as its own: of its ``$ref``, then of its ``allOf``."""
    return {
        place: tuple(target for wanted in ("$ref", "allOf") for keyword, target in edges if keyword == wanted)
        for place, edges in document.edges.items()
        if any(keyword in ("$ref", "allOf") for keyword, _ in edges)
    }


def _is_stated(position: Position, document: Document) -> bool:
    return "default" in in_force(position.schema, document.dialect)


def _is_accepted(position: Position, document: Document) -> bool:
    default = position.schema["default"].value
    try:
        found = failures(document.dialect, default, position.schema, position.resolver)
        return next(iter(found), None) is None
    except TooCostly:
        raise
    except Exception:  # noqa: BLE001 - what the validator cannot judge is never filled in
        return False


def _fills(properties: Mapping[str, Any], admissible: set[int]) -> Iterator[tuple[str, bytes]]:
    for name in sorted(properties):
        if id(properties[name]) in admissible:
            yield name, canonical(properties[name]["default"].value)


def _fill(filling: _Filling, schemas: Sequence[Any], value: Json) -> Json:
    if not isinstance(value, dict) or not schemas:
        return value
    sources: dict[int, dict[str, Any]] = {}
    for schema in schemas:
        _collect(filling, schema, sources)
    added = _additions(filling, sources, value)
    changed: dict[str, Json] = {}
    properties = [_properties(source, filling.schema.dialect) for source in sources.values()]
    for name, inner in _inner(properties, value).items():
        completed = _fill(filling, inner, value[name])
        if completed is not value[name]:
            changed[name] = completed
    return {**value, **changed, **added} if added or changed else value


def _collect(filling: _Filling, schema: Any, sources: dict[int, dict[str, Any]]) -> None:
    if not isinstance(schema, dict) or id(schema) in sources:
        return
    filling.sources += 1
    if filling.sources > MOST_SOURCES:
        raise _TooMuch
    sources[id(schema)] = schema
    for place in filling.schema.merged.get(id(schema), ()):
        _collect(filling, filling.schema.positions[place].schema, sources)


def _additions(filling: _Filling, sources: Mapping[int, Any], value: Mapping[str, Json]) -> dict[str, Json]:
    added: dict[str, Json] = {}
    for place in sources:
        for name, default in filling.schema.fills.get(place, ()):
            if name not in value and name not in added:
                filling.size += len(canonical(name)) + len(default)
                if filling.size > MOST_BYTES:
                    raise _TooMuch
                added[name] = json.loads(default)
    return added


def _inner(sources: Iterable[Mapping[str, Any]], value: Mapping[str, Json]) -> dict[str, list[Any]]:
    """Find the subschemas that the sources' properties hold for the members that are there, in order."""
    inner: dict[str, list[Any]] = {}
    for properties in sources:
        smaller = properties if len(properties) < len(value) else value
        for name in smaller:
            if name in properties and name in value:
                inner.setdefault(name, []).append(properties[name])
    return inner


def _properties(schema: Mapping[str, Any], dialect: Dialect) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = in_force(schema, dialect).get("properties", {})
    return properties
