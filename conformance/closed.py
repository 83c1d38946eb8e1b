"""The few words of JSON Schema that `case.schema.json` is written in, so that the runner needs no library.

A word that is not known here is an error: a schema must not say what nobody checks.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

ANNOTATIONS = frozenset({"$schema", "$defs", "title", "description"})
TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
}


def faults(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Say where a value is not what the schema allows, and why."""
    for word, said in schema.items():
        if word == "$ref":
            yield from faults(value, _found(said, root), root, path)
        elif word == "oneOf":
            yield from _one_of(value, said, root, path)
        elif word in _CHECKS:
            yield from (f"{path or '/'}: {fault}" for fault in _CHECKS[word](value, said))
        elif word not in _WALKED | ANNOTATIONS:
            raise ValueError(f"the schema says {word!r}, which this validator does not know")
    yield from _inside(value, schema, root, path)


def _found(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    known: Mapping[str, Any] = found
    return known


def _one_of(value: Any, branches: list[Any], root: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield nothing where exactly one branch fits, else what is wrong with the one that came nearest."""
    fitting = [branch for branch in branches if next(faults(value, branch, root, path), None) is None]
    if len(fitting) != 1:
        found = [list(faults(value, branch, root, path)) for branch in branches]
        named = [wrong for wrong in found if not any(fault.startswith(f"{path}/op:") for fault in wrong)]
        yield from min(named, key=len) if named else [f"{path}/op: none of the operations"]


def _inside(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from faults(item, schema["items"], root, f"{path}/{index}")
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in known or isinstance(others, dict):
                yield from faults(item, known.get(name, others), root, f"{path}/{name}")
            elif others is False:
                yield f"{path}/{name}: unknown"


def _type(value: Any, said: str) -> Iterator[str]:
    if not isinstance(value, TYPES[said]) or (isinstance(value, bool) and said != "boolean"):
        yield f"no {said}"


def _same(value: Any, said: Any) -> Iterator[str]:
    if type(value) is not type(said) or value != said:
        yield f"not {said!r}"


def _enum(value: Any, said: list[Any]) -> Iterator[str]:
    if value not in said:
        yield f"none of {said}"


def _pattern(value: Any, said: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(said.replace("$", r"\Z"), value):
        yield f"not of the form {said}"


def _minimum(value: Any, said: int) -> Iterator[str]:
    if isinstance(value, int) and value < said:
        yield f"less than {said}"


def _required(value: Any, said: list[str]) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"without {name!r}" for name in said if name not in value)


def _fewest(value: Any, said: int) -> Iterator[str]:
    if isinstance(value, dict) and len(value) < said:
        yield f"fewer than {said} members"


def _most(value: Any, said: int) -> Iterator[str]:
    if isinstance(value, dict) and len(value) > said:
        yield f"more than {said} members"


_WALKED = frozenset({"properties", "additionalProperties", "items"})
_CHECKS = {
    "type": _type,
    "const": _same,
    "enum": _enum,
    "pattern": _pattern,
    "minimum": _minimum,
    "required": _required,
    "minProperties": _fewest,
    "maxProperties": _most,
}
