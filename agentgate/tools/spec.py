"""What a tool is, as far as anyone but its callable must know: one frozen value with one digest over all of it.

Not the callable (`agentgate.tools.decorator`), and not what a server says of itself: the operator declares a spec.
What each field may hold is in `agentgate.tools.fields`; the document's form is docs/format.md, Spec.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any, Literal, TypeAlias, overload

from agentgate.canonical import Bounds, Json, canonical, parse, snapshot
from agentgate.clock import to_us
from agentgate.digests import document_digest
from agentgate.errors import NotCanonical, SpecRefused
from agentgate.shape import (
    Shape,
    flag,
    integer,
    listing,
    misfit,
    one_of,
    ordinal,
    record,
    text,
)
from agentgate.tools import fields
from agentgate.tools.defaults import refused_defaults
from agentgate.tools.names import check_name, check_names
from agentgate.tools.recovery import (
    RECOVERIES,
    FunctionName,
    Recovery,
    Retry,
    check_span,
    recovery_from_json,
    recovery_to_json,
    retry_from_json,
)
from agentgate.tools.resource import Template, check_template, expand, parse_template
from agentgate.tools.schemas import CheckedSchema, admit

Risk = Literal["read_only", "reversible", "external", "destructive", "credential"]
Undeclared = Literal["deny", "allow"]
Errors = Literal["unknown", "no_effect"]
Given: TypeAlias = Mapping[str, Any] | Json  # a schema as written down: wider than Json, whose dicts are invariant

# Two schemas and a description, each at its own bound, still make a document that can be read back.
DOCUMENT_BOUNDS = Bounds(max_bytes=4_194_304, max_depth=80, max_nodes=50_000)

# Recovery and parallel follow the risk unless given; no reader of a spec sees this value.
_BY_RISK: Any = None

_FUNCTION = record({"name": text, "version": text})
_DOCUMENT: Shape = {
    "confirm?": _FUNCTION,
    "dedupe_window_us?": ordinal,
    "description": text,
    "errors": text,
    "input_schema": lambda _value, _path: None,  # admitted like any other when the spec is made
    "max_output_bytes": ordinal,
    "name": text,
    "namespace": text,
    "output_schema?": lambda _value, _path: None,
    "parallel": flag,
    "permissions": listing(text),
    "probe?": _FUNCTION,
    "recovery": record({"class": one_of(*(each.word for each in RECOVERIES)), "window_us?": ordinal}),
    "resource?": text,
    "retry": record({"attempts": ordinal, "wait_us": integer, "longest_wait_us": integer, "within_us": ordinal}),
    "risk": text,
    "sensitive": listing(text),
    "tags": listing(text),
    "timeout_us": ordinal,
    "undeclared": text,
    "version": text,
}


class _Schema:
    """A field that keeps a schema as canonical bytes and hands out copies: no reader changes it for the next."""

    def __init__(self, *, optional: bool) -> None:
        self.optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, spec: None, owner: type) -> None: ...
    @overload
    def __get__(self, spec: object, owner: type) -> Json: ...
    def __get__(self, spec: object, owner: type) -> Json:
        if spec is not None:
            kept = vars(spec)[self.name]
            return None if kept is None else parse(kept, bounds=DOCUMENT_BOUNDS)
        if self.optional:
            return None
        raise AttributeError(self.name)  # how a descriptor tells a dataclass that there is no default

    def __set__(self, spec: object, schema: Given) -> None:
        absent = schema is None and self.optional
        kept = None if absent else _schema_bytes(schema, tool=str(vars(spec).get("name")), path=f"/{self.name}")
        vars(spec)[self.name] = kept


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)  # no slots: a `_Schema` needs the instance's dict
class ToolSpec:
    """A tool's declaration, checked as it is made; equal to another one when their documents are.

    Args:
        name: as the model calls it; compared exactly.
        namespace: the server it belongs to, ``""`` when none.
        version: the operator's word for this state of the tool, ``""`` when none.
        description: for the model and for approvers.
        input_schema: JSON Schema (2020-12 or draft-07) of the arguments. Each reading gives a copy of its own.
        output_schema: JSON Schema of the result; None checks nothing.
        risk: what the policy reads; ``external`` unless said otherwise.
        recovery: what an unknown outcome means; `Repeat` for ``read_only``, else `Operator`.
        timeout: of one attempt; a minute.
        max_output_bytes: what a loop is shown of a result; 64 KiB. The whole of it is kept as a payload.
        resource: a template like ``account:{account}``: writes that share it take turns. None when there is none.
        parallel: whether reads of one resource run side by side; so they do for ``read_only``.
        permissions: names that the policy may ask for.
        tags: names that the policy may match on.
        sensitive: JSON Pointers into the arguments whose values are sealed and masked.
        undeclared: whether arguments that the schema does not name are refused or passed on.
        errors: whether an exception of the tool's own leaves its outcome ``unknown`` or means ``no_effect``.
        retry: how a known failure is tried again; not at all unless said otherwise.
        confirm: the function that checks after a write that the world is as it should be.
        probe: the function that `Probe` recovery asks.
        dedupe_window: an identical request inside it is refused with the earlier outcome. None when there is none.

    Raises:
        SpecRefused: with the field's pointer, what is wrong there, and what would be accepted.
    """

    name: str
    namespace: str = ""
    version: str = ""
    description: str = ""
    input_schema: _Schema = _Schema(optional=False)
    output_schema: _Schema = _Schema(optional=True)
    risk: Risk = "external"
    recovery: Recovery = _BY_RISK
    timeout: timedelta = timedelta(seconds=60)
    max_output_bytes: int = 65_536
    resource: str | None = None
    parallel: bool = _BY_RISK
    permissions: Collection[str] = ()
    tags: Collection[str] = ()
    sensitive: Collection[str] = ()
    undeclared: Undeclared = "deny"
    errors: Errors = "unknown"
    retry: Retry = field(default_factory=Retry)
    confirm: FunctionName | None = None
    probe: FunctionName | None = None
    dedupe_window: timedelta | None = None
    # Made from the fields above, once.
    checked_input: CheckedSchema = field(init=False)
    checked_output: CheckedSchema | None = field(init=False)
    template: Template | None = field(init=False)
    digest: bytes = field(init=False)
    _document: bytes = field(init=False)

    def __post_init__(self) -> None:
        _check_plain(self)
        settled = _settled(self)
        vars(self).update(settled)
        content = canonical(_to_json(self))
        vars(self).update(_document=content, digest=document_digest("spec", content))

    def document(self) -> bytes:
        """Return the canonical bytes that the record keeps: all fields, defaults written out, nothing null."""
        return self._document

    def resource_of(self, arguments: Json) -> str | None:
        """Return the resource that validated arguments name, None where the tool declares none."""
        return None if self.template is None else expand(self.template, arguments)

    def refused_defaults(self) -> tuple[str, ...]:
        """Return pointers to the schema's defaults that their own subschemas refuse: they are never filled in."""
        return refused_defaults(self.checked_input)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolSpec) and self._document == other._document

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"ToolSpec(namespace={self.namespace!r}, name={self.name!r}, digest={self.digest.hex()[:16]})"

    def __reduce__(self) -> tuple[object, ...]:
        return from_document, (self._document,)  # compiled schemas do not travel between processes; the bytes do


