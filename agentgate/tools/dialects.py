"""The JSON Schema dialects that are known: which keywords hold subschemas, and which of those see the same value.

Two, because the official test suite at hand proves two, and every real schema seen is of one of them. Another dialect
is refused rather than checked by rules nobody tried on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from referencing import Specification
from referencing.jsonschema import DRAFT7, DRAFT202012

SCHEMA_KEYWORD: Final = "$schema"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """One dialect's shape.

    Args:
        name: as people call it.
        uri: of its meta-schema, without fragment.
        specification: how `referencing` finds its identifiers and anchors.
        one: keywords whose value is a subschema.
        many: keywords whose value is an array of subschemas.
        named: keywords whose value is an object of subschemas.
        in_place: keywords that apply their subschema to the same value.
        references: keywords that name a subschema elsewhere.
        lonely_ref: whether ``$ref`` makes its siblings void.
    """

    name: str
    uri: str
    specification: Any
    one: frozenset[str]
    many: frozenset[str]
    named: frozenset[str]
    in_place: frozenset[str]
    references: tuple[str, ...]
    lonely_ref: bool


_ONE = frozenset({"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"})
_MANY = frozenset({"allOf", "anyOf", "oneOf"})
_NAMED = frozenset({"definitions", "patternProperties", "properties"})
_IN_PLACE = frozenset({"$ref", "allOf", "anyOf", "else", "if", "not", "oneOf", "then"})


def _subresources_07(contents: Any) -> Iterator[Any]:
    """Find draft-07's subschemas; the library's own search fails on ``dependencies`` that mix schemas and names."""
    if isinstance(contents, dict):
        yield from (container[place] for _, container, place in subschemas(contents, DRAFT_07))


_specify: Any = Specification  # its constructor is made by attrs, where mypy does not see it
_SPECIFICATION_07 = _specify(
    name=DRAFT7.name,
    id_of=DRAFT7.id_of,
    subresources_of=_subresources_07,
    maybe_in_subresource=DRAFT7.maybe_in_subresource,
    anchors_in=lambda _specification, contents: DRAFT7.anchors_in(contents),
)

DRAFT_2020_12: Final = Dialect(
    name="draft 2020-12",
    uri="https://json-schema.org/draft/2020-12/schema",
    specification=DRAFT202012,
    one=_ONE | {"unevaluatedItems", "unevaluatedProperties"},
    many=_MANY | {"prefixItems"},
    named=_NAMED | {"$defs", "dependentSchemas"},
    in_place=_IN_PLACE | {"$dynamicRef", "dependentSchemas"},
    references=("$ref", "$dynamicRef"),
    lonely_ref=False,
)
DRAFT_07: Final = Dialect(
    name="draft-07",
    uri="http://json-schema.org/draft-07/schema",
    specification=_SPECIFICATION_07,
    one=_ONE | {"additionalItems"},
    many=_MANY | {"items"},
    named=_NAMED | {"dependencies"},
    in_place=_IN_PLACE | {"dependencies"},
    references=("$ref",),
    lonely_ref=True,
)
DIALECTS: Final = (DRAFT_2020_12, DRAFT_07)

_BY_URI = {dialect.uri.partition("://")[2]: dialect for dialect in DIALECTS}


def named_dialect(uri: object) -> Dialect | None:
    """Find the dialect that a ``$schema`` names; http and https, with and without an empty fragment, are the same."""
    if not isinstance(uri, str):
        return None
    scheme, _, rest = uri.removesuffix("#").partition("://")
    return _BY_URI.get(rest) if scheme in ("http", "https") else None


def subschemas(schema: dict[str, Any], dialect: Dialect) -> Iterator[tuple[str, Any, str | int]]:
    """Find where a schema holds subschemas.

    Returns:
        For each: the keyword, the container that holds it, and its place in that container.
    """
    for keyword, value in schema.items():
        if isinstance(value, dict | bool) and keyword in dialect.one:
            yield keyword, schema, keyword
        elif isinstance(value, list) and keyword in dialect.many:
            yield from ((keyword, value, place) for place in range(len(value)))
        elif isinstance(value, dict) and keyword in dialect.named:
            # draft-07's `dependencies` holds arrays of names beside subschemas
            yield from ((keyword, value, name) for name, held in value.items() if isinstance(held, dict | bool))


def in_force(schema: Mapping[str, Any], dialect: Dialect) -> Mapping[str, Any]:
    """Return the keywords of a schema that count: in draft-07 a ``$ref`` alone where there is one."""
    return {"$ref": schema["$ref"]} if dialect.lonely_ref and "$ref" in schema else schema


def applied_in_place(schema: Mapping[str, Any], keyword: str, dialect: Dialect) -> bool:
    """Tell whether a keyword's subschema is applied to the very value the schema is applied to."""
    return keyword in dialect.in_place and keyword in in_force(schema, dialect)
