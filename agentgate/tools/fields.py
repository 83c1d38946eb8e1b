"""What each field of a tool's spec may hold: one check a field, so that a spec which exists is valid.

Every refusal names the field by pointer and what would be accepted. Schemas are `agentgate.tools.schemas`' own.
"""

import re
from collections.abc import Iterable
from typing import get_args

from agentgate.canonical import Json, pointer
from agentgate.errors import SpecRefused
from agentgate.tools.declared import undeclared
from agentgate.tools.names import as_listed, check_name, in_order
from agentgate.tools.recovery import RECOVERIES, FunctionName, Operator, Probe, Recovery, Repeat
from agentgate.tools.schemas import CheckedSchema

MAX_DESCRIPTION = 65_536
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
MAX_POINTER = 1_024

_STRAY_TILDE = re.compile("~(?![01])")


def check_description(value: object, *, tool: str) -> str:
    """Return a description: any text of Unicode up to its bound, ``""`` when there is none."""
    path = "/description"
    if type(value) is not str:
        raise SpecRefused(tool, path, "no text", "give a text, '' when there is none")
    if len(value) > MAX_DESCRIPTION:
        raise SpecRefused(tool, path, f"longer than {MAX_DESCRIPTION} characters", "shorten it")
    if any(is_surrogate(character) for character in value):
        raise SpecRefused(tool, path, "a lone surrogate", "give valid Unicode text")
    return value


def is_surrogate(character: str) -> bool:
    """Tell a lone surrogate, which no encoding can carry."""
    return "\ud800" <= character <= "\udfff"


def check_version(value: object, *, tool: str) -> str:
    """Return a version, which unlike a name may be empty."""
    return "" if value == "" else check_name(value, tool=tool, path="/version")


def check_namespace(value: object, *, tool: str) -> str:
    """Return a namespace, ``""`` when there is none."""
    return "" if value == "" else check_name(value, tool=tool, path="/namespace")


def check_word(value: object, words: object, *, tool: str, path: str) -> None:
    """Refuse a word outside a closed list, given as a Literal."""
    known = get_args(words)
    if type(value) is not str or value not in known:
        raise SpecRefused(tool, path, "not a word of the list", f"give one of {', '.join(known)}")


def check_flag(value: object, *, tool: str, path: str) -> None:
    """Refuse anything but True and False."""
    if type(value) is not bool:
        raise SpecRefused(tool, path, "neither True nor False", "give one of them")


def check_output_bytes(value: object, *, tool: str) -> None:
    """Refuse a cap that is no whole number in bounds."""
    if type(value) is not int or not 1 <= value <= MAX_OUTPUT_BYTES:
        remedy = f"give a whole number from 1 to {MAX_OUTPUT_BYTES}"
        raise SpecRefused(tool, "/max_output_bytes", "out of bounds", remedy)


def check_function(value: object, *, tool: str, path: str) -> None:
    """Refuse a function given as itself: the record holds its declared name and version."""
    if value is not None and not isinstance(value, FunctionName):
        raise SpecRefused(tool, path, "no FunctionName", "write FunctionName(name=..., version=...)")


def settle_recovery(recovery: object, probe: object, *, risk: str, tool: str) -> Recovery:
    """Return the recovery that is meant: as given, or by risk; a probe and its recovery come together.

    Raises:
        SpecRefused: not one of the five, or a `Probe` without its function, or a function that nobody would ask.
    """
    settled = (Repeat() if risk == "read_only" else Operator()) if recovery is None else recovery
    if not isinstance(settled, RECOVERIES):
        words = "Repeat(), Keyed(hours=24), Transactional(), Probe() or Operator()"
        raise SpecRefused(tool, "/recovery", "none of the five recoveries", f"give {words}")
    if isinstance(settled, Probe) and probe is None:
        raise SpecRefused(tool, "/probe", "recovery is probe and no function is named", "name it")
    if probe is not None and not isinstance(settled, Probe):
        raise SpecRefused(tool, "/probe", f"never asked under {settled.word}", "give recovery=Probe()")
    return settled


def check_pointers(values: object, *, tool: str, path: str = "/sensitive") -> tuple[str, ...]:
    """Return JSON Pointers (RFC 6901) as a sorted set."""
    return in_order(check_pointer(value, tool=tool, path=path) for value in as_listed(values, tool=tool, path=path))


def check_reach(pointers: Iterable[str], schema: CheckedSchema, *, root: Json, tool: str) -> None:
    """Refuse a sensitive pointer whose first step is no declared argument: misspelt, it would seal nothing.

    Args:
        pointers: as `check_pointers` gave them.
        schema: the admitted input schema.
        root: the schema as given, whose type tells whether arguments are an object at all.
        tool: for the refusal.
    """
    kinds = root.get("type", "object") if isinstance(root, dict) else "object"
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return
    for text in pointers:
        first = text.split("/")[1:2]
        name = "".join(first).replace("~1", "/").replace("~0", "~")
        if first and undeclared(schema, {name: None}):
            raise SpecRefused(
                tool, "/sensitive", f"{pointer(name)} is no declared argument", 'correct it, or set undeclared="allow"'
            )


def check_pointer(value: object, *, tool: str, path: str) -> str:
    """Return a JSON Pointer (RFC 6901)."""
    remedy = "write JSON Pointers like /card/number"
    if type(value) is not str or (value and not value.startswith("/")):
        raise SpecRefused(tool, path, "no JSON Pointer", remedy)
    if _STRAY_TILDE.search(value):
        raise SpecRefused(tool, path, "a ~ that is neither ~0 nor ~1", remedy)
    if len(value) > MAX_POINTER or any(map(is_surrogate, value)):
        raise SpecRefused(tool, path, "too long, or not Unicode", remedy)
    return value
