"""The dialects' own schemas, against which every schema is checked before anything else reads it.

They are the published documents, prepared like any other; a schema may refer to those of its own dialect. Being
evaluated by our keywords, they say where a schema is wrong and what was expected there. Draft 2020-12's is spread over
seven vocabularies that each look at every subschema; what checks is one document merged from them, five times faster.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final
from urllib.parse import urljoin

from jsonschema.exceptions import ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it ships no types
from referencing import Registry

from agentgate.tools.dialects import Dialect
from agentgate.tools.evaluation import failures
from agentgate.tools.positions import Document, enter_foreign

MOST_KEYWORDS: Final = 250_000  # of checking one schema of the largest size


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaSchema:
    """One dialect's meta-schema and its vocabularies, prepared.

    Args:
        schema: all that it demands, in one document.
        resolver: stands at that document.
        registry: what a schema of this dialect may refer to.
        identities: of every object in it.
    """

    schema: dict[str, Any]
    resolver: Any
    registry: Any
    identities: frozenset[int]


@cache
def meta_schema(dialect: Dialect) -> MetaSchema:
    """Prepare a dialect's meta-schema, once in a process."""
    published: dict[str, Any] = {uri: _copy(REGISTRY.contents(uri)) for uri in REGISTRY if _belongs(uri, dialect)}
    whole = _merged(published, dialect)
    registry = _prepared(published, dialect)
    return MetaSchema(
        schema=whole,
        resolver=_prepared({"": whole}, dialect).resolver(),
        registry=registry,
        identities=frozenset(id(each) for contents in published.values() for each in _objects(contents)),
    )


def illegal(dialect: Dialect, schema: Any) -> ValidationError | None:
    """Find what a meta-schema does not accept; None when the schema is one of the dialect."""
    meta = meta_schema(dialect)
    return next(islice(failures(dialect, schema, meta.schema, meta.resolver), 1), None)


def _prepared(documents: dict[str, Any], dialect: Dialect) -> Any:
    resources = [(uri, dialect.specification.create_resource(contents)) for uri, contents in documents.items()]
    registry: Any = Registry().with_resources(resources).crawl()
    document = Document(dialect=dialect, registry=registry, legal=lambda _schema, _path: None)
    for uri, contents in documents.items():
        enter_foreign(document, contents, uri)
    return registry


def _merged(published: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Write the meta-schema and the vocabularies it combines as one document, which refers only to itself."""
    main = published[dialect.uri]
    parts = [published[urljoin(dialect.uri, each["$ref"])] for each in main.get("allOf", ())]
    merged: dict[str, Any] = {"type": main["type"], "properties": {}, "$defs": {}, "definitions": {}}
    for part in (*parts, main):
        for keyword in ("properties", "$defs", "definitions"):
            merged[keyword].update(part.get(keyword, {}))
    rewritten: dict[str, Any] = _inward(_copy(merged))
    return rewritten


def _inward(value: Any) -> Any:
    """Turn every reference to the reference of that name in the same document."""
    if isinstance(value, list):
        return [_inward(each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {keyword: _inward(each) for keyword, each in value.items() if keyword != "$dynamicRef"}
    if isinstance(value.get("$ref"), str):
        inner["$ref"] = f"#{value['$ref'].partition('#')[2]}"
    return {**inner, "$ref": "#"} if isinstance(value.get("$dynamicRef"), str) else inner


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _belongs(uri: str, dialect: Dialect) -> bool:
    family = dialect.uri.removesuffix("schema")
    return uri == dialect.uri or uri.startswith(f"{family}meta/")


def _objects(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)
