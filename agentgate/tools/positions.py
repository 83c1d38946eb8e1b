"""Every place of a schema that a value can be checked against: found, prepared, and bound together by references.

Preparing changes the private copy in place: patterns are compiled, constants get their keys, ``$schema`` goes (the
library would fall back to its own class on it), ``true`` and ``false`` become ``{}`` and ``{"not": {}}`` (the library
would enter the one for nothing, and print the value for the other). What a reference leads to is a place too, wherever
it lies; what cannot be reached inside the document is refused.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from referencing import Registry

from agentgate.canonical import pointer
from agentgate.tools.dialects import SCHEMA_KEYWORD, Dialect, applied_in_place, named_dialect, subschemas
from agentgate.tools.equality import Constant, Members
from agentgate.tools.patterns import Pattern, Patterned, Uncompilable, compile_pattern

MOST_PATTERNS: Final = 64  # distinct ones in a schema; the most that a real one has is 4
MOST_INSTRUCTIONS: Final = 500_000  # of all its patterns together
LONGEST_CHAIN: Final = 32  # subschemas applied in place, one inside another: stack at every level of the value

# Keywords of ours that know `true` and `false` themselves.
_PLAIN = frozenset({"additionalItems", "additionalProperties", "items", "unevaluatedItems", "unevaluatedProperties"})

Legal: TypeAlias = Callable[[Any, str], None]


class Refusal(Exception):
    """A schema cannot be used: where, why, and what would be accepted."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.path = path
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """One subschema: where it stands, its prepared form, and what resolves references from there."""

    path: str
    schema: dict[str, Any]
    resolver: Any


@dataclass(slots=True, kw_only=True)
class Document:
    """A schema's places by identity, and for each the places it applies in place, with the keyword that does.

    Args:
        dialect: of the whole document.
        registry: all it may refer to; nothing is ever added by asking.
        legal: called with what a reference leads to where the meta-schema has not looked yet.
        foreign: identities of prepared schemas outside the document (the meta-schemas).
    """

    dialect: Dialect
    registry: Any
    legal: Legal
    foreign: frozenset[int] = frozenset()
    positions: dict[int, Position] = field(default_factory=dict)
    edges: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    patterns: dict[str, Pattern] = field(default_factory=dict)


def survey(root: dict[str, Any], *, dialect: Dialect, known: Any, foreign: frozenset[int], legal: Legal) -> Document:
    """Find and prepare every place of a document and resolve its references.

    Args:
        root: a private copy; it is changed in place.
        dialect: of the whole document.
        known: a registry of what the document may refer to beside itself.
        foreign: identities of the schemas in ``known``.
        legal: raises `Refusal` for what the meta-schema does not accept.

    Raises:
        Refusal: a reference, a pattern or a recursion that cannot be checked.
    """
    resource = dialect.specification.create_resource(root)
    base = resource.id() or ""
    registry = Registry().combine(known).with_resource(base, resource).crawl()
    document = Document(dialect=dialect, registry=registry, legal=legal, foreign=foreign)
    _enter(document, root, "", registry.resolver(base))
    _bind(document)
    _check_descent(document)
    return document


def enter_foreign(document: Document, root: dict[str, Any], base: str) -> None:
    """Prepare a schema that others may refer to, without looking where its own references lead."""
    _enter(document, root, "", document.registry.resolver(base))


def _enter(document: Document, schema: dict[str, Any], path: str, resolver: Any) -> None:
    if id(schema) in document.positions:
        return
    document.positions[id(schema)] = Position(path=path, schema=schema, resolver=resolver)
    edges = document.edges.setdefault(id(schema), [])
    _prepare(document, schema, path)
    for keyword, container, place in subschemas(schema, document.dialect):
        if isinstance(container[place], bool) and keyword not in _PLAIN:
            container[place] = {} if container[place] else {"not": {}}
        inner = container[place]
        if isinstance(inner, dict):
            if applied_in_place(schema, keyword, document.dialect):
                edges.append((keyword, id(inner)))
            below = pointer(keyword) if container is schema else pointer(keyword, place)
            resource = document.dialect.specification.create_resource(inner)
            _enter(document, inner, path + below, resolver.in_subresource(resource))


