"""What one type hint means: the JSON Schema of its values, and how such a value is built from JSON.

The algorithm is ours and fixed, because its output is hashed: the same hint gives the same bytes on every Python
and in every process. Hence alternatives and literals are sorted by their canonical bytes (``typing`` keeps
``Optional[Literal["a", "b"]]`` and ``["b", "a"]`` under one cache key, so the order seen depends on what was
imported before), nested types are written in place, and nothing comes from a type's name or docstring.

    str · int · float · bool · None · Any     a type; a float is built from whole numbers too; Any accepts all JSON
    list[X] · Sequence[X] · tuple[X, ...]     array of X; a tuple is built, a Sequence stays a list
    dict[str, X] · Mapping[str, X]            object whose members are X
    Literal · Enum                            enum of its values: texts, whole numbers, booleans, null
    Optional · Union · X | Y                  anyOf; built as the first alternative that accepts it and can be built
    TypedDict · dataclass                     object with properties and required; a dataclass is built
    datetime · date · UUID · Decimal · bytes  string with a pattern, as `agentgate.encoding` writes them; built
    Annotated[X, "what it is", Ge(0)]         X with a description and bounds (`agentgate.tools.constraints`)
    a pydantic model                          pydantic's own schema and validation (`agentgate.tools.models`)

Anything else is refused: a guess would accept what the author did not mean. ``additionalProperties`` is left out.
"""

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NewType

from agentgate.canonical import Json, canonical, pointer, snapshot
from agentgate.errors import NotCanonical
from agentgate.observation import NoEffect
from agentgate.tools.constraints import keywords
from agentgate.tools.forms import Build, Form, Site, shown, unbuildable
from agentgate.tools.models import is_model, model_form
from agentgate.tools.scalars import SCALARS
from agentgate.tools.schemas import CheckedSchema, admit
from agentgate.tools.validation import check

_ARRAYS = (list, tuple, collections.abc.Sequence)
_OBJECTS = (dict, collections.abc.Mapping)
_KNOWN = "use a type of agentgate.tools.annotations' table, or give a spec with a schema beside the callable"


def form_of(hint: object, site: Site) -> Form:
    """Read a hint.

    Args:
        hint: resolved, with ``Annotated`` kept.
        site: where it stands.

    Raises:
        SpecRefused: the hint, or a part of it, is not in the table above.
    """
    origin = typing.get_origin(hint) or hint
    if origin is Annotated:
        return _annotated(hint, site)
    if origin is Literal:
        return _enumeration(typing.get_args(hint), site)
    if origin is typing.Union or origin is types.UnionType:
        return _union(typing.get_args(hint), site)
    if any(origin is each for each in _ARRAYS):
        return _array(hint, site, build_tuple=origin is tuple)
    if any(origin is each for each in _OBJECTS):
        return _object(hint, site)
    return _named(hint, site)


def described_object(
    parts: Mapping[str, Form], required: Iterable[str], defaults: Mapping[str, Json]
) -> dict[str, Json]:
    """Write an object's schema from its members' forms, in the order they are declared."""
    properties: dict[str, Json] = {
        name: {**form.schema, "default": defaults[name]} if name in defaults else form.schema
        for name, form in parts.items()
    }
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    listed: list[Json] = list(required)
    return {**schema, "required": listed} if listed else schema


def default_of(value: object, form: Form, site: Site) -> Json:
    """Return a default as JSON that its own hint can be built from, or refuse it."""
    default = _as_json(value, site)
    try:
        built_from(form, default, "")
    except NoEffect as error:
        raise site.refusal("the default cannot be built back from JSON", "widen the type: X | None = None") from error
    return default


def _as_json(value: object, site: Site) -> Json:
    try:
        return snapshot(value)
    except NotCanonical as error:
        raise site.refusal(f"no JSON form ({error.reason})", "use a value that has one, or None") from error


