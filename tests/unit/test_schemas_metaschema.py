"""The merged meta-schema says yes and no exactly where the published ones do."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema.exceptions import SchemaError

from agentgate.tools.dialects import DIALECTS, DRAFT_07, Dialect
from agentgate.tools.metaschemas import MOST_KEYWORDS, illegal, meta_schema
from agentgate.tools.spending import allowance

WRONG: tuple[Any, ...] = (7, -1, "x", None, True, [], ["a", "a"], {}, {"a": 7}, [{}], [7], 0.5)


def published(dialect: Dialect, schema: Any) -> bool:
    library: Any = jsonschema.Draft7Validator if dialect is DRAFT_07 else jsonschema.Draft202012Validator
    try:
        library.check_schema(schema, format_checker=None)
    except SchemaError:
        return False
    return True


def merged(dialect: Dialect, schema: Any) -> bool:
    with allowance(MOST_KEYWORDS):
        return illegal(dialect, schema) is None


def keywords(dialect: Dialect) -> list[str]:
    return sorted(meta_schema(dialect).schema["properties"])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_keyword_with_every_wrong_value_is_judged_alike(dialect: Dialect) -> None:
    names = keywords(dialect)
    assert len(names) > 40
    for name in names:
        for value in WRONG:
            for schema in ({name: value}, {"properties": {"p": {name: value}}}, {"not": {name: value}}):
                assert merged(dialect, schema) == published(dialect, schema), schema


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_keyword_with_a_schema_in_every_shape_is_judged_alike(dialect: Dialect) -> None:
    for name in keywords(dialect):
        for inner in ({"type": "any"}, {"type": "string"}, False, 7):
            for value in (inner, [inner], {"k": inner}, [[inner]]):
                assert merged(dialect, {name: value}) == published(dialect, {name: value}), (name, value)


def damaged(schema: Any) -> Iterator[Any]:
    """Copies of a schema, each with one value replaced by one that is mostly wrong there."""
    places: list[tuple[Any, ...]] = [()]
    for place in places:
        held = schema
        for step in place:
            held = held[step]
        steps = held if isinstance(held, dict) else range(len(held)) if isinstance(held, list) else ()
        places.extend((*place, step) for step in steps)
    for number, place in enumerate(places[1:40]):
        broken = copy.deepcopy(schema)
        held = broken
        for step in place[:-1]:
            held = held[step]
        held[place[-1]] = WRONG[number % len(WRONG)]
        yield broken


def test_real_schemas_whole_and_damaged_are_judged_alike(corpora: Path) -> None:
    lines = (corpora / "tools" / "tools.jsonl").read_text("utf-8").splitlines()
    judged = 0
    for line in lines[::40]:
        schema = json.loads(line)["schema"]
        for each in (schema, *damaged(schema)):
            dialect = DRAFT_07 if isinstance(each, dict) and "draft-07" in str(each.get("$schema")) else DIALECTS[0]
            assert merged(dialect, each) == published(dialect, each), each
            judged += 1
    assert judged > 1_000