def from_document(content: bytes) -> ToolSpec:
    """Read a spec back from its document, the exact inverse of `ToolSpec.document`.

    Args:
        content: bytes as stored; the caller has compared their digest.

    Raises:
        SpecRefused: not canonical, an unknown or missing field, or a value that no spec may hold.
    """
    return _read(bytes(content))


@lru_cache(maxsize=512)  # a recheck meets the same few specs in every decision
def _read(content: bytes) -> ToolSpec:
    value = _parsed(content)
    stated: dict[str, Any] = {name: value[name] for name in value if not name.endswith("_us")}
    stated["timeout"] = _span(value["timeout_us"])
    if "dedupe_window_us" in value:
        stated["dedupe_window"] = _span(value["dedupe_window_us"])
    stated["recovery"] = recovery_from_json(stated["recovery"])
    stated["retry"] = retry_from_json(stated["retry"])
    for name in ("confirm", "probe"):
        if name in stated:
            stated[name] = FunctionName(**stated[name])
    spec = ToolSpec(**stated)
    if spec.document() != content:
        raise SpecRefused(spec.name, "", "not the document of this spec", "hand over the bytes as they were stored")
    return spec


def _parsed(content: bytes) -> Mapping[str, Json]:
    try:
        value = parse(content, bounds=DOCUMENT_BOUNDS)
    except NotCanonical as error:
        raise SpecRefused("", error.path, f"no canonical JSON ({error.reason})", error.remedy) from error
    misfitting = misfit(_DOCUMENT, value)
    if misfitting is not None or not isinstance(value, dict):
        raise SpecRefused(
            "", misfitting or "", "missing, unknown, or not of its form", "read it with the version that wrote it"
        )
    return value