def _named(hint: object, site: Site) -> Form:
    """Read a hint that is one name: a scalar, a class with members, or a name for another hint."""
    if hint is Any:
        return Form(schema={})
    if isinstance(hint, NewType):
        return form_of(hint.__supertype__, site)
    if type(hint).__name__ == "TypeAliasType" and not typing.get_args(hint):  # PEP 695, from Python 3.12
        return form_of(_resolved(lambda: hint.__value__, hint, site), site.inside(hint))  # type: ignore[attr-defined]
    if hint is None or (isinstance(hint, type) and hint in SCALARS):
        return SCALARS[hint]
    if is_model(hint):
        return model_form(hint, site)
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        if issubclass(hint, enum.Enum) and not issubclass(hint, enum.Flag):
            return _enum(hint, site)
        if issubclass(hint, dict) and hasattr(hint, "__required_keys__"):
            return _typed_dict(hint, site)
        if dataclasses.is_dataclass(hint):
            return _dataclass(hint, site)
    raise site.refusal(f"{shown(hint)} has no schema", _KNOWN)


def _annotated(hint: object, site: Site) -> Form:
    inner, *metadata = typing.get_args(hint)
    form = form_of(inner, site)
    return Form(schema={**form.schema, **keywords(metadata, form.schema, site)}, build=form.build)


def _enumeration(values: Iterable[object], site: Site) -> Form:
    listed: list[Json] = []
    for value in values:
        if value is not None and type(value) not in (str, int, bool):
            raise site.refusal("a value that is no text, whole number, boolean or None", "list such values alone")
        listed.append(_as_json(value, site))
    listed.sort(key=canonical)
    kinds = sorted({_kind(value) for value in listed})
    return Form(schema={"enum": listed, **({"type": kinds[0]} if len(kinds) == 1 else {})})


def _kind(value: Json) -> str:
    return {str: "string", int: "integer", bool: "boolean"}.get(type(value), "null")


def _enum(hint: type[enum.Enum], site: Site) -> Form:
    form = _enumeration((member.value for member in hint), site)

    def build(value: Json, path: str) -> object:
        for member in hint:
            if type(member.value) is type(value) and member.value == value:
                return member
        raise unbuildable(path, "one of the listed values")

    return Form(schema=form.schema, build=build)


def _union(alternatives: Iterable[object], site: Site) -> Form:
    forms = sorted((form_of(each, site) for each in alternatives), key=lambda form: canonical(form.schema))
    written = [canonical(form.schema) for form in forms]
    if len(set(written)) < len(written):
        raise site.refusal("two alternatives have one schema", "tell them apart by a Literal member")
    schema: dict[str, Json] = {"anyOf": [form.schema for form in forms]}
    if all(form.build is None for form in forms):
        return Form(schema=schema)
    checked = [admit(_rooted(form.schema, site), tool=site.tool, path=site.path) for form in forms]
    return Form(schema=schema, build=_first_that_builds(list(zip(checked, forms, strict=True))))


def _rooted(schema: dict[str, Json], site: Site) -> Json:
    return {**schema, "$defs": dict(site.definitions)} if site.definitions else schema


def _first_that_builds(alternatives: list[tuple[CheckedSchema, Form]]) -> Build:
    def build(value: Json, path: str) -> object:
        for checked, form in alternatives:
            if not check(checked, value):
                try:
                    return value if form.build is None else form.build(value, path)
                except NoEffect:
                    continue  # accepted by its schema and no such thing: a text that is no date may still be a text
        raise unbuildable(path, "one of the alternatives")

    return build


def _array(hint: object, site: Site, *, build_tuple: bool) -> Form:
    arguments = typing.get_args(hint)
    if build_tuple and arguments[1:] != (...,) and hint not in (tuple, typing.Tuple):  # noqa: UP006 - the older name
        raise site.refusal("a tuple of fixed length", "use tuple[X, ...], list[X] or a dataclass")
    item = form_of(arguments[0], site.at("items")) if arguments else Form(schema={})
    schema: dict[str, Json] = {"type": "array", **({"items": item.schema} if arguments else {})}
    if item.build is None and not build_tuple:
        return Form(schema=schema)

    def build(value: Json, path: str) -> object:
        if not isinstance(value, list):
            raise unbuildable(path, "an array")
        built = (built_from(item, each, path + pointer(index)) for index, each in enumerate(value))
        return tuple(built) if build_tuple else list(built)

    return Form(schema=schema, build=build)


