"""Hints that are pydantic models: their schema and their building are pydantic's own, found without importing it.

What pydantic writes may change with its version, and with it the spec's digest: that is a new spec, as it should be.
"""

from typing import Any

from agentgate.canonical import Json, canonical, pointer, snapshot
from agentgate.errors import NotCanonical
from agentgate.tools.forms import Form, Site, unbuildable


def is_model(hint: object) -> bool:
    """Tell a pydantic model class by what it can do."""
    return isinstance(hint, type) and all(
        callable(getattr(hint, name, None)) for name in ("model_json_schema", "model_validate_json")
    )


def model_form(model: Any, site: Site) -> Form:
    """Return a model's form; what its schema defines moves to the root, where its references point.

    Raises:
        SpecRefused: pydantic cannot write the schema, or another model of that name is defined otherwise.
    """
    try:
        schema = snapshot(model.model_json_schema())
    except NotCanonical as error:
        raise site.refusal(f"pydantic's schema is no JSON ({error.reason})", error.remedy) from error
    except Exception as error:
        raise site.refusal("pydantic cannot write its schema", "write the schema by hand") from error
    assert isinstance(schema, dict)  # pydantic writes an object for every model
    definitions = schema.pop("$defs", {})
    assert isinstance(definitions, dict)  # the same
    for name, definition in definitions.items():
        if site.definitions.setdefault(name, definition) != definition:
            raise site.refusal(f"two models are called {name!r}", "give one of them another name")

    def build(value: Json, path: str) -> object:
        try:
            return model.model_validate_json(canonical(value))
        except Exception as error:  # noqa: BLE001 - the model's validators are the caller's code
            where, expected = _first(error)
            raise unbuildable(path + where, expected) from None  # the cause quotes the value

    return Form(schema=schema, build=build)


def _first(error: Any) -> tuple[str, str]:
    """Return where and what was expected, from the first of pydantic's findings; never the input."""
    try:
        finding = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return pointer(*finding["loc"]), f"what the model accepts ({finding['type']})"
    except Exception:  # noqa: BLE001 - a validator may raise anything, also something without findings
        return "", "what the model accepts"
