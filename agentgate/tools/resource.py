"""Resource templates: which thing in the world a call touches, as text that two calls can be compared by.

Literal text and ``{name}`` of a required root argument, percent-encoded; nothing else of a format language, so a
template can neither reach into a value nor be steered by one. Two different argument lists may still give one
text (``{a}{b}``): that only ever makes two calls wait for each other.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote

from agentgate.canonical import Json, pointer
from agentgate.errors import NotPossible, SpecRefused
from agentgate.tools.names import is_unseen

MAX_TEMPLATE = 512
_MAX_REFERENCES = 16
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[^\s{}.!:\[\]]+")
_WHOLE = frozenset({"string", "integer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A parsed template.

    Args:
        text: as the spec states it.
        parts: literal text and argument names in turn, beginning and ending with literal text.
    """

    text: str
    parts: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the arguments it reads, in order of use."""
        return self.parts[1::2]


def parse_template(text: object, *, tool: str) -> Template:
    """Read a template, or refuse what is not literal text and ``{name}``.

    Raises:
        SpecRefused: empty, too long, invisible characters, a stray or doubled brace, or a field of a format language.
    """
    path = "/resource"
    if type(text) is not str or not text:
        raise SpecRefused(tool, path, "no text, or an empty one", "write it like 'account:{account}', or leave it out")
    if len(text) > MAX_TEMPLATE:
        raise SpecRefused(tool, path, f"longer than {MAX_TEMPLATE} characters", "shorten the literal text")
    if any(map(is_unseen, text)):
        raise SpecRefused(tool, path, "control or invisible characters", "use only characters that can be seen")
    parts = tuple(_PLACEHOLDER.split(text))
    if any(brace in literal for literal in parts[::2] for brace in "{}"):
        raise SpecRefused(tool, path, "a brace that is no {name}", "braces cannot be literal; use another character")
    for name in parts[1::2]:
        if not _NAME.fullmatch(name):
            raise SpecRefused(tool, path, f"{{{name}}} is no argument's name", "write {name} of a root argument alone")
    return Template(text=text, parts=parts)


def check_template(template: Template, schema: Json, *, tool: str) -> None:
    """Refuse a template that some accepted arguments could not fill in.

    Args:
        template: what `parse_template` gave.
        schema: the input schema, already admitted.
        tool: for the refusal.

    Raises:
        SpecRefused: an argument that is not required at the root, or not always a text or whole number.
    """
    if not template.names:
        return
    root = _referenced(schema, schema)
    if root.get("type") not in ("object", ["object"]):
        raise SpecRefused(tool, "/resource", "the root is not always an object", 'state "type": "object" there')
    required, properties = root.get("required"), root.get("properties")
    for name in template.names:
        if not isinstance(required, list) or name not in required:
            raise SpecRefused(tool, "/resource", f"argument {name!r} is not required", "require it, or use another one")
        declared = properties.get(name) if isinstance(properties, dict) else None
        if not _is_whole(_referenced(declared, schema)):
            raise SpecRefused(
                tool,
                f"/input_schema/properties{pointer(name)}",
                "the resource reads it, and it is not always a string or an integer",
                'state "type": "string" or "integer" there',
            )


def expand(template: Template, arguments: Json) -> str:
    """Return the resource that these arguments name.

    Args:
        template: checked against the schema that accepted the arguments.
        arguments: completed and validated.

    Raises:
        NotPossible: an argument is missing or neither text nor whole number: they were not validated.
    """
    given = arguments if isinstance(arguments, dict) else {}
    parts = list(template.parts)
    for index, name in enumerate(template.names):
        value = given.get(name)
        if type(value) is float and value.is_integer():
            value = int(value)  # from 1e21 on a whole number is a float in canonical form
        if type(value) is not str and type(value) is not int:
            raise NotPossible(
                f"resource {template.text!r}", "be expanded", f"without a text or number {name!r}", "validate first"
            )
        parts[2 * index + 1] = quote(str(value), safe="")
    return "".join(parts)


def _referenced(schema: Json, document: Json) -> dict[str, Json]:
    """Follow local ``$ref``s: draft-07 ignores what stands beside one, so only the target counts in every draft."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if reference is None:
            return schema
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        schema = _pointed(document, reference[1:])
    return {}


def _pointed(document: Json, path: str) -> Json:
    """Walk a JSON Pointer through objects; anything else (an anchor, a list) finds nothing."""
    found = document
    for step in path.split("/")[1:]:
        if not isinstance(found, dict):
            return None
        found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found if path[:1] in ("", "/") else None


def _is_whole(schema: dict[str, Json]) -> bool:
    """Tell whether everything the subschema accepts is a text or a whole number."""
    stated = schema.get("type")
    kinds = stated if isinstance(stated, list) else [stated]
    if stated is not None:
        return bool(kinds) and all(isinstance(kind, str) and kind in _WHOLE for kind in kinds)
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    return isinstance(listed, list) and bool(listed) and all(type(value) in (str, int) for value in listed)
