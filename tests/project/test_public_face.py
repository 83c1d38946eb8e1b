"""What users may rely on is written down: a changed promise shows in a diff."""

import ast
from pathlib import Path

import agentgate
from support.public_api import GOLDEN, render

NAMES: list[str] = getattr(agentgate, "__all__", [])


def test_the_public_face_is_the_one_written_down() -> None:
    assert render() == GOLDEN.read_text("utf-8"), "meant? then: python tests/support/public_api.py --write"


def test_every_public_name_resolves() -> None:
    assert not [name for name in NAMES if not hasattr(agentgate, name)]


def test_no_public_name_stands_twice() -> None:
    assert len(NAMES) == len(set(NAMES))


def test_looking_around_shows_the_public_face() -> None:
    assert set(NAMES) <= set(dir(agentgate))


def test_type_checkers_are_told_the_same_names_and_homes() -> None:
    stub = Path(agentgate.__file__).with_name("__init__.pyi")
    told = {
        alias.asname: node.module
        for node in ast.parse(stub.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes: dict[str, str] = vars(agentgate)["_HOMES"]
    assert told == dict(homes)
