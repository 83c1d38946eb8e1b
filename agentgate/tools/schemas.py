"""Admitting a JSON Schema: what could hang, fetch, fail or be ignored at a call is refused when a tool is registered.

In order: a canonical form within bounds, a known dialect, the dialect's meta-schema, references that all stay inside
the document, patterns with a linear-time form, no endless recursion, defaults that can be judged. What is admitted is
a private copy; the caller's value is not kept. Checking values is `agentgate.tools.validation`.
"""

import json
from typing import Any, Final

from agentgate.canonical import DEFAULT_BOUNDS, Json, canonical, pointer, snapshot
from agentgate.errors import NotCanonical, SpecRefused
from agentgate.tools.declared import declarations
from agentgate.tools.defaults import admissible_defaults, merged_places
from agentgate.tools.dialects import DIALECTS, DRAFT_2020_12, SCHEMA_KEYWORD, Dialect, named_dialect
from agentgate.tools.expectations import expectation
from agentgate.tools.metaschemas import MOST_KEYWORDS, illegal, meta_schema
from agentgate.tools.positions import Document, Refusal, survey
from agentgate.tools.spending import TooCostly, allowance
from agentgate.tools.validation import CheckedSchema

__all__ = ["CheckedSchema", "admit"]

_SMALLER: Final = "split it, or shorten it"
_LONGEST_PATH: Final = 512  # characters of a refusal's pointer: a server may have written the schema
_A_NUMBER: Final = "use a number within ±(2^53-1), or leave the bound out"
# What `canonical` advises is for arguments; for what is a schema's own:
_REMEDIES: Final = {
    "depth": _SMALLER,
    "float_range": _A_NUMBER,
    "integer_range": _A_NUMBER,
    "nodes": _SMALLER,
    "size": _SMALLER,
}


def admit(schema: Json, *, tool: str, path: str = "/input_schema") -> CheckedSchema:
    """Find out whether values can be checked against a schema, always and cheaply.

    Args:
        schema: at most 256 KiB in canonical form, 64 levels, 10,000 values; draft 2020-12 where ``$schema`` is
            absent. It may be changed afterwards without effect.
        tool: whose schema it is, for the refusal.
        path: of the schema in the spec, which the refusal's pointer begins with.

    Raises:
        SpecRefused: with the place inside the schema, what is wrong there, and what would be accepted.
    """
    try:
        return _admitted(_private(schema))
    except Refusal as refusal:
        raise SpecRefused(tool, _cut(path + refusal.path), refusal.problem, refusal.remedy) from None
    except TooCostly:
        raise SpecRefused(tool, path, "too large to be checked", _SMALLER) from None
    except Exception as error:
        # design §4: what cannot be checked is refused, and the libraries below promise no closed list of errors.
        problem = f"a schema that cannot be read ({type(error).__name__})"
        raise SpecRefused(tool, path, problem, "simplify it until it can be") from error


def _cut(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"


def _private(schema: Json) -> Any:
    """Copy a schema with its members in canonical order, so that what is found first does not depend on spelling."""
    try:
        return json.loads(canonical(snapshot(schema, bounds=DEFAULT_BOUNDS)))
    except NotCanonical as refusal:
        remedy = _REMEDIES.get(refusal.reason, refusal.remedy)
        raise Refusal(refusal.path, f"no canonical form: {refusal.reason}", remedy) from None


def _admitted(copy: Any) -> CheckedSchema:
    dialect = _dialect(copy)
    with allowance(MOST_KEYWORDS):
        _check_legal(dialect, copy, "")
        meta = meta_schema(dialect)
        root = copy if isinstance(copy, dict) else {} if copy else {"not": {}}
        document = survey(
            root,
            dialect=dialect,
            known=meta.registry,
            foreign=meta.identities,
            legal=lambda found, where: _check_legal(dialect, found, where),
        )
    return _checked(document, root)


def _dialect(schema: Any) -> Dialect:
    if not isinstance(schema, dict) or SCHEMA_KEYWORD not in schema:
        return DRAFT_2020_12
    dialect = named_dialect(schema[SCHEMA_KEYWORD])
    if dialect is None:
        known = " or ".join(each.uri for each in DIALECTS)
        raise Refusal(pointer(SCHEMA_KEYWORD), "no dialect that is known here", f"write the schema in {known}")
    return dialect


def _check_legal(dialect: Dialect, schema: Any, where: str) -> None:
    failure = illegal(dialect, schema)
    if failure is not None:
        remedy = f"{dialect.name} expects {expectation(failure)}"
        raise Refusal(where + pointer(*failure.relative_path), f"no {dialect.name} schema", remedy)


def _checked(document: Document, root: dict[str, Any]) -> CheckedSchema:
    fills, refused = admissible_defaults(document)
    names, patterns, every = declarations(document, root)
    return CheckedSchema(
        dialect=document.dialect,
        root=root,
        resolver=document.positions[id(root)].resolver,
        positions=document.positions,
        merged=merged_places(document),
        fills=fills,
        refused_defaults=refused,
        names=names,
        name_patterns=patterns,
        open=every,
    )
