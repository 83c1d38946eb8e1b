"""What ``Annotated`` says beside a type: a description, and bounds as annotated_types or pydantic write them.

Recognised by their class's name, so that neither package is imported. Metadata that is not understood is refused:
a bound silently dropped would accept what the author refused.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from agentgate.canonical import Json, snapshot
from agentgate.errors import NotCanonical
from agentgate.tools.forms import Site

_BOUNDS = {
    "Ge": ("ge", "minimum"),
    "Gt": ("gt", "exclusiveMinimum"),
    "Le": ("le", "maximum"),
    "Lt": ("lt", "exclusiveMaximum"),
    "MultipleOf": ("multiple_of", "multipleOf"),
    "MinLen": ("min_length", "min"),
    "MaxLen": ("max_length", "max"),
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_NUMBERS = ("integer", "number")
_REMEDY = "use one text, annotated_types' bounds, or Field(description=..., ge=...)"


def keywords(metadata: Iterable[object], schema: dict[str, Json], site: Site) -> dict[str, Json]:
    """Return the schema keywords that an ``Annotated`` hint adds to its type's schema.

    Raises:
        SpecRefused: metadata that is not understood, said twice, or that does not apply to the type.
    """
    added: dict[str, Json] = {}
    for item in _flat(metadata, site):
        name, value = _keyword(item, schema.get("type"), site)
        if name in added or (name in schema and name != "description"):
            raise site.refusal(f"{name} is said twice", "say it once")
        added[name] = value
    return added


def _flat(metadata: Iterable[object], site: Site) -> Iterator[object]:
    """Unfold groups (``Len``, ``Interval``) and pydantic's ``Field`` into single statements."""
    for item in metadata:
        kind = type(item)
        if kind.__module__ == "annotated_types" and isinstance(item, Iterable):
            yield from _flat(item, site)
        elif (kind.__module__, kind.__name__) == ("pydantic.fields", "FieldInfo"):
            yield from _flat(_field(item, site), site)
        else:
            yield item


def _field(item: Any, site: Site) -> list[object]:
    if not item.is_required() or item.alias is not None or item.validation_alias is not None:
        raise site.refusal("a Field with a default or an alias", "write the default and the name in the signature")
    described = [] if item.description is None else [item.description]
    return [*described, *item.metadata]


def _keyword(item: object, kind: Json, site: Site) -> tuple[str, Json]:
    if type(item) is str:
        return "description", item
    name = type(item).__name__
    pattern = vars(item).get("pattern") if name == "_PydanticGeneralMetadata" else None
    if type(pattern) is str and set(vars(item)) == {"pattern"} and kind == "string":
        return "pattern", pattern
    if type(item).__module__ != "annotated_types" or name not in _BOUNDS:
        raise site.refusal(f"Annotated holds {name}, which is not understood", _REMEDY)
    field, keyword = _BOUNDS[name]
    if keyword in ("min", "max"):
        if kind not in _LENGTHS:
            raise site.refusal(f"{name} does not apply to this type", "bound the type inside the alternative")
        keyword += _LENGTHS[str(kind)]
    elif kind not in _NUMBERS:
        raise site.refusal(f"{name} does not apply to this type", "bound a number, inside the alternative")
    return keyword, _bound(getattr(item, field), site)


def _bound(value: object, site: Site) -> Json:
    try:
        bound = snapshot(value)
    except NotCanonical as error:
        raise site.refusal("a bound that is no JSON number", error.remedy) from error
    if type(bound) is not int and type(bound) is not float:
        raise site.refusal("a bound that is no JSON number", "give an int or a float")
    return bound
