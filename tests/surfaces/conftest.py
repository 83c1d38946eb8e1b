"""Ledgers to look at: told once, since what looks changes nothing; who edits one edits a copy."""

from pathlib import Path

import pytest

from support.edits import Copy
from support.rechecks import Story, tell
from support.rich import rich
from support.worlds import World, made


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A ledger with a decision in each place where a policy makes one."""
    return tell(tmp_path_factory.mktemp("story"))


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a ledger in which everything has happened once."""
    return rich(tmp_path_factory.mktemp("rich"))


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Copy:
    return Copy(original=original, path=tmp_path / "copy.db").fresh()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)
