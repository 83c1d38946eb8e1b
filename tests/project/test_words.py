"""What the package does not say: nothing is put off, no name is empty, no cycle is hidden."""

import ast
import re
from types import ModuleType

import pytest

import agentgate
from support.source import PACKAGE, Module, modules

PUT_OFF = re.compile(
    r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|\bfor now\b|\bnot (yet )?implemented\b", re.IGNORECASE
)
EMPTY_MODULES = {"base", "common", "helper", "helpers", "manager", "misc", "types", "util", "utils"}
EMPTY_CLASS = re.compile(r"(Manager|Handler|Helper|Utils?|Service|Base|Impl|Info)$")


@pytest.mark.parametrize("room", ["agentgate", "migrations", "examples"])
def test_nothing_is_put_off_to_later(room: str) -> None:
    found = [
        f"{module.name}:{number} {line.strip()}"
        for module in modules(room)
        for number, line in enumerate(module.text.splitlines(), start=1)
        if PUT_OFF.search(line)
    ]
    assert not found


def test_no_module_is_named_after_nothing() -> None:
    assert not [module.name for module in modules(PACKAGE.name) if module.path.stem in EMPTY_MODULES]


def test_no_class_is_named_after_nothing() -> None:
    assert not [name for module in modules(PACKAGE.name) for name in _classes(module) if EMPTY_CLASS.search(name)]


def test_every_module_says_what_it_is() -> None:
    silent = [module.name for module in modules(PACKAGE.name) if module.text.strip() and not _documented(module)]
    assert not silent


def test_no_function_and_submodule_of_the_package_share_a_name() -> None:
    # A lazy `agentgate.x` would answer with the function the first time and with the module ever after.
    submodules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not submodules & _public_names()


def _classes(module: Module) -> list[str]:
    return [node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]


def _documented(module: Module) -> bool:
    return ast.get_docstring(module.tree) is not None


def _public_names() -> set[str]:
    named: list[str] = getattr(agentgate, "__all__", [])
    return {name for name in named if not isinstance(getattr(agentgate, name), ModuleType)}
