"""jsonschema's evaluator, once per dialect, with our keywords and nothing to fetch from.

The class is made by the library's own factory, so following references and dynamic scope are its code; what it reads
is the prepared copy of a schema that `positions` made. Whoever evaluates opens an allowance around it.
"""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import create
from referencing import Registry

from agentgate.tools.dialects import DRAFT_2020_12, Dialect, in_force
from agentgate.tools.keywords import KEYWORDS_2020_12, KEYWORDS_DRAFT_07
from agentgate.tools.spending import VISIT, spend


@cache
def evaluator(dialect: Dialect) -> Any:
    """Return the dialect's evaluator; it holds no schema, each evaluation is given one."""
    newest = dialect is DRAFT_2020_12
    library: Any = Draft202012Validator if newest else Draft7Validator
    keywords: Any = KEYWORDS_2020_12 if newest else KEYWORDS_DRAFT_07
    applicable: Any = partial(_applicable, dialect)
    made = create(
        meta_schema=library.META_SCHEMA,
        validators=keywords,
        type_checker=library.TYPE_CHECKER,
        format_checker=library.FORMAT_CHECKER,
        id_of=library.ID_OF,
        applicable_validators=applicable,
    )
    return made(schema={}, registry=Registry())


def failures(dialect: Dialect, value: Any, schema: Any, resolver: Any) -> Iterable[ValidationError]:
    """Evaluate a value against a prepared subschema, lazily.

    Args:
        dialect: of the schema.
        value: any JSON value.
        schema: prepared, from where ``resolver`` stands.
        resolver: knows the document and its identifiers.

    Raises:
        TooCostly: while it is read, when the open allowance is used up.
    """
    found: Iterable[ValidationError] = evaluator(dialect).descend(value, schema, resolver=resolver)
    return found


def _applicable(dialect: Dialect, schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    spend(VISIT)
    return in_force(schema, dialect).items()