def _prepare(document: Document, schema: dict[str, Any], path: str) -> None:
    if SCHEMA_KEYWORD in schema:
        if named_dialect(schema[SCHEMA_KEYWORD]) is not document.dialect:
            problem = "a dialect inside another"
            raise Refusal(path + pointer(SCHEMA_KEYWORD), problem, f"use {document.dialect.name} throughout")
        del schema[SCHEMA_KEYWORD]
    if "pattern" in schema:
        schema["pattern"] = _compiled(document, schema["pattern"], path + "/pattern")
    if "patternProperties" in schema:
        held = schema["patternProperties"]
        where = path + "/patternProperties"
        schema["patternProperties"] = Patterned(
            held, [_compiled(document, text, where + pointer(text)) for text in held]
        )
    if "enum" in schema:
        schema["enum"] = Members(tuple(schema["enum"]))
    for keyword in ("const", "default"):
        if keyword in schema:
            schema[keyword] = Constant(schema[keyword])


def _compiled(document: Document, text: str, path: str) -> Pattern:
    if text not in document.patterns:
        try:
            document.patterns[text] = compile_pattern(text)
        except Uncompilable as error:
            remedy = "write it without lookaround and backreferences, in ECMA-262 syntax, and smaller if it is large"
            raise Refusal(path, f"a pattern that cannot be used: {error.problem}", remedy) from None
        total = sum(pattern.size for pattern in document.patterns.values())
        if len(document.patterns) > MOST_PATTERNS or total > MOST_INSTRUCTIONS:
            raise Refusal(path, "too many or too large patterns", f"use at most {MOST_PATTERNS} simple ones")
    return document.patterns[text]


def _bind(document: Document) -> None:
    """Resolve every reference; what lies outside the known places becomes one, and is read in turn."""
    waiting = deque(document.positions.values())
    while waiting:
        position = waiting.popleft()
        for keyword in document.dialect.references:
            if keyword in position.schema:
                before = len(document.positions)
                _follow(document, position, keyword)
                waiting.extend(list(document.positions.values())[before:])
    _bind_dynamically(document)


def _follow(document: Document, position: Position, keyword: str) -> None:
    reference = position.schema[keyword]
    path = position.path + pointer(keyword)
    try:
        found = position.resolver.lookup(reference)
    except Exception:  # noqa: BLE001 - besides its own errors the library raises whatever a malformed URI provokes
        raise Refusal(path, "a reference that leads nowhere in this document", _WITHIN) from None
    if id(found.contents) in document.foreign or found.contents is True:
        return
    if not isinstance(found.contents, dict):
        raise Refusal(path, "a reference that leads to no schema", _WITHIN)
    if id(found.contents) not in document.positions:
        there = unquote(reference[1:]) if reference.startswith("#/") else path
        document.legal(found.contents, there)
        _enter(document, found.contents, there, found.resolver)
    document.edges[id(position.schema)].append((keyword, id(found.contents)))


_WITHIN = "lead it to a schema of this document, as in #/$defs/name; nothing is ever fetched"


def _bind_dynamically(document: Document) -> None:
    """Let a dynamic reference lead to every anchor of its name, because which one is only known at the value."""
    anchors: dict[str, list[int]] = {}
    for place, position in document.positions.items():
        if "$dynamicAnchor" in position.schema:
            anchors.setdefault(position.schema["$dynamicAnchor"], []).append(place)
    for place, position in document.positions.items():
        name = position.schema.get("$dynamicRef", "").rpartition("#")[2]
        targets = anchors.get(name, ()) if "$dynamicRef" in document.dialect.references else ()
        document.edges[place].extend(("$dynamicRef", target) for target in targets)


def _check_descent(document: Document) -> None:
    """Refuse a chain of subschemas on one value that returns to itself, or is deeper than the stack should carry."""
    length: dict[int, int] = {}
    for start in document.positions:
        open_: dict[int, Iterator[tuple[str, int]]] = {} if start in length else {start: iter(document.edges[start])}
        while open_:
            place, edges = next(reversed(open_.items()))
            step = next((target for _, target in edges if target not in length), None)
            if step is None:
                length[place] = 1 + max((length[target] for _, target in document.edges[place]), default=0)
                open_.popitem()
            elif step in open_ or len(open_) > LONGEST_CHAIN:
                _refuse_chain(document.positions[place].path, circular=step in open_)
            else:
                open_[step] = iter(document.edges[step])
        if length[start] > LONGEST_CHAIN:
            _refuse_chain(document.positions[start].path, circular=False)


def _refuse_chain(path: str, *, circular: bool) -> None:
    if circular:
        remedy = "let the recursion pass through properties or items, so that it ends with the value"
        raise Refusal(path, "a schema that applies itself to the same value, without end", remedy)
    problem = f"more than {LONGEST_CHAIN} subschemas applied to the same value, one inside another"
    raise Refusal(path, problem, "nest allOf, anyOf, oneOf and $ref less deeply")