def _object(hint: object, site: Site) -> Form:
    arguments = typing.get_args(hint)
    if not arguments:
        return Form(schema={"type": "object"})
    if arguments[0] is not str:
        raise site.refusal("an object whose keys are not str", "use dict[str, X]")
    member = form_of(arguments[1], site.at("additionalProperties"))
    schema: dict[str, Json] = {"type": "object", "additionalProperties": member.schema}
    if member.build is None:
        return Form(schema=schema)

    def build(value: Json, path: str) -> object:
        members = membered(value, path)
        return {name: built_from(member, each, path + pointer(name)) for name, each in members.items()}

    return Form(schema=schema, build=build)


def _typed_dict(hint: Any, site: Site) -> Form:
    inner = site.inside(hint)
    parts: dict[str, Form] = {}
    required: list[str] = []
    for name, wrapped in _hints(hint, site).items():
        needed, bare = _requirement(wrapped, default=name in hint.__required_keys__)
        parts[name] = form_of(bare, inner.at("properties", name))
        if needed:
            required.append(name)
    schema = described_object(parts, required, {})
    if all(form.build is None for form in parts.values()):
        return Form(schema=schema)
    return Form(schema=schema, build=lambda value, path: _built_members(parts, value, path))


def _requirement(hint: object, *, default: bool) -> tuple[bool, object]:
    """Strip ``Required`` and its like; in a module of postponed annotations ``__required_keys__`` missed them."""
    needed = default
    while (name := getattr(typing.get_origin(hint), "_name", None)) in ("Required", "NotRequired", "ReadOnly"):
        needed = name == "Required" if name != "ReadOnly" else needed
        (hint,) = typing.get_args(hint)
    return needed, hint


def _dataclass(hint: Any, site: Site) -> Form:
    hints, inner = _hints(hint, site), site.inside(hint)
    if any(isinstance(each, dataclasses.InitVar) for each in hints.values()) or not hint.__dataclass_params__.init:
        raise site.refusal(f"{shown(hint)} has an __init__ of its own, or an InitVar", "use plain fields")
    fields = [field for field in dataclasses.fields(hint) if field.init]
    parts = {field.name: form_of(hints[field.name], inner.at("properties", field.name)) for field in fields}
    missing = dataclasses.MISSING
    required = [field.name for field in fields if field.default is missing and field.default_factory is missing]
    defaults = {
        field.name: default_of(field.default, parts[field.name], inner.at("properties", field.name, "default"))
        for field in fields
        if field.default is not missing
    }

    def build(value: Json, path: str) -> object:
        members = _built_members(parts, value, path)
        try:
            return hint(**members)
        except Exception:  # noqa: BLE001 - a __post_init__ is the caller's code, and what it says may quote the value
            raise unbuildable(path, f"what {hint.__qualname__} accepts") from None

    return Form(schema=described_object(parts, required, defaults), build=build)


def _hints(hint: object, site: Site) -> dict[str, Any]:
    hints = _resolved(lambda: typing.get_type_hints(hint, include_extras=True), hint, site)
    assert isinstance(hints, dict)  # what get_type_hints returns
    return hints


def _resolved(read: Callable[[], object], hint: object, site: Site) -> object:
    try:
        return read()
    except Exception as error:
        raise site.refusal(
            f"an annotation of {shown(hint)} cannot be resolved", "define what it names at the module's top level"
        ) from error


def _built_members(parts: Mapping[str, Form], value: Json, path: str) -> dict[str, object]:
    """Build the members that have a form; others stay, as an open object's schema says."""
    members = membered(value, path)
    return {
        name: built_from(parts[name], each, path + pointer(name)) if name in parts else each
        for name, each in members.items()
    }


def membered(value: Json, path: str) -> dict[str, Json]:
    """Return an object's members, or refuse another value cleanly."""
    if not isinstance(value, dict):
        raise unbuildable(path, "an object")
    return value


def built_from(form: Form, value: Json, path: str) -> object:
    """Build a value of a form; JSON is its own value where nothing is to be built."""
    return value if form.build is None else form.build(value, path)
