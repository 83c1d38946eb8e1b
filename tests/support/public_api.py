"""The golden list of public names and signatures, docs/api.txt, written from the source of what `__all__` names.

Run ``python tests/support/public_api.py --write`` after a promise was changed on purpose. The text comes from the
source's syntax tree and not from live annotations, whose spelling differs between versions of Python.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import agentgate

GOLDEN = Path(__file__).resolve().parents[2] / "docs" / "api.txt"
HEADER = "# Public names and signatures of agentgate; `python tests/support/public_api.py --write` writes this file.\n"

Function = ast.FunctionDef | ast.AsyncFunctionDef
SHOWN_DUNDERS = {"__init__", "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__"}


def render() -> str:
    """Write every public name, in order, one entry each."""
    names: list[str] = sorted(getattr(agentgate, "__all__", []))
    return HEADER + "".join("\n" + "\n".join(_entry(name, getattr(agentgate, name))) + "\n" for name in names)


def _entry(name: str, value: object) -> list[str]:
    if isinstance(value, ModuleType):
        return [f"module {name}"]
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return [f"{name}: {type(value).__name__}"]
    node = _node(value)
    if isinstance(node, ast.ClassDef):
        inherited = (_node(base) for base in _unnamed_bases(value))
        lines = [*_members(node), *(line for base in inherited for line in _members(base))]
        return [_class_line(node), *(f"    {line}" for line in lines)]
    assert isinstance(node, Function)
    return [_signature(node)]


def _node(value: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _unnamed_bases(value: Any) -> list[type]:
    """Return the classes of ours that it inherits and that have no entry of their own."""
    public: set[str] = set(getattr(agentgate, "__all__", []))
    bases = (base for base in value.__mro__[1:] if base.__module__.startswith("agentgate"))
    return [base for base in bases if base.__name__ not in public]


def _class_line(node: ast.ClassDef) -> str:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    return f"class {node.name}({bases})" if bases else f"class {node.name}"


def _members(node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        match member:
            case ast.AnnAssign(annotation=ast.Name(id="KW_ONLY")):
                yield "*"  # what follows is given by name
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                yield ast.unparse(member)
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_") or name == "__match_args__":
                yield ast.unparse(member)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("_") or name in SHOWN_DUNDERS:
                    yield _signature(member)


def _signature(node: Function) -> str:
    marks = "".join(f"@{ast.unparse(mark)} " for mark in node.decorator_list)
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{marks}{word} {node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(render(), "utf-8")
    else:
        sys.stdout.write(render())