def _span(microseconds: Json) -> timedelta:
    assert isinstance(microseconds, int)  # its shape was checked
    return timedelta(microseconds=microseconds)


def _schema_bytes(schema: object, *, tool: str, path: str) -> bytes:
    try:
        return canonical(snapshot(schema))
    except NotCanonical as error:
        raise SpecRefused(tool, path + error.path, f"no JSON ({error.reason})", error.remedy) from error


@lru_cache(maxsize=4_096)  # compiled once for a spec, however often a gate opens or a document is read
def _admitted(schema: bytes, tool: str, path: str) -> CheckedSchema:
    return admit(parse(schema, bounds=DOCUMENT_BOUNDS), tool=tool, path=path)


def _check_plain(spec: ToolSpec) -> None:
    """Check what stays as it was given."""
    tool = spec.name
    check_name(tool, tool=str(tool), path="/name")
    fields.check_namespace(spec.namespace, tool=tool)
    fields.check_version(spec.version, tool=tool)
    fields.check_description(spec.description, tool=tool)
    for word, words in (("risk", Risk), ("undeclared", Undeclared), ("errors", Errors)):
        fields.check_word(getattr(spec, word), words, tool=tool, path=f"/{word}")
    check_span(spec.timeout, tool=tool, path="/timeout_us")
    if spec.dedupe_window is not None:
        check_span(spec.dedupe_window, tool=tool, path="/dedupe_window_us")
    fields.check_output_bytes(spec.max_output_bytes, tool=tool)
    fields.check_function(spec.confirm, tool=tool, path="/confirm")
    fields.check_function(spec.probe, tool=tool, path="/probe")
    if not isinstance(spec.retry, Retry):
        raise SpecRefused(tool, "/retry", "no Retry", "write Retry(attempts=3)")


def _settled(spec: ToolSpec) -> dict[str, object]:
    """Check what is completed or brought in order, and return it as the spec keeps it."""
    tool = spec.name
    recovery = fields.settle_recovery(spec.recovery, spec.probe, risk=spec.risk, tool=tool)
    parallel = spec.risk == "read_only" if spec.parallel is _BY_RISK else spec.parallel
    fields.check_flag(parallel, tool=tool, path="/parallel")
    checked = _admitted(vars(spec)["input_schema"], tool, "/input_schema")
    output = vars(spec)["output_schema"]
    template = None if spec.resource is None else parse_template(spec.resource, tool=tool)
    if template is not None:
        check_template(template, spec.input_schema, tool=tool)
    sensitive = fields.check_pointers(spec.sensitive, tool=tool)
    if spec.undeclared == "deny":
        fields.check_reach(sensitive, checked, root=spec.input_schema, tool=tool)
    return {
        "recovery": recovery,
        "parallel": parallel,
        "permissions": check_names(spec.permissions, tool=tool, path="/permissions"),
        "tags": check_names(spec.tags, tool=tool, path="/tags"),
        "sensitive": sensitive,
        "checked_input": checked,
        "checked_output": None if output is None else _admitted(output, tool, "/output_schema"),
        "template": template,
    }


def _to_json(spec: ToolSpec) -> dict[str, Json]:
    written: dict[str, Json] = {
        name: getattr(spec, name)
        for name in (
            *("name", "namespace", "version", "description", "input_schema"),
            *("risk", "max_output_bytes", "parallel", "undeclared", "errors"),
        )
    }
    written |= {name: sorted(getattr(spec, name)) for name in ("permissions", "tags", "sensitive")}
    written |= {
        "timeout_us": to_us(spec.timeout),
        "recovery": recovery_to_json(spec.recovery),
        "retry": spec.retry.to_json(),
    }
    optional: dict[str, Json] = {
        "output_schema": spec.output_schema,
        "resource": spec.resource,
        "confirm": None if spec.confirm is None else spec.confirm.to_json(),
        "probe": None if spec.probe is None else spec.probe.to_json(),
        "dedupe_window_us": None if spec.dedupe_window is None else to_us(spec.dedupe_window),
    }
    return written | {name: value for name, value in optional.items() if value is not None}
