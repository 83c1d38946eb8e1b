"""The project's own source as the tests of the floors read it: files and functions, never imported."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agentgate"
ROOMS = ("agentgate", "migrations", "tests", "benchmarks", "conformance", "examples")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One Python file and its text."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)


def modules(*rooms: str) -> tuple[Module, ...]:
    """Read every Python file of these top folders, in order of name."""
    paths = sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))
    return tuple(Module(path=path, text=path.read_text("utf-8")) for path in paths)


def functions(module: Module) -> Iterator[tuple[str, int]]:
    """Yield each function's place and its length in lines, its docstring not counted."""
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            yield f"{module.name}:{node.lineno} {node.name}", _length(node)


def collected(path: Path) -> frozenset[str]:
    """Name what pytest would collect from a file, methods of test classes included."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = [tree.body, *(node.body for node in classes)]
    found = {node.name for body in bodies for node in body if isinstance(node, Function)}
    found |= {f"{node.name}::{inner.name}" for node in classes for inner in node.body if isinstance(inner, Function)}
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return frozenset(found | {target.id for target in assigned if isinstance(target, ast.Name)})


def _length(node: Function) -> int:
    end = node.end_lineno or node.lineno
    first = node.body[0]
    if ast.get_docstring(node) is None:
        return end - node.lineno + 1
    return end - node.lineno + 1 - ((first.end_lineno or first.lineno) - first.lineno + 1)
